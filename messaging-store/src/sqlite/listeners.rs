//! Events that automations listen for, and the notes kept of them. A note is part of the transaction of its cause, so
//! that none is ever missing.
//!
//! The writer caches which automations of a workspace listen, and for what: a workspace without automations pays for a
//! look into a map.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use messaging_core::changes::JobHandle;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

pub(super) use crate::happened::{EventHappened, Happened, shard};

use super::fault::Fault;
use super::lanes::LaneIndex;
use super::query::one;
use super::waking;
use crate::database::at_once;
use crate::tables::automations::listening::{Listener, listeners};

/// Maximum number of workspaces whose automations are cached; beyond that the cache starts anew.
const MAX_KNOWN: usize = 10_000;
/// Maximum number of nodes whose numbers are cached.
const MAX_NODES: usize = 20_000;

/// The automations of a workspace that listen.
type OfWorkspace = Arc<Vec<Listener>>;

/// Listening automations by workspace, as the writer last saw them, and the work that the open transaction does for
/// them once at its end.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    known: HashMap<WorkspaceId, OfWorkspace>,
    /// Numbers of nodes.
    nodes: HashMap<i64, HashMap<String, i64>>,
    known_nodes: usize,
    /// Number of the last note, once it was read; `has_new_notes` is true if it differs from the stored one.
    last_note: Option<i64>,
    has_new_notes: bool,
    /// Jobs that become due: number of the automation, shard, lane and due time.
    wakes: Vec<((i64, u8), Lane, Timestamp)>,
    /// The job whose commit is applied.
    own_job: Option<Lane>,
    /// Number of automations in a row that led to the present changes.
    pub(super) depth: u8,
}

/// Position at which a set of changes begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(usize);

impl Listeners {
    /// Begins a set of changes, of a job if one commits them.
    pub(super) fn begin(&mut self, job: Option<&JobHandle>) -> Mark {
        self.own_job = job.map(|job| job.lane.clone());
        Mark(self.wakes.len())
    }

    /// Drops the work added after the mark, and all caches. Numbers of notes are not used again.
    pub(super) fn undo_to(&mut self, Mark(wakes): Mark) {
        self.wakes.truncate(wakes);
        self.forget_known();
    }

    /// Drops all caches and pending work: a change was undone, or another program has written.
    pub(super) fn forget_all(&mut self) {
        self.wakes.clear();
        self.last_note = None;
        self.has_new_notes = false;
        self.forget_known();
    }

    /// Drops the cached automations of all workspaces.
    pub(super) fn forget_known(&mut self) {
        self.known.clear();
        self.nodes.clear();
        self.known_nodes = 0;
    }

    /// Drops the cached automations of a workspace.
    pub(super) fn forget(&mut self, workspace: WorkspaceId) {
        self.known.remove(&workspace);
    }

    /// Writes what all changes of the transaction share: the number of the last note, and the due times of jobs.
    /// Returns true if a job became due.
    pub(super) fn settle(&mut self, connection: &Connection, index: &mut LaneIndex) -> Result<bool, Fault> {
        if let Some(last) = self.last_note.filter(|_| self.has_new_notes) {
            connection.prepare_cached("UPDATE automation_note_number SET n = ?1")?.execute([last])?;
            self.has_new_notes = false;
        }
        let mut wakes = BTreeMap::new();
        for (key, lane, at) in self.wakes.drain(..) {
            let wake = wakes.entry(key).or_insert((lane, at));
            wake.1 = wake.1.min(at);
        }
        let mut has_woken = false;
        for (lane, at) in wakes.into_values() {
            has_woken |= waking::wake_lane(connection, index, &lane, at)?;
        }
        Ok(has_woken)
    }

    /// Returns true if any automation of a workspace listens.
    pub(super) fn is_any(&mut self, connection: &Connection, workspace: WorkspaceId) -> Result<bool, Fault> {
        Ok(!self.of(connection, workspace)?.is_empty())
    }

    /// Returns true if any change of a contact may move or end one of its runs.
    pub(super) fn hears_changes(&mut self, connection: &Connection, workspace: WorkspaceId) -> Result<bool, Fault> {
        Ok(self.of(connection, workspace)?.iter().any(Listener::hears_changes))
    }

    /// Keeps notes of an event of a contact, for the automations that listen for it.
    pub(super) fn hear(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
        contact: i64,
        at: Timestamp,
        happened: Happened<'_>,
    ) -> Result<(), Fault> {
        let listeners = self.of(connection, workspace)?;
        for listener in listeners.iter() {
            let may_enter = listener.entry.as_ref().is_some_and(|entry| happened.enters(entry));
            if may_enter || moves_a_run(connection, listener, contact, happened)? {
                self.keep(connection, listener, contact, at, happened, may_enter)?;
            }
        }
        Ok(())
    }

    fn keep(
        &mut self,
        connection: &Connection,
        listener: &Listener,
        contact: i64,
        at: Timestamp,
        happened: Happened<'_>,
        may_enter: bool,
    ) -> Result<(), Fault> {
        let n = self.next_note(connection)?;
        let (kind, what, event) = happened.stored();
        let shard = shard(contact);
        connection
            .prepare_cached(
                "INSERT INTO automation_notes (automation, shard, n, contact, at, kind, depth, may_enter, event, what)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                listener.n,
                shard,
                n,
                contact,
                at.as_millis(),
                kind,
                self.depth,
                may_enter,
                event,
                what
            ])?;
        self.wake(listener, shard, at);
        Ok(())
    }

    /// Returns a number for a note, larger than all before.
    pub(super) fn next_note(&mut self, connection: &Connection) -> Result<i64, Fault> {
        let last = match self.last_note {
            Some(last) => last,
            None => one(connection, "SELECT n FROM automation_note_number", [], |row| Ok(row.get(0)?))?
                .ok_or(Fault::Malformed("there is no number of notes"))?,
        };
        self.last_note = Some(last + 1);
        self.has_new_notes = true;
        Ok(last + 1)
    }

    fn wake(&mut self, listener: &Listener, shard: u8, at: Timestamp) {
        let Some(lane) = listener.lanes.get(usize::from(shard)) else { return };
        match self.wakes.last_mut() {
            Some((key, _, other)) if *key == (listener.n, shard) && at >= *other => {}
            _ => self.wakes.push(((listener.n, shard), lane.clone(), at)),
        }
    }

    /// Makes the job of a contact's shard due at the time at which something of an automation is due, unless that job
    /// is the one that commits.
    pub(super) fn due(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
        automation: i64,
        contact: i64,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let listeners = self.of(connection, workspace)?;
        let shard = shard(contact);
        if let Some(listener) = listeners.iter().find(|listener| listener.n == automation)
            && (self.own_job.is_none() || listener.lanes.get(usize::from(shard)) != self.own_job.as_ref())
        {
            self.wake(listener, shard, at);
        }
        Ok(())
    }

    /// Returns the number of a node, and assigns one if it has none.
    pub(super) fn node(&mut self, connection: &Connection, automation: i64, id: &str) -> Result<i64, Fault> {
        if let Some(known) = self.nodes.get(&automation).and_then(|nodes| nodes.get(id)) {
            return Ok(*known);
        }
        let sql = "SELECT n FROM automation_nodes WHERE automation = ?1 AND id = ?2";
        let held: Option<i64> = one(connection, sql, params![automation, id], |row| Ok(row.get(0)?))?;
        let n = match held {
            Some(n) => n,
            None => connection
                .prepare_cached(
                    "INSERT INTO automation_nodes (automation, id, entered, waiting) VALUES (?1, ?2, 0, 0) RETURNING n",
                )?
                .query_row(params![automation, id], |row| row.get(0))?,
        };
        if self.known_nodes >= MAX_NODES {
            self.nodes.clear();
            self.known_nodes = 0;
        }
        self.nodes.entry(automation).or_default().insert(id.to_owned(), n);
        self.known_nodes += 1;
        Ok(n)
    }

    fn of(&mut self, connection: &Connection, workspace: WorkspaceId) -> Result<OfWorkspace, Fault> {
        if let Some(known) = self.known.get(&workspace) {
            return Ok(Arc::clone(known));
        }
        let listeners = Arc::new(at_once(listeners(&mut &*connection, workspace))?);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(workspace, Arc::clone(&listeners));
        Ok(listeners)
    }
}

/// Returns true if a contact has an open run that the event may move or end.
fn moves_a_run(
    connection: &Connection,
    listener: &Listener,
    contact: i64,
    happened: Happened<'_>,
) -> Result<bool, Fault> {
    const OPEN: &str = "SELECT version FROM automation_runs INDEXED BY automation_runs_by_contact
        WHERE contact = ?1 AND automation = ?2 AND ended_at IS NULL";
    let is_moved =
        |version: u32| listener.runs.iter().any(|(of, subscription)| *of == version && happened.moves(subscription));
    if !listener.runs.iter().any(|(_, subscription)| happened.moves(subscription)) {
        return Ok(false);
    }
    let mut statement = connection.prepare_cached(OPEN)?;
    let mut rows = statement.query([contact, listener.n])?;
    while let Some(row) = rows.next()? {
        if is_moved(row.get(0)?) {
            return Ok(true);
        }
    }
    Ok(false)
}
