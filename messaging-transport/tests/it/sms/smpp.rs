//! The provider `smpp`.

use std::sync::atomic::{AtomicBool, Ordering};

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::InboundMessage;
use messaging_core::domain::delivery::consequence::PROBE_EVERY;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::inbound::{InboundError, ProviderSink, ReceiptLink};
use messaging_core::ports::transport::{Acceptance, AddressFault, ContentFault, Scope, SoftCause};
use messaging_testing::certify;
use messaging_testing::fakes::FakeSmpp;
use messaging_transport::{Dns, Smpp};
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;

/// Records its calls, and refuses the first few.
#[derive(Debug)]
struct Sink {
    told: watch::Sender<Vec<String>>,
    refuses: Mutex<usize>,
    is_replaced: AtomicBool,
}

impl Sink {
    fn tell(&self, what: String) -> Result<(), InboundError> {
        let mut refuses = self.refuses.lock().unwrap();
        if *refuses > 0 {
            *refuses -= 1;
            return Err(InboundError::new("the disk is full"));
        }
        self.told.send_modify(|told| told.push(what));
        Ok(())
    }

    async fn told(&self, count: usize) -> Vec<String> {
        self.told.subscribe().wait_for(|told| told.len() >= count).await.unwrap().clone()
    }
}

#[async_trait]
impl ProviderSink for Sink {
    fn receipt_token(&self, _: &str) -> Option<(WorkspaceId, MessageId)> {
        None
    }

    async fn receive_receipt(&self, about: &ReceiptLink, receipt: &Receipt) -> Result<(), InboundError> {
        let ReceiptLink::Provider { provider, provider_message_id, spellings, .. } = about else { panic!("{about:?}") };
        let Receipt::Outcome(answer) = receipt else { panic!("{receipt:?}") };
        let or = if spellings.is_empty() { "" } else { " or another spelling" };
        self.tell(format!("{provider} {provider_message_id}{or} {:?}", answer.class))
    }

    async fn receive_message(&self, message: &InboundMessage) -> Result<(), InboundError> {
        self.tell(format!("{} {:?}", message.from, message.event))
    }

    async fn has_settings(
        &self,
        _: WorkspaceId,
        channel: Channel,
        provider: &str,
        settings: &Map<String, Value>,
    ) -> Result<bool, InboundError> {
        assert_eq!((channel, provider, settings.contains_key("password")), (Channel::Sms, "smpp", true));
        Ok(!self.is_replaced.load(Ordering::Relaxed))
    }
}

struct Center {
    fake: FakeSmpp,
    smpp: Arc<Smpp>,
    sink: Arc<Sink>,
    settings: Map<String, Value>,
}

async fn center() -> Center {
    let fake = FakeSmpp::start("acme", "passw0rd").await.unwrap();
    center_of(fake, Smpp::builder(Dns::new(None)).allow_private(true).build())
}

fn center_of(fake: FakeSmpp, smpp: Smpp) -> Center {
    let smpp = Arc::new(smpp);
    let sink = Arc::new(Sink {
        told: watch::Sender::new(Vec::new()),
        refuses: Mutex::new(0),
        is_replaced: AtomicBool::new(false),
    });
    let weak: std::sync::Weak<dyn ProviderSink> = Arc::<Sink>::downgrade(&sink);
    smpp.attach(weak);
    let settings = fake.settings().as_object().unwrap().clone();
    Center { fake, smpp, sink, settings }
}

impl Center {
    async fn send(&self, digits: u8, text: &str) -> Answer {
        let number = Bed::number(digits);
        let mut message = outgoing(&[number.as_str()], Content::Sms(SmsContent { text: text.to_owned() }));
        message.settings = Arc::new(self.settings.clone());
        let sent = self.smpp.send(&message).await.unwrap();
        match &sent.outcomes[..] {
            [Outcome::Answered(answer)] => answer.clone(),
            other => panic!("{other:?}"),
        }
    }
}

const ACCEPTED: Class = Class::Accepted(Acceptance::Relayed);

#[tokio::test]
async fn messages_go_over_one_bound_session() {
    let center = center().await;
    let (one, two) = tokio::join!(center.send(12, "Grüße"), center.send(12, "жук"));
    assert_eq!((one.class, two.class), (ACCEPTED, ACCEPTED));
    let parts = center.fake.parts();
    let ids: Vec<_> = parts.iter().map(|part| part.id.as_str()).collect();
    let mut named: Vec<_> = [&one, &two].map(|one| one.of_provider().unwrap().message_id.as_deref().unwrap()).into();
    named.sort_unstable();
    assert_eq!(named, ids);
    assert_eq!(one.of_provider().unwrap().segments, Some(1));
    assert_eq!(center.fake.binds(1).await, 1);
    let german = parts.iter().find(|part| u8::from(part.pdu.data_coding) == 0).unwrap();
    assert_eq!(german.pdu.short_message().as_ref(), [b'G', b'r', 0x7E, 0x1E, b'e'], "the GSM alphabet");
    assert_eq!(german.pdu.destination_addr.as_str(), "9990000012");
    assert!(parts.iter().any(|part| u8::from(part.pdu.data_coding) == 8));
}

#[tokio::test]
async fn every_status_has_its_class() {
    let center = center().await;
    for (digits, expected, code) in [
        (12, ACCEPTED, None),
        (2, Class::Address(AddressFault::Recipient), Some("0x0000000B")),
        (3, Class::Soft(SoftCause::Policy), Some("0x00000400")),
        (4, Class::Retry(Scope::Account), Some("0x00000008")),
        (6, Class::Content(ContentFault::Provider), Some("0x00000001")),
        (9, Class::Auth, Some("0x0000000F")),
        (11, Class::Retry(Scope::Account), Some("0x00000014")),
        (22, Class::Throttled(Scope::Account), Some("0x00000058")),
        // The connection breaks when it was read.
        (32, Class::Ambiguous, None),
        (12, ACCEPTED, None),
    ] {
        let answer = center.send(digits, "Hi").await;
        let found = answer.of_provider().and_then(|provider| provider.code.as_deref());
        assert_eq!((answer.class, found), (expected, code), "{digits}: {answer:?}");
    }
    assert_eq!(center.fake.binds(2).await, 2, "it is bound again when it breaks");
}

#[tokio::test]
async fn a_receipt_is_about_the_message_of_its_name_and_is_answered_when_it_is_stored() {
    let center = center().await;
    *center.sink.refuses.lock().unwrap() = 1;
    let id = center.send(1, "Hi").await.of_provider().unwrap().message_id.clone().unwrap();
    assert_eq!(center.fake.answers(1).await, [0x64], "the disk was full: it shall come again");
    center.fake.report(&id, "DELIVRD").await;
    assert_eq!(center.fake.answers(2).await, [0x64, 0]);
    center.fake.set_tlvs(true);
    center.fake.report(&id, "EXPIRED").await;
    center.fake.report("unknown", "UNDELIV").await;
    let expected = [
        format!("smpp {id} Accepted(Delivered)"),
        format!("smpp {id} Soft(Unreachable)"),
        "smpp unknown Soft(Unknown)".to_owned(),
    ];
    let mut told = center.sink.told(3).await;
    told[1..].sort_unstable();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_long_message_goes_in_parts_and_is_delivered_when_all_of_them_are() {
    let center = center().await;
    let answer = center.send(12, &"a".repeat(400)).await;
    assert_eq!(answer.of_provider().unwrap().segments, Some(3));
    let ids: Vec<_> = center.fake.parts().iter().map(|part| part.id.clone()).collect();
    assert_eq!(answer.of_provider().unwrap().message_id.as_ref(), Some(&ids[0]));
    assert!(center.fake.parts().iter().all(|part| u8::from(part.pdu.esm_class) == 0x40));
    for id in [&ids[2], &ids[0], &ids[0]] {
        center.fake.report(id, "DELIVRD").await;
    }
    center.fake.answers(3).await;
    assert_eq!(*center.sink.told.borrow(), Vec::<String>::new(), "a part is missing");
    center.fake.report(&ids[1], "DELIVRD").await;
    assert_eq!(center.sink.told(1).await, [format!("smpp {} Accepted(Delivered)", ids[0])]);
    // The failure of a part makes the message fail.
    center.send(12, &"ж".repeat(100)).await;
    let ids: Vec<_> = center.fake.parts()[3..].iter().map(|part| part.id.clone()).collect();
    center.fake.report(&ids[1], "UNDELIV").await;
    center.fake.report(&ids[0], "DELIVRD").await;
    center.fake.answers(6).await;
    assert_eq!(center.sink.told(2).await[1..], [format!("smpp {} Soft(Unknown)", ids[0])]);
}

#[tokio::test]
async fn what_recipients_write_comes_in() {
    let center = center().await;
    center.send(12, "Hi").await;
    center.fake.write("+4915112345678", "STOP").await;
    assert_eq!(center.sink.told(1).await, [r#"+4915112345678 Text("STOP")"#]);
    assert_eq!(center.fake.answers(1).await, [0]);
}

#[tokio::test]
async fn a_refused_bind_stops_the_account_until_the_settings_change() {
    let mut center = center().await;
    center.fake.set_password("changed");
    let answer = center.send(1, "Hi").await;
    assert_eq!(answer.class, Class::Auth);
    assert!(answer.response.text.contains("password") && !answer.response.text.contains("passw0rd"), "{answer:?}");
    assert_eq!(center.fake.parts().len(), 0);
    center.settings["password"] = "changed".into();
    assert_eq!(center.send(12, "Hi").await.class, ACCEPTED);
    center.settings["password"] = "too long for it".into();
    let number = Bed::number(1);
    let mut message = outgoing(&[number.as_str()], Content::Sms(SmsContent { text: "Hi".to_owned() }));
    message.settings = Arc::new(center.settings.clone());
    assert_eq!(center.smpp.send(&message).await.unwrap_err().class(), Class::Auth);
}

#[tokio::test]
async fn a_refused_bind_is_tried_again_every_five_minutes_whoever_wants_to_send() {
    let center = center().await;
    center.fake.set_password("changed");
    tokio::time::pause();
    let began = Instant::now();
    assert_eq!(center.send(12, "Hi").await.class, Class::Auth);
    for count in 1..=3_u32 {
        assert_eq!(center.send(12, "Hi").await.class, Class::Auth, "whoever wants to send hears it at once");
        let binds = center.fake.binds(usize::try_from(count).unwrap() + 1).await;
        let passed = began.elapsed();
        let expected = PROBE_EVERY * count;
        assert!(expected <= passed && passed < expected + PROBE_EVERY / 10, "{count}: {passed:?}");
        assert_eq!(binds, usize::try_from(count).unwrap() + 1);
    }
    center.fake.set_password("passw0rd");
    center.fake.binds(5).await;
    tokio::time::resume();
    assert_eq!(center.send(12, "Hi").await.class, ACCEPTED);
}

#[tokio::test]
async fn a_session_ends_with_the_settings_of_its_channel() {
    let center = center().await;
    assert_eq!(center.send(12, "Hi").await.class, ACCEPTED);
    center.sink.is_replaced.store(true, Ordering::Relaxed);
    tokio::time::pause();
    center.fake.unbinds(1).await;
    // One that is refused ends as well.
    center.fake.set_password("changed");
    center.sink.is_replaced.store(false, Ordering::Relaxed);
    assert_eq!(center.send(12, "Hi").await.class, Class::Auth);
    center.sink.is_replaced.store(true, Ordering::Relaxed);
    let bound_again = tokio::time::timeout(PROBE_EVERY * 10, center.fake.binds(3)).await;
    assert!(bound_again.is_err(), "nobody has such settings any more");
}

/// A PDU with this command and a body that has not its form.
fn malformed(command: u32, sequence: u32) -> Vec<u8> {
    let body = *b"no such body";
    let length = u32::try_from(16 + body.len()).unwrap();
    [&[length, command, 0, sequence].map(u32::to_be_bytes).concat()[..], &body].concat()
}

#[tokio::test]
async fn a_pdu_that_cannot_be_read_is_answered_and_the_session_goes_on() {
    let center = Arc::new(center().await);
    center.send(12, "Hi").await;
    let waiting = tokio::spawn({
        let center = Arc::clone(&center);
        async move { center.send(31, "Hi").await.class }
    });
    center.fake.submitted(2).await;
    // A deliver_sm, a query_sm, and an answer that nobody waits for.
    for command in [0x0000_0005, 0x0000_0003, 0x8000_0021] {
        center.fake.write_raw(malformed(command, 77)).await;
    }
    assert_eq!(center.fake.answers(1).await, [0x66], "it shall not come again");
    assert_eq!(center.fake.nacks(1).await, [0x02]);
    center.fake.write("+4915112345678", "Hello").await;
    assert_eq!(center.sink.told(1).await, [r#"+4915112345678 Text("Hello")"#]);
    // Earlier submissions are still pending: the third PDU that was written after the bind gets its answer now, a
    // malformed one.
    center.fake.write_raw(malformed(0x8000_0004, 3)).await;
    assert_eq!(waiting.await.unwrap(), ACCEPTED, "its header says that it was taken");
    assert_eq!(center.send(12, "Hi").await.class, ACCEPTED);
    assert_eq!((center.fake.binds(0).await, center.fake.nacks(0).await.len()), (1, 1));
}

#[tokio::test]
async fn a_length_that_no_pdu_has_ends_the_session() {
    for length in [15, 1 << 20] {
        let center = center().await;
        center.send(12, "Hi").await;
        center.fake.write_raw([length, 5, 0, 1].map(u32::to_be_bytes).concat()).await;
        center.fake.binds(2).await;
        assert_eq!(center.send(12, "Hi").await.class, ACCEPTED);
    }
}

#[tokio::test]
async fn a_receipt_may_spell_the_number_of_a_message_otherwise() {
    let center = center().await;
    for (count, (name, reported)) in
        [("1F3A", "7994"), ("0000007995", "7995"), ("7996", "1f3c")].into_iter().enumerate()
    {
        center.fake.name_next(name);
        center.send(12, "Hi").await;
        center.fake.report(reported, "DELIVRD").await;
        assert_eq!(center.sink.told(count + 1).await[count], format!("smpp {name} Accepted(Delivered)"));
    }
    // Nobody knows this one, which an earlier process may have sent.
    center.fake.report("88888", "DELIVRD").await;
    assert_eq!(center.sink.told(4).await[3], "smpp 88888 or another spelling Accepted(Delivered)");
}

#[tokio::test]
async fn a_session_that_broke_is_bound_again_without_being_asked() {
    let center = center().await;
    center.send(12, "Hi").await;
    center.fake.close_connections().await;
    tokio::time::pause();
    assert!(center.fake.binds(2).await >= 2, "receipts shall come in");
    tokio::time::resume();
    assert_eq!(center.send(12, "Hi").await.class, ACCEPTED);
}

#[tokio::test]
async fn a_peer_that_is_silent_is_given_up_and_bound_to_again() {
    let center = center().await;
    center.send(12, "Hi").await;
    center.fake.mute_connections();
    tokio::time::pause();
    assert_eq!(center.send(12, "Hi").await.class, Class::Ambiguous);
    assert!(center.fake.binds(2).await >= 2);
}

#[tokio::test]
async fn as_many_messages_are_under_way_as_the_window_has_places() {
    let center = Arc::new(center().await);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let center = Arc::clone(&center);
        tasks.spawn(async move { center.send(31, "Hi").await.class });
    }
    center.fake.submitted(16).await;
    // A message that comes in shows that everything before was read.
    center.fake.write("+4915112345678", "Hello").await;
    center.fake.answers(1).await;
    assert_eq!(center.fake.parts().len(), 16);
    tokio::time::pause();
    let mut classes = tasks.join_all().await;
    classes.sort_by_key(|class| *class == Class::Ambiguous);
    assert!(
        classes.iter().all(|class| matches!(class, Class::Ambiguous | Class::Retry(Scope::Account))),
        "{classes:?}"
    );
    assert!(classes.iter().filter(|class| **class == Class::Ambiguous).count() >= 16);
}

#[tokio::test]
async fn a_private_message_center_is_not_connected_to_unless_that_is_allowed() {
    let center = center().await;
    let guarded = Smpp::builder(Dns::new(None)).build();
    for host in ["127.0.0.1", "localhost", "[::1]", "0x7f.1"] {
        let mut settings = center.settings.clone();
        settings["host"] = host.into();
        assert_eq!(guarded.check(&settings).unwrap_err().member, "host", "{host}");
        let mut message = outgoing(&["+9990000001"], Content::Sms(SmsContent { text: "Hi".to_owned() }));
        message.settings = Arc::new(settings);
        let sent = guarded.send(&message).await.unwrap();
        assert_eq!(sent.outcomes[0].class(), Some(Class::Auth), "{host}");
    }
    assert_eq!(center.fake.binds(0).await, 0);
}

/// A message center that speaks TLS with a certificate for a name, and a client that trusts its root, or only those of
/// the system.
async fn secured(name: &str, is_trusted: bool) -> Center {
    let (acceptor, root) = certify(vec![name.to_owned()]);
    let fake = FakeSmpp::start_tls("acme", "passw0rd", acceptor).await.unwrap();
    let builder = Smpp::builder(Dns::new(None)).allow_private(true);
    let builder = if is_trusted { builder.root(root) } else { builder };
    center_of(fake, builder.build())
}

#[tokio::test]
async fn with_tls_messages_and_receipts_go_over_a_proved_connection() {
    let center = secured("127.0.0.1", true).await;
    let answer = center.send(12, "Hi").await;
    assert_eq!(answer.class, ACCEPTED, "{answer:?}");
    let id = answer.of_provider().unwrap().message_id.clone().unwrap();
    center.fake.report(&id, "DELIVRD").await;
    assert_eq!(center.sink.told(1).await, [format!("smpp {id} Accepted(Delivered)")]);
    center.fake.write("+4915112345678", "STOP").await;
    assert_eq!(center.sink.told(2).await[1], "+4915112345678 Text(\"STOP\")");
    // It is bound again, over TLS, when the connection breaks.
    center.fake.close_connections().await;
    assert_eq!(center.fake.binds(2).await, 2);
    assert_eq!(center.send(12, "again").await.class, ACCEPTED);
}

#[tokio::test]
async fn the_password_is_told_to_nobody_who_does_not_prove_the_name() {
    for (center, why) in [
        (secured("127.0.0.1", false).await, "nobody knows who signed it"),
        (secured("smsc.example", true).await, "it is for another name"),
    ] {
        let answer = center.send(12, "Hi").await;
        assert!(answer.class.is_retried(), "{why}: {answer:?}");
        assert_eq!((center.fake.binds(0).await, center.fake.parts().len()), (0, 0), "{why}");
    }
    // One that speaks no TLS hears no bind either.
    let plain = center().await;
    let settings = Map::from_iter([("tls".to_owned(), Value::from(true))]);
    let plain = Center { settings: plain.settings.clone().into_iter().chain(settings).collect(), ..plain };
    assert!(plain.send(12, "Hi").await.class.is_retried());
    assert_eq!((plain.fake.binds(0).await, plain.fake.parts().len()), (0, 0));
}
