//! Automations, their runs, and the notes and questions that runs depend on.

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

/// Filter of a listing of runs; all conditions that are given hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In this state.
    pub status: Option<RunStatus>,
    /// Of this contact.
    pub contact_id: Option<ContactId>,
    /// At this node.
    pub node_id: Option<String>,
}

/// Question whether a contact matches a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterQuery {
    /// The contact.
    pub contact_id: ContactId,
    /// Filter without dynamic segments and values of events: both were replaced before.
    pub filter: Filter,
    /// The events that count, and the entry that
    /// [`Within::SinceEntry`](crate::domain::segment::filter::Within::SinceEntry) refers to.
    pub span: EventSpan,
    /// Present time of the filter: `last`, `next` and other relative times count from it.
    pub at: Timestamp,
}

/// The events, of products and of messages, that count for a [`FilterQuery`]. They are ordered by their ids, which is
/// the order of acceptance and not the time at which they happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventSpan {
    /// Time of the entry: events accepted after it count, and `entry_event`.
    pub entered_at: Option<Timestamp>,
    /// The event that entered the run.
    pub entry_event: Option<EventId>,
    /// Last event that counts; all if `None`.
    pub up_to: Option<EventId>,
}

/// Number of an automation's runs, by status and by node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutomationCounts {
    /// Runs by status, in the order of [`RunStatus::ALL`], without refused entries.
    pub runs: [u64; 5],
    /// Counts by node id, over all versions.
    pub nodes: Vec<NodeCounts>,
}

/// Number of runs at a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// The node.
    pub node_id: String,
    /// The number of times that a run reached the node.
    pub entered: u64,
    /// Runs that wait at the node.
    pub waiting: u64,
    /// Number of times that each branch was taken.
    pub branches: Vec<(String, u64)>,
}

/// Reads of automations.
#[async_trait]
pub trait Automations {
    /// Looks up an automation.
    async fn automation(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
    ) -> Result<Option<Stored<Automation>>, StoreError>;
    /// Returns automations, newest first; only those in a state if one is given.
    async fn automations(
        &self,
        workspace: WorkspaceId,
        status: Option<AutomationStatus>,
        page: PageRequest,
    ) -> Result<Slice<Automation>, StoreError>;
    /// Returns the automations of all workspaces that are active or paused, in no particular order.
    async fn begun_automations(&self, page: PageRequest) -> Result<Slice<Automation>, StoreError>;
    /// Looks up a version of an automation; kept as long as runs name it.
    async fn automation_version(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
        version: u32,
    ) -> Result<Option<AutomationVersion>, StoreError>;
    /// Returns automations that hold a resource, at most `limit`: active ones the resources that they name, and any the
    /// resources of a version with open runs.
    async fn automations_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<AutomationId>, StoreError>;

    /// Looks up a run.
    async fn run(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        id: RunId,
    ) -> Result<Option<Stored<Run>>, StoreError>;
    /// Returns the runs of an automation, newest first, refused entries included.
    async fn runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        wanted: &RunFilter,
        page: PageRequest,
    ) -> Result<Slice<Run>, StoreError>;
    /// Returns the steps of a run in order; at most as many as a run can have.
    async fn run_steps(&self, run: RunKey) -> Result<Vec<RunStep>, StoreError>;
    /// Returns the run that a message belongs to.
    async fn run_of_message(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<RunKey>, StoreError>;
    /// Counts an automation's runs by status and by node.
    async fn automation_counts(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
    ) -> Result<AutomationCounts, StoreError>;

    /// Returns the oldest notes of a shard of an automation, in their order, at most `limit`, each with the event that
    /// it is about; `None` for other causes and for deleted events. Notes of deleted contacts are left out.
    async fn automation_notes(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        limit: usize,
    ) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, StoreError>;
    /// True if runs or entries of a deleted contact are still there, to be deleted. Until then no other read returns
    /// them.
    async fn has_left_runs(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError>;
    /// Returns the due runs of a shard, the longest due first, at most `limit`.
    async fn due_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Stored<Run>>, StoreError>;
    /// Returns the time at which the next run of a shard, or the next moment of a date, is due.
    async fn next_run_due(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
    ) -> Result<Option<Timestamp>, StoreError>;
    /// Returns the open runs of contacts in an automation, oldest first for each.
    async fn open_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[ContactId],
    ) -> Result<Vec<Stored<Run>>, StoreError>;
    /// Returns the entries of contacts into an automation, each with the value of the key; in the order of the
    /// question.
    async fn entries(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        keys: &[(ContactId, Option<String>)],
    ) -> Result<Vec<Option<Stored<Entry>>>, StoreError>;
    /// Counts each contact's entries into an automation after the time beside it, with any key, without refused
    /// entries; in the order of the question.
    async fn entries_since(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[(ContactId, Timestamp)],
    ) -> Result<Vec<u32>, StoreError>;
    /// Answers questions about contacts, in their order, each as of its moment; `false` for a deleted contact.
    async fn answers(
        &self,
        workspace: WorkspaceId,
        asks: &[FilterQuery],
        zone: &jiff::tz::TimeZone,
    ) -> Result<Vec<bool>, StoreError>;

    /// Returns the due moments of an automation's dates in a shard, in their order, at most `limit`.
    async fn due_dates(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DateFire>, StoreError>;

    /// Deletes up to `limit` rows of removed automations, of runs whose history has expired, and of versions that no
    /// run names; returns how many. A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may
    /// stop anywhere.
    async fn forget_automation_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
