//! Calls that the fakes make, and which of them the adapters accept.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use messaging_core::domain::channel::Channel;
use messaging_core::ports::transport::{
    Callback, CallbackAddress, CallbackFault, CallbackProof, CallbackRequest, Registration,
};
use messaging_core::time::Timestamp;
use messaging_testing::fakes::{FakeAnswer, FakeApi, FakeCallback, Refusal, Report, Signature, Submission};
use serde_json::json;

use super::Chat;

const URL: &str = "https://a.test/callbacks/c/token";

impl Chat {
    /// Returns the adapter's reading of a call.
    fn believes(&self, call: &FakeCallback) -> Result<Callback, CallbackFault> {
        let header = |(name, value): &(&'static str, String)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let address =
            CallbackAddress { url: URL.to_owned(), token: "token".to_owned(), secret: "the secret".to_owned() };
        let request = CallbackRequest {
            method: &call.method,
            url: &call.url,
            headers: &call.headers.iter().map(header).collect::<HeaderMap>(),
            body: &Bytes::clone(&call.body),
            proof: &CallbackProof::Channel(address),
            now: Timestamp::from_millis(0),
        };
        self.transport.callback(self.settings.as_object().unwrap(), &request)
    }
}

#[tokio::test]
async fn calls_without_a_valid_signature_change_nothing() {
    let (telegram, at_telegram) = Chat::telegram().await;
    at_telegram.set_webhook(URL, "the secret before");
    at_telegram.set_webhook(URL, "the secret");
    let (whatsapp, at_whatsapp) = Chat::whatsapp().await;
    let (viber, at_viber) = Chat::viber().await;
    let chats: [(&Chat, &dyn FakeApi, &str); 3] =
        [(&telegram, &at_telegram, "42"), (&whatsapp, &at_whatsapp, "+14155550123"), (&viber, &at_viber, "U1=")];
    for (chat, api, from) in chats {
        let call = |signature| api.inbound(URL, from, "/stop", signature).unwrap();
        assert_eq!(chat.believes(&call(Signature::Valid)).unwrap().events.len(), 1, "{}", chat.channel);
        for signature in [Signature::Forged, Signature::Missing, Signature::OldSecret] {
            let believed = chat.believes(&call(signature));
            assert_eq!(believed, Err(CallbackFault::Unauthorized), "{} {signature:?}", chat.channel);
        }
        if chat.channel != Channel::Telegram {
            let mut changed = call(Signature::Valid);
            changed.body = [&changed.body[..], b" "].concat().into();
            assert_eq!(chat.believes(&changed), Err(CallbackFault::Unauthorized), "the body is signed");
        }
    }
}

#[tokio::test]
async fn every_report_of_a_fake_is_read() {
    let (whatsapp, at_whatsapp) = Chat::whatsapp().await;
    let (viber, at_viber) = Chat::viber().await;
    let chats: [(&Chat, &dyn FakeApi); 2] = [(&whatsapp, &at_whatsapp), (&viber, &at_viber)];
    let submission = Submission {
        id: "17".to_owned(),
        callback_url: Some(URL.to_owned()),
        reference: Some("ours".to_owned()),
        ..Submission::to("1")
    };
    let reports = [Report::Delivered, Report::Read, Report::Failed(Refusal::Address), Report::Failed(Refusal::Soft)];
    for (chat, api) in chats {
        for report in reports {
            let call = api.report(&[(submission.clone(), report)], Signature::Valid).unwrap();
            assert_eq!(chat.believes(&call).unwrap().events.len(), 1, "{} {report:?}", chat.channel);
        }
    }
    let batch: Vec<_> = reports.map(|report| (submission.clone(), report)).into();
    let call = at_whatsapp.report(&batch, Signature::Valid).unwrap();
    assert_eq!(whatsapp.believes(&call).unwrap().events.len(), 4);
    assert!(at_viber.report(&batch, Signature::Valid).is_none(), "Viber calls for each");
}

#[tokio::test]
async fn whatsapp_hears_its_challenge_where_the_token_is_ours() {
    let (whatsapp, at_whatsapp) = Chat::whatsapp().await;
    let ask = |token: &str, challenge: &str| whatsapp.believes(&at_whatsapp.challenge(URL, token, challenge));
    let answer = ask("token", "1158201444").unwrap();
    assert_eq!((answer.reply.status.as_u16(), &answer.reply.body[..]), (200, &b"1158201444"[..]));
    assert_eq!((answer.reply.content_type, answer.events), ("text/plain; charset=utf-8", Vec::new()));
    assert_eq!(&ask("token", "a%26b%3D").unwrap().reply.body[..], b"a&b=");
    let long = "7".repeat(257);
    for (token, challenge) in [("Token", "1"), ("", "1"), ("token%00", "1"), ("token", ""), ("token", &long)] {
        assert_eq!(ask(token, challenge), Err(CallbackFault::NotFound), "{token} {challenge}");
    }
    let mut call = at_whatsapp.challenge(URL, "token", "1");
    call.url = call.url.replace("subscribe", "unsubscribe");
    assert_eq!(whatsapp.believes(&call), Err(CallbackFault::NotFound));
    // No other provider asks for such a confirmation.
    for chat in [Chat::telegram().await.0, Chat::viber().await.0] {
        let asked = chat.believes(&at_whatsapp.challenge(URL, "token", "1"));
        assert_eq!(asked, Err(CallbackFault::NotFound), "{}", chat.channel);
    }
}

#[tokio::test]
async fn providers_are_told_where_to_call() {
    let address =
        |url: &str| CallbackAddress { url: url.to_owned(), token: "token".to_owned(), secret: "the-secret".to_owned() };
    let (telegram, at_telegram) = Chat::telegram().await;
    let settings = telegram.settings.as_object().unwrap();
    let registered = telegram.transport.register(settings, &address(URL)).await;
    assert_eq!((registered, at_telegram.webhook().as_deref()), (Ok(Registration::Registered), Some(URL)));
    // A self-hosted Bot API server judges addresses by itself.
    let local = "http://127.0.0.1:4000/x";
    assert_eq!(telegram.transport.register(settings, &address(local)).await, Ok(Registration::Registered));
    assert_eq!(at_telegram.webhook().as_deref(), Some(local));
    let wrong = json!({"api_base": telegram.fake.url(), "bot_token": "2:other"});
    let why = telegram.transport.register(wrong.as_object().unwrap(), &address(URL)).await.unwrap_err();
    assert_eq!(why, "Unauthorized");

    // Telegram accepts no secret with other characters.
    let odd = CallbackAddress { secret: "the secret".to_owned(), ..address(URL) };
    assert!(telegram.transport.register(settings, &odd).await.unwrap_err().contains("secret token"));

    // Viber calls the address before it accepts it.
    let (viber, at_viber) = Chat::viber().await;
    let settings = viber.settings.as_object().unwrap();
    let (door, _) = Chat::whatsapp().await;
    viber.fake.call_straight("https://a.test", door.fake.address());
    door.fake.next_answer(FakeAnswer::text(404, "text/plain", ""));
    let why = viber.transport.register(settings, &address(URL)).await.unwrap_err();
    assert_eq!((why.split(':').next(), at_viber.webhook()), (Some("invalidUrl"), None));
    door.fake.next_answer(FakeAnswer::text(200, "text/plain", ""));
    let registered = viber.transport.register(settings, &address(URL)).await;
    assert_eq!((registered, at_viber.webhook().as_deref()), (Ok(Registration::Registered), Some(URL)));
    let probe = viber.fake.called_back().pop().unwrap().callback;
    assert_eq!(viber.believes(&probe), Ok(Callback::default()));
    let (whatsapp, _) = Chat::whatsapp().await;
    let registered = whatsapp.transport.register(whatsapp.settings.as_object().unwrap(), &address(URL)).await;
    assert_eq!(registered, Ok(Registration::NotNeeded), "people enter it there");
}
