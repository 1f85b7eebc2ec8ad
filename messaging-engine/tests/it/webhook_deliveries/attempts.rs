use std::time::Duration;

use messaging_core::ports::fetch::FetchError;
use messaging_testing::fetched;
use serde_json::{Value, json};

use super::{Hooks, URL, body, types};

#[tokio::test]
async fn an_event_is_told_with_its_message_and_signed() {
    let hooks = Hooks::hearing(&["bounce"]).await;
    hooks.product.transport.answer("ann@example.com", "550 5.1.1 no such user");
    let input = json!({
        "channel": "email", "to": "ann@example.com", "subject": "s", "text": "t", "tags": ["order"],
        "metadata": {"order_id": 17},
    });
    let message = hooks.product.send(&input).await;
    hooks.product.work().await;
    let requests = hooks.fetch.take();
    assert_eq!(requests.len(), 1, "sent is not subscribed");
    let request = &requests[0];
    assert_eq!((request.url.as_str(), request.method.as_str(), request.redirects), (URL, "POST", 0));
    assert_eq!((request.time_limit, request.body_limit), (Duration::from_secs(15), 4096));
    assert_eq!(request.headers["content-type"], "application/json");
    assert!(hooks.is_signed(request, &hooks.secret));
    let told = body(request);
    assert_eq!(request.headers["webhook-id"].to_str().unwrap(), told["id"]);
    insta::with_settings!({sort_maps => true}, {
        insta::assert_json_snapshot!(told, {".id" => "evt_…", ".workspace_id" => "wsp_…", ".data.message_id" => "msg_…"}, @r#"
    {
      "data": {
        "automation_id": null,
        "campaign_id": null,
        "channel": "email",
        "contact_id": null,
        "message_id": "msg_…",
        "meta": {
          "bounce_class": "invalid_recipient",
          "bounce_type": "hard",
          "enhanced_code": "5.1.1",
          "recipient": "ann@example.com",
          "response": "5.1.1 no such user",
          "smtp_code": 550
        },
        "metadata": {
          "order_id": 17
        },
        "status": "bounced",
        "tags": [
          "order"
        ],
        "template_id": null,
        "to": "ann@example.com",
        "variant": null
      },
      "id": "evt_…",
      "timestamp": "2026-01-31T09:15:00.000Z",
      "type": "bounce",
      "workspace_id": "wsp_…"
    }
    "#);
    });
    assert_eq!(told["data"]["message_id"], message.to_string());
    let mut delivery = hooks.deliveries().await.remove(0);
    assert!(delivery["duration_ms"].is_u64());
    delivery["duration_ms"] = json!(41);
    insta::with_settings!({sort_maps => true}, {
        insta::assert_json_snapshot!(delivery, {".id" => "dlv_…", ".webhook_id" => "whk_…", ".event_id" => "evt_…"}, @r#"
    {
      "attempts": 1,
      "created_at": "2026-01-31T09:15:00.000Z",
      "delivered_at": "2026-01-31T09:15:00.000Z",
      "duration_ms": 41,
      "error": null,
      "event_id": "evt_…",
      "event_type": "bounce",
      "id": "dlv_…",
      "is_test": false,
      "next_attempt_at": null,
      "replay_of": null,
      "response_body": "ok",
      "response_status": 200,
      "status": "delivered",
      "webhook_id": "whk_…"
    }
    "#);
    });
}

#[tokio::test]
async fn every_event_goes_to_every_webhook_that_wants_it() {
    let hooks = Hooks::start().await;
    hooks.create("https://acme.com/sent", &["sent"]).await;
    hooks.create("https://acme.com/none", &["open", "click"]).await;
    hooks.message("ann@example.com").await;
    let mut told: Vec<_> =
        hooks.fetch.take().iter().map(|request| format!("{} {}", request.url, body(request)["type"])).collect();
    told.sort();
    assert_eq!(
        told,
        [r#"https://acme.com/hook "delivered""#, r#"https://acme.com/hook "sent""#, r#"https://acme.com/sent "sent""#]
    );
}

#[tokio::test]
async fn the_schedule_is_walked_with_one_id_until_it_is_given_up() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.fetch.always(URL, Ok(fetched(500, &[], "broken")));
    hooks.message("ann@example.com").await;
    let waits = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (attempt, wait) in waits.into_iter().enumerate() {
        assert_eq!(hooks.story().await, format!("sent pending {}", attempt + 1));
        let delivery = hooks.deliveries().await.remove(0);
        assert_eq!((&delivery["error"], &delivery["response_status"]), (&json!("http_status"), &json!(500)));
        let next: messaging_core::time::Timestamp = delivery["next_attempt_at"].as_str().unwrap().parse().unwrap();
        let ahead = next.since(hooks.product.app.now());
        let wait = Duration::from_secs(wait);
        assert!(wait * 9 / 10 <= ahead && ahead <= wait * 11 / 10, "{ahead:?} after attempt {}", attempt + 1);
        hooks.product.pass(ahead - Duration::from_millis(1)).await;
        assert_eq!(hooks.deliveries().await[0]["attempts"], attempt + 1, "not a millisecond early");
        hooks.product.pass(Duration::from_millis(1)).await;
    }
    assert_eq!(hooks.story().await, "sent failed 10");
    let requests = hooks.fetch.take();
    assert_eq!(requests.len(), 10);
    assert!(requests.iter().all(|request| request.headers["webhook-id"] == requests[0].headers["webhook-id"]));
    let times: std::collections::BTreeSet<_> =
        requests.iter().map(|request| request.headers["webhook-timestamp"].to_str().unwrap().to_owned()).collect();
    assert_eq!(times.len(), 10, "each attempt has its own time");
}

#[tokio::test]
async fn an_attempt_may_fail_in_every_way_and_then_succeed() {
    let hooks = Hooks::hearing(&["sent"]).await;
    for (error, told) in [
        (FetchError::Timeout, "timeout"),
        (FetchError::Connection, "connection_failed"),
        (FetchError::Tls, "tls_error"),
        (FetchError::Dns, "dns_error"),
        (FetchError::Blocked, "blocked_address"),
    ] {
        hooks.fetch.next_with(Err(error));
        hooks.message("ann@example.com").await;
        let delivery = hooks.deliveries().await.pop().unwrap();
        assert_eq!((&delivery["error"], &delivery["response_status"]), (&json!(told), &Value::Null));
        hooks.product.pass(Duration::from_secs(6)).await;
        let delivery = hooks.deliveries().await.pop().unwrap();
        assert_eq!((&delivery["error"], &delivery["status"]), (&Value::Null, &json!("delivered")));
        assert_eq!(delivery["attempts"], 2);
    }
}

#[tokio::test]
async fn retry_after_puts_the_next_attempt_off() {
    let hooks = Hooks::hearing(&["sent"]).await;
    hooks.fetch.next_with(Ok(fetched(429, &[("retry-after", "60")], "slow down")));
    hooks.message("ann@example.com").await;
    assert_eq!(hooks.deliveries().await[0]["next_attempt_at"], "2026-01-31T09:16:00.000Z");
    hooks.fetch.next_with(Ok(fetched(503, &[("retry-after", "Sat, 31 Jan 2026 12:00:00 GMT")], "")));
    hooks.product.pass(Duration::from_mins(1)).await;
    assert_eq!(hooks.deliveries().await[0]["next_attempt_at"], "2026-01-31T12:00:00.000Z");
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_nobody_else() {
    let hooks = Hooks::hearing(&["bounce"]).await;
    let hanging = hooks.create("https://hanging.test/", &["sent"]).await;
    for number in 0..99 {
        hooks.create(&format!("https://acme.com/{number}"), &["delivered"]).await;
    }
    // The first calls are those of `sent`, which is committed first.
    let gates: Vec<_> = (0..3).map(|_| hooks.fetch.gate()).collect();
    for number in 0..3 {
        hooks.product.send_to(&format!("user-{number}@example.com")).await;
    }
    let app = hooks.product.app.clone();
    let work = tokio::spawn(async move { app.run_until_idle().await });
    // Every call but those that are held up has been made while those still are.
    hooks.fetch.received(3 + 3 * 99).await;
    for gate in &gates {
        gate.reached().await;
        gate.open();
    }
    work.await.unwrap().unwrap();
    let path = format!("{}/{}/deliveries", hooks.base, hanging["id"].as_str().unwrap());
    assert_eq!(hooks.get(&path).await["data"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_test_is_told_once_whatever_comes_of_it() {
    let hooks = Hooks::hearing(&["bounce"]).await;
    let made = hooks.act("test", json!({})).await;
    assert_eq!((made.status, &made["status"], &made["is_test"]), (202, &json!("pending"), &json!(true)));
    hooks.fetch.next(500);
    hooks.product.work().await;
    let mut requests = hooks.fetch.take();
    // Only then, because deliveries are made side by side.
    let given = json!({"event_type": "bounce", "payload": {"any": ["thing"]}});
    assert_eq!(hooks.act("test", given).await["event_type"], "bounce");
    hooks.product.work().await;
    requests.extend(hooks.fetch.take());
    assert_eq!(types(&requests), ["test", "bounce"]);
    assert_eq!(body(&requests[0])["data"]["to"], "ann@example.com", "a sample");
    assert_eq!(body(&requests[1])["data"], json!({"any": ["thing"]}));
    assert!(requests.iter().all(|request| hooks.is_signed(request, &hooks.secret)));
    hooks.product.pass(Duration::from_hours(48)).await;
    assert_eq!(hooks.story().await, "test failed 1, bounce delivered 1");
    assert_eq!(hooks.fetch.take().len(), 0);
    for (bad, expected) in [
        (json!({"event_type": "queued"}), "422 /event_type unknown_value"),
        (json!({"event_type": "*"}), "422 /event_type unknown_value"),
        (json!({"payload": []}), "422 /payload invalid_type"),
        (json!({"payload": {"x": "y".repeat(70_000)}}), "422 /payload too_large"),
    ] {
        assert_eq!(hooks.act("test", bad.clone()).await.summary(), expected, "{bad}");
    }
}

#[tokio::test]
async fn without_webhooks_nothing_is_called_and_nothing_left_to_do() {
    let hooks = Hooks::start().await;
    let deleted = http::Method::DELETE;
    let call = crate::bed::Call::new(hooks.caller(), deleted, &hooks.path);
    let pending = hooks.product.send_to("ann@example.com").await;
    assert_eq!(crate::bed::send(&hooks.product.app, call).await.summary(), "204");
    hooks.product.work().await;
    assert_eq!(hooks.product.story(pending).await, "delivered: Queued Sent Delivered");
    assert_eq!(hooks.fetch.take().len(), 0);
    assert_eq!(messaging_core::ports::store::Jobs::job_count(&*hooks.product.store).await.unwrap(), 0);
}
