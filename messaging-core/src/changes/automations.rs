//! Writes about automations, their runs, and the notes and dates that runs wait for.

use crate::cursor::StoreCursor;
use crate::domain::automation::Automation;
use crate::domain::automation::history::RunStep;
use crate::domain::automation::note::EventSubscription;
use crate::domain::automation::run::{Entry, Run};
use crate::domain::campaign::Reference;
use crate::domain::delivery::lane::Lane;
use crate::ids::{AutomationId, ContactId, MessageId, RunId, WorkspaceId};
use crate::revision::Expect;
use crate::time::Timestamp;

/// Creates or replaces an automation, with the data by which a store makes notes for it.
#[derive(Debug, Clone, PartialEq)]
pub struct PutAutomation {
    /// The automation. Its design is kept as its present version as well, which never changes afterwards.
    pub automation: Automation,
    /// Events and changes for which the store makes a note; none for a draft.
    pub subscription: EventSubscription,
    /// Lanes of the jobs of the shards, which the store makes due with every note; see
    /// [`crate::domain::automation::SHARDS`].
    pub lanes: Vec<Lane>,
    /// Objects that the automation needs while it is active, which cannot be deleted meanwhile. The commit conflicts if
    /// one is deleted already.
    pub holds: Vec<Reference>,
}

/// Creates or replaces a run, with the steps and messages that it made since it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct PutRun {
    /// The run as it is now.
    pub run: Run,
    /// Condition of the write: no such run yet, or the revision that was read.
    pub expect: Expect,
    /// The steps that it took since it was read, in order.
    pub steps: Vec<RunStep>,
    /// Messages that the run sends in this commit, each with the id of the node that sends it.
    pub messages: Vec<(MessageId, String)>,
}

/// Condition of a commit: a contact has entered an automation, or was refused, fewer times than allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectEntries {
    /// Workspace that owns the automation.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The contact that enters the automation.
    pub contact_id: ContactId,
    /// Entries after this moment count, whatever their key.
    pub since: Timestamp,
    /// Counts the refused entries with this reason; `None` counts the entries that were let in.
    pub refused: Option<String>,
    /// Limit that the count has to be below; at least 1.
    pub fewer_than: u32,
}

/// The notes that a commit has processed, to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeNotes {
    /// Workspace that owns the automation.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The shard of the contacts, below [`SHARDS`](crate::domain::automation::SHARDS).
    pub shard: u8,
    /// Position of the last note that was processed.
    pub up_to: StoreCursor,
}

/// Increments of an automation's statistics. The numbers of runs that are open, have ended or wait at a node are not
/// among them: they follow from the runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountNodes {
    /// Times that each node was reached, by node id.
    pub entered: Vec<(String, u32)>,
    /// Times that each branch was taken, by node id and branch.
    pub branches: Vec<((String, String), u32)>,
}

/// A time at which a contact enters an automation by a date of its own, such as a birthday.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFire {
    /// The contact that has the date.
    pub contact_id: ContactId,
    /// Time at which the contact enters.
    pub due_at: Timestamp,
}

/// Adds times at which contacts enter an automation by a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutDateFires {
    /// Workspace that owns the automation.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The times; one that is stored already stays.
    pub fires: Vec<DateFire>,
}

/// Moves the runs of a merged contact to the contact that it became, with entries, dates and notes. No conflict when
/// there is nothing to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveRuns {
    /// Workspace that owns the automation.
    pub workspace_id: WorkspaceId,
    /// The contact that the same commit deletes after this write.
    pub from: ContactId,
    /// The contact that it becomes; must exist.
    pub to: ContactId,
}

/// Identifies a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunKey {
    /// Workspace that owns the automation.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The run.
    pub run_id: RunId,
}

/// A write about runs, entries, notes, dates and statistics of automations.
#[derive(Debug, Clone)]
pub enum AutomationWrite {
    /// Creates or replaces a run with its new steps. A conflict when its contact is deleted. The job of its shard
    /// becomes due when the run is, unless this commit is that job's own.
    PutRun(Box<PutRun>),
    /// Creates or replaces the record of a contact's entries.
    PutEntry(Box<Entry>, Expect),
    /// Deletes notes that this commit has processed. A conflict when the last of them is deleted already.
    TakeNotes(TakeNotes),
    /// Adds to the statistics of nodes and branches.
    CountNodes(WorkspaceId, AutomationId, Box<CountNodes>),
    /// Adds entry times. One that is stored, or was processed already, stays as it is; those of deleted contacts are
    /// ignored. The job of the shard becomes due with them, as for [`PutRun`](Self::PutRun).
    PutDateFires(Box<PutDateFires>),
    /// Deletes an entry time that this commit has processed. A conflict when it is deleted already.
    TakeDateFire(WorkspaceId, AutomationId, DateFire),
    /// Moves the runs of a merged contact, with entries, dates and notes, to the contact that it becomes, and makes the
    /// jobs of their automations due. Of two entries under one key the later is kept.
    MoveRuns(MoveRuns),
    /// Deletes up to this many runs of a deleted contact, and the record of its entries with the last of them. No
    /// conflict when there are none.
    DeleteRuns(WorkspaceId, ContactId, usize),
    /// Sets the depth of the notes that the writes after this one make: the number of automations in a row that caused
    /// them. It is 0 at the start of a commit.
    CausedAt(u8),
}

impl AutomationWrite {
    /// Returns true if the write stores something new on behalf of a caller, see
    /// [`Changes::adds`](super::Changes::adds).
    pub(super) const fn adds(&self) -> bool {
        matches!(self, Self::PutRun(_) | Self::PutEntry(..) | Self::PutDateFires(_))
    }
}
