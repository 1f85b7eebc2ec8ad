use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::ports::transport::{Acceptance, Content, Outcome, Transport, TransportError};
use messaging_transport::testing::{MemoryTransport, outcome};
use messaging_transport::{Options, defaults};

use crate::support::{email, outgoing};

#[tokio::test]
async fn answers_as_told_and_keeps_everything() {
    let transport = MemoryTransport::new(Acceptance::Relayed);
    transport.answer("a@b.co", "550 5.1.1 no");
    transport.answer_next("a@b.co", "450 4.2.0 later");
    transport.fail_next(TransportError::Unreachable("down".into()));
    let message = outgoing(&["a@b.co", "c@d.co"], Content::Email(Box::new(email())));
    assert!(matches!(transport.send(&message).await, Err(TransportError::Unreachable(_))));
    let kept = outcome("250 2.0.0 kept").answer().unwrap().response.clone();
    let accepted = Outcome::accepted(Acceptance::Relayed, kept);
    for first in ["450 4.2.0 later", "550 5.1.1 no", "550 5.1.1 no"] {
        assert_eq!(transport.send(&message).await.unwrap().outcomes, [outcome(first), accepted.clone()]);
    }
    assert_eq!(transport.take().len(), 4);
    assert!(transport.sent().is_empty());
}

#[tokio::test]
async fn a_held_attempt_is_seen_before_it_answers() {
    let transport = Arc::new(MemoryTransport::default());
    transport.hold();
    let attempt = tokio::spawn({
        let transport = Arc::clone(&transport);
        async move { transport.send(&outgoing(&["a@b.co"], Content::Email(Box::new(email())))).await }
    });
    transport.attempts(1).await;
    assert!(!attempt.is_finished());
    transport.release();
    assert!(matches!(attempt.await.unwrap().unwrap().outcomes[..], [Outcome::Answered(_)]));
}

#[test]
fn a_server_starts_with_a_sandbox_for_every_channel() {
    let found: Vec<_> =
        defaults(&Options::new("mail.example.com")).iter().map(|(channel, name, _)| (*channel, *name)).collect();
    for channel in Channel::ALL {
        assert!(found.contains(&(channel, "sandbox")), "{channel}");
    }
    let others =
        [(Channel::Email, "builtin"), (Channel::Email, "smtp"), (Channel::Sms, "http"), (Channel::Viber, "http")];
    for one in others.into_iter().chain([(Channel::Sms, "twilio"), (Channel::Sms, "vonage")]) {
        assert!(found.contains(&one), "{one:?}");
    }
    let names: std::collections::HashSet<_> = found.iter().collect();
    assert_eq!(names.len(), found.len(), "each stands there once");
}
