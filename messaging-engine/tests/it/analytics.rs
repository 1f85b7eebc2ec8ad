//! Contract sections 12.4 and 17: statistics of campaigns, and activity over time. Rows that jobs would write are put
//! into the store here.

use std::time::Duration;

use messaging_core::changes::{Changes, CountLink, CountMessages, Write, moves};
use messaging_core::domain::campaign::CampaignStatus;
use messaging_core::domain::message::{Message, MessageContent, MessageStatus};
use messaging_core::ids::CampaignId;
use messaging_engine::services::Visitor;
use serde_json::{Value, json};

use crate::bed::START;
use crate::campaigns::Shop;
use crate::support::Product;

fn person() -> Visitor {
    Visitor {
        ip: "192.0.2.7".parse().unwrap(),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0".to_owned()),
        is_head: false,
        is_prefetch: false,
    }
}

async fn read(product: &Product, path: &str) -> crate::bed::Reply {
    product.get(&product.caller, &format!("/workspaces/{}{path}", product.workspace)).await
}

/// The buckets in which something was counted, as `at name number …`.
fn told(series: &Value) -> Vec<String> {
    let bucket = |bucket: &Value| {
        let counts: Vec<_> = bucket
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, number)| *name != "at" && number.as_f64() != Some(0.0))
            .map(|(name, number)| format!("{name} {number}"))
            .collect();
        (!counts.is_empty()).then(|| format!("{}: {}", bucket["at"].as_str().unwrap(), counts.join(", ")))
    };
    series.as_array().unwrap().iter().filter_map(bucket).collect()
}

#[tokio::test]
async fn what_is_sent_and_opened_is_seen_in_the_workspaces_time() {
    let product = Product::start().await;
    let zone = json!({"timezone": "Asia/Kathmandu"});
    let reply = product.patch(&product.caller, &format!("/workspaces/{}", product.workspace), zone).await;
    assert_eq!(reply.summary(), "200");
    let opened = product.send_to("ann@example.com").await;
    product.send_to("bob@example.com").await;
    product.work().await;
    product.clock.advance(Duration::from_hours(1));
    for _ in 0..2 {
        product.app.record_open(product.workspace, opened, &person()).await.unwrap();
    }
    product.clock.advance(Duration::from_secs(1));
    let reply = read(&product, "/analytics/overview?interval=hour").await;
    assert_eq!(reply.summary(), "200");
    // 09:15 UTC is 15:00 there, so the hours begin at a quarter past.
    assert_eq!(
        told(&reply["series"]),
        ["2026-01-31T09:15:00.000Z: delivered 2, sent 2", "2026-01-31T10:15:00.000Z: opens 2, unique_opens 1"]
    );
    assert_eq!(reply["series"].as_array().unwrap().len(), 30 * 24 + 1, "every bucket is there, and a part of one");
    let totals = json!({"sent": 2, "delivered": 2, "opens": 2, "unique_opens": 1, "clicks": 0, "unique_clicks": 0,
        "bounces": 0, "complaints": 0, "unsubscribes": 0, "open_rate": 0.5, "click_rate": 0.0});
    assert_eq!(reply["totals"], totals);
    let days = read(&product, "/analytics/overview").await;
    assert_eq!((&days["totals"], &days["interval"]), (&totals, &json!("day")));
    assert_eq!(told(&days["series"])[0].split_once(": ").unwrap().0, "2026-01-30T18:15:00.000Z");
    // Other channels and times have no numbers.
    assert_eq!(read(&product, "/analytics/overview?channel=sms").await["totals"]["sent"], 0);
    assert_eq!(read(&product, "/analytics/overview?channel=email").await["totals"], totals);
    let before = read(&product, "/analytics/overview?from=2026-01-01T00:00:00Z&to=2026-01-31T09:15:00Z").await;
    assert_eq!((&before["totals"]["sent"], &before["from"]), (&json!(0), &json!("2026-01-01T00:00:00.000Z")));
}

#[tokio::test]
async fn spans_and_names_are_checked() {
    let product = Product::start().await;
    for (path, expected) in [
        ("overview?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "422 from out_of_range"),
        ("overview?from=2024-01-01T00:00:00Z&to=2025-01-02T00:00:00.001Z", "422 from out_of_range"),
        ("events?from=2024-01-01T00:00:00Z", "422 from out_of_range"),
        ("overview?interval=week", "422 interval unknown_value"),
        ("overview?channel=pigeon", "422 channel unknown_value"),
        ("overview?from=yesterday", "422 from invalid_format"),
        ("overview?from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "200"),
        ("campaigns/cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "404 not_found"),
    ] {
        assert_eq!(read(&product, &format!("/analytics/{path}")).await.summary(), expected, "{path}");
    }
    let empty = read(&product, "/analytics/overview?from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z").await;
    assert_eq!(empty["series"], json!([]));
}

/// Stores a message of a campaign, delivered at once.
async fn delivered(shop: &Shop, campaign: CampaignId, variant: u8) -> Message {
    let template = shop.send_to("template@example.com").await;
    let like = shop.store.message(shop.workspace, template).await.unwrap().unwrap();
    let queued = Message {
        id: shop.app.new_id(shop.app.now()),
        campaign_id: Some(campaign),
        variant: Some(variant),
        status: MessageStatus::Queued,
        revision: 1,
        ..like
    };
    let now = shop.app.now();
    let content = MessageContent { request: "{}".into() };
    let count = CountMessages::of_new(&queued).map(|count| Write::CountMessages(Box::new(count)));
    let insert = Write::InsertMessage(Box::new(queued.clone()), content);
    shop.commit(std::iter::once(insert).chain(count).collect()).await;
    let sending = queued.moved(MessageStatus::Sending, now);
    shop.commit(Changes::from_iter(moves(&queued, &sending, None, now))).await;
    let delivered = sending.moved(MessageStatus::Delivered, now);
    shop.commit(Changes::from_iter(moves(&sending, &delivered, None, now))).await;
    delivered
}

#[tokio::test]
async fn campaigns_that_have_started_are_listed_with_what_came_of_them() {
    let shop = Shop::start().await;
    let mut started = Vec::new();
    for n in 0..5 {
        let id = shop.campaign(json!({"name": format!("Campaign {n}")})).await;
        if n != 1 && n != 3 {
            let change = |campaign: &mut messaging_core::domain::campaign::Campaign| {
                campaign.status = CampaignStatus::Sent;
                campaign.started_at = Some(START);
                campaign.recipients = Some(3);
            };
            shop.change(&id, change).await;
            started.insert(0, id);
        }
    }
    delivered(&shop, started[1].parse().unwrap(), 0).await;
    let mut listed = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = shop.read(&format!("/analytics/campaigns?limit=2{cursor}")).await;
        assert_eq!(page.summary(), "200");
        listed.extend(page["data"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let ids: Vec<_> = listed.iter().map(|one| one["campaign_id"].as_str().unwrap()).collect();
    assert_eq!(ids, started);
    let one = &listed[1];
    assert_eq!((&one["name"], &one["status"]), (&json!("Campaign 2"), &json!("sent")));
    assert_eq!(one["started_at"], "2026-01-31T09:15:00.000Z");
    assert_eq!((&one["delivered"], &one["waiting"], &one["open_rate"]), (&json!(1), &json!(2), &json!(0.0)));
    // The numbers are those of the campaign's own statistics.
    let stats = shop.read(&format!("/campaigns/{}/stats", started[1])).await;
    assert_eq!(stats.summary(), "200");
    for (name, value) in stats.body.as_object().unwrap() {
        assert_eq!(&one[name], value, "{name}");
    }
    let draft = shop.campaign(json!({})).await;
    let stats = shop.read(&format!("/campaigns/{draft}/stats")).await;
    assert_eq!((&stats["recipients"], &stats["sent"]), (&json!(0), &json!(0)));
    assert_eq!(shop.read("/campaigns/cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH/stats").await.summary(), "404 not_found");
}

#[tokio::test]
async fn a_campaign_has_its_series_and_its_links() {
    let shop = Shop::start().await;
    let id: CampaignId = shop.campaign(json!({})).await.parse().unwrap();
    let message = delivered(&shop, id, 1).await;
    shop.clock.advance(Duration::from_hours(24));
    let now = shop.app.now();
    let bounced = message.moved(MessageStatus::Bounced, now);
    let mut changes = Changes::from_iter(moves(&message, &bounced, None, now));
    for (variant, link, url, is_first) in [
        (0, 0, "https://a.example/?x={{ x }}", true),
        (1, 3, "https://a.example/?x={{ x }}", true),
        (1, 3, "https://a.example/?x={{ x }}", false),
        (1, 1, "https://b.example/", true),
    ] {
        let (workspace_id, url) = (shop.workspace, url.to_owned());
        let click = CountLink { workspace_id, campaign_id: id, variant, link, url, is_first };
        changes.push(Write::CountLink(Box::new(click)));
    }
    shop.commit(changes).await;
    shop.clock.advance(Duration::from_secs(1));
    let reply = shop.read(&format!("/analytics/campaigns/{id}?interval=day")).await;
    assert_eq!(reply.summary(), "200");
    // The delivery was subtracted from its day when the message bounced.
    assert_eq!(told(&reply["series"]), ["2026-01-31T00:00:00.000Z: sent 1", "2026-02-01T00:00:00.000Z: bounces 1"]);
    assert_eq!((&reply["totals"]["sent"], &reply["totals"]["delivered"]), (&json!(1), &json!(0)));
    assert_eq!(
        reply["links"],
        json!([
            {"url": "https://a.example/?x={{ x }}", "clicks": 3, "unique_clicks": 2},
            {"url": "https://b.example/", "clicks": 1, "unique_clicks": 1}
        ])
    );
    assert_eq!(reply["campaign_id"], id.to_string());
}

#[tokio::test]
async fn product_events_are_counted_by_when_they_happened() {
    let product = Product::start().await;
    let event =
        |email: &str, name: &str, at: &str| json!({"contact": {"email": email}, "name": name, "occurred_at": at});
    let events = json!({"events": [
        event("ann@example.com", "viewed", "2026-01-29T10:00:00Z"),
        event("ann@example.com", "viewed", "2026-01-29T11:00:00Z"),
        event("bob@example.com", "viewed", "2026-01-31T08:00:00Z"),
        event("bob@example.com", "bought", "2026-01-31T08:00:00Z"),
        event("bob@example.com", "bought", "2025-11-30T08:00:00Z"),
    ]});
    let reply = product.post(&product.caller, "/events/bulk", events).await;
    assert!(reply.status < 300, "{:?}", reply.body);
    let reply = read(&product, "/analytics/events?from=2026-01-28T00:00:00Z&to=2026-02-01T00:00:00Z").await;
    assert_eq!(reply.summary(), "200");
    let lines: Vec<_> = reply["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {} {} {:?}", one["name"], one["count"], one["contacts"], told(&one["series"])))
        .collect();
    assert_eq!(
        lines,
        [
            r#""viewed" 3 2 ["2026-01-29T00:00:00.000Z: count 2", "2026-01-31T00:00:00.000Z: count 1"]"#,
            r#""bought" 1 1 ["2026-01-31T00:00:00.000Z: count 1"]"#
        ]
    );
    assert_eq!(reply["data"][0]["series"].as_array().unwrap().len(), 4);
    let named = read(&product, "/analytics/events?name=bought&interval=hour").await;
    assert_eq!((named["data"].as_array().unwrap().len(), &named["interval"]), (1, &json!("hour")));
    assert_eq!(read(&product, "/analytics/events?name=sold").await["data"], json!([]));
}
