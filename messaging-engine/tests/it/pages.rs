//! Contract section 1.5, on listings of every kind.

use messaging_core::input;
use messaging_engine::ops::{Page, PageQuery};
use serde_json::{Value, json};

use crate::bed::Bed;

#[track_caller]
fn check(query: &str, expected: &str) {
    let found = match input::query::<PageQuery>(query) {
        Ok(page) => format!("{:?} {:?}", page.limit, page.cursor),
        Err(error) => {
            let fault = messaging_engine::Error::from(error).to_body("r")["error"]["details"]["errors"][0].clone();
            format!("{} {}", fault["parameter"].as_str().unwrap(), fault["code"].as_str().unwrap())
        }
    };
    assert_eq!(found, expected, "{query}");
}

#[test]
fn a_limit_is_a_number_from_1_to_200() {
    check("", "None None");
    check("limit=1", "Some(1) None");
    check("limit=200", "Some(200) None");
    check("limit=0", "limit out_of_range");
    check("limit=201", "limit out_of_range");
    check("limit=-1", "limit out_of_range");
    check("limit=99999999999999999999", "limit out_of_range");
    check("limit=abc", "limit invalid_type");
    check("limit=", "limit invalid_type");
    check("limit=1.5", "limit invalid_type");
    check("limit=null", "limit invalid_type");
    check("limit=true", "limit invalid_type");
    check("limit=%22a", "limit invalid_type");
    check("limit=1&limit=2", "Some(2) None");
    check("cursor=a%2Bb&unknown=1", r#"None Some("a+b")"#);
    // Refused later, as a cursor that was never issued.
    check("cursor=%00", "None Some(\"\u{fffd}\")");
}

/// All pages of a listing, with pages of `limit`.
async fn walk(bed: &Bed, caller: &messaging_engine::Caller, target: &str, limit: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let next = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        let page = bed.get(caller, &format!("{target}?limit={limit}{next}")).await;
        assert_eq!(page.summary(), "200");
        let page: Page<Value> = serde_json::from_value(page.body).unwrap();
        assert!(page.data.len() <= limit);
        items.extend(page.data);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return items,
        }
    }
}

#[tokio::test]
async fn pages_join_to_the_whole_newest_first() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let keys = format!("/workspaces/{workspace}/api-keys");
    for n in 0..7 {
        bed.post(&owner, &keys, json!({"name": format!("key {n}"), "scopes": ["*"]})).await;
        bed.post(&owner, "/workspaces", json!({"name": format!("workspace {n}")})).await;
        let member = json!({"email": format!("member{n}@acme.com"), "role": "viewer"});
        bed.post(&owner, &format!("/workspaces/{workspace}/members"), member).await;
    }
    for limit in [1, 3, 7, 8, 200] {
        let names: Vec<_> = walk(&bed, &owner, &keys, limit).await.iter().map(|key| key["name"].clone()).collect();
        assert_eq!(names, ["key 6", "key 5", "key 4", "key 3", "key 2", "key 1", "key 0"], "{limit}");
        assert_eq!(walk(&bed, &owner, &format!("/workspaces/{workspace}/members"), limit).await.len(), 8);
        let workspaces = walk(&bed, &owner, "/workspaces", limit).await;
        assert_eq!((workspaces.len(), &workspaces[0]["name"]), (8, &json!("workspace 6")));
    }
}

#[tokio::test]
async fn a_page_is_stable_under_inserts() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let keys = format!("/workspaces/{workspace}/api-keys");
    for n in 0..4 {
        bed.post(&owner, &keys, json!({"name": format!("{n}"), "scopes": ["*"]})).await;
    }
    let first = bed.get(&owner, &format!("{keys}?limit=2")).await;
    bed.post(&owner, &keys, json!({"name": "late", "scopes": ["*"]})).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = bed.get(&owner, &format!("{keys}?limit=2&cursor={cursor}")).await;
    let names: Vec<_> = second["data"].as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
    assert_eq!((names, &second["next_cursor"]), (vec![json!("1"), json!("0")], &Value::Null));
}

#[tokio::test]
async fn a_cursor_works_only_where_it_came_from() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let keys = format!("/workspaces/{workspace}/api-keys");
    for n in 0..3 {
        bed.post(&owner, &keys, json!({"name": format!("{n}"), "scopes": ["*"]})).await;
    }
    let cursor = bed.get(&owner, &format!("{keys}?limit=1&tag=a")).await["next_cursor"].as_str().unwrap().to_owned();
    let check = async |target: String, expected: &str| {
        assert_eq!(bed.get(&owner, &target).await.summary(), expected, "{target}");
    };
    // Another limit and another order of the parameters belong to the same listing.
    check(format!("{keys}?cursor={cursor}&tag=a&limit=2"), "200").await;
    check(format!("{keys}?cursor={cursor}"), "400 invalid_cursor").await;
    check(format!("{keys}?cursor={cursor}&tag=b"), "400 invalid_cursor").await;
    check(format!("/workspaces/{workspace}/members?cursor={cursor}&tag=a"), "400 invalid_cursor").await;
    check(format!("/workspaces?cursor={cursor}&tag=a"), "400 invalid_cursor").await;
    check(format!("{keys}?cursor=x&tag=a"), "400 invalid_cursor").await;
    check(format!("{keys}?cursor=&tag=a"), "400 invalid_cursor").await;
    check(format!("{keys}?cursor={}&tag=a", &cursor[1..]), "400 invalid_cursor").await;
    // Rules of the query are checked before the cursor's meaning.
    check(format!("{keys}?cursor=x&limit=0"), "422 limit out_of_range").await;
}
