//! Automations, their runs, and what these have to hear of.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreCursor, StoreError, Stored};
use crate::changes::{DateFire, RunKey};
use crate::domain::automation::history::RunStep;
use crate::domain::automation::note::{Happened, Note};
use crate::domain::automation::run::{Entry, Run, RunStatus};
use crate::domain::automation::{Automation, AutomationStatus, AutomationVersion};
use crate::domain::campaign::Reference;
use crate::domain::segment::filter::Filter;
use crate::ids::{AutomationId, ContactId, EventId, MessageId, RunId, WorkspaceId};
use crate::time::Timestamp;

/// Which runs a listing shows; all conditions that are given hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In this state.
    pub status: Option<RunStatus>,
    /// Of this contact.
    pub contact_id: Option<ContactId>,
    /// At this node.
    pub node_id: Option<String>,
}

/// Asks whether a contact matches a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterQuery {
    /// The contact.
    pub contact_id: ContactId,
    /// The filter. It names no dynamic segment and no value of an event: both were replaced before.
    pub filter: Filter,
    /// The events that count, and the entry that
    /// [`Within::SinceEntry`](crate::domain::segment::filter::Within::SinceEntry) refers to.
    pub span: EventSpan,
    /// The present for the filter: `last`, `next` and the like count from this time.
    pub at: Timestamp,
}

/// The events, of products and of messages, that count for a [`FilterQuery`]. They are ordered by their ids, which is
/// the order of acceptance and not the time at which they happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventSpan {
    /// Since the entry: what was accepted after this moment, but for `entry_event`.
    pub entered_at: Option<Timestamp>,
    /// The event that entered the run.
    pub entry_event: Option<EventId>,
    /// Up to and with this event; all when there is none.
    pub up_to: Option<EventId>,
}

/// What has become of an automation's runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutomationCounts {
    /// Runs by status, in the order of [`RunStatus::ALL`]; refused entries are not among them.
    pub runs: [u64; 5],
    /// By node id, over all versions.
    pub nodes: Vec<NodeCounts>,
}

/// What has become of runs at a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// The node.
    pub node_id: String,
    /// The number of times that a run reached the node.
    pub entered: u64,
    /// How many runs stand at it.
    pub waiting: u64,
    /// How often each branch was taken.
    pub branches: Vec<(String, u64)>,
}

/// Reads of automations.
#[async_trait]
pub trait Automations {
    /// An automation.
    async fn automation(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
    ) -> Result<Option<Stored<Automation>>, StoreError>;
    /// Automations, newest first; in a state if one is given.
    async fn automations(
        &self,
        workspace: WorkspaceId,
        status: Option<AutomationStatus>,
        page: PageRequest,
    ) -> Result<Slice<Automation>, StoreError>;
    /// Automations of all workspaces that are active or paused, in no particular order.
    async fn begun_automations(&self, page: PageRequest) -> Result<Slice<Automation>, StoreError>;
    /// A version of an automation; kept as long as runs name it.
    async fn automation_version(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
        version: u32,
    ) -> Result<Option<AutomationVersion>, StoreError>;
    /// Automations that hold something, at most `limit`: active ones what they name, and any what a version names that has
    /// open runs.
    async fn automations_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<AutomationId>, StoreError>;

    /// A run.
    async fn run(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        id: RunId,
    ) -> Result<Option<Stored<Run>>, StoreError>;
    /// Runs of an automation, newest first, refused entries among them.
    async fn runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        wanted: &RunFilter,
        page: PageRequest,
    ) -> Result<Slice<Run>, StoreError>;
    /// What a run did, in order; at most the steps that a run can have.
    async fn run_steps(&self, run: RunKey) -> Result<Vec<RunStep>, StoreError>;
    /// The run that a message belongs to.
    async fn run_of_message(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<RunKey>, StoreError>;
    /// What has become of an automation's runs.
    async fn automation_counts(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
    ) -> Result<AutomationCounts, StoreError>;

    /// The oldest notes of a shard of an automation, in their order, at most `limit`, each with what it tells of; that is
    /// `None` for other causes, and for what is gone. Notes of contacts that are gone are passed by.
    async fn automation_notes(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        limit: usize,
    ) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, StoreError>;
    /// Whether runs or entries of a contact that is gone are still there, to be deleted. Meanwhile they are in no answer
    /// of the other reads.
    async fn has_left_runs(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError>;
    /// Runs of a shard that are due, the longest due first, at most `limit`.
    async fn due_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Stored<Run>>, StoreError>;
    /// When the next run of a shard, or the next moment of a date, is due.
    async fn next_run_due(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
    ) -> Result<Option<Timestamp>, StoreError>;
    /// The open runs of contacts in an automation, oldest first for each.
    async fn open_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[ContactId],
    ) -> Result<Vec<Stored<Run>>, StoreError>;
    /// The entries of contacts into an automation, each with the value of the key; in the order of the question.
    async fn entries(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        keys: &[(ContactId, Option<String>)],
    ) -> Result<Vec<Option<Stored<Entry>>>, StoreError>;
    /// How often each contact entered an automation after the time beside it, whatever the key, refused entries not among
    /// them; in the order of the question.
    async fn entries_since(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[(ContactId, Timestamp)],
    ) -> Result<Vec<u32>, StoreError>;
    /// Answers questions about contacts, in their order, each as of its moment; `false` for one who is gone.
    async fn answers(
        &self,
        workspace: WorkspaceId,
        asks: &[FilterQuery],
        zone: &jiff::tz::TimeZone,
    ) -> Result<Vec<bool>, StoreError>;

    /// Moments of an automation's dates that are due in a shard, in their order, at most `limit`.
    async fn due_dates(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DateFire>, StoreError>;

    /// Lets go up to `limit` rows of automations that were removed, of runs whose history is over, and of versions that
    /// nobody names; answers how many. A write outside of [`Changes`](crate::changes::Changes): it decides nothing and
    /// may stop anywhere.
    async fn forget_automation_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
