//! Port to the application that accepts submitted mail: keys, checks and acceptance.

use std::any::Any;
use std::net::IpAddr;

use async_trait::async_trait;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::ids::MessageId;

use super::refusal::Refusal;

/// Memory that is held for a message; released when dropped.
pub type Room = Box<dyn Any + Send + Sync>;

/// Verifies API keys. The HTTP server's pipeline implements it, so that both ways have the same keys, limits and
/// budgets.
#[async_trait]
pub trait SubmissionSink: Send + Sync + 'static {
    /// Returns the owner of a key that calls from this address. Refused (535) only if the key does not exist or is no
    /// longer valid; missing rights of the key are reported when a message is sent.
    async fn sign_in(&self, key: &str, client: IpAddr) -> Result<Box<dyn Submitter>, Refusal>;
}

/// A client that has signed in.
#[async_trait]
pub trait Submitter: Send + Sync {
    /// Checks that the client may send at this moment: its key is still valid, may be used from its address, and has
    /// the scope.
    async fn may_send(&self) -> Result<(), Refusal>;

    /// Counts one message against the rate limit of the key.
    async fn count(&self) -> Result<(), Refusal>;

    /// Reserves memory for a message of so many octets.
    async fn make_room(&self, octets: usize) -> Result<Room, Refusal>;

    /// Accepts a message. When it returns, the message is durable. With an idempotency key, the same message again is
    /// answered with the id of the first.
    async fn submit(&self, message: MessageInput, idempotency_key: Option<String>) -> Result<MessageId, Refusal>;
}
