use messaging_core::domain::channel::Channel;
use messaging_core::ids::MessageId;
use messaging_testing::fakes::{FakeApi as _, FakeWhatsapp, Refusal, Report, Signature, Submission};
use serde_json::{Value, json};

use super::Chat;

async fn whatsapp() -> (Chat, FakeWhatsapp, String) {
    let api = FakeWhatsapp::new("1066", "EAA", "app secret");
    let settings = |base: &str| json!({"api_base": base, "phone_number_id": "1066", "access_token": "EAA", "app_secret": "app secret"});
    let chat = Chat::start(Channel::Whatsapp, "cloud_api", api.clone(), settings).await;
    let url = chat.shown().await["callback_url"].as_str().expect("an address to enter").to_owned();
    (chat, api, url)
}

impl Chat {
    /// Sends a message to a number with these digits; returns its id, and its submission as the fake knows it.
    async fn taken(&self, number: usize, url: &str) -> (MessageId, Submission) {
        let (id, story) = self.story_of(&format!("+99900{number:04}12")).await;
        assert_eq!(story, "sent: Queued Sent");
        let requests = self.fake.requests();
        let body = requests.last().unwrap().json();
        let submission = Submission {
            id: format!("{:08}", requests.len()),
            callback_url: Some(url.to_owned()),
            reference: body["biz_opaque_callback_data"].as_str().map(ToOwned::to_owned),
            ..Submission::to(body["to"].as_str().unwrap())
        };
        (id, submission)
    }
}

#[tokio::test]
async fn receipts_raise_the_status_once_and_only_signed_ones() {
    let (chat, api, url) = whatsapp().await;
    let (id, submission) = chat.taken(1, &url).await;
    let report = |report, signature| api.report(&[(submission.clone(), report)], signature).unwrap();
    for signature in [Signature::Forged, Signature::Missing, Signature::OldSecret] {
        assert_eq!(chat.called(&report(Report::Delivered, signature)).await, 401);
    }
    assert_eq!(chat.story(id).await, "sent: Queued Sent");
    // Read comes before delivered, and both come twice.
    for said in [Report::Read, Report::Delivered, Report::Sent, Report::Read, Report::Failed(Refusal::Soft)] {
        assert_eq!(chat.called(&report(said, Signature::Valid)).await, 200);
    }
    assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered Open");
    assert_eq!(chat.last_meta(id).await["source"], "read_receipt");

    // Receipts without our reference, found by the id that WhatsApp gave, and both in one call.
    let (id, mut submission) = chat.taken(2, &url).await;
    submission.reference = None;
    let batch = [Report::Delivered, Report::Read].map(|report| (submission.clone(), report));
    assert_eq!(chat.called(&api.report(&batch, Signature::Valid).unwrap()).await, 200);
    assert_eq!(chat.story(id).await, "delivered: Queued Sent Delivered Open");
}

#[tokio::test]
async fn what_a_receipt_says_decides_about_message_and_number() {
    let (chat, api, url) = whatsapp().await;
    for (number, (refusal, story, listed, code)) in [
        (Refusal::Address, "bounced: Queued Sent Bounce", "bounce system", "131026"),
        (Refusal::OptedOut, "suppressed: Queued Sent Suppressed", "unsubscribe recipient", "131050"),
        (Refusal::Policy, "bounced: Queued Sent Bounce", "", "131049"),
        (Refusal::Content, "failed: Queued Sent Failed", "", "131047"),
        (Refusal::Retry, "failed: Queued Sent Failed", "", "131000"),
    ]
    .into_iter()
    .enumerate()
    {
        let (id, submission) = chat.taken(number, &url).await;
        let call = api.report(&[(submission.clone(), Report::Failed(refusal))], Signature::Valid).unwrap();
        for _ in 0..2 {
            assert_eq!(chat.called(&call).await, 200);
        }
        assert_eq!(chat.story(id).await, story, "{refusal:?}");
        assert_eq!(chat.listed_as(&format!("+{}", submission.recipient)).await, listed, "{refusal:?}");
        let meta = chat.last_meta(id).await;
        if refusal != Refusal::OptedOut {
            assert_eq!(meta["provider_code"], code, "{meta}");
        }
        if refusal == Refusal::Content {
            assert!(meta["message"].as_str().unwrap().contains("use a template"), "{meta}");
        }
    }
}

#[tokio::test]
async fn neither_unknown_failures_in_a_row_nor_filtered_ones_suppress_a_number() {
    let (chat, api, url) = whatsapp().await;
    let unknown = |submission: &Submission| {
        let mut call =
            api.report(&[(submission.clone(), Report::Failed(Refusal::Policy))], Signature::Missing).unwrap();
        let body = String::from_utf8(call.body.to_vec()).unwrap().replace("131049", "131099");
        call.body = body.into();
        api.signed(call)
    };
    for number in [1, 2] {
        for round in 1..=5 {
            let (id, submission) = chat.taken(number, &url).await;
            let to = format!("+{}", submission.recipient);
            assert_eq!(chat.listed_as(&to).await, "", "{round}");
            let filtered = api.report(&[(submission.clone(), Report::Failed(Refusal::Policy))], Signature::Valid);
            let call = if number == 1 { unknown(&submission) } else { filtered.unwrap() };
            assert_eq!(chat.called(&call).await, 200);
            // An unknown error code says nothing about the number.
            let story = if number == 1 { "failed: Queued Sent Failed" } else { "bounced: Queued Sent Bounce" };
            assert_eq!(chat.story(id).await, story);
            assert_eq!(chat.listed_as(&to).await, "", "{round}");
        }
    }
}

#[tokio::test]
async fn words_and_preferences_of_people_count() {
    const FROM: &str = "+9990000112";
    let (chat, api, url) = whatsapp().await;
    let (id, _) = chat.story_of(FROM).await;
    let events = async || {
        let report: Value = serde_json::to_value(chat.report(id).await).unwrap();
        let events = report["events"].as_array().unwrap().clone();
        let methods = events.into_iter().filter(|event| event["kind"] == "unsubscribe");
        methods.map(|event| event["meta"]["method"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let says = |text: &str| api.inbound(&url, FROM, text, Signature::Valid).unwrap();
    for _ in 0..2 {
        assert_eq!(chat.called(&says(" stop ")).await, 200);
    }
    assert_eq!(chat.listed_as(FROM).await, "unsubscribe recipient");
    assert_eq!(chat.called(&says("What is this?")).await, 200);
    assert_eq!(chat.listed_as(FROM).await, "unsubscribe recipient");
    assert_eq!(chat.called(&says("START")).await, 200);
    assert_eq!(chat.listed_as(FROM).await, "");
    for (value, listed) in [("stop", "unsubscribe recipient"), ("resume", "")] {
        assert_eq!(chat.called(&api.preference(&url, FROM, value, Signature::Valid)).await, 200);
        assert_eq!(chat.listed_as(FROM).await, listed);
    }
    assert_eq!(events().await, ["keyword", "provider"]);
    assert_eq!(chat.called(&api.preference(&url, FROM, "stop", Signature::Forged)).await, 401);
    assert_eq!(chat.listed_as(FROM).await, "");
}

#[tokio::test]
async fn without_the_secret_of_the_app_no_call_is_believed() {
    let api = FakeWhatsapp::new("1066", "EAA", "");
    let settings = |base: &str| json!({"api_base": base, "phone_number_id": "1066", "access_token": "EAA"});
    let chat = Chat::start(Channel::Whatsapp, "cloud_api", api.clone(), settings).await;
    let shown = chat.shown().await;
    assert!(shown["error"].as_str().unwrap().contains("app_secret"), "{shown}");
    let url = shown["callback_url"].as_str().unwrap();
    for signature in [Signature::Valid, Signature::Missing] {
        assert_eq!(chat.called(&api.inbound(url, "+9990000101", "STOP", signature).unwrap()).await, 401);
    }
    assert_eq!(chat.listed_as("+9990000101").await, "");
}
