use std::sync::Arc;

use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::transport::{Content, DeliveryOptions, LastLook, Reservation, SmsContent};
use serde_json::Map;

use super::*;

fn outgoing(recipients: &[&str]) -> Outgoing {
    Outgoing {
        workspace_id: WorkspaceId::from_bytes([1; 16]),
        message_id: MessageId::from_bytes([2; 16]),
        settings: Arc::new(Map::new()),
        recipients: recipients.iter().map(|&recipient| recipient.to_owned()).collect(),
        content: Content::Sms(SmsContent { text: "Hi".to_owned() }),
        last_look: LastLook::default(),
        reservation: Reservation::default(),
        options: DeliveryOptions::default(),
        receipts: None,
    }
}

#[tokio::test]
async fn answers_as_told_and_keeps_everything() {
    let transport = MemoryTransport::new(Acceptance::Relayed);
    transport.answer("a@b.co", "550 5.1.1 no");
    transport.answer_next("a@b.co", "450 4.2.0 later");
    transport.fail_next(TransportError::Unreachable("down".into()));
    let message = outgoing(&["a@b.co", "c@d.co"]);
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
        async move { transport.send(&outgoing(&["a@b.co"])).await }
    });
    transport.attempts(1).await;
    assert!(!attempt.is_finished());
    transport.release();
    assert!(matches!(attempt.await.unwrap().unwrap().outcomes[..], [Outcome::Answered(_)]));
}
