//! Messages to send.

use std::sync::Arc;

use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::ids::{Id, MessageId, WorkspaceId};
use messaging_core::ports::transport::{
    Acceptance, Content, DeliveryOptions, Email, LastLook, Mailbox, OutcomeClass, Outgoing, Reservation, Scope,
};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

pub(crate) fn address(text: &str) -> EmailAddress {
    EmailAddress::parse(text).unwrap()
}

pub(crate) fn email() -> Email {
    Email {
        envelope_from: address("bounce@mail.acme.com").into(),
        from: Mailbox { name: Some("Acme".into()), address: address("shop@mail.acme.com") },
        to: address("ann@example.com"),
        cc: Vec::new(),
        reply_to: None,
        subject: "Order 17".into(),
        date: Timestamp::from_millis(1_700_000_000_000),
        message_id: "01JB3Q8Z5N6W7X8Y9ZABCDEFGH@mail.acme.com".into(),
        headers: Vec::new(),
        text: Some("Thanks".into()),
        html: None,
        attachments: Vec::new(),
        signers: Vec::new(),
    }
}

pub(crate) fn outgoing(recipients: &[&str], content: Content) -> Outgoing {
    Outgoing {
        workspace_id: WorkspaceId::from_bytes([1; 16]),
        message_id: MessageId::from_bytes([2; 16]),
        settings: Arc::new(Map::<String, Value>::new()),
        recipients: recipients.iter().map(|&recipient| recipient.to_owned()).collect(),
        content,
        last_look: LastLook::default(),
        reservation: Reservation::default(),
        options: DeliveryOptions::default(),
        receipts: None,
    }
}

/// A class in the words of these tests, from a peer whose yes means this.
pub(crate) fn kind_of(class: OutcomeClass, acceptance: Acceptance) -> &'static str {
    match class {
        OutcomeClass::Accepted(found) => {
            assert_eq!(found, acceptance);
            "accepted"
        }
        OutcomeClass::Retry(Scope::Recipient) => "deferred",
        OutcomeClass::Retry(_) => "provider",
        OutcomeClass::Throttled(_) => "throttled",
        OutcomeClass::Auth => "auth",
        OutcomeClass::TlsRequired => "tls_required",
        OutcomeClass::Ambiguous => "ambiguous",
        _ => "refused",
    }
}
