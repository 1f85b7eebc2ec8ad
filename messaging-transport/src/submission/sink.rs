//! The port to whatever accepts mail that programs submit: keys, checks and acceptance.

use std::any::Any;
use std::net::IpAddr;

use async_trait::async_trait;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::ids::MessageId;

use super::refusal::Refusal;

/// Memory that is held for a message; given back when dropped.
pub type Room = Box<dyn Any + Send + Sync>;

/// Knows API keys. The HTTP server's pipeline is one, so that both ways have the same keys, limits and budgets.
#[async_trait]
pub trait SubmissionSink: Send + Sync + 'static {
    /// The one whom a key belongs to, calling from this address. Refused (535) is only what is no key that lives; what
    /// the key may not do is told when a message is sent.
    async fn sign_in(&self, key: &str, client: IpAddr) -> Result<Box<dyn Submitter>, Refusal>;
}

/// Somebody who has signed in.
#[async_trait]
pub trait Submitter: Send + Sync {
    /// Whether they may send at this moment: the key still lives, their address is one of its own, it has the scope.
    async fn may_send(&self) -> Result<(), Refusal>;

    /// Counts one message against the rate limit of the key.
    async fn count(&self) -> Result<(), Refusal>;

    /// Makes room for a message of so many octets.
    async fn make_room(&self, octets: usize) -> Result<Room, Refusal>;

    /// Accepts a message. When it returns, the message is durable. With a key the same message again is answered with
    /// the id of the first.
    async fn submit(&self, message: MessageInput, idempotency_key: Option<String>) -> Result<MessageId, Refusal>;
}
