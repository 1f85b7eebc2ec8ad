//! `POST /messages/batch`.

use std::sync::Mutex;

use messaging_core::domain::message::MessageStatus;
use messaging_core::ids::MessageId;
use messaging_core::ports::transport::Content;
use messaging_engine::ops::messages::batch::{SendAllMessages, SendMessages};
use messaging_engine::ops::{Answer, Endpoint, Operation, Quota, Request};
use messaging_engine::{App, Caller, Error};
use serde_json::{Value, json};

use crate::bed::fault;
use crate::mortal::MortalStore;
use crate::support::Product;

async fn run<O: Operation>(
    app: &App,
    caller: &Caller,
    body: &Value,
    (key, quota): (Option<&str>, Option<&dyn Quota>),
) -> Result<Answer, Error> {
    let admitted = app.admit(caller.clone(), Endpoint::row::<O>(), &[], None).await?;
    let request = Request {
        path: O::PATH,
        body: body.to_string().into_bytes().into(),
        idempotency_key: key.map(str::as_bytes),
        quota,
        ..Request::default()
    };
    admitted.run(request).await
}

async fn batch(product: &Product, messages: Value, key: Option<&str>) -> Result<Value, Error> {
    let answer =
        run::<SendMessages>(&product.app, &product.caller, &json!({"messages": messages}), (key, None)).await?;
    assert_eq!(answer.status, 202);
    Ok(serde_json::from_slice(&answer.body).unwrap())
}

fn email(to: &str) -> Value {
    json!({"channel": "email", "to": to, "subject": "s", "text": "t"})
}

fn emails(count: usize) -> Value {
    (0..count).map(|n| email(&format!("user-{n}@example.com"))).collect()
}

fn id_of(result: &Value) -> MessageId {
    result["message_id"].as_str().unwrap().parse().unwrap()
}

/// `queued`, or the code and the faults of a refusal, in order.
fn told(report: &Value) -> Vec<String> {
    let one = |(index, result): (usize, &Value)| {
        assert_eq!(result["index"], index);
        let Some(error) = result.get("error") else {
            assert!(result["message_id"].as_str().unwrap().starts_with("msg_"));
            return result["status"].as_str().unwrap().to_owned();
        };
        assert_eq!((&result["status"], result.get("message_id")), (&json!("error"), None));
        let faults = error["details"]["errors"].as_array().into_iter().flatten().map(fault);
        [error["code"].as_str().unwrap().to_owned()].into_iter().chain(faults).collect::<Vec<_>>().join(" ")
    };
    report["results"].as_array().unwrap().iter().enumerate().map(one).collect()
}

#[tokio::test]
async fn messages_are_judged_one_by_one_and_the_good_ones_are_sent() {
    let product = Product::start().await.on_every_channel().await;
    let from =
        json!({"channel": "email", "to": "a@example.com", "from_email": "a@else.where", "subject": "s", "text": "t"});
    let report = batch(
        &product,
        json!([
            email("ann@example.com"),
            {"channel": "email", "to": "nobody", "subject": "s", "text": "t", "cc": ["x"], "template_id": "tpl_x"},
            from,
            7,
            {"channel": "sms", "to": "+4915112345678", "text": "t".repeat(200)},
            {"channel": "email", "to": "a@example.com", "subject": "s", "text": "t", "sendAt": "x"},
            email("bob@example.com"),
        ]),
        None,
    )
    .await
    .unwrap();
    let expected = [
        "queued",
        "validation_failed /to invalid_format /cc/0 invalid_format /template_id not_found",
        "sender_domain_not_verified",
        "validation_failed  invalid_type",
        "queued",
        "validation_failed /sendAt unknown_field",
        "queued",
    ];
    assert_eq!(told(&report), expected);
    assert_eq!((&report["accepted"], &report["failed"]), (&json!(3), &json!(4)));
    assert_eq!(report["results"][4]["segments"], 2, "a text message names its parts");
    product.work().await;
    let left: Vec<_> = product.transport.take().into_iter().map(|out| out.message_id).collect();
    let mut sent: Vec<_> = [0, 4, 6].iter().map(|at| id_of(&report["results"][*at])).collect();
    sent.sort_unstable();
    let mut left: Vec<MessageId> = left;
    left.sort_unstable();
    assert_eq!(left, sent);
}

#[tokio::test]
async fn a_batch_has_one_to_a_hundred_messages() {
    let product = Product::start().await;
    for (messages, expected) in [
        (json!([]), "/messages too_short"),
        (emails(101), "/messages too_many_items"),
        (Value::Null, "/messages required"),
        (json!({}), "/messages invalid_type"),
    ] {
        let Err(Error::Validation(found)) = batch(&product, messages, None).await else { panic!("{expected}") };
        let faults = serde_json::to_value(found.as_slice()).unwrap();
        assert_eq!(fault(&faults[0]), expected);
    }
    let report = batch(&product, emails(100), None).await.unwrap();
    assert_eq!((&report["accepted"], told(&report)), (&json!(100), vec!["queued".to_owned(); 100]));
}

#[tokio::test]
async fn a_hundred_messages_and_the_answer_to_their_key_are_one_commit() {
    let product = Product::start().await;
    // The second commit would be the end of the process.
    let mortal = MortalStore::new(product.store.clone(), 1, false);
    let app = product.another_process_on(mortal.clone());
    let body = json!({"messages": emails(100)});
    let first = run::<SendMessages>(&app, &product.caller, &body, (Some("k"), None)).await.unwrap();
    assert!(!mortal.is_dead());
    let again = run::<SendMessages>(&product.app, &product.caller, &body, (Some("k"), None)).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.body, first.body);
    product.work().await;
    assert_eq!(product.transport.take().len(), 100, "each once");
    let body = json!({"messages": emails(2)});
    let other = run::<SendMessages>(&product.app, &product.caller, &body, (Some("k"), None));
    assert_eq!(other.await.unwrap_err().code(), "idempotency_key_reused");
}

#[tokio::test]
async fn a_long_batch_that_was_cut_off_goes_on_where_it_was_and_sends_nothing_twice() {
    for is_kept in [false, true] {
        let product = Product::start().await;
        // Each message is committed in a separate part, with a file that is stored beside the database.
        let text = "x".repeat(900 << 10);
        let long = |n: usize| {
            json!({"channel": "email", "to": format!("user-{n}@example.com"), "subject": "s", "text": text,
                "attachments": [{"filename": "a.txt", "content_b64": "eA=="}]})
        };
        let body = json!({"messages": (0..4).map(long).collect::<Value>()});
        let mortal = MortalStore::new(product.store.clone(), 2, is_kept);
        let app = product.another_process_on(mortal.clone());
        tokio::select! {
            () = mortal.died() => {}
            _ = run::<SendMessages>(&app, &product.caller, &body, (Some("k"), None)) => panic!("it has no end"),
        }
        drop(app);
        let answer = run::<SendMessages>(&product.app, &product.caller, &body, (Some("k"), None)).await.unwrap();
        let report: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(told(&report), ["queued"; 4]);
        product.work().await;
        let left = product.transport.take();
        // In no order: within one millisecond, the ids of two processes have none.
        let mut ids: Vec<_> = left.iter().map(|out| out.message_id).collect();
        let mut answered: Vec<_> = report["results"].as_array().unwrap().iter().map(id_of).collect();
        ids.sort_unstable();
        answered.sort_unstable();
        assert_eq!(ids, answered, "each once");
        for out in &left {
            let Content::Email(email) = &out.content else { panic!("an email") };
            assert_eq!(email.attachments[0].content, "x");
        }
    }
}

/// A rate limit with so many tokens left.
#[derive(Debug)]
struct Few(u32, Mutex<u32>);

impl Quota for Few {
    fn raise_to(&self, tokens: u32) -> Result<(), Error> {
        *self.1.lock().unwrap() = tokens;
        if tokens <= self.0 { Ok(()) } else { Err(Error::RateLimited { retry_after: 9 }) }
    }
}

#[tokio::test]
async fn a_batch_takes_a_token_for_each_message_or_sends_none() {
    let product = Product::start().await;
    let body = json!({"messages": emails(5)});
    let few = Few(4, Mutex::new(0));
    let refused = run::<SendMessages>(&product.app, &product.caller, &body, (None, Some(&few))).await;
    assert_eq!(refused.unwrap_err().code(), "rate_limited");
    assert_eq!(*few.1.lock().unwrap(), 5);
    product.work().await;
    assert!(product.transport.take().is_empty());
    let enough = Few(5, Mutex::new(0));
    run::<SendMessages>(&product.app, &product.caller, &body, (None, Some(&enough))).await.unwrap();
}

#[tokio::test]
async fn all_messages_of_a_foreign_call_are_accepted_or_none() {
    let product = Product::start().await;
    let all = async |messages: Value, check_only: bool| {
        let body = json!({"messages": messages, "check_only": check_only});
        run::<SendAllMessages>(&product.app, &product.caller, &body, (None, None)).await
    };
    let mixed = json!([email("ann@example.com"), email("nobody"), {"channel": "email", "to": "a@example.com"}]);
    let Err(Error::Validation(found)) = all(mixed, false).await else { panic!("refused") };
    let faults = serde_json::to_value(found.as_slice()).unwrap();
    let faults: Vec<_> = faults.as_array().unwrap().iter().map(fault).collect();
    assert_eq!(faults, ["/messages/1/to invalid_format", "/messages/2/subject required", "/messages/2/html required"]);
    let mut foreign = email("ann@example.com");
    foreign["from_email"] = json!("a@else.where");
    let refused = all(json!([email("ann@example.com"), foreign]), false).await;
    assert_eq!(refused.unwrap_err().code(), "sender_domain_not_verified");
    all(json!([email("ann@example.com")]), true).await.unwrap();
    product.work().await;
    assert!(product.transport.take().is_empty(), "nothing was sent");
    let answer = all(emails(3), false).await.unwrap();
    let accepted: Value = serde_json::from_slice(&answer.body).unwrap();
    let ids: Vec<_> = accepted["messages"].as_array().unwrap().iter().map(id_of).collect();
    product.work().await;
    assert_eq!(product.transport.take().len(), 3);
    for id in ids {
        assert_eq!(product.report(id).await.status, MessageStatus::Delivered);
    }
}
