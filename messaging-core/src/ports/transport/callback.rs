//! Requests of providers to the addresses that they were given: receipts, and messages of recipients.
//!
//! Contract section 18, `/callbacks/{channel}/{token}`. The server reads the token; the transport, which alone knows its
//! provider, proves the rest and says what is reported.

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
    /// The address as the provider was given it, with the query that it put behind.
    pub url: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body, at most 3 MiB.
    pub body: &'a Bytes,
    /// The proof that the token of the address gives of its caller.
    pub proof: &'a CallbackProof,
    /// When it came.
    pub now: Timestamp,
}

/// What the token of a callback address proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackProof {
    /// That the caller knows the address of one message: enough for providers that sign nothing.
    ThisMessage,
    /// That the caller knows the address of the channel, which people enter at the provider: not enough by itself.
    Channel(CallbackAddress),
}

/// Where a provider calls about a workspace's channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackAddress {
    /// The address. It changes with the settings of the channel.
    pub url: String,
    /// The token at the end of the address, of letters, digits, `-` and `_`.
    pub token: String,
    /// A secret of the same letters that the provider may be asked to send along. It changes with the settings too.
    pub secret: String,
}

/// What a request reports, and how it is answered once that is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Callback {
    /// What it reports, in its order.
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
    /// Something that came from a recipient.
    Inbound {
        /// Who it is from, as the channel writes addresses.
        from: String,
        /// The content of the recipient's message.
        event: InboundEvent,
        /// The provider's name for it, the same when it is repeated, and of nothing else that comes in by the provider.
        id: Option<String>,
    },
}

/// Which message a provider reports about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// The one whose address was called ([`CallbackProof::ThisMessage`]).
    ThisMessage,
    /// The one whose token the provider sent back ([`ReceiptAddress::token`](super::ReceiptAddress::token)).
    Token(String),
    /// The one that the provider named so when it took it.
    ProviderMessage(String),
}

/// The answer to a provider; an empty 200 unless it wants something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackReply {
    /// The status.
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

/// Why a request is refused. Nothing of it is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallbackFault {
    /// The provider has no such callback: 404.
    #[error("this provider has no such callback")]
    NotFound,
    /// Its signature is missing or wrong, or there is no secret to check it with: 401.
    #[error("the signature is missing or wrong")]
    Unauthorized,
}

/// What became of telling a provider where to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// It knows the address now.
    Registered,
    /// Nothing is to be told: people enter the address at the provider, or each message brings its own.
    NotNeeded,
}
