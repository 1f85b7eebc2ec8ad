//! The port to the database.
//!
//! Reads are one trait per aggregate; all writes go through [`Store::commit`]. To add an aggregate: its
//! record in `domain/`, its writes in [`Write`](crate::changes::Write), a trait here with the reads that
//! the operations need, and a file of cases in `messaging-conformance`, whose cases every store passes.
//!
//! Every method obeys this: the workspace comes first, and another workspace's row is not there. "Not there" is `None`
//! or an empty list, never an error. Listings are newest first, continue from an opaque [`StoreCursor`], and stay exact
//! while rows are inserted.

pub mod accounts;
pub mod attempts;
pub mod audiences;
pub mod audit_logs;
pub mod automations;
pub mod blobs;
pub mod campaigns;
pub mod channels;
pub mod cluster;
pub mod contacts;
pub mod counters;
pub mod custom_fields;
pub mod domain_reports;
pub mod error;
pub mod events;
pub mod health;
pub mod images;
pub mod imports;
pub mod installation;
pub mod ip_pools;
pub mod jobs;
pub mod keys;
pub mod limits;
pub mod lists;
pub mod messages;
pub mod news;
pub mod observer;
pub mod product_events;
pub mod provider_links;
pub mod queue;
pub mod replies;
pub mod request_logs;
pub mod sandbox;
pub mod search;
pub mod second_factors;
pub mod segments;
pub mod sending_domains;
pub mod sign_ins;
pub mod soft_bounces;
pub mod sources;
pub mod sts_policies;
pub mod suppressions;
pub mod templates;
pub mod urls;
pub mod verification;
pub mod webhooks;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{BlobStore, Uploads};
use crate::changes::Changes;

pub use crate::cursor::StoreCursor;
pub use crate::revision::Stored;
pub use accounts::{Accounts, RemovedRows};
pub use attempts::Attempts;
pub use audiences::{AudiencePiece, AudiencePreview, AudienceQuery, Audiences, CampaignRecipient};
pub use audit_logs::AuditLogs;
pub use automations::{AutomationCounts, Automations, EventSpan, FilterQuery, NodeCounts, RunFilter};
pub use blobs::Blobs;
pub use campaigns::{CampaignMessageFilter, Campaigns};
pub use channels::Channels;
pub use cluster::{ClusterView, NodeView};
pub use contacts::Contacts;
pub use counters::{Counters, LinkCounts, SeriesOf};
pub use custom_fields::CustomFields;
pub use domain_reports::{DmarcSource, DmarcTotals, DomainReports, KeptCounts, StoredTlsRow};
pub use error::{CommitError, StoreError};
pub use events::{EventLog, LogPosition};
pub use health::{StoreGauges, StoreHealth};
pub use images::Images;
pub use imports::Imports;
pub use installation::{Installation, KeyHolder, SealedSecret, needs_its_key};
pub use ip_pools::IpPools;
pub use jobs::{Claim, ClaimedJob, Jobs, Queued, Queues, StoredJob, WithheldOf};
pub use keys::ApiKeys;
pub use limits::{SharedLimits, Taking};
pub use lists::Lists;
pub use messages::Messages;
pub use news::{News, Topic, Topics};
pub use observer::{CommitBatch, CommitObserver};
pub use product_events::ProductEvents;
pub use provider_links::ProviderLinks;
pub use queue::{DatedJob, LaneSummary, OperatorQueue};
pub use replies::Replies;
pub use request_logs::RequestLogs;
pub use sandbox::Sandbox;
pub use search::SearchIndex;
pub use second_factors::SecondFactors;
pub use segments::Segments;
pub use sending_domains::SendingDomains;
pub use sign_ins::SignIns;
pub use soft_bounces::SoftBounces;
pub use sources::Sources;
pub use sts_policies::StsPolicies;
pub use suppressions::Suppressions;
pub use templates::Templates;
pub use urls::Urls;
pub use verification::Verification;
pub use webhooks::{ReplayRange, Webhooks};

/// A database.
///
/// Reads are in the supertraits, one for each subject; every write is made by [`Store::commit`]. The test cases of the
/// crate `messaging-conformance` show the rest of a store's obligations.
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
///     let write = Write::put(workspace, Expect::Revision(stored.revision));
///     store.commit(Changes::from_iter([write]), Priority::Foreground).await?;
///     Ok(true)
/// }
/// ```
#[async_trait]
pub trait Store:
    Accounts
    + ApiKeys
    + Attempts
    + Audiences
    + AuditLogs
    + Automations
    + Blobs
    + Campaigns
    + Channels
    + Contacts
    + Counters
    + CustomFields
    + DomainReports
    + EventLog
    + Images
    + Imports
    + Installation
    + IpPools
    + Jobs
    + Lists
    + Messages
    + OperatorQueue
    + ProductEvents
    + ProviderLinks
    + Replies
    + RequestLogs
    + Sandbox
    + SearchIndex
    + SecondFactors
    + Segments
    + SendingDomains
    + SignIns
    + SoftBounces
    + Sources
    + StsPolicies
    + Suppressions
    + Templates
    + Urls
    + Verification
    + Webhooks
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// Applies the changes, all or nothing. Durable when it returns: a power cut changes nothing after.
    ///
    /// Callers may rely on the following and nothing else:
    ///
    /// * Writes are applied in their order, each on what those before it left, and no other commit comes between.
    ///   Whether a write that expects something (a revision, that nothing is there, a state, a claim) finds it so is
    ///   decided then, not when it was read. Of several that fail, any may be the one that is reported;
    ///   [`Write::Remember`](crate::changes::Write::Remember) may be tried before the others.
    /// * Commits are in one order, the same for all readers. A read that begins after a commit returned sees it,
    ///   through any handle of the database; so does a read after a notice of [`Store::news`].
    /// * Nothing is promised of rows that were read but of which no write of the commit expects anything: another
    ///   commit may have changed them. Two reads may see two states, and a commit between them; a single read sees one.
    ///   A caller that decides by several rows expects each of them, or is told of changes and decides again
    ///   (`EnqueueOnce`, outboxes).
    /// * Of two commits that expect the same thing and change it, at most one succeeds; the other is a conflict. Counts
    ///   that follow rows (members of lists, contacts of a workspace) are exact after every commit.
    /// * An error other than `OutcomeUnknown` means that nothing of the commit is there or will be. A caller that stops
    ///   waiting does not take back its commit.
    /// * Ids and dates are the caller's: their order says nothing about the order of commits. The event log has that
    ///   order.
    async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError>;

    /// Returns the default store for the bytes of attachments; a program that embeds the application may use another.
    fn blobs(&self) -> Arc<dyn BlobStore>;

    /// Returns the default store for uploaded files; a program that embeds the application may use another.
    fn uploads(&self) -> Arc<dyn Uploads>;

    /// Checks that the database answers; for `/health`.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Returns whether the store accepts writes, with the reason if not. Costs an atomic load: called before every
    /// claim and before every message leaves. An unhealthy store checks itself about every second.
    fn health(&self) -> StoreHealth;

    /// Returns a receiver that sees every change of [`Store::health`].
    fn watch_health(&self) -> watch::Receiver<StoreHealth>;

    /// True if the connection to the database was lost a moment ago, which [`Store::health`] may not show yet, or not
    /// any more. A store within the process has no connection to lose.
    fn has_lost_connection(&self) -> bool {
        false
    }

    /// Returns a receiver of topics that may have changed, for invalidating caches: changes committed through this
    /// handle ([`Topics::of`], and [`Topic::Work`] if a note for an automation made a job due that no write names), and
    /// changes by other programs, whose topics may be unknown. A hint: it may come late or be lost, so cached values
    /// expire and waits also poll. Looking costs no read.
    ///
    /// A store on one file reports others' commits within half a second.
    fn news(&self) -> watch::Receiver<News>;

    /// Milliseconds by which the store's clock is ahead of this process's clock, as last measured; negative if it is
    /// behind. Costs an atomic load. Several processes on one database date their writes by its clock, so that due
    /// times and dates are comparable. A store within the process shares its clock: 0.
    fn clock_offset_ms(&self) -> i64;

    /// Returns the processes that work on the database, if there can be several; `None` if only one runs jobs.
    async fn cluster(&self) -> Result<Option<ClusterView>, StoreError> {
        Ok(None)
    }

    /// Returns the limits that several processes on one database share; `None` if one process alone answers requests.
    fn shared_limits(&self) -> Option<Arc<dyn SharedLimits>> {
        None
    }

    /// Sets the observer that is told of every commit through this handle from now on; replaces an earlier one.
    fn observe(&self, observer: Arc<dyn CommitObserver>);

    /// Returns sizes for metrics.
    fn gauges(&self) -> StoreGauges;

    /// Stops claiming jobs: other processes take them over once the jobs of the same lanes that run here have ended.
    /// Everything else continues.
    fn hand_over(&self) {}

    /// Finishes the commits that were handed over and releases all resources. Later calls return `Unavailable`.
    async fn close(&self);
}

/// Priority of a commit, by who waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// A request: served first.
    Foreground,
    /// The record that an attempt begins: served with requests, but background work need not keep out of its way.
    Attempt,
    /// Background work: shares commits with requests, never delays them by more than a slice.
    Background,
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice<T> {
    /// Items in order, at most as many as asked for.
    pub items: Vec<T>,
    /// Cursor to the rest; `None` at the end. A slice may be shorter than asked for, even empty, and still have a rest:
    /// a store bounds how many rows one call looks at.
    pub next: Option<StoreCursor>,
}

/// Start and size of a page of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// [`Slice::next`] of the previous page.
    pub after: Option<StoreCursor>,
    /// Maximum number of items on the page.
    pub limit: usize,
}
