//! Text messages through real adapters and fake providers on loopback sockets.

mod http;
#[cfg(feature = "smpp")]
mod smpp;
mod twilio;
mod vonage;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::ports::clock::SystemClock;
use messaging_core::ports::transport::{
    About, Admission, Admitted, Answer, CallbackAddress, CallbackEvent, CallbackFault, CallbackProof, CallbackRequest,
    Content, LastLook, Outcome, OutcomeClass as Class, ReceiptAddress, SmsContent, Transport,
};
use messaging_core::time::Timestamp;
use messaging_testing::fakes::{CalledBack, FakeApi, FakeProvider, FakeRequest};
use messaging_testing::{HttpRequest, ScriptedHttpServer};
use messaging_transport::{Dns, GuardedFetch};
use serde_json::{Map, Value};

use crate::support::outgoing;

/// A message token of 66 characters, as long as those of the product.
const TOKEN: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v";

/// An adapter, its fake provider, and the server that the provider's callbacks reach.
struct Bed {
    fake: FakeProvider,
    transport: Arc<dyn Transport>,
    settings: Map<String, Value>,
    receiver: ScriptedHttpServer,
}

fn fetch() -> Arc<GuardedFetch> {
    Arc::new(GuardedFetch::builder(Dns::new(None)).allow_private(true).build())
}

impl Bed {
    async fn new(api: impl FakeApi, transport: Arc<dyn Transport>, settings: impl Fn(&str) -> Value) -> Self {
        let fake = FakeProvider::start(api).await.unwrap();
        fake.slow(Duration::from_millis(10));
        let settings = settings(&fake.url()).as_object().unwrap().clone();
        Self { fake, transport, settings, receiver: ScriptedHttpServer::start().await }
    }

    fn number(digits: u8) -> String {
        format!("+99900000{digits:02}")
    }

    /// Sends a message to the number with these last digits.
    async fn send(&self, digits: u8) -> Answer {
        self.send_with(digits, "Your code is 123", |_| {}).await
    }

    /// Checks that a message to the number with these last digits gets an answer of this class, with this wait in
    /// seconds and this code of the provider.
    async fn check_answer(&self, digits: u8, (class, wait, code): (Class, Option<u64>, Option<&str>)) -> Answer {
        let answer = self.send(digits).await;
        assert_eq!(answer.class, class, "{digits}: {answer:?}");
        assert_eq!(answer.asked_wait(), wait.map(Duration::from_secs), "{digits}");
        let found = answer.of_provider().and_then(|provider| provider.code.clone());
        assert_eq!(found.as_deref(), code, "{digits}");
        answer
    }

    async fn send_with(
        &self,
        digits: u8,
        text: &str,
        change: impl FnOnce(&mut messaging_core::ports::transport::Outgoing),
    ) -> Answer {
        let number = Self::number(digits);
        let content = Content::Sms(SmsContent { text: text.to_owned() });
        let mut message = outgoing(&[number.as_str()], content);
        message.settings = Arc::new(self.settings.clone());
        let url = self.receiver.url(&format!("/callbacks/sms/{TOKEN}"));
        message.receipts = Some(ReceiptAddress { token: TOKEN.to_owned(), url });
        change(&mut message);
        match self.transport.send(&message).await {
            Ok(sent) => match &sent.outcomes[..] {
                [Outcome::Answered(answer)] => answer.clone(),
                other => panic!("{other:?}"),
            },
            Err(error) => {
                Answer::new(error.class(), messaging_core::ports::transport::Response::of_text(&error.to_string()))
            }
        }
    }

    fn last_request(&self) -> FakeRequest {
        self.fake.requests().pop().expect("a request")
    }

    /// Returns the reports in the provider's calls, in order.
    fn read(&self, requests: &[HttpRequest], proof: &CallbackProof) -> Vec<Result<String, CallbackFault>> {
        requests.iter().map(|request| self.read_one(request, proof)).collect()
    }

    fn read_one(&self, request: &HttpRequest, proof: &CallbackProof) -> Result<String, CallbackFault> {
        let headers = request
            .headers
            .iter()
            .map(|(name, value)| (name.parse::<::http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        let request = CallbackRequest {
            method: &request.method.parse().unwrap(),
            url: &self.receiver.url(&request.target),
            headers: &headers,
            body: &request.body.clone().into(),
            proof,
            now: Timestamp::from_millis(1_800_000_000_000),
        };
        let callback = self.transport.callback(&self.settings, &request)?;
        Ok(callback.events.iter().map(shown).collect::<Vec<_>>().join(", "))
    }

    /// Waits for calls and reads them as calls of the message's own address.
    async fn receipts(&self, count: usize) -> Vec<Result<String, CallbackFault>> {
        let requests = self.receiver.received(count).await;
        self.read(&requests, &CallbackProof::ThisMessage)
    }

    /// Lets a recipient write, and returns the report of the call.
    async fn written(
        &self,
        text: &str,
        signature: messaging_testing::fakes::Signature,
    ) -> Result<String, CallbackFault> {
        let url = self.receiver.url("/callbacks/sms/channel");
        let CalledBack { status, .. } = self.fake.write(&url, "+4915112345678", text, signature).await.unwrap();
        assert!(status.is_some());
        let request = self.receiver.requests().pop().unwrap();
        self.read_one(&request, &channel(&url))
    }
}

fn channel(url: &str) -> CallbackProof {
    CallbackProof::Channel(CallbackAddress {
        url: url.to_owned(),
        token: "channel".to_owned(),
        secret: "secret".to_owned(),
    })
}

fn shown(event: &CallbackEvent) -> String {
    match event {
        CallbackEvent::Receipt { about, receipt } => {
            let about = match about {
                About::ThisMessage => "this",
                About::Token(token) if token == TOKEN => "token",
                About::Token(_) => "another token",
                About::ProviderMessage(_) => "named",
            };
            match receipt {
                Receipt::Read(_) => format!("{about} Read"),
                Receipt::Outcome(answer) => format!("{about} {:?}", answer.class),
            }
        }
        CallbackEvent::Inbound { from, event: InboundEvent::Text(text), .. } => format!("{from} wrote {text}"),
        CallbackEvent::Inbound { from, event, .. } => format!("{from} {event:?}"),
    }
}

fn system_clock() -> Arc<SystemClock> {
    Arc::new(SystemClock)
}

/// Does not admit one number, and remembers its calls in order.
#[derive(Debug, Default)]
struct Watch(Mutex<Vec<String>>);

#[async_trait]
impl Admission for Watch {
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        vec![None; recipients.len()]
    }

    async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
        self.0.lock().unwrap().push(format!("begin {}", recipients.join(" ")));
        let admit = |recipient: &String| {
            if recipient.ends_with("12") { Admitted::NotNow("not now".to_owned()) } else { Admitted::Granted }
        };
        recipients.iter().map(admit).collect()
    }

    fn ended(&self, recipient: &str, outcome: &Outcome) {
        self.0.lock().unwrap().push(format!("ended {recipient} {}", outcome.is_accepted()));
    }
}

#[tokio::test]
async fn every_recipient_is_asked_for_and_put_on_record_alone() {
    let bed = http::bed().await;
    let watch = Arc::new(Watch::default());
    let recipients = ["+990001", "+990012", "+990002"];
    let mut message = outgoing(&recipients, Content::Sms(SmsContent { text: "Hi".to_owned() }));
    message.settings = Arc::new(bed.settings.clone());
    message.last_look = LastLook::at(watch.clone());
    let sent = bed.transport.send(&message).await.unwrap();
    assert!(matches!(&sent.outcomes[..], [Outcome::Answered(_), Outcome::Withheld(_), Outcome::Answered(_)]));
    let expected = ["begin +990001", "ended +990001 true", "begin +990012", "begin +990002", "ended +990002 false"];
    assert_eq!(*watch.0.lock().unwrap(), expected);
    assert_eq!(bed.fake.requests().len(), 2, "whoever is not granted gets no request");
}

#[tokio::test]
async fn a_provider_that_does_not_answer_may_have_the_message() {
    let bed = http::bed().await;
    let answer = tokio::join!(bed.send(31), async {
        bed.fake.received(1).await;
        tokio::time::pause();
    })
    .0;
    assert_eq!(answer.class, Class::Ambiguous);
    assert_eq!(bed.fake.requests().len(), 1, "it is not repeated");
}

#[tokio::test]
async fn a_connection_that_is_reset_unread_is_tried_later_and_a_read_one_is_ambiguous() {
    let bed = http::bed().await;
    let answer = bed.send(32).await;
    assert_eq!((answer.class, bed.fake.requests().len()), (Class::Ambiguous, 1));
    drop(bed.fake);
    let gone = Bed { fake: FakeProvider::start(messaging_testing::fakes::FakeHttp::new(None)).await.unwrap(), ..bed };
    let answer = gone.send(1).await;
    assert_eq!(answer.class, Class::Retry(messaging_core::ports::transport::Scope::Account));
}
