//! Requests of providers to callback addresses: receipts, and messages of recipients.
//!
//! Contract section 18, `/callbacks/{channel}/{token}`. The server reads the token; the transport, which alone knows
//! its provider, proves the rest and returns what is reported.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::domain::channel::inbound_message::InboundEvent;
use crate::domain::channel::receipt::Receipt;
use crate::time::Timestamp;

/// A request to a callback address.
#[derive(Debug, Clone, Copy)]
pub struct CallbackRequest<'a> {
    /// GET or POST.
    pub method: &'a Method,
    /// The address as the provider was given it, with the query that the provider appended.
    pub url: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body, at most 3 MiB.
    pub body: &'a Bytes,
    /// Proof that the token of the address gives about its caller.
    pub proof: &'a CallbackProof,
    /// Time at which the request arrived.
    pub now: Timestamp,
}

/// Proof given by the token of a callback address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackProof {
    /// The caller knows the address of one message: enough for providers that sign nothing.
    ThisMessage,
    /// The caller knows the address of the channel, which people enter at the provider: not enough by itself.
    Channel(CallbackAddress),
}

/// Callback address of a workspace's channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackAddress {
    /// The address. It changes with the settings of the channel.
    pub url: String,
    /// The token at the end of the address, of letters, digits, `-` and `_`.
    pub token: String,
    /// A secret of the same characters that the provider may be asked to send with its requests. It changes with the
    /// settings too.
    pub secret: String,
}

/// Reports in a request, and the answer to give once they are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Callback {
    /// Reported events, in their order.
    pub events: Vec<CallbackEvent>,
    /// The answer.
    pub reply: CallbackReply,
}

/// One thing that a provider reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackEvent {
    /// A receipt: the state that a message has reached.
    Receipt {
        /// The message.
        about: About,
        /// The state that the message has reached.
        receipt: Receipt,
    },
    /// Something that a recipient sent or did.
    Inbound {
        /// Sender, as the channel writes addresses.
        from: String,
        /// The content of the recipient's message.
        event: InboundEvent,
        /// The provider's id for the event: the same when it is repeated, and never used for another.
        id: Option<String>,
    },
}

/// Message that a provider reports about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// The message whose address was called ([`CallbackProof::ThisMessage`]).
    ThisMessage,
    /// The message whose token the provider sent back ([`ReceiptAddress::token`](super::ReceiptAddress::token)).
    Token(String),
    /// The message to which the provider gave this name when it accepted it.
    ProviderMessage(String),
}

/// Answer to a provider; an empty 200 unless the provider needs another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackReply {
    /// Status of the answer.
    pub status: StatusCode,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
}

impl Default for CallbackReply {
    fn default() -> Self {
        Self { status: StatusCode::OK, content_type: "text/plain; charset=utf-8", body: Bytes::new() }
    }
}

/// Reason why a request is refused. Nothing in it is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallbackFault {
    /// The provider has no such callback: 404.
    #[error("this provider has no such callback")]
    NotFound,
    /// Its signature is missing or wrong, or there is no secret to check it with: 401.
    #[error("the signature is missing or wrong")]
    Unauthorized,
}

/// Result of registering a callback address with a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The provider has the address now.
    Registered,
    /// No registration is needed: people enter the address at the provider, or each message brings its own.
    NotNeeded,
}
