//! What a list looks like, whichever way it was asked for.

use super::*;
use axum::body::to_bytes;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
struct Fruit(&'static str, u32);

#[derive(Serialize)]
struct Shown {
    name: &'static str,
    inner: Inner,
}

#[derive(Serialize)]
struct Inner {
    size: u32,
    sweet: bool,
}

impl Named for Fruit {
    fn name(&self) -> &str {
        self.0
    }
}

fn fruits() -> Vec<Fruit> {
    vec![Fruit("Apple", 3), Fruit("banana", 9), Fruit("cherry", 1), Fruit("date", 1)]
}

fn query(text: &str) -> ListQuery {
    let uri = format!("/?{text}").parse().unwrap();
    axum::extract::Query::try_from_uri(&uri).unwrap().0
}

async fn get(text: &str, handles: Vec<Fruit>) -> Result<Value, ApiError> {
    let show = |fruit: &Fruit| Shown { name: fruit.0, inner: Inner { size: fruit.1, sweet: fruit.1 > 2 } };
    let response = list(&query(text), handles, show)?;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    Ok(serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap())
}

async fn names(text: &str) -> Vec<String> {
    let shown = get(text, fruits()).await.unwrap();
    let items = shown.get("items").unwrap_or(&shown).as_array().unwrap().clone();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn without_a_page_it_is_an_array_and_with_one_an_envelope() {
    assert_eq!(names("").await, ["Apple", "banana", "cherry", "date"]);
    let page = get("page=2&page_size=3&name=a", fruits()).await;
    assert!(page.is_err(), "three match, so there is one page");
    let page = get("page=2&page_size=3", fruits()).await.unwrap();
    let counts = |field: &str| page[field].as_u64().unwrap();
    assert_eq!((counts("total_count"), counts("item_count"), counts("filtered_count")), (4, 1, 4));
    assert_eq!((counts("page"), counts("page_size"), counts("page_count")), (2, 3, 2));
    assert_eq!(page["items"][0]["name"], "date");
}

#[tokio::test]
async fn names_are_filtered_by_text_or_pattern_in_any_case() {
    assert_eq!(names("name=AN").await, ["banana"]);
    assert_eq!(names("name=.").await, Vec::<String>::new(), "a dot is a dot");
    assert_eq!(names("name=%5E[ac]&use_regex=true&page=1").await, ["Apple", "cherry"]);
    assert!(get("name=(&use_regex=true", vec![]).await.is_err());
    assert!(get("name=(a{1000}){1000}&use_regex=true", vec![]).await.is_err(), "too large a program");
    assert!(get(&format!("name={}", "a".repeat(1025)), vec![]).await.is_err());
}

#[tokio::test]
async fn it_is_sorted_by_any_field_and_keeps_the_order_of_names_beside() {
    assert_eq!(names("sort=inner.size").await, ["cherry", "date", "Apple", "banana"]);
    assert_eq!(names("sort=inner.sweet").await, ["cherry", "date", "Apple", "banana"]);
    assert_eq!(names("sort=name&sort_reverse=true").await, ["date", "cherry", "banana", "Apple"]);
    assert_eq!(names("sort=nothing").await, ["Apple", "banana", "cherry", "date"]);
}

#[tokio::test]
async fn only_the_columns_asked_for_are_there() {
    let shown = get("columns=name,inner.size,gone.away", vec![Fruit("Apple", 3)]).await.unwrap();
    assert_eq!(shown, json!([{"name": "Apple", "inner": {"size": 3}}]));
}

#[tokio::test]
async fn pages_that_do_not_exist_are_refused() {
    for text in ["page=0", "page=5", "page=1&page_size=0", "page=1&page_size=501"] {
        assert!(get(text, fruits()).await.is_err(), "{text}");
    }
    assert_eq!(get("page=1", vec![]).await.unwrap()["page_count"], 1, "an empty list has one page");
    assert!(get("page=1&page_size=500", fruits()).await.is_ok());
}

#[tokio::test]
async fn a_long_list_comes_whole_and_in_order() {
    let many: Vec<_> = (0..5_000).map(|size| Fruit("kiwi", size)).collect();
    let shown = get("", many).await.unwrap();
    let sizes: Vec<_> = shown.as_array().unwrap().iter().map(|item| item["inner"]["size"].as_u64()).collect();
    assert!(sizes.into_iter().eq((0..5_000).map(Some)));
}
