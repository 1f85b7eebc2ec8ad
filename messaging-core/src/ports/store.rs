//! The port to everything that is kept.
//!
//! Reads are one trait per aggregate; all writes go through [`Store::commit`]. To add an aggregate: its
//! record in `domain/`, its writes in [`Write`](crate::changes::Write), a trait here with the reads that
//! the operations need, and a file of cases in the conformance suite that every store passes.
//!
//! What every method owes: the workspace comes first, and another workspace's row is not there. "Not
//! there" is `None` or an empty list, never an error. Listings are newest first, go on from an opaque
//! [`StoreCursor`], and stay exact while rows are inserted.

pub mod accounts;
pub mod attempts;
pub mod blobs;
pub mod channels;
pub mod contacts;
pub mod custom_fields;
pub mod error;
pub mod events;
pub mod health;
pub mod imports;
pub mod installation;
pub mod jobs;
pub mod keys;
pub mod lists;
pub mod messages;
pub mod product_events;
pub mod replies;
pub mod sandbox;
pub mod segments;
pub mod sending_domains;
pub mod sign_ins;
pub mod soft_bounces;
pub mod suppressions;
pub mod templates;
pub mod urls;
pub mod webhooks;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{BlobStore, Uploads};
use crate::changes::Changes;

pub use crate::cursor::StoreCursor;
pub use crate::revision::Stored;
pub use accounts::Accounts;
pub use attempts::Attempts;
pub use blobs::Blobs;
pub use channels::Channels;
pub use contacts::Contacts;
pub use custom_fields::CustomFields;
pub use error::{CommitError, StoreError};
pub use events::{EventLog, LogPosition};
pub use health::{StoreGauges, StoreHealth};
pub use imports::Imports;
pub use installation::{Installation, SealedSecret, needs_its_key};
pub use jobs::{Claim, ClaimedJob, Jobs};
pub use keys::ApiKeys;
pub use lists::Lists;
pub use messages::Messages;
pub use product_events::ProductEvents;
pub use replies::Replies;
pub use sandbox::Sandbox;
pub use segments::Segments;
pub use sending_domains::SendingDomains;
pub use sign_ins::SignIns;
pub use soft_bounces::SoftBounces;
pub use suppressions::Suppressions;
pub use templates::Templates;
pub use urls::Urls;
pub use webhooks::{ReplayRange, Webhooks};

/// A database.
///
/// What is read is in the traits below it, one for each subject; whatever changes goes through [`Store::commit`]. The
/// suite `conformance` of `messaging-store` says what else a store owes.
///
/// ```
/// use messaging_core::changes::{Changes, Expect, Write};
/// use messaging_core::ids::WorkspaceId;
/// use messaging_core::ports::Store;
/// use messaging_core::ports::store::{CommitError, Priority};
///
/// async fn rename(store: &dyn Store, id: WorkspaceId, name: &str) -> Result<bool, CommitError> {
///     let Some(stored) = store.workspace(id).await? else { return Ok(false) };
///     let mut workspace = stored.record;
///     workspace.name = name.to_owned();
///     // Refused as a conflict when somebody else has changed it meanwhile.
///     let write = Write::PutWorkspace(workspace, Expect::Revision(stored.revision));
///     store.commit(Changes::from_iter([write]), Priority::Foreground).await?;
///     Ok(true)
/// }
/// ```
#[async_trait]
pub trait Store:
    Accounts
    + ApiKeys
    + Attempts
    + Blobs
    + Channels
    + Contacts
    + CustomFields
    + EventLog
    + Imports
    + Installation
    + Jobs
    + Lists
    + Messages
    + ProductEvents
    + Replies
    + Sandbox
    + Segments
    + SendingDomains
    + SignIns
    + SoftBounces
    + Suppressions
    + Templates
    + Urls
    + Webhooks
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// Applies the changes, all or nothing. Durable when it returns: a power cut changes nothing after.
    ///
    /// What callers may rely on: writes are applied in their order, each on what those before it left, and no other
    /// commit comes between. What a write expects (a revision, that nothing is there, a claim) holds at that moment.
    /// Nothing is promised of rows that were read and that no write names: another commit may have changed them. A
    /// read begun after a commit returned sees it; two reads may see two states, and a commit between them.
    async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError>;

    /// Where the bytes of attachments are kept, unless the program that puts an application together says otherwise.
    fn blobs(&self) -> Arc<dyn BlobStore>;

    /// Where uploaded files are kept, unless the program that puts an application together says otherwise.
    fn uploads(&self) -> Arc<dyn Uploads>;

    /// Whether the database answers; for `/health`.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Whether the store takes writes, and if not, why. Costs an atomic load: asked before every claim and
    /// before every message leaves. A store that is not healthy looks by itself, about every second, whether
    /// it is again.
    fn health(&self) -> StoreHealth;

    /// Tells every change of [`Store::health`].
    fn watch_health(&self) -> watch::Receiver<StoreHealth>;

    /// Sizes, for metrics.
    fn gauges(&self) -> StoreGauges;

    /// Finishes what was handed over and releases what is held. Later calls answer `Unavailable`.
    async fn close(&self);
}

/// Who waits for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// A request: served first.
    Foreground,
    /// Background work: shares commits with requests, never delays them by more than a slice.
    Background,
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice<T> {
    /// In order, at most as many as asked for.
    pub items: Vec<T>,
    /// Where the rest begins; `None` at the end. A slice may be shorter than asked for,
    /// even empty, and still have a rest: a store bounds how many rows one call looks at.
    pub next: Option<StoreCursor>,
}

/// Where a listing starts and how much of it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// [`Slice::next`] of the previous page.
    pub after: Option<StoreCursor>,
    /// At most this many.
    pub limit: usize,
}
