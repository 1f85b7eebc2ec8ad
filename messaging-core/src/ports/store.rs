//! The port to everything that is kept.
//!
//! Reads are one trait per aggregate; all writes go through [`Store::commit`]. To add an aggregate: its
//! record in `domain/`, its writes in [`Write`](crate::changes::Write), a trait here with the reads that
//! the operations need, and a file of cases in `messaging-conformance`, whose cases every store passes.
//!
//! What every method owes: the workspace comes first, and another workspace's row is not there. "Not
//! there" is `None` or an empty list, never an error. Listings are newest first, go on from an opaque
//! [`StoreCursor`], and stay exact while rows are inserted.

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
/// What is read is in the traits below it, one for each subject; whatever changes goes through [`Store::commit`]. The
/// crate `messaging-conformance` says what else a store owes.
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
    /// What callers may rely on, and nothing else:
    ///
    /// * Writes are applied in their order, each on what those before it left, and no other commit comes between. Whether
    ///   a write that expects something (a revision, that nothing is there, a state, a claim) finds it so is decided
    ///   then, not when it was read. Of several that fail, any may be the one that is told; [`Write::Remember`](crate::changes::Write::Remember) may be
    ///   tried before the others.
    /// * Commits are in one order, the same for all readers. A read that begins after a commit returned sees it, through
    ///   whichever handle of the database; so does what follows from [`Store::news`].
    /// * Nothing is promised of rows that were read and that no write of the commit expects anything of: another commit
    ///   may have changed them. Two reads may see two states, and a commit between them; a single read sees one. Who
    ///   decides by several rows expects each of them, or is told of changes and decides again (`EnqueueOnce`, outboxes).
    /// * Of two commits that expect the same thing and change it, at most one succeeds; the other is a conflict. Counts
    ///   that follow rows (members of lists, contacts of a workspace) are exact after every commit.
    /// * An error but `OutcomeUnknown` means that nothing of the commit is there or will be. A caller that goes away does
    ///   not take back what it handed over.
    /// * Ids and dates are the caller's: their order says nothing of the order of commits. The event log has that order.
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

    /// Whether the connection to the database was lost a moment ago, which [`Store::health`] may not know yet, or not any
    /// more. A store within the process has none to lose.
    fn has_lost_connection(&self) -> bool {
        false
    }

    /// Tells what may have changed, so that whoever remembers something of it can forget it: what this handle committed
    /// ([`Topics::of`], and [`Topic::Work`] where a note for an automation made a job due that no write names), and what
    /// other programs did, of whom the topics may not be known. A hint: it may come late, and may be lost, so what is
    /// remembered expires and what is waited for is looked for as well. A look costs no read.
    ///
    /// A store on one file tells of others' commits within half a second.
    fn news(&self) -> watch::Receiver<News>;

    /// By how many milliseconds the store's clock is ahead of this process's, as it was last measured; negative when it
    /// is behind. Costs an atomic load. Several processes on one database date what they write by its clock, so that
    /// due times and dates are comparable. A store within the process has its clock: 0.
    fn clock_offset_ms(&self) -> i64;

    /// The processes that work on the database, where there can be several; `None` where one does the jobs.
    async fn cluster(&self) -> Result<Option<ClusterView>, StoreError> {
        Ok(None)
    }

    /// What processes tell each other of limits, where several work on one database; `None` where one alone answers
    /// requests.
    fn shared_limits(&self) -> Option<Arc<dyn SharedLimits>> {
        None
    }

    /// Tells an observer of every commit through this handle from now on, in place of an earlier one.
    fn observe(&self, observer: Arc<dyn CommitObserver>);

    /// Sizes, for metrics.
    fn gauges(&self) -> StoreGauges;

    /// Claims nothing more: jobs that other processes may have go to them, as soon as those of the same lanes have ended
    /// that are in work here. Everything else goes on.
    fn hand_over(&self) {}

    /// Finishes what was handed over and releases what is held. Later calls answer `Unavailable`.
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
