//! Who is let in, and what strange requests get.

use crate::rig::{Answer, Rig};
use deepmq_broker::users::{Password, Secret, UserSpec};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Every path that the description knows, with something in the place of each part.
fn paths() -> Vec<(String, String)> {
    let described: serde_json::Value = serde_json::from_str(&deepmq_api::document()).unwrap();
    let paths = described["paths"].as_object().unwrap();
    let methods = |item: &serde_json::Value| item.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let fill = |path: &str| {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    paths
        .iter()
        .flat_map(|(path, item)| methods(item).into_iter().map(move |method| (method, fill(path))))
        .collect()
}

/// Sends bytes as they are, and returns the head of the answer.
async fn raw(rig: &Rig, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(rig.address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    let mut answer = vec![0; 4096];
    let count = socket.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..count]).into_owned()
}

const GUEST: &str = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nHost: x\r\nConnection: close\r\n";

#[tokio::test]
async fn nothing_is_done_without_a_login() {
    let rig = Rig::start().await;
    let paths = paths();
    assert!(paths.len() > 60, "{}", paths.len());
    for (method, path) in paths {
        let method = method.to_uppercase().parse().unwrap();
        let url = format!("http://{}{path}", rig.address);
        let answer = rig.client().request(method, &url).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{url}");
        assert_eq!(answer.headers()["www-authenticate"], "Basic realm=\"RabbitMQ Management\"");
    }
    for public in ["/api/openapi.json", "/swagger/"] {
        let url = format!("http://{}{public}", rig.address);
        assert_eq!(rig.client().get(url).send().await.unwrap().status(), 200, "{public}");
    }
    assert_eq!(rig.client().get(rig.url("/no/such/path")).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_wrong_password_an_unknown_user_and_a_user_without_a_tag_are_refused() {
    let rig = Rig::start().await;
    let as_user = async |name: &str, password: &str| {
        let asked = rig.client().get(rig.url("/whoami")).basic_auth(name, Some(password));
        Answer::read(asked.send().await.unwrap()).await
    };
    assert_eq!(as_user("guest", "guest").await.status, 200);
    assert_eq!(as_user("guest", "wrong").await.refusal(), (401, "not_authorized", "Not_Authorized"));
    assert_eq!(as_user("nobody-known", "guest").await.refusal(), (401, "not_authorized", "Not_Authorized"));
    assert_eq!(as_user("nobody", "guest").await.refusal(), (401, "not_authorized", "Not management user"));
}

#[tokio::test]
async fn who_guesses_passwords_is_held_up_and_who_is_known_is_not() {
    let rig = Rig::start_with(|_| {}, |config| config.failed_logins_max = 3).await;
    assert_eq!(rig.get("/whoami").await.status, 200);
    let guess = async || {
        let asked = rig.client().get(rig.url("/whoami")).basic_auth("monitor", Some("guess"));
        asked.send().await.unwrap()
    };
    for _ in 0..3 {
        assert_eq!(guess().await.status(), 401);
    }
    let held_up = guess().await;
    assert_eq!((held_up.status().as_u16(), held_up.headers()["retry-after"].to_str().unwrap()), (429, "60"));
    assert_eq!(rig.get("/whoami").await.status, 200, "guest logged in before");
}

#[tokio::test]
async fn a_refusal_does_not_tell_whether_there_is_such_a_user() {
    // That the same work is done for both is tested where it is done.
    let real = UserSpec::new("real", Password::Plain(Secret::new("secret")));
    let rig = Rig::start_with(|config| config.users.push(real), |_| {}).await;
    let refusal = async |user: &str| {
        let asked =
            rig.client().get(rig.url("/whoami")).basic_auth(user, Some("wrong")).send().await.unwrap();
        let mut headers = asked.headers().clone();
        headers.remove("date");
        headers.remove("x-request-id");
        (asked.status(), headers, asked.text().await.unwrap())
    };
    assert_eq!(refusal("real").await, refusal("unknown").await);
}

#[tokio::test]
async fn a_body_may_be_as_large_as_its_bound_and_no_larger() {
    let rig = Rig::start().await;
    let declare = async |bytes: usize| {
        let padding = " ".repeat(bytes - 2);
        let url = rig.url("/queues/%2F/q");
        let asked = rig.client().put(url).basic_auth("guest", Some("guest")).body(format!("{{{padding}}}"));
        Answer::read(asked.send().await.unwrap()).await
    };
    assert_eq!(declare((1 << 20) - 1).await.status, 201);
    assert_eq!(declare(1 << 20).await.status, 204);
    assert_eq!(declare((1 << 20) + 1).await.refusal().0, 413);
    let announced = format!("PUT /api/queues/%2F/q HTTP/1.1\r\n{GUEST}Content-Length: 99999999999\r\n\r\n");
    assert!(raw(&rig, announced.as_bytes()).await.starts_with("HTTP/1.1 413 "));
    let chunk = format!("100001\r\n{}\r\n", " ".repeat((1 << 20) + 1));
    let chunked = format!(
        "PUT /api/queues/%2F/q HTTP/1.1\r\n{GUEST}Transfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"
    );
    assert!(raw(&rig, chunked.as_bytes()).await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test]
async fn json_that_is_none_is_refused_with_the_place() {
    let rig = Rig::start().await;
    let put = async |body: &str| {
        let asked = rig.client().put(rig.url("/queues/%2F/q")).basic_auth("guest", Some("guest"));
        Answer::read(asked.body(body.to_owned()).send().await.unwrap()).await
    };
    for body in ["{", "[", "{\"durable\": 7}", "nonsense", "{\"arguments\":{\"a\":1e999}}", "\u{feff}{}"] {
        let answer = put(body).await;
        assert_eq!(answer.refusal().0, 400, "{body}");
        assert!(answer.refusal().2.contains("line 1"), "{answer:?}");
    }
    let deep = format!("{{\"arguments\":{}{}}}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    assert_eq!(put(&deep).await.status, 400);
    let nested = format!("{{\"arguments\":{}1{}}}", "{\"a\":".repeat(65), "}".repeat(65));
    assert!(put(&nested).await.refusal().2.contains("nested"), "one more than the limit");
    let nested = format!("{{\"arguments\":{}1{}}}", "{\"a\":".repeat(64), "}".repeat(64));
    assert_eq!(put(&nested).await.status, 201);
}

#[tokio::test]
async fn names_in_paths_are_decoded_once_and_lead_nowhere_else() {
    let rig = Rig::start().await;
    for (path, name) in [("..%2F..%2Fetc", "../../etc"), ("%252F", "%2F"), ("a%00b", "a\0b"), ("%C3%BC", "ü")]
    {
        assert_eq!(rig.put(&format!("/queues/%2F/{path}"), json!({})).await.status, 201, "{path}");
        assert_eq!(rig.json(&format!("/queues/%2F/{path}")).await["name"], name);
    }
    for path in ["/queues/%2F/%FF", "/queues/%2F/%C3%28"] {
        let head = raw(&rig, format!("GET /api{path} HTTP/1.1\r\n{GUEST}\r\n").as_bytes()).await;
        assert!(head.starts_with("HTTP/1.1 400 "), "{path}: {head}");
    }
    for path in
        ["/api/../etc/passwd", "/swagger/../../Cargo.toml", "/swagger/..%2F..%2FCargo.toml", "//api/overview"]
    {
        let head = raw(&rig, format!("GET {path} HTTP/1.1\r\n{GUEST}\r\n").as_bytes()).await;
        assert!(head.starts_with("HTTP/1.1 404 "), "{path}: {head}");
    }
}

#[tokio::test]
async fn another_site_can_neither_read_an_answer_nor_ask_in_a_user_s_name() {
    let rig = Rig::start().await;
    let asked = rig.client().get(rig.url("/overview")).basic_auth("guest", Some("guest"));
    let answer = asked.header("origin", "https://evil.example").send().await.unwrap();
    let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap());
    assert_eq!((header("access-control-allow-origin"), header("set-cookie")), (None, None));
    assert_eq!(
        (header("x-content-type-options"), header("x-frame-options")),
        (Some("nosniff"), Some("DENY"))
    );
    let url = rig.url("/queues/%2F/q");
    let preflight =
        rig.client().request(reqwest::Method::OPTIONS, url).header("origin", "https://evil.example");
    let preflight = preflight.header("access-control-request-method", "PUT").send().await.unwrap();
    assert!(!preflight.status().is_success());
    let cookie = rig.client().get(rig.url("/overview")).header("cookie", "m=2258:Z3Vlc3Q6Z3Vlc3Q%3D");
    assert_eq!(cookie.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn every_answer_has_a_number_the_client_s_own_if_it_is_sound() {
    let rig = Rig::start().await;
    let number = async |given: Option<&str>| {
        let mut asked = rig.client().get(rig.url("/whoami"));
        if let Some(given) = given {
            asked = asked.header("x-request-id", given);
        }
        asked.send().await.unwrap().headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(number(Some("order-7/a.b:c_d+e=")).await, "order-7/a.b:c_d+e=");
    assert_ne!(number(None).await, number(None).await);
    assert_ne!(number(Some("a b")).await, "a b");
    assert_ne!(number(Some(&"x".repeat(65))).await, "x".repeat(65));
    assert_eq!(number(Some(&"x".repeat(64))).await, "x".repeat(64));
}

#[tokio::test]
async fn a_wrong_method_is_refused_as_such() {
    let rig = Rig::start().await;
    assert_eq!(rig.post("/overview", json!({})).await.refusal().0, 405);
    assert_eq!(rig.get("/queues/%2F/q/get").await.refusal().0, 405);
}

#[tokio::test]
async fn one_connection_more_than_the_limit_is_closed() {
    let rig = Rig::start_with(|_| {}, |config| config.connections_max = 1).await;
    let first = TcpStream::connect(rig.address).await.unwrap();
    let mut second = TcpStream::connect(rig.address).await.unwrap();
    assert_eq!(second.read(&mut [0; 1]).await.unwrap_or(0), 0);
    drop(first);
}
