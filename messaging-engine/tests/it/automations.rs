//! Contract section 13: the operations of automations. No jobs run here; they are tested elsewhere.

mod activation;
mod in_use;
mod runs;
mod saving;

use serde_json::{Value, json};

use crate::bed::{Bed, Reply, fault};
use crate::campaigns::{Shop, with};

/// The faults of an answer `automation_invalid`, in alphabetical order.
#[track_caller]
fn gaps(reply: &Reply) -> String {
    assert_eq!(reply.summary(), "422 automation_invalid", "{}", reply.body);
    let mut faults: Vec<_> = reply["error"]["details"]["errors"].as_array().unwrap().iter().map(fault).collect();
    faults.sort();
    faults.join(", ")
}

/// A graph of one node that gives a tag.
fn tagging() -> Value {
    json!({"nodes": [{"id": "t", "kind": "add_tag", "config": {"tag": "vip"}}]})
}

/// The body of an automation that only calls let contacts into.
fn manual(more: Value) -> Value {
    with(json!({"name": "Welcome", "trigger": {"kind": "manual"}, "graph": tagging()}), more)
}

/// An automation that is active, made of a body.
async fn active(shop: &Shop, body: Value) -> String {
    let path = format!("/automations/{}", shop.made("/automations", body).await);
    let activated = shop.request(&format!("{path}/activate"), Value::Null).await;
    assert_eq!(activated.summary(), "202", "{}", activated.body);
    path
}

async fn patch(shop: &Shop, path: &str, body: Value) -> Reply {
    let bed: &Bed = shop;
    bed.patch(&shop.caller, &shop.path(path), body).await
}

async fn remove(shop: &Shop, path: &str) -> Reply {
    let bed: &Bed = shop;
    bed.delete(&shop.caller, &shop.path(path)).await
}
