//! Explanations why a contact is not sent to.

use std::time::Duration;

use messaging_core::changes::{Changes, ContactSends, Expect, Write};
use messaging_core::domain::campaign::audience::AudienceVerdict;
use messaging_core::domain::campaign::{CampaignStatus, PauseReason};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::Skip;
use messaging_core::domain::message::{EventKind, MessageEvent, MessageStatus};
use serde_json::{Value, json};

use super::Shop;
use super::recipients::Frozen;
use crate::bed::{Reply, START};

async fn explain(shop: &Shop, contact: &str, query: &str) -> Reply {
    shop.read(&format!("/contacts/{contact}/explain?{query}")).await
}

/// `no: suppressed no_consent; transactional yes`
fn told(reply: &Reply) -> String {
    assert_eq!(reply.summary(), "200");
    let part = |part: &Value| {
        let codes: Vec<_> =
            part["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect();
        assert_eq!(part["would_send"], codes.is_empty());
        if codes.is_empty() { "yes".to_owned() } else { format!("no: {}", codes.join(" ")) }
    };
    format!("{}; transactional {}", part(&reply.body), part(&reply["transactional"]))
}

#[tokio::test]
async fn without_a_campaign_it_is_about_the_contact() {
    let shop = Shop::start().await;
    let ann = shop.contact("ann@example.com").await;
    assert_eq!(told(&explain(&shop, &ann, "channel=email").await), "yes; transactional yes");
    assert_eq!(
        explain(&shop, &ann, "channel=email").await.body,
        json!({"would_send": true, "reasons": [], "transactional": {"would_send": true, "reasons": []}, "captured": false})
    );
    assert_eq!(
        told(&explain(&shop, &ann, "channel=push").await),
        "no: channel_not_configured no_address; transactional no: channel_not_configured no_address"
    );
    let silent = shop.contact_with(json!({"email": "silent@example.com"})).await;
    assert_eq!(told(&explain(&shop, &silent, "channel=email").await), "no: no_consent; transactional yes");
    for (reason, expected) in [
        ("unsubscribe", "no: suppressed; transactional yes"),
        ("manual", "no: suppressed; transactional no: suppressed"),
        ("bounce", "no: suppressed; transactional no: suppressed"),
    ] {
        shop.clock.advance(Duration::from_secs(1));
        let body = json!({"channel": "email", "address": "Ann@example.com", "reason": reason});
        shop.request("/suppressions", body).await;
        let told_now = explain(&shop, &ann, "channel=email").await;
        assert_eq!(told(&told_now), expected, "{reason}");
        assert_eq!(
            told_now["reasons"][0],
            json!({"code": "suppressed", "text": format!("its address is on the suppression list: {reason}"),
                "since": "2026-01-31T09:15:01.000Z",
                "cure": "take the address off the suppression list, if the reason is over"})
        );
    }
    let nowhere = shop.contact_with(json!({"external_id": "x"})).await;
    assert_eq!(
        told(&explain(&shop, &nowhere, "channel=email").await),
        "no: no_address no_consent; transactional no: no_address"
    );
    let domains = shop.read("/sending-domains").await;
    for domain in domains["data"].as_array().unwrap() {
        let target = shop.path(&format!("/sending-domains/{}", domain["id"].as_str().unwrap()));
        shop.delete(&shop.caller, &target).await;
    }
    assert_eq!(
        told(&explain(&shop, &silent, "channel=email").await),
        "no: sender_domain_not_verified no_consent; transactional no: sender_domain_not_verified"
    );
}

#[tokio::test]
async fn what_is_asked_for_is_judged() {
    let shop = Shop::start().await;
    let ann = shop.contact("ann@example.com").await;
    let id = shop.campaign(json!({})).await;
    for (query, expected) in [
        (String::new(), "422 channel required"),
        ("channel=fax".to_owned(), "422 channel unknown_value"),
        ("campaign_id=x".to_owned(), "422 campaign_id not_found"),
        ("campaign_id=cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".to_owned(), "422 campaign_id not_found"),
        (format!("campaign_id={id}&channel=sms"), "422 channel conflict"),
        (format!("campaign_id={id}"), "200"),
        (format!("campaign_id={id}&channel=email"), "200"),
    ] {
        assert_eq!(explain(&shop, &ann, &query).await.summary(), expected, "{query}");
    }
    let unknown = explain(&shop, "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "channel=email").await;
    assert_eq!(unknown.summary(), "404 not_found");
}

/// Before the start: judged as of now.
#[tokio::test]
async fn of_a_campaign_that_has_not_begun_it_is_about_now() {
    let shop = Shop::start().await;
    let ann = shop.contact("ann@example.com").await;
    let out = shop.contact_with(json!({"email": "out@example.com"})).await;
    let outside = shop.made("/contacts", json!({"email": "x@example.com", "consent": {"marketing_email": true}})).await;
    let pro = json!({"email": "pro@example.com", "attributes": {"plan": "pro"}, "consent": {"marketing_email": true}});
    let pro = shop.made("/contacts", pro).await;
    let excluded = shop.made("/lists", json!({"name": "Out"})).await;
    shop.request(&format!("/lists/{excluded}/contacts"), json!({"contact_ids": [out]})).await;
    let filter = json!({"type": "attribute", "key": "plan", "op": "eq", "value": "pro"});
    let segment = shop.made("/segments", json!({"name": "Pro", "filter": filter})).await;
    let audience = json!({"list_ids": [shop.list], "segment_ids": [segment], "exclude_list_ids": [excluded]});
    let id = shop.campaign(json!({"audience": audience})).await;
    let of = format!("campaign_id={id}");
    assert_eq!(told(&explain(&shop, &ann, &of).await), "yes; transactional yes");
    assert_eq!(told(&explain(&shop, &pro, &of).await), "yes; transactional yes");
    assert_eq!(told(&explain(&shop, &out, &of).await), "no: excluded no_consent; transactional yes");
    assert_eq!(told(&explain(&shop, &outside, &of).await), "no: not_in_audience; transactional yes");
    shop.change(&id, |campaign| {
        campaign.status = CampaignStatus::Paused;
        campaign.pause_reason = Some(PauseReason::Stale);
    })
    .await;
    let paused = explain(&shop, &ann, &of).await;
    assert_eq!(told(&paused), "no: held; transactional yes");
    assert_eq!(paused["reasons"][0]["text"], "the campaign is paused: it was late by more than 6 hours");
    // Its own sender counts, not that of the workspace.
    let id = shop.campaign(json!({"from_email": "a@elsewhere.example"})).await;
    let told_of_sender = told(&explain(&shop, &ann, &format!("campaign_id={id}")).await);
    assert_eq!(told_of_sender, "no: sender_domain_not_verified; transactional yes");
}

/// After the freeze the verdict stays, whatever happened to the contact since.
#[tokio::test]
async fn of_a_frozen_audience_the_verdict_answers() {
    let shop = Shop::start().await;
    let mut contacts = Vec::new();
    for name in ["excluded", "suppressed", "silent", "twin", "reached"] {
        contacts.push(shop.contact(&format!("{name}@example.com")).await);
    }
    let later =
        shop.made("/contacts", json!({"email": "late@example.com", "consent": {"marketing_email": true}})).await;
    let verdicts = [
        (contacts[0].as_str(), AudienceVerdict::Excluded),
        (contacts[1].as_str(), AudienceVerdict::Suppressed),
        (contacts[2].as_str(), AudienceVerdict::NoConsent),
        (contacts[3].as_str(), AudienceVerdict::Duplicate),
    ];
    let frozen = Frozen::of(shop, json!({}), &verdicts).await;
    let shop = &frozen.shop;
    let of = format!("campaign_id={}", frozen.id());
    for (contact, expected) in contacts.iter().zip(["excluded", "suppressed", "no_consent", "duplicate"]) {
        let reply = explain(shop, contact, &of).await;
        assert_eq!(told(&reply), format!("no: {expected}; transactional yes"));
        assert_eq!(reply["reasons"][0]["since"], "2026-01-31T09:15:00.000Z");
    }
    assert_eq!(told(&explain(shop, &contacts[4], &of).await), "yes; transactional yes");
    // A contact added to the list afterwards is not in the audience.
    let list = format!("/lists/{}/contacts", shop.list);
    shop.request(&list, json!({"contact_ids": [later]})).await;
    assert_eq!(told(&explain(shop, &later, &of).await), "no: not_in_audience; transactional yes");
    // A recipient is checked once more right before the send.
    let target = shop.path(&format!("/contacts/{}", contacts[4]));
    let change = json!({"consent": {"marketing_email": false}});
    assert_eq!(shop.patch(&shop.caller, &target, change).await.summary(), "200");
    assert_eq!(told(&explain(shop, &contacts[4], &of).await), "no: no_consent; transactional yes");
    frozen.shop.change(&frozen.id().to_string(), |campaign| campaign.status = CampaignStatus::Cancelled).await;
    let cancelled = explain(shop, &contacts[4], &of).await;
    assert_eq!(told(&cancelled), "no: held; transactional yes");
    assert_eq!(cancelled["reasons"][0]["text"], "the campaign is cancelled");
}

/// By the rules of the last look: the recipient's clock, the cap, a pause.
#[tokio::test]
async fn the_last_look_is_told_beforehand() {
    let shop = Shop::start().await;
    let berlin = json!({"email": "ann@example.com", "timezone": "Europe/Berlin", "consent": {"marketing_email": true}});
    let ann = shop.contact_with(berlin).await;
    // It is 10:15 in Berlin, and 09:15 in UTC.
    let bob = shop.contact("bob@example.com").await;
    let settings = json!({"settings": {"quiet_hours": {"start": "10:00", "end": "11:30"},
        "frequency_cap": {"per_day": 1, "when_reached": "defer"}}});
    let frozen = Frozen::of(shop, settings, &[]).await;
    let shop = &frozen.shop;
    let of = format!("campaign_id={}", frozen.id());
    let quiet = explain(shop, &ann, &of).await;
    assert_eq!(told(&quiet), "no: quiet_hours; transactional yes");
    assert_eq!(quiet["reasons"][0]["cure"], "none is needed: it is looked at again at 2026-01-31T10:30:00.000Z");
    assert_eq!(told(&explain(shop, &bob, &of).await), "yes; transactional yes");
    let sends = ContactSends {
        workspace_id: shop.workspace,
        contact_id: bob.parse().unwrap(),
        channel: Channel::Email,
        times: vec![START],
    };
    shop.commit(Changes::from_iter([Write::put(sends, Expect::Absent)])).await;
    let capped = explain(shop, &bob, &of).await;
    assert_eq!(told(&capped), "no: frequency_cap; transactional yes");
    assert_eq!(capped["reasons"][0]["cure"], "none is needed: it is looked at again at 2026-02-01T09:15:00.000Z");
    // The message has the beginning of its hold.
    let hold = Hold { reason: HoldReason::FrequencyCap, until: None, since: START };
    frozen.message(&bob, MessageStatus::Queued, &[], |message| message.hold = Some(hold)).await;
    assert_eq!(explain(shop, &bob, &of).await["reasons"][0]["since"], "2026-01-31T09:15:00.000Z");
    shop.change(&frozen.id().to_string(), |campaign| campaign.status = CampaignStatus::Paused).await;
    assert_eq!(told(&explain(shop, &bob, &of).await), "no: held; transactional yes");
}

/// The end of a message is the reason why it was not sent.
#[tokio::test]
async fn a_message_that_has_ended_answers() {
    use MessageStatus as S;

    let shop = Shop::start().await;
    let mut contacts = Vec::new();
    for number in 0..7 {
        contacts.push(shop.contact(&format!("c{number}@example.com")).await);
    }
    let frozen = Frozen::of(shop, json!({}), &[]).await;
    let shop = &frozen.shop;
    let of = format!("campaign_id={}", frozen.id());
    for (contact, (status, skip, expected)) in contacts.iter().zip([
        (S::Delivered, None, "yes"),
        (S::Bounced, None, "yes"),
        (S::Suppressed, Some(Skip::NoConsent), "no: no_consent"),
        (S::Suppressed, Some(Skip::FrequencyCap), "no: frequency_cap"),
        (S::Suppressed, Some(Skip::Suppressed), "no: suppressed"),
        (S::Cancelled, None, "no: held"),
        (S::Failed, None, "no: held"),
    ]) {
        frozen.message(contact, status, &[], |message| message.milestones.skip = skip).await;
        let reply = explain(shop, contact, &of).await;
        assert_eq!(told(&reply), format!("{expected}; transactional yes"), "{status:?} {skip:?}");
    }
}

/// The cures that a message of a campaign advises work: a paused campaign is resumed, and a consent recorded.
#[tokio::test]
async fn the_cures_of_a_campaigns_message_can_be_followed() {
    let shop = Shop::start().await;
    let (ann, bob) = (shop.contact("ann@example.com").await, shop.contact("bob@example.com").await);
    let frozen = Frozen::of(shop, json!({}), &[]).await;
    let shop = &frozen.shop;
    let waits = frozen.message(&ann, MessageStatus::Queued, &[], |_| {}).await;
    let silent = frozen
        .message(&bob, MessageStatus::Suppressed, &[], |message| message.milestones.skip = Some(Skip::NoConsent))
        .await;
    let event = MessageEvent {
        id: shop.app.new_id(START),
        workspace_id: shop.workspace,
        message_id: silent.id,
        kind: EventKind::Suppressed,
        at: START,
        meta: json!({"reason": "no_consent"}).as_object().unwrap().clone(),
    };
    shop.commit(Changes::from_iter([Write::AppendEvent(Box::new(event))])).await;
    shop.change(&frozen.id().to_string(), |campaign| campaign.status = CampaignStatus::Paused).await;
    for (message, operation, expected) in [(waits, "scheduleCampaign", "202"), (silent, "updateContact", "200")] {
        let shown = shop.get(&shop.caller, &format!("/messages/{}", message.id)).await;
        let cure = &shown["explanation"]["cure"];
        assert_eq!(cure["operation"], operation, "{}", shown["explanation"]);
        let (path, body) = (cure["path"].as_str().unwrap(), cure["body"].clone());
        let reply = match operation {
            "updateContact" => shop.patch(&shop.caller, path, body).await,
            _ => shop.post(&shop.caller, path, body).await,
        };
        assert_eq!(reply.summary(), expected, "{operation}");
    }
}
