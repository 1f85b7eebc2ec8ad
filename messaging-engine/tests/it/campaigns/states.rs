//! Moving campaigns.

use std::fmt::Write as _;
use std::time::Duration;

use messaging_core::domain::campaign::{Campaign, CampaignPhase, CampaignStatus, PauseReason};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::CampaignId;
use serde_json::{Value, json};

use super::{Shop, template};
use crate::bed::{Call, Reply, START};

/// A campaign in a state, as jobs may have brought it there.
async fn in_state(shop: &Shop, state: &str) -> String {
    let variants = json!({"kind": "ab_test", "variants": [{}, {}],
        "settings": {"ab_test": {"test_percent": 20, "wait_minutes": 240, "winner_metric": "manual"}}});
    let id = shop.campaign(variants).await;
    let begun = |campaign: &mut Campaign| {
        campaign.scheduled_at = Some(START);
        campaign.started_at = Some(START);
        campaign.recipients = Some(10);
    };
    shop.change(&id, |campaign| match state {
        "draft" => {}
        "scheduled" => {
            campaign.status = CampaignStatus::Scheduled;
            campaign.scheduled_at = Some(START);
        }
        "paused" => {
            campaign.status = CampaignStatus::Paused;
            campaign.scheduled_at = Some(START);
            campaign.pause_reason = Some(PauseReason::User);
        }
        "sending" => {
            begun(campaign);
            campaign.status = CampaignStatus::Sending;
            campaign.phase = Some(CampaignPhase::Testing);
        }
        "waiting_winner" => {
            begun(campaign);
            campaign.status = CampaignStatus::Sending;
            campaign.phase = Some(CampaignPhase::WaitingWinner);
        }
        "paused, begun" => {
            begun(campaign);
            campaign.status = CampaignStatus::Paused;
            campaign.phase = Some(CampaignPhase::WaitingWinner);
        }
        last => {
            begun(campaign);
            campaign.status = CampaignStatus::parse(last).unwrap();
            campaign.completed_at = Some(START);
        }
    })
    .await;
    id
}

fn told(reply: &Reply) -> String {
    match reply.status {
        202 => format!("{} {}", reply["result"].as_str().unwrap(), reply["status"].as_str().unwrap()),
        409 => {
            let details = &reply["error"]["details"];
            let allowed: Vec<_> =
                details["allowed"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
            format!("409 {} ({})", details["status"].as_str().unwrap(), allowed.join(" "))
        }
        _ => reply.summary(),
    }
}

/// Contract section 12.2, every state against every operation.
#[tokio::test]
async fn every_state_against_every_operation() {
    let shop = Shop::start().await;
    let mut grid = String::new();
    for state in
        ["draft", "scheduled", "paused", "sending", "waiting_winner", "paused, begun", "sent", "failed", "cancelled"]
    {
        writeln!(grid, "{state}").unwrap();
        let id = in_state(&shop, state).await;
        let before = shop.read(&format!("/campaigns/{id}")).await.body;
        for (action, body) in [
            ("schedule", json!({"send_now": true})),
            ("pause", json!(null)),
            ("cancel", json!(null)),
            ("unschedule", json!(null)),
            ("winner", json!({"variant": "B"})),
        ] {
            let id = in_state(&shop, state).await;
            let reply = shop.request(&format!("/campaigns/{id}/{action}"), body).await;
            writeln!(grid, "  {action}: {}", told(&reply)).unwrap();
        }
        let target = shop.path(&format!("/campaigns/{id}"));
        let changed = shop.patch(&shop.caller, &target, json!({"name": before["name"]})).await;
        writeln!(grid, "  change: {}", told(&changed)).unwrap();
        writeln!(grid, "  delete: {}", told(&shop.delete(&shop.caller, &target).await)).unwrap();
    }
    insta::assert_snapshot!(grid, @r"
    draft
      schedule: scheduled scheduled
      pause: 409 draft (scheduled sending)
      cancel: 409 draft (scheduled sending paused)
      unschedule: 409 draft (scheduled paused)
      winner: 409 draft (scheduled sending paused)
      change: 200
      delete: 204
    scheduled
      schedule: scheduled scheduled
      pause: paused paused
      cancel: cancelled cancelled
      unschedule: unscheduled draft
      winner: 409 scheduled (scheduled sending paused)
      change: 409 scheduled (draft)
      delete: 409 scheduled (draft cancelled)
    paused
      schedule: scheduled scheduled
      pause: 409 paused (scheduled sending)
      cancel: cancelled cancelled
      unschedule: unscheduled draft
      winner: 409 paused (scheduled sending paused)
      change: 409 paused (draft)
      delete: 409 paused (draft cancelled)
    sending
      schedule: 409 sending (draft scheduled paused)
      pause: paused paused
      cancel: cancelled cancelled
      unschedule: 409 sending (scheduled paused)
      winner: 409 sending (scheduled sending paused)
      change: 409 sending (draft)
      delete: 409 sending (draft cancelled)
    waiting_winner
      schedule: 409 sending (draft scheduled paused)
      pause: paused paused
      cancel: cancelled cancelled
      unschedule: 409 sending (scheduled paused)
      winner: winner_chosen sending
      change: 409 sending (draft)
      delete: 409 sending (draft cancelled)
    paused, begun
      schedule: scheduled scheduled
      pause: 409 paused (scheduled sending)
      cancel: cancelled cancelled
      unschedule: 409 paused (scheduled paused)
      winner: winner_chosen paused
      change: 409 paused (draft)
      delete: 409 paused (draft cancelled)
    sent
      schedule: 409 sent (draft scheduled paused)
      pause: 409 sent (scheduled sending)
      cancel: 409 sent (scheduled sending paused)
      unschedule: 409 sent (scheduled paused)
      winner: 409 sent (scheduled sending paused)
      change: 409 sent (draft)
      delete: 409 sent (draft cancelled)
    failed
      schedule: 409 failed (draft scheduled paused)
      pause: 409 failed (scheduled sending)
      cancel: 409 failed (scheduled sending paused)
      unschedule: 409 failed (scheduled paused)
      winner: 409 failed (scheduled sending paused)
      change: 409 failed (draft)
      delete: 409 failed (draft cancelled)
    cancelled
      schedule: 409 cancelled (draft scheduled paused)
      pause: 409 cancelled (scheduled sending)
      cancel: 409 cancelled (scheduled sending paused)
      unschedule: 409 cancelled (scheduled paused)
      winner: 409 cancelled (scheduled sending paused)
      change: 409 cancelled (draft)
      delete: 204
    ");
}

#[tokio::test]
async fn what_a_move_changes_is_shown() {
    let shop = Shop::start().await;
    let id = shop.campaign(json!({})).await;
    let path = format!("/campaigns/{id}");
    let act = async |action: &str, body: Value| {
        shop.clock.advance(Duration::from_mins(1));
        shop.request(&format!("{path}/{action}"), body).await
    };
    let members = |reply: &Reply| {
        ["status", "scheduled_at", "by_timezone", "pause_reason", "completed_at", "updated_at"]
            .map(|name| reply[name].clone())
    };
    let zoned = act("schedule", json!({"at": "2026-03-01T09:00:00+02:00", "by_timezone": true})).await;
    assert_eq!(
        members(&zoned),
        [
            json!("scheduled"),
            json!("2026-03-01T07:00:00.000Z"),
            json!(true),
            json!(null),
            json!(null),
            json!("2026-01-31T09:16:00.000Z")
        ]
    );
    assert_eq!(zoned["result"], "scheduled");
    assert_eq!(shop.read(&path).await.body, without_result(&zoned));
    let paused = act("pause", json!(null)).await;
    assert_eq!(
        members(&paused),
        [
            json!("paused"),
            json!("2026-03-01T07:00:00.000Z"),
            json!(true),
            json!("user"),
            json!(null),
            json!("2026-01-31T09:17:00.000Z")
        ]
    );
    // A body may be left out.
    shop.clock.advance(Duration::from_mins(1));
    let target = shop.path(&format!("{path}/schedule"));
    let resumed = shop.call(Call::new(&shop.caller, http::Method::POST, &target)).await;
    assert_eq!(
        members(&resumed),
        [
            json!("scheduled"),
            json!("2026-01-31T09:18:00.000Z"),
            json!(false),
            json!(null),
            json!(null),
            json!("2026-01-31T09:18:00.000Z")
        ]
    );
    let draft = act("unschedule", json!({})).await;
    assert_eq!(
        members(&draft),
        [json!("draft"), json!(null), json!(false), json!(null), json!(null), json!("2026-01-31T09:19:00.000Z")]
    );
    assert_eq!(draft["result"], "unscheduled");
    let now = act("schedule", json!({"send_now": true})).await;
    assert_eq!(now["scheduled_at"], "2026-01-31T09:20:00.000Z");
    let cancelled = act("cancel", json!(null)).await;
    assert_eq!(
        members(&cancelled),
        [
            json!("cancelled"),
            json!("2026-01-31T09:20:00.000Z"),
            json!(false),
            json!(null),
            json!("2026-01-31T09:21:00.000Z"),
            json!("2026-01-31T09:21:00.000Z")
        ]
    );
    assert_eq!(shop.read("/campaigns?status=cancelled").await["data"][0]["id"], id.as_str());
}

fn without_result(reply: &Reply) -> Value {
    let mut body = reply.body.clone();
    body.as_object_mut().unwrap().remove("result");
    body
}

/// Contract section 12.5: fields, then the state, then faults of the campaign, in this order.
#[tokio::test]
async fn refusals_of_a_schedule_come_in_their_order() {
    let shop = Shop::start().await;
    let schedule = async |id: &str, body: Value| shop.request(&format!("/campaigns/{id}/schedule"), body).await;
    let nobody = shop.campaign(json!({"audience": {}, "from_email": "a@elsewhere.example"})).await;
    let sent = in_state(&shop, "sent").await;
    let far = json!({"at": "2027-01-31T09:15:01Z"});
    for (body, expected) in [
        (json!({"at": "2026-02-01T09:00:00Z", "send_now": true}), "422 /at conflict"),
        (json!({"by_timezone": true}), "422 /by_timezone conflict"),
        (json!({"by_timezone": true, "send_now": true}), "422 /by_timezone conflict"),
        (json!({"at": "2026-02-01T09:00:00"}), "422 /at invalid_format"),
        (json!({"at": 5}), "422 /at invalid_type"),
        (far.clone(), "422 /at out_of_range"),
        (json!({"on": "x"}), "422 /on unknown_field"),
        (json!({"send_now": "yes"}), "422 /send_now invalid_type"),
    ] {
        assert_eq!(schedule(&nobody, body.clone()).await.summary(), expected);
        assert_eq!(schedule(&sent, body).await.summary(), expected, "before the state");
    }
    for body in [json!({}), json!({"send_now": true}), json!({"at": "2020-01-01T00:00:00Z"})] {
        assert_eq!(schedule(&sent, body).await.summary(), "409 invalid_state");
    }
    assert_eq!(schedule(&nobody, json!({})).await.summary(), "422 schedule_time_required");
    assert_eq!(schedule(&nobody, json!({"send_now": false})).await.summary(), "422 schedule_time_required");
    let past = json!({"at": "2026-01-31T09:13:59Z"});
    assert_eq!(schedule(&nobody, past.clone()).await.summary(), "422 schedule_in_past");
    assert_eq!(schedule(&nobody, json!({"send_now": true})).await.summary(), "422 audience_empty");
    let unverified = shop.campaign(json!({"from_email": "a@elsewhere.example"})).await;
    assert_eq!(schedule(&unverified, past).await.summary(), "422 schedule_in_past");
    assert_eq!(schedule(&unverified, json!({"send_now": true})).await.summary(), "422 sender_domain_not_verified");
    // The sender of a template counts if the campaign names none; for a variant, that of its template.
    let theirs = shop.made("/templates", template(json!({"from_email": "a@elsewhere.example"}))).await;
    for more in [json!({"template_id": theirs}), json!({"kind": "ab_test", "variants": [{}, {"template_id": theirs}]})]
    {
        let id = shop.campaign(more).await;
        assert_eq!(schedule(&id, json!({"send_now": true})).await.summary(), "422 sender_domain_not_verified");
    }
    // A template without a required part is a fault of the campaign's fields.
    let bare = shop.made("/templates", template(json!({"subject": null}))).await;
    let id = shop.campaign(json!({"template_id": bare, "audience": {}})).await;
    assert_eq!(schedule(&id, json!({})).await.summary(), "422 /template_id required");
    let id = shop.campaign(json!({"template_id": bare, "subject_override": "Hi"})).await;
    assert_eq!(schedule(&id, json!({"send_now": true})).await.summary(), "202");
    let variants = json!([{"subject": "Hi"}, {"template_id": bare}, {"template_id": bare, "subject": "Hi"}]);
    let id = shop.campaign(json!({"kind": "ab_test", "variants": variants})).await;
    assert_eq!(schedule(&id, json!({"send_now": true})).await.summary(), "422 /variants/1/template_id required");
    // A year ahead is allowed, and so is a minute ago, for slow requests.
    for at in ["2027-01-31T09:15:00Z", "2026-01-31T09:14:00Z"] {
        let id = shop.campaign(json!({})).await;
        assert_eq!(schedule(&id, json!({"at": at})).await.summary(), "202", "{at}");
    }
}

#[tokio::test]
async fn a_campaign_needs_a_sender_and_a_provider() {
    let shop = Shop::start().await;
    let id = shop.campaign(json!({})).await;
    let sms = shop.made("/templates", json!({"name": "S", "channel": "sms", "text": "hi"})).await;
    let by_sms = shop.campaign(json!({"channel": "sms", "template_id": sms})).await;
    let push = shop.made("/templates", json!({"name": "P", "channel": "push", "subject": "x", "text": "hi"})).await;
    let by_push = shop.campaign(json!({"channel": "push", "template_id": push})).await;
    let schedule = async |id: &str| shop.request(&format!("/campaigns/{id}/schedule"), json!({"send_now": true})).await;
    assert_eq!(schedule(&by_push).await.summary(), "422 channel_not_configured");
    let settings = shop.app.provider(shop.workspace, Channel::Sms).await.unwrap();
    let expected = if settings.is_some() { "202" } else { "422 channel_not_configured" };
    assert_eq!(schedule(&by_sms).await.summary(), expected);
    let domains = shop.read("/sending-domains").await;
    for domain in domains["data"].as_array().unwrap() {
        let target = shop.path(&format!("/sending-domains/{}", domain["id"].as_str().unwrap()));
        shop.delete(&shop.caller, &target).await;
    }
    assert_eq!(schedule(&id).await.summary(), "422 sender_missing");
}

#[tokio::test]
async fn a_paused_campaign_goes_on_with_the_audience_it_had() {
    let shop = Shop::start().await;
    let id = in_state(&shop, "paused, begun").await;
    let path = format!("/campaigns/{id}/schedule");
    let zoned = json!({"at": "2026-02-01T09:00:00Z", "by_timezone": true});
    assert_eq!(shop.request(&path, zoned).await.summary(), "422 /by_timezone conflict");
    let resumed = shop.request(&path, json!({})).await;
    assert_eq!((resumed["status"].as_str(), resumed["recipients"].as_u64()), (Some("scheduled"), Some(10)));
    assert_eq!(resumed["started_at"], "2026-01-31T09:15:00.000Z");
    assert_eq!(shop.request(&format!("/campaigns/{id}/unschedule"), json!(null)).await.summary(), "409 invalid_state");
}

#[tokio::test]
async fn a_winner_is_named_while_one_is_waited_for() {
    let shop = Shop::start().await;
    let id = in_state(&shop, "waiting_winner").await;
    let path = format!("/campaigns/{id}/winner");
    assert_eq!(shop.request(&path, json!({})).await.summary(), "422 /variant required");
    assert_eq!(shop.request(&path, json!({"variant": "C"})).await.summary(), "422 /variant not_found");
    assert_eq!(shop.request(&path, json!({"variant": 5})).await.summary(), "422 /variant invalid_type");
    let testing = in_state(&shop, "sending").await;
    let refused = shop.request(&format!("/campaigns/{testing}/winner"), json!({"variant": "C"})).await;
    assert_eq!(refused.summary(), "422 /variant not_found", "before the state");
    let named = shop.request(&path, json!({"variant": "B"})).await;
    assert_eq!(named.summary(), "202");
    assert_eq!(
        [&named["result"], &named["winner_variant"], &named["phase"], &named["status"]],
        [&json!("winner_chosen"), &json!("B"), &json!("winner"), &json!("sending")]
    );
    assert_eq!(shop.request(&path, json!({"variant": "A"})).await.summary(), "409 invalid_state");
    let id: CampaignId = id.parse().unwrap();
    let stored = shop.store.campaign(shop.workspace, id).await.unwrap().unwrap();
    assert_eq!(stored.record.scores.len(), 2, "what was known then is kept");
}

/// Of concurrent moves one succeeds, and the others see its effect.
#[tokio::test]
async fn moves_at_the_same_moment_are_decided_one_after_another() {
    let shop = Shop::start().await;
    let id = in_state(&shop, "sending").await;
    let (pause, cancel) = (format!("/campaigns/{id}/pause"), format!("/campaigns/{id}/cancel"));
    let (first, second, third) = tokio::join!(
        shop.request(&pause, json!(null)),
        shop.request(&pause, json!(null)),
        shop.request(&cancel, json!(null)),
    );
    let mut told: Vec<_> = [first, second].iter().map(Reply::summary).collect();
    told.sort();
    assert!(told.contains(&"409 invalid_state".to_owned()), "{told:?}");
    assert_eq!(third.summary(), "202");
    assert_eq!(shop.read(&format!("/campaigns/{id}")).await["status"], "cancelled");
}
