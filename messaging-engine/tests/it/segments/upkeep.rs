//! Members of segments stay right: passing time, time zones, many contacts, processes that end.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::segment::{Segment, StoredFilter};
use messaging_core::ports::store::Priority;
use messaging_engine::jobs::JobData as _;
use messaging_engine::jobs::recalculate_segment::RecalculateSegment;
use messaging_engine::ops::contacts::UpsertContact;
use messaging_engine::ops::segments::{CreateSegment, GetSegment, SegmentPath};
use serde_json::json;

use super::{Audience, pro};
use crate::support::Product;

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn passing_time_changes_members_within_a_quarter_of_an_hour() {
    let audience = Audience::start().await;
    audience.contact("ann", json!({"attributes": {"trial_ends": "2026-01-31T09:25:00Z"}})).await;
    let next = |op: &str, minutes: u32| json!({"type": "attribute", "key": "trial_ends", "op": op, "value": {"value": minutes, "unit": "minutes"}});
    let soon = audience.segment(next("next", 60)).await;
    let wrapped = audience.segment(json!({"not": {"type": "segment", "op": "member", "id": soon}})).await;
    let fixed = audience.segment(pro()).await;
    audience.work().await;
    assert_eq!(audience.members(&soon).await, "ready 1: ann");
    assert_eq!(audience.members(&wrapped).await, "ready 0: ");
    audience.bed.clock.advance(14 * MINUTE);
    audience.work().await;
    assert_eq!(audience.members(&soon).await, "ready 1: ann", "nothing happened that would say otherwise");
    audience.bed.clock.advance(MINUTE);
    audience.work().await;
    assert_eq!(audience.members(&soon).await, "ready 0: ");
    assert_eq!(audience.members(&wrapped).await, "ready 1: ann");
    let calculated = audience.get(&format!("segments/{soon}")).await;
    assert_eq!(calculated["calculated_at"], "2026-01-31T09:30:00.000Z");
    assert_eq!(audience.get(&format!("segments/{fixed}")).await["calculated_at"], "2026-01-31T09:15:00.000Z");

    // A segment that no longer depends on the time is left alone, and each segment is refreshed by one job.
    audience.patch(&format!("segments/{soon}"), json!({"filter": pro()})).await;
    audience.post(&format!("segments/{fixed}/recalculate"), json!({})).await;
    audience.work().await;
    audience.bed.clock.advance(120 * MINUTE);
    audience.work().await;
    assert_eq!(audience.get(&format!("segments/{wrapped}")).await["calculated_at"], "2026-01-31T09:30:00.000Z");
    assert_eq!(audience.bed.store.job_count().await.unwrap(), 0);
}

#[tokio::test]
async fn days_begin_where_the_workspace_is() {
    let (bed, workspace, owner) = crate::bed::Bed::with_owner().await;
    let audience = Audience { bed, workspace, key: owner };
    audience.contact("ann", json!({"attributes": {"at": "2026-01-30T23:30:00Z"}})).await;
    let on = audience.segment(json!({"type": "attribute", "key": "at", "op": "on", "value": "2026-01-31"})).await;
    audience.work().await;
    assert_eq!(audience.members(&on).await, "ready 0: ");
    let path = format!("/workspaces/{workspace}");
    let patched = audience.bed.patch(&audience.key, &path, json!({"timezone": "Europe/Berlin"})).await;
    assert_eq!(patched.summary(), "200");
    audience.work().await;
    assert_eq!(audience.members(&on).await, "ready 1: ann");
}

#[tokio::test]
async fn a_calculation_that_was_replaced_has_no_effect() {
    let audience = Audience::start().await;
    audience.contact("ann", json!({"attributes": {"plan": "pro"}})).await;
    let id = audience.segment(json!({})).await;
    let stored = audience.bed.store.segment(audience.workspace, id.parse().unwrap()).await.unwrap().unwrap();
    audience.work().await;
    audience.patch(&format!("segments/{id}"), json!({"filter": {"not": pro()}})).await;
    audience.work().await;
    let before = audience.get(&format!("segments/{id}")).await;
    // The job of the first calculation, as left by a killed process.
    audience.bed.clock.advance(MINUTE);
    let now = audience.bed.app.now();
    let job = RecalculateSegment::of(&stored.record).enqueue(audience.bed.app.new_id(now), now);
    audience
        .bed
        .store
        .commit(Changes::from_iter([Write::Job(JobWrite::Enqueue(job))]), Priority::Foreground)
        .await
        .unwrap();
    audience.work().await;
    assert_eq!(audience.get(&format!("segments/{id}")).await.body, before.body);
    assert_eq!(audience.members(&id).await, "ready 0: ");
}

#[tokio::test]
async fn a_running_calculation_is_not_begun_again() {
    let audience = Audience::start().await;
    let id = audience.segment(pro()).await;
    let jobs = audience.bed.store.job_count().await.unwrap();
    let again = audience.post(&format!("segments/{id}/recalculate"), json!({})).await;
    assert_eq!((again.summary().as_str(), &again["result"]), ("202", &json!("recalculating")));
    assert_eq!(audience.bed.store.job_count().await.unwrap(), jobs);
    audience.work().await;
    audience.post(&format!("segments/{id}/recalculate"), json!({})).await;
    assert_eq!(audience.bed.store.job_count().await.unwrap(), jobs + 1);
}

#[tokio::test]
async fn many_changes_at_once_need_one_job() {
    let audience = Audience::start().await;
    let id = audience.segment(pro()).await;
    audience.work().await;
    audience.bed.clock.advance(MINUTE);
    audience.work().await;
    let contacts: Vec<_> =
        (0..1000).map(|number| json!({"external_id": format!("u{number}"), "attributes": {"plan": "pro"}})).collect();
    for _ in 0..3 {
        assert_eq!(audience.post("contacts/bulk", json!({"contacts": contacts})).await.summary(), "200");
    }
    assert_eq!(audience.bed.store.job_count().await.unwrap(), 1);
    audience.work().await;
    assert_eq!(audience.get(&format!("segments/{id}")).await["size"], 1000);
    assert_eq!(audience.bed.store.job_count().await.unwrap(), 0);
}

#[tokio::test]
async fn nobody_is_bothered_where_nobody_is_interested() {
    let audience = Audience::start().await;
    audience.post("segments", json!({"name": "S", "kind": "static", "filter": pro()})).await;
    let dynamic = audience.segment(json!({"type": "tag", "op": "has_any", "values": ["x"]})).await;
    let ann = audience.contact("ann", json!({})).await;
    audience.work().await;
    audience.bed.clock.advance(MINUTE);
    audience.work().await;
    let suppression = json!({"channel": "email", "address": "a@example.com", "reason": "manual"});
    assert_eq!(audience.post("suppressions", suppression).await.summary(), "201");
    assert_eq!(audience.bed.store.job_count().await.unwrap(), 0, "no segment reads suppressions");
    audience.delete(&format!("segments/{dynamic}")).await;
    audience.patch(&format!("contacts/{ann}"), json!({"tags": ["x"]})).await;
    assert_eq!(audience.bed.store.job_count().await.unwrap(), 0, "the only dynamic segment is gone");
}

#[tokio::test]
async fn a_segment_that_cannot_be_calculated_fails_and_the_others_go_on() {
    let audience = Audience::start().await;
    let (broken, good) = (audience.segment(pro()).await, audience.segment(pro()).await);
    let user = audience.segment(json!({"type": "segment", "op": "member", "id": broken})).await;
    audience.work().await;
    // The API refuses such a filter; a database that was edited by hand may hold one.
    let store = &audience.bed.store;
    let stored = store.segment(audience.workspace, broken.parse().unwrap()).await.unwrap().unwrap();
    let itself = json!({"type": "segment", "op": "member", "id": broken}).to_string();
    let cyclic = Segment { filter: StoredFilter::read(&itself).unwrap(), ..stored.record };
    let put = Write::PutSegment(Box::new(cyclic), Expect::Revision(stored.revision));
    store.commit(Changes::from_iter([put]), Priority::Foreground).await.unwrap();
    for id in [&broken, &user] {
        audience.post(&format!("segments/{id}/recalculate"), json!({})).await;
    }
    audience.contact("ann", json!({"attributes": {"plan": "pro"}})).await;
    audience.work().await;
    assert_eq!(audience.members(&broken).await, "failed 0: ");
    assert_eq!(audience.members(&user).await, "failed 0: ");
    assert_eq!(audience.members(&good).await, "ready 1: ann");
    // A valid filter mends it, and the segments that depend on it.
    let mended = audience.patch(&format!("segments/{broken}"), json!({"filter": pro()})).await;
    assert_eq!(mended["status"], "recalculating", "{}", mended.summary());
    audience.work().await;
    assert_eq!(audience.members(&broken).await, "ready 1: ann");
    assert_eq!(audience.members(&user).await, "ready 1: ann");
}

#[tokio::test]
async fn events_of_messages_reach_segments() {
    let product = Product::start().await;
    let (app, caller, workspace_id) = (&product.app, &product.caller, product.workspace);
    let contact = serde_json::from_value(json!({"email": "ann@example.com"})).unwrap();
    app.run(UpsertContact).body(contact).by(caller).await.unwrap();
    let mut segments = Vec::new();
    for event in ["delivered", "bounce"] {
        let body = json!({"name": event, "filter": {"type": "message", "event": event, "channel": "email"}});
        let body = serde_json::from_value(body).unwrap();
        segments.push(app.run(CreateSegment).body(body).by(caller).await.unwrap().id);
    }
    product.work().await;
    let sizes = async || {
        let mut sizes = Vec::new();
        for id in &segments {
            let path = SegmentPath { workspace_id, id: *id };
            sizes.push(app.run(GetSegment).path(path).by(caller).await.unwrap().size);
        }
        sizes
    };
    assert_eq!(sizes().await, [Some(0), Some(0)]);
    product.send_to("ann@example.com").await;
    product.send_to("somebody@example.com").await;
    product.work().await;
    assert_eq!(sizes().await, [Some(1), Some(0)]);
}
