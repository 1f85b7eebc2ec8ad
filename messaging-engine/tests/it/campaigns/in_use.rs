//! Lists, segments, templates and sending domains that campaigns need.

use std::sync::Arc;

use messaging_core::domain::campaign::{Campaign, CampaignStatus};
use serde_json::{Value, json};

use super::Shop;
use crate::bed::{Bed, Call, Reply, send};

/// Creates a campaign that names two lists, a segment and two templates; returns its id and their paths.
async fn naming_everything(shop: &Shop) -> (String, Vec<String>) {
    let excluded = shop.made("/lists", json!({"name": "Out"})).await;
    let segment = shop.made("/segments", json!({"name": "S", "filter": {}})).await;
    let template = shop.made("/templates", super::template(json!({}))).await;
    let body = json!({"audience": {"list_ids": [shop.list], "segment_ids": [segment], "exclude_list_ids": [excluded]},
        "kind": "ab_test", "variants": [{}, {"template_id": template}]});
    let id = shop.campaign(body).await;
    let named = vec![
        format!("/lists/{}", shop.list),
        format!("/lists/{excluded}"),
        format!("/segments/{segment}"),
        format!("/templates/{}", shop.template),
        format!("/templates/{template}"),
    ];
    (id, named)
}

async fn remove(shop: &Shop, path: &str) -> Reply {
    let bed: &Bed = shop;
    bed.delete(&shop.caller, &shop.path(path)).await
}

#[tokio::test]
async fn what_a_campaign_needs_stays_as_long_as_it_needs_it() {
    let shop = Shop::start().await;
    let (id, named) = naming_everything(&shop).await;
    let second = shop.campaign(json!({})).await;
    for status in [CampaignStatus::Scheduled, CampaignStatus::Sending, CampaignStatus::Paused] {
        shop.change(&id, |campaign| campaign.status = status).await;
        for path in &named {
            let refused = remove(&shop, path).await;
            assert_eq!(refused.summary(), "409 in_use", "{status:?} {path}");
            assert_eq!(refused["error"]["details"], json!({"by": [id]}), "{path}");
            assert_eq!(shop.read(path).await.summary(), "200");
        }
    }
    // Several that need it are all named.
    shop.change(&second, |campaign| campaign.status = CampaignStatus::Scheduled).await;
    let refused = remove(&shop, &named[0]).await;
    let mut by: Vec<_> = refused["error"]["details"]["by"].as_array().unwrap().clone();
    by.sort_by_key(ToString::to_string);
    assert_eq!(by, [json!(id), json!(second)]);
    for status in [CampaignStatus::Sent, CampaignStatus::Cancelled] {
        let (id, named) = naming_everything(&shop).await;
        shop.change(&id, |campaign| campaign.status = status).await;
        for path in &named[1..3] {
            assert_eq!(remove(&shop, path).await.summary(), "204", "{status:?} {path}");
        }
        assert_eq!(remove(&shop, &named[4]).await.summary(), "204");
    }
}

/// A draft keeps the ids of deleted resources; it can be changed, and scheduling it reports the missing ones.
#[tokio::test]
async fn a_draft_holds_nothing_and_its_schedule_says_so() {
    let shop = Shop::start().await;
    let (id, named) = naming_everything(&shop).await;
    for path in &named {
        assert_eq!(remove(&shop, path).await.summary(), "204", "{path}");
    }
    let shown = shop.read(&format!("/campaigns/{id}")).await;
    assert_eq!(shown["audience"]["list_ids"], json!([shop.list]));
    let scheduled = shop.request(&format!("/campaigns/{id}/schedule"), json!({"send_now": true})).await;
    assert_eq!(
        scheduled.summary(),
        "422 /audience/exclude_list_ids/0 not_found /audience/list_ids/0 not_found /audience/segment_ids/0 not_found \
         /template_id not_found /variants/1/template_id not_found"
    );
    let target = shop.path(&format!("/campaigns/{id}"));
    assert_eq!(shop.patch(&shop.caller, &target, json!({"name": "New"})).await.summary(), "200");
    let sent_back = json!({"audience": shown["audience"]});
    assert_eq!(
        shop.patch(&shop.caller, &target, sent_back).await.summary(),
        "422 /audience/exclude_list_ids/0 not_found /audience/list_ids/0 not_found /audience/segment_ids/0 not_found"
    );
}

/// Either the list stays and the campaign is scheduled, or it goes and the campaign is not.
#[tokio::test]
async fn a_list_is_removed_or_needed_but_not_both() {
    for _ in 0..20 {
        let shop = Arc::new(Shop::start().await);
        let id = shop.campaign(json!({})).await;
        // Two processes on one database: nothing puts their requests in order but the commit.
        let other = shop.another_process();
        let (removing, scheduling) = (Arc::clone(&shop), Arc::clone(&shop));
        let target = shop.path(&format!("/lists/{}", shop.list));
        let removal = tokio::spawn(async move {
            send(&removing.app, Call::new(&removing.caller, http::Method::DELETE, &target)).await.summary()
        });
        let target = shop.path(&format!("/campaigns/{id}/schedule"));
        let body: Value = json!({"send_now": true});
        let schedule = tokio::spawn(async move {
            let call = Call::new(&scheduling.caller, http::Method::POST, &target).body(&body);
            send(&other, call).await.summary()
        });
        let (removed, scheduled) = (removal.await.unwrap(), schedule.await.unwrap());
        let told = (removed.as_str(), scheduled.as_str());
        assert!([("204", "422 /audience/list_ids/0 not_found"), ("409 in_use", "202")].contains(&told), "{told:?}");
    }
}

/// The path of the workspace's only sending domain, which the default sender belongs to.
async fn only_domain(shop: &Shop) -> String {
    let domains = shop.read("/sending-domains").await;
    assert_eq!(domains["data"].as_array().unwrap().len(), 1, "{}", domains.body);
    format!("/sending-domains/{}", domains["data"][0]["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_domain_stays_as_long_as_a_campaign_sends_from_it() {
    // The sender is the campaign's, its template's, or the workspace's own.
    for (of_campaign, of_template) in [
        (json!({"from_email": "a@sandbox.test"}), json!({})),
        (json!({}), json!({"from_email": "b@eu.sandbox.test"})),
        (json!({}), json!({})),
    ] {
        let shop = Shop::start().await;
        let domain = only_domain(&shop).await;
        let template = shop.made("/templates", super::template(of_template)).await;
        let id = shop.campaign(super::with(json!({"template_id": template}), of_campaign)).await;
        let moved = async |action: &str, body: Value, expected: &str| {
            assert_eq!(shop.request(&format!("/campaigns/{id}/{action}"), body).await.summary(), expected);
        };
        moved("schedule", json!({"at": "2026-06-01T00:00:00Z"}), "202").await;
        let refused = remove(&shop, &domain).await;
        assert_eq!((refused.summary(), &refused["error"]["details"]), ("409 in_use".to_owned(), &json!({"by": [id]})));
        moved("pause", Value::Null, "202").await;
        assert_eq!(remove(&shop, &domain).await.summary(), "409 in_use");
        moved("cancel", Value::Null, "202").await;
        assert_eq!(remove(&shop, &domain).await.summary(), "204");
    }
}

#[tokio::test]
async fn a_campaign_that_has_begun_needs_the_domain_of_its_sender_at_that_time() {
    let shop = Shop::start().await;
    let domain = only_domain(&shop).await;
    let template = shop.made("/templates", super::template(json!({"from_email": "a@sandbox.test"}))).await;
    shop.contact("ann@example.com").await;
    let id = shop.campaign(json!({"template_id": template})).await;
    let schedule = format!("/campaigns/{id}/schedule");
    assert_eq!(shop.request(&schedule, json!({"send_now": true})).await.summary(), "202");
    // As if it had been scheduled by a version that noted no domains.
    shop.change(&id, |campaign| campaign.sending_domains.clear()).await;
    shop.work().await;
    let campaign = shop.store.campaign(shop.workspace, id.parse().unwrap()).await.unwrap().unwrap().record;
    assert_eq!(
        campaign.sending_domains.iter().map(|id| format!("/sending-domains/{id}")).collect::<Vec<_>>(),
        [domain]
    );
}

/// Either the domain stays and the campaign is scheduled, or it goes and the campaign is not.
#[tokio::test]
async fn a_domain_is_removed_or_needed_but_not_both() {
    for _ in 0..20 {
        let shop = Arc::new(Shop::start().await);
        let id = shop.campaign(json!({})).await;
        let other = shop.another_process();
        let target = shop.path(&only_domain(&shop).await);
        let (removing, scheduling) = (Arc::clone(&shop), Arc::clone(&shop));
        let removal = tokio::spawn(async move {
            send(&removing.app, Call::new(&removing.caller, http::Method::DELETE, &target)).await.summary()
        });
        let target = shop.path(&format!("/campaigns/{id}/schedule"));
        let body: Value = json!({"send_now": true});
        let schedule = tokio::spawn(async move {
            let call = Call::new(&scheduling.caller, http::Method::POST, &target).body(&body);
            send(&other, call).await.summary()
        });
        let (removed, scheduled) = (removal.await.unwrap(), schedule.await.unwrap());
        let told = (removed.as_str(), scheduled.as_str());
        assert!([("204", "422 sender_missing"), ("409 in_use", "202")].contains(&told), "{told:?}");
    }
}

/// The campaign is read, the list goes, and only then the campaign is put: the commit finds that out.
#[tokio::test]
async fn a_campaign_cannot_come_to_need_what_has_gone() {
    use messaging_core::changes::{Changes, Expect, Write};
    use messaging_core::ports::store::{CommitError, Priority};
    let shop = Shop::start().await;
    let id = shop.campaign(json!({})).await.parse().unwrap();
    let read = shop.store.campaign(shop.workspace, id).await.unwrap().unwrap();
    assert_eq!(remove(&shop, &format!("/lists/{}", shop.list)).await.summary(), "204");
    let scheduled = Campaign { status: CampaignStatus::Scheduled, ..read.record };
    let put = Write::put(Box::new(scheduled), Expect::Revision(read.revision));
    let refused = shop.store.commit(Changes::from_iter([put]), Priority::Foreground).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
}
