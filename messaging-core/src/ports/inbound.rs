//! Where what comes back by mail is handed over: bounces, complaints and requests to unsubscribe.

use async_trait::async_trait;

use super::store::StoreError;
use crate::domain::link_token::{RecipientTag, ReturnPurpose};
use crate::domain::report::Report;
use crate::ids::{MessageId, WorkspaceId};

/// An address that we made, and what its token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnAddress {
    /// The message's workspace.
    pub workspace_id: WorkspaceId,
    /// The message that carried the address.
    pub message_id: MessageId,
    /// What mail to the address is about.
    pub purpose: ReturnPurpose,
    /// The one recipient whom it concerns; `None` in mail of earlier versions, and where the address stands in
    /// content that all recipients share.
    pub recipient: Option<RecipientTag>,
}

/// Knows the return addresses, and keeps what reports say. The engine is one.
///
/// One that knows no address, and so takes no mail:
///
/// ```
/// use async_trait::async_trait;
/// use messaging_core::domain::report::Report;
/// use messaging_core::ports::inbound::{InboundError, InboundSink, ReturnAddress};
/// use messaging_core::ports::store::StoreError;
///
/// struct Closed;
///
/// #[async_trait]
/// impl InboundSink for Closed {
///     async fn return_address(&self, _: &str) -> Result<Option<ReturnAddress>, StoreError> {
///         Ok(None)
///     }
///
///     async fn receive(&self, _: &ReturnAddress, _: &Report) -> Result<(), InboundError> {
///         Err(InboundError::new("nobody listens"))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// assert!(Closed.return_address("bounce@example.org").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait InboundSink: Send + Sync + 'static {
    /// What an address says, if it is a return address of ours.
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError>;

    /// Takes note of a report. When it returns, that is durable; the same report twice has one effect.
    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), InboundError>;
}

/// A report was not kept; whoever brought it shall bring it again later.
#[derive(Debug, thiserror::Error)]
#[error("failed to keep a report")]
pub struct InboundError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl InboundError {
    /// With what prevented it.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}
