//! Segments within segments.

use serde_json::{Value, json};

use super::{Audience, pro};

fn member(id: &str) -> Value {
    json!({"type": "segment", "op": "member", "id": id})
}

#[tokio::test]
async fn a_segment_follows_those_that_it_names() {
    let audience = Audience::start().await;
    let ann = audience.contact("ann", json!({"attributes": {"plan": "pro"}})).await;
    audience.contact("bob", json!({"tags": ["vip"]})).await;
    let inner = audience.segment(pro()).await;
    let outer =
        audience.segment(json!({"or": [member(&inner), {"type": "tag", "op": "has_all", "values": ["vip"]}]})).await;
    let others = audience.segment(json!({"type": "segment", "op": "not_member", "id": outer})).await;
    audience.work().await;
    assert_eq!(audience.members(&outer).await, "ready 2: ann bob");
    assert_eq!(audience.members(&others).await, "ready 0: ");
    audience.patch(&format!("contacts/{ann}"), json!({"attributes": {"plan": "free"}})).await;
    audience.work().await;
    assert_eq!(audience.members(&outer).await, "ready 1: bob");
    assert_eq!(audience.members(&others).await, "ready 1: ann");

    let filter = json!({"type": "attribute", "key": "plan", "op": "eq", "value": "free"});
    audience.patch(&format!("segments/{inner}"), json!({"filter": filter})).await;
    assert_eq!(audience.get(&format!("segments/{others}")).await["status"], "recalculating");
    audience.work().await;
    assert_eq!(audience.members(&outer).await, "ready 2: ann bob");
    assert_eq!(audience.members(&others).await, "ready 0: ");

    let refused = audience.delete(&format!("segments/{inner}")).await;
    assert_eq!(refused.summary(), "409 in_use");
    assert_eq!(refused["error"]["details"], json!({"by": [outer]}));
    for id in [others, outer, inner] {
        assert_eq!(audience.delete(&format!("segments/{id}")).await.summary(), "204");
    }
}

#[tokio::test]
async fn a_static_segment_keeps_its_members_until_it_is_calculated_anew() {
    let audience = Audience::start().await;
    let ann = audience.contact("ann", json!({"attributes": {"plan": "pro"}})).await;
    let created = audience.post("segments", json!({"name": "Then", "kind": "static", "filter": pro()})).await;
    let then = created["id"].as_str().unwrap();
    let user = audience.segment(member(then)).await;
    audience.work().await;
    audience.contact("bob", json!({"attributes": {"plan": "pro"}})).await;
    audience.patch(&format!("contacts/{ann}"), json!({"attributes": {"plan": "free"}})).await;
    audience.work().await;
    assert_eq!(audience.members(then).await, "ready 1: ann");
    assert_eq!(audience.members(&user).await, "ready 1: ann");
    // A new filter counts from the next calculation on.
    let patched = audience.patch(&format!("segments/{then}"), json!({"filter": {}})).await;
    assert_eq!(patched["status"], "ready");
    audience.work().await;
    assert_eq!(audience.members(then).await, "ready 1: ann");
    let again = audience.post(&format!("segments/{then}/recalculate"), json!({})).await;
    assert_eq!(again.summary(), "202");
    assert_eq!((&again["status"], &again["result"]), (&json!("recalculating"), &json!("recalculating")));
    audience.work().await;
    assert_eq!(audience.members(then).await, "ready 2: ann bob");
    assert_eq!(audience.members(&user).await, "ready 2: ann bob");
}

#[tokio::test]
async fn cycles_and_deep_nests_are_refused() {
    let audience = Audience::start().await;
    let mut chain = vec![audience.segment(pro()).await];
    for _ in 0..5 {
        chain.push(audience.segment(member(chain.last().unwrap())).await);
    }
    let deeper = json!({"name": "S", "filter": {"and": [pro(), member(&chain[5])]}});
    assert_eq!(audience.post("segments", deeper).await.summary(), "422 /filter/and/1/id conflict");
    let bottom = format!("segments/{}", chain[0]);
    for named in [&chain[0], &chain[1], &chain[5]] {
        let refused = audience.patch(&bottom, json!({"filter": {"not": member(named)}})).await;
        assert_eq!(refused.summary(), "422 /filter/not/id conflict");
    }
    // One more below the bottom would be too deep for those above.
    let other = audience.segment(json!({})).await;
    let refused = audience.patch(&bottom, json!({"filter": member(&other)})).await;
    assert_eq!(refused.summary(), "422 /filter/id conflict");
    let middle = format!("segments/{}", chain[1]);
    assert_eq!(audience.patch(&middle, json!({"filter": member(&other)})).await.summary(), "200");
    audience.work().await;
    assert!(audience.members(&chain[5]).await.starts_with("ready"));
}

#[tokio::test]
async fn what_segments_name_together_is_bounded() {
    let audience = Audience::start().await;
    let many = |count: usize| Value::Array((0..count).map(|_| pro()).collect());
    let full = audience.segment(json!({"or": many(100)})).await;
    let named = |count: usize| Value::Array((0..count).map(|_| member(&full)).collect());
    let few = audience.segment(pro()).await;
    let longest = audience.segment(json!({"or": named(9)})).await;
    let too_long = json!({"name": "S", "filter": {"or": named(10)}});
    assert_eq!(audience.post("segments", too_long).await.summary(), "422 /filter/or/9/id too_many_items");
    // Segments that name the changed one must not become too long either.
    let user = audience.segment(json!({"or": [member(&longest), pro()]})).await;
    let refused = audience
        .patch(&format!("segments/{longest}"), json!({"filter": {"or": [{"or": named(9)}, {"or": many(90)}]}}))
        .await;
    assert_eq!(refused.summary(), "422 /filter too_many_items");
    let ten_times = (0..10).map(|_| member(&few)).collect::<Vec<_>>();
    audience.segment(json!({"or": ten_times})).await;
    let refused = audience.patch(&format!("segments/{few}"), json!({"filter": {"or": many(100)}})).await;
    assert_eq!(refused.summary(), "422 /filter too_many_items");
    audience.delete(&format!("segments/{user}")).await;
    audience.work().await;
    assert_eq!(audience.members(&longest).await, "ready 0: ");
}

#[tokio::test]
async fn two_segments_that_come_to_name_each_other_at_once_are_no_cycle() {
    let audience = Audience::start().await;
    let (one, other) = (audience.segment(pro()).await, audience.segment(pro()).await);
    let name = async |id: &str, named: &str| {
        audience.patch(&format!("segments/{id}"), json!({"filter": member(named)})).await.summary()
    };
    let (first, second) = tokio::join!(name(&one, &other), name(&other, &one));
    let mut outcomes = [first, second];
    outcomes.sort();
    assert_eq!(outcomes, ["200", "422 /filter/id conflict"]);
}
