//! The description of the API: as it is checked in, and as it is served.

use crate::rig::Rig;
use serde_json::Value;

const CHECKED_IN: &str = include_str!("../../../../docs/openapi.json");

#[test]
fn the_description_that_is_checked_in_is_that_of_the_handlers() {
    let made = deepmq_api::document();
    if std::env::var_os("DEEPMQ_WRITE_OPENAPI").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json"), &made).unwrap();
        return;
    }
    assert!(
        made == CHECKED_IN,
        "run DEEPMQ_WRITE_OPENAPI=1 cargo test -p deepmq-api openapi, and look at the difference"
    );
}

#[test]
fn it_is_openapi_3_1_with_a_login_and_every_part_of_a_path() {
    let described: Value = serde_json::from_str(CHECKED_IN).unwrap();
    assert!(described["openapi"].as_str().unwrap().starts_with("3.1."));
    assert_eq!(described["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(described["info"]["contact"].is_null(), "nobody else answers for it");
    assert_eq!(described["components"]["securitySchemes"]["basic"]["scheme"], "basic");
    for (path, item) in described["paths"].as_object().unwrap() {
        assert!(path.starts_with("/api/"), "{path}");
        for (method, operation) in item.as_object().unwrap() {
            let parts = path.split('/').filter(|part| part.starts_with('{')).count();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            assert_eq!(
                parameters.filter(|parameter| parameter["in"] == "path").count(),
                parts,
                "{method} {path}"
            );
            assert!(operation["summary"].is_string(), "{method} {path} says what it does");
            assert!(operation["responses"]["401"].is_object(), "{method} {path}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let described: Value = serde_json::from_str(CHECKED_IN).unwrap();
    let mut references = Vec::new();
    collect(&described, &mut references);
    assert!(references.len() > 50);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(described.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect(field, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[tokio::test]
async fn it_is_served_with_a_page_to_try_it() {
    let rig = Rig::start().await;
    let fetch =
        async |path: &str| rig.client().get(format!("http://{}{path}", rig.address)).send().await.unwrap();
    assert!(fetch("/api/openapi.json").await.text().await.unwrap() == CHECKED_IN, "another one is served");
    let page = fetch("/swagger/").await;
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    assert!(page.text().await.unwrap().contains("swagger-ui"));
    let script = fetch("/swagger/swagger-initializer.js").await.text().await.unwrap();
    assert!(script.contains("/api/openapi.json"), "{script}");
}

#[tokio::test]
async fn who_opens_the_bare_address_in_a_browser_comes_to_the_description() {
    let rig = Rig::start().await;
    let answer = rig.client().get(format!("http://{}/", rig.address)).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.url().path()), (200, "/swagger/"));
}

#[tokio::test]
async fn options_tells_which_methods_a_path_has_to_who_may_ask() {
    let rig = Rig::start().await;
    let asked = rig.client().request(reqwest::Method::OPTIONS, rig.url("/queues/%2F/q"));
    let answer = asked.basic_auth("guest", Some("guest")).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["allow"]),
        (200, &"GET,HEAD,PUT,DELETE".parse().unwrap())
    );
}
