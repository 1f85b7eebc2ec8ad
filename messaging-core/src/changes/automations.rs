//! What changes of automations, their runs, and what these wait for.

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

/// An automation, with what a store has to know of it to keep notes for it.
#[derive(Debug, Clone, PartialEq)]
pub struct PutAutomation {
    /// The automation. Its design is kept as its present version as well, which never changes afterwards.
    pub automation: Automation,
    /// What is listened for; nothing in a draft.
    pub subscription: EventSubscription,
    /// The lane of the job of each shard, which the store makes due with every note; see [`crate::domain::automation::SHARDS`].
    pub lanes: Vec<Lane>,
    /// What it needs while it is active; a conflict when some of that is gone.
    pub holds: Vec<Reference>,
}

/// A run, and what it did since it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct PutRun {
    /// The run.
    pub run: Run,
    /// Condition of the write: no such run yet, or the revision that was read.
    pub expect: Expect,
    /// The steps that it did, in order.
    pub steps: Vec<RunStep>,
    /// The messages that it sends, each with the node.
    pub messages: Vec<(MessageId, String)>,
}

/// How often a contact has entered an automation, or was refused, when a commit is made: fewer times than it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectEntries {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The contact that enters the automation.
    pub contact_id: ContactId,
    /// Entries after this moment count, whatever their key.
    pub since: Timestamp,
    /// Refused entries with this reason count; when there is none, those that were let in.
    pub refused: Option<String>,
    /// There have to be fewer of them; at least 1.
    pub fewer_than: u32,
}

/// Notes that a commit works off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeNotes {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The share of the contacts.
    pub shard: u8,
    /// The last of them.
    pub up_to: StoreCursor,
}

/// By how much a commit changes the numbers of an automation. How many runs are open, have ended and wait at which node
/// follows from the runs and is not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountNodes {
    /// How often a node was reached.
    pub entered: Vec<(String, u32)>,
    /// How often a branch of a node was taken.
    pub branches: Vec<((String, String), u32)>,
}

/// A moment that follows from a date of a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFire {
    /// The contact that has the date.
    pub contact_id: ContactId,
    /// When the contact enters by it.
    pub due_at: Timestamp,
}

/// Moments of an automation, to be looked at again when they are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutDateFires {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The moments; one that is there already stays.
    pub fires: Vec<DateFire>,
}

/// Gives runs of a merged contact to the one it became, with entries, moments of dates and notes. Nothing happens when
/// there is nothing to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveRuns {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The contact that goes in the same commit after this write.
    pub from: ContactId,
    /// The one it becomes; must be there.
    pub to: ContactId,
}

/// Names a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunKey {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The run.
    pub run_id: RunId,
}

/// A change of what automations do and wait for.
#[derive(Debug, Clone)]
pub enum AutomationWrite {
    /// Creates or replaces a run with what it did. A conflict when its contact is gone. The job of its share of the
    /// contacts becomes due when the run is, unless this commit is that job's own.
    PutRun(Box<PutRun>),
    /// Creates or replaces what is known of the entries of a contact.
    PutEntry(Box<Entry>, Expect),
    /// Takes notes away, because this commit works them off. A conflict when the last of them is gone.
    TakeNotes(TakeNotes),
    /// Counts how often nodes and branches were reached.
    CountNodes(WorkspaceId, AutomationId, Box<CountNodes>),
    /// Keeps moments of dates; one that is there, or was taken already, stays as it is. Those of contacts that are gone
    /// are not kept. The job of a share of the contacts becomes due with them, as for [`PutRun`](Self::PutRun).
    PutDateFires(Box<PutDateFires>),
    /// Takes a moment of a date away, because this commit works it off. A conflict when it is gone.
    TakeDateFire(WorkspaceId, AutomationId, DateFire),
    /// Gives runs of a contact that is merged, with what is known of its entries, moments of dates and notes, to the one
    /// it becomes, and makes the jobs of their automations due. Of two entries under one key the later is kept.
    MoveRuns(MoveRuns),
    /// Deletes up to so many runs of a contact that is gone, and with the last of them what is known of its entries; no
    /// conflict when there are none.
    DeleteRuns(WorkspaceId, ContactId, usize),
    /// What follows in this commit was caused by so many automations in a row, and its notes say so; 0 when nothing else
    /// is said.
    CausedAt(u8),
}

impl AutomationWrite {
    /// Whether it stores something new on behalf of somebody, see [`Changes::adds`](super::Changes::adds).
    pub(super) const fn adds(&self) -> bool {
        matches!(self, Self::PutRun(_) | Self::PutEntry(..) | Self::PutDateFires(_))
    }
}
