//! Sources of mail as the operator sees and orders them.

use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use messaging_core::changes::{Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::source::{NamedSource, PathRow, SourceAddress, SourceRow, SourceStatus};
use messaging_core::domain::delivery::path::PathState;
use messaging_core::domain::delivery::site::{Site, SiteLimits, SiteName, SiteRules};
use messaging_core::ports::store::{Priority, Topic};
use messaging_engine::Caller;
use serde_json::{Value, json};

use crate::bed::{self, Bed, Call};

/// The operator: all powers, and no session of a person.
const OPERATOR: Caller = Caller::Operator(None);

const PATH: &str = "/system/sources";

fn source(n: u8) -> SourceAddress {
    IpAddr::from([203, 0, 113, n]).into()
}

/// A node with two sources; of the first one it is known how it fares.
async fn node() -> Bed {
    let bed = Bed::start();
    let named = |ip: SourceAddress, name: &str| NamedSource { ip, name: name.to_owned() };
    let sources = [named(source(1), "mx1.example.org"), named(source(2), "mx2.example.org")];
    bed.store.announce_sources(&sources).await.unwrap();
    let row = SourceRow { level: 4, last_used_at: Some(bed.app.now()), ..SourceRow::new(source(1), bed.app.now()) };
    let path = |site: &str, sent_today| PathRow {
        ip: source(1),
        site: site.to_owned(),
        state: serde_json::to_string(&PathState::default()).unwrap(),
        sent_today,
        day: 20_484,
        is_stopped: false,
        updated_at: bed.app.now(),
    };
    let mut writes = vec![Write::Source(SourceWrite::PutSource(row, Expect::Absent))];
    for (site, sent) in [("example.org", 1), ("gmail", 7)] {
        writes.push(Write::Source(SourceWrite::PutPath(Box::new(path(site, sent)), Expect::Absent)));
    }
    bed.store.commit(writes.into_iter().collect(), Priority::Foreground).await.unwrap();
    bed
}

async fn listed(bed: &Bed) -> Vec<Value> {
    bed.get(&OPERATOR, PATH).await["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn sources_are_listed_with_their_busiest_paths() {
    let bed = node().await;
    let all = listed(&bed).await;
    assert_eq!(all.len(), 2);
    let first = &all[0];
    assert_eq!((&first["ip"], &first["name"]), (&json!("203.0.113.1"), &json!("mx1.example.org")));
    assert_eq!((&first["status"], &first["level"]), (&json!("warming"), &json!(4)));
    assert_eq!(first["last_used_at"], "2026-01-31T09:15:00.000Z");
    assert!(first["node"].is_string());
    let sites: Vec<_> = first["paths"].as_array().unwrap().iter().map(|path| path["site"].clone()).collect();
    assert_eq!(sites, ["gmail", "example.org"]);
    assert_eq!(first["paths"][0]["status"], "ok");
    let second = &all[1];
    assert_eq!((&second["status"], &second["level"], &second["paths"]), (&json!("warming"), &json!(0), &json!([])));
    // Page by page.
    let page = bed.get(&OPERATOR, &format!("{PATH}?limit=1")).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = bed.get(&OPERATOR, &format!("{PATH}?limit=1&cursor={cursor}")).await;
    assert_eq!((&rest["data"][0], &rest["next_cursor"]), (second, &Value::Null));
}

#[tokio::test]
async fn the_operator_orders_a_source() {
    let bed = node().await;
    let mut news = bed.store.news();
    let before = *news.borrow_and_update();
    let order = async |ip: &str, body: Value| bed.patch(&OPERATOR, &format!("{PATH}/{ip}"), body).await;
    let warm = order("203.0.113.1", json!({"status": "warm"})).await;
    assert_eq!(
        (&warm["status"], &warm["level"], &warm["name"]),
        (&json!("warm"), &json!(4), &json!("mx1.example.org"))
    );
    assert!(news.borrow_and_update().since(&before).contains(Topic::Sources));
    assert_eq!(order("203.0.113.2", json!({"status": "stopped"})).await["status"], "stopped");
    assert_eq!(listed(&bed).await.iter().map(|one| one["status"].clone()).collect::<Vec<_>>(), ["warm", "stopped"]);
    assert_eq!(order("203.0.113.2", json!({"status": "warming"})).await.summary(), "200");
    for (ip, body, expected) in [
        ("203.0.113.1", json!({}), "422 /status required"),
        ("203.0.113.1", json!({"status": "hot"}), "422 /status unknown_value"),
        ("203.0.113.1", json!({"status": "resting"}), "422 /status not_allowed"),
        ("203.0.113.9", json!({}), "404 not_found"),
        ("203.0.113.9", json!({"status": "warming"}), "404 not_found"),
        ("default", json!({"status": "warm"}), "404 not_found"),
        ("mx1.example.org", json!({"status": "warm"}), "404 not_found"),
    ] {
        assert_eq!(order(ip, body.clone()).await.summary(), expected, "{ip} {body}");
    }
    // An address that a node is only to have may be known to receivers.
    let ahead = order("2001:db8::9", json!({"status": "warm"})).await;
    assert_eq!((&ahead["status"], &ahead["name"], &ahead["node"]), (&json!("warm"), &Value::Null, &Value::Null));
    let kept = bed.store.source_row("2001:db8::9".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(kept.record.status, SourceStatus::Warm);
    assert_eq!(listed(&bed).await.len(), 2);
}

#[tokio::test]
async fn the_operator_stops_and_releases_a_path() {
    let bed = node().await;
    let order = async |path: &str, body: Value| bed.patch(&OPERATOR, &format!("{PATH}/{path}"), body).await;
    let stopped = order("203.0.113.1/paths/gmail", json!({"status": "stopped"})).await;
    assert_eq!((&stopped["status"], &stopped["rate_per_minute"]), (&json!("stopped"), &json!(0)));
    let row = bed.store.path_row(source(1), "gmail").await.unwrap().unwrap();
    assert!(row.record.is_stopped && row.revision == 2);
    assert_eq!(order("203.0.113.1/paths/gmail", json!({"status": "stopped"})).await.summary(), "200");
    let released = order("203.0.113.1/paths/gmail", json!({"status": "ok"})).await;
    assert_eq!((&released["status"], &released["reason"]), (&json!("ok"), &Value::Null));
    assert!(!bed.store.path_row(source(1), "gmail").await.unwrap().unwrap().record.is_stopped);
    for (path, body, expected) in [
        ("203.0.113.1/paths/gmail", json!({"status": "slowed"}), "422 /status not_allowed"),
        ("203.0.113.1/paths/gmail", json!({}), "422 /status required"),
        ("203.0.113.1/paths/yahoo", json!({}), "404 not_found"),
        ("203.0.113.2/paths/gmail", json!({"status": "ok"}), "404 not_found"),
    ] {
        assert_eq!(order(path, body.clone()).await.summary(), expected, "{path} {body}");
    }
}

#[tokio::test]
async fn nobody_but_an_operator_sees_sources() {
    let bed = node().await;
    let (bed, _, owner) = bed.and_owner().await;
    assert_eq!(bed.get(&owner, PATH).await.summary(), "403 role_forbidden");
    let body = json!({"status": "warm"});
    assert_eq!(bed.patch(&owner, &format!("{PATH}/203.0.113.1"), body).await.summary(), "403 role_forbidden");
}

#[tokio::test]
async fn paths_that_were_not_used_for_two_months_are_forgotten() {
    let bed = node().await;
    bed.clock.advance(std::time::Duration::from_hours(61 * 24));
    messaging_engine::work::sweep::sweep(&bed.app).await.unwrap();
    assert_eq!(bed.store.path_rows(source(1), None, 9).await.unwrap(), []);
    assert!(bed.store.source_row(source(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn paths_are_shown_by_the_rules_that_the_server_goes_by() {
    let bed = node().await;
    let limits = SiteLimits { warm_up: 7, ..SiteLimits::default() };
    let gmail = Site { name: SiteName::parse("gmail").unwrap(), exchangers: Vec::new(), limits };
    let rules = SiteRules::new(SiteLimits::default(), vec![gmail], Vec::new());
    let other = bed.another_process_by(Arc::new(rules));
    let reply = bed::send(&other, Call::new(&OPERATOR, Method::GET, PATH)).await;
    assert_eq!(reply["data"][0]["paths"][0]["allowed_today"], 350);
    assert_eq!(listed(&bed).await[0]["paths"][0]["allowed_today"], 50);
}

#[tokio::test]
async fn what_a_node_found_of_a_source_is_shown_and_can_be_sent_back() {
    let bed = node().await;
    let path = format!("{PATH}/203.0.113.1");
    let stored = bed.store.source_row(source(1)).await.unwrap().unwrap();
    let found = SourceRow { found: Some(SourceStatus::Resting), ..stored.record };
    let write = Write::Source(SourceWrite::PutSource(found, Expect::Revision(stored.revision)));
    bed.store.commit([write].into_iter().collect(), Priority::Foreground).await.unwrap();
    assert_eq!(listed(&bed).await[0]["status"], "resting");
    let order = async |status: &str| bed.patch(&OPERATOR, &path, json!({"status": status})).await;
    assert_eq!(order("resting").await["status"], "resting");
    assert_eq!(order("stopped").await["status"], "stopped");
    assert_eq!(order("resting").await.summary(), "422 /status not_allowed");
    assert_eq!(order("warm").await["status"], "warm");
}
