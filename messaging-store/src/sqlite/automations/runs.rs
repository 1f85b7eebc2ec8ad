//! Runs, what they did, and the messages that they sent.

use messaging_core::changes::{Expect, PutRun, RunKey};
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::ids::{AutomationId, ContactId, EventId, Id as _, MessageId, RunId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, RunFilter, Slice, StoreCursor, Stored};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use super::super::fault::{Fault, expect_one};
use super::super::listeners::Listeners;
use super::super::numbers::{automation_number, contact_number};
use super::super::query::{many, one};
use super::super::row::{below, document, id, maybe_time, number, numbered, or_empty, sql_limit, time};
use crate::automation_rows::{self, Place, are_untold, entry_event, read_steps, steps_text, untold_steps};
use crate::counter_deltas::{AutomationCounter, CounterDeltas};

/// How many rows one call of a listing looks at.
const MAX_SCANNED: i64 = 20_000;

/// The columns that [`run`] reads, in its order, and where they come from.
macro_rules! run_rows {
    () => {
        "SELECT r.revision, r.id, r.version, c.id, r.status, node.id, r.due_at, r.entered_at, r.arrived, r.ended_at,
             r.exit_reason, r.steps, r.depth, i.event, r.entry_event, i.key, r.held
         FROM automation_runs r
         CROSS JOIN contacts c ON c.n = r.contact
         LEFT JOIN automation_nodes node ON node.n = r.node
         LEFT JOIN automation_run_inputs i ON i.automation = r.automation AND i.run = r.id "
    };
}

/// Whose runs.
pub(super) type Of = (WorkspaceId, AutomationId);

fn read_entry_event(row: &Row<'_>, column: usize, entered_at: Timestamp) -> Result<Option<EventId>, Fault> {
    let bytes = row.get_ref(column)?.as_blob_or_null().map_err(|_| Fault::Malformed("an id is no bytes"))?;
    let read = |bytes| automation_rows::read_entry_event(bytes, entered_at);
    bytes.map(|bytes| read(bytes).ok_or(Fault::Malformed("an id is of sixteen bytes"))).transpose()
}

fn run((workspace, automation): Of, row: &Row<'_>) -> Result<Stored<Run>, Fault> {
    let entered_at = time(row, 7)?;
    let held = row.get_ref(16)?.as_str_or_null().map_err(|_| Fault::Malformed("a document is not text"))?;
    let record = Run {
        id: id(row, 1)?,
        workspace_id: workspace,
        automation_id: automation,
        version: row.get(2)?,
        contact_id: id(row, 3)?,
        status: numbered(&RunStatus::ALL, row.get(4)?)?,
        node_id: row.get(5)?,
        due_at: maybe_time(row, 6)?,
        entered_at,
        arrived_at: Timestamp::from_millis(entered_at.as_millis().saturating_add(row.get(8)?)),
        ended_at: maybe_time(row, 9)?,
        exit_reason: row.get(10)?,
        steps: row.get(11)?,
        depth: row.get(12)?,
        event: or_empty(row, 13)?,
        entry_event: read_entry_event(row, 14, entered_at)?,
        key: row.get(15)?,
        held: held.map(serde_json::from_str).transpose()?,
    };
    Ok(Stored { record, revision: row.get(0)? })
}

pub(in super::super) fn put(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    listeners: &mut Listeners,
    put: &PutRun,
) -> Result<(), Fault> {
    let run = &put.run;
    let workspace = run.workspace_id;
    let automation = automation_number(connection, workspace, run.automation_id)?.ok_or(Fault::Conflict)?;
    let contact = contact_number(connection, workspace, run.contact_id)?.ok_or(Fault::Conflict)?;
    let revision = match put.expect {
        Expect::Absent => 0,
        Expect::Revision(revision) => revision,
    };
    let before = if put.expect == Expect::Absent {
        None
    } else {
        const HELD: &str = "SELECT status, node, untold FROM automation_runs
            WHERE automation = ?1 AND id = ?2 AND revision = ?3 AND contact = ?4";
        const TELL: &str = concat!(
            "INSERT INTO automation_run_steps (automation, run, revision, steps) SELECT r.automation, r.id, 1, ",
            untold_steps!(),
            " FROM automation_runs r CROSS JOIN automation_nodes node ON node.n = r.node
             WHERE r.automation = ?1 AND r.id = ?2"
        );
        let held = one(connection, HELD, params![automation, run.id.to_bytes(), revision, contact], |row| {
            Ok((Place { status: numbered(&RunStatus::ALL, row.get(0)?)?, node: row.get(1)? }, row.get(2)?))
        })?;
        let (place, is_untold) = held.ok_or(Fault::Conflict)?;
        if is_untold {
            expect_one(connection.prepare_cached(TELL)?.execute(params![automation, run.id.to_bytes()])?)?;
        }
        Some(place)
    };
    let is_untold = before.is_none() && are_untold(run, &put.steps);
    let node = run.node_id.as_deref().map(|node| listeners.node(connection, automation, node)).transpose()?;
    let key = params![
        automation,
        run.id.to_bytes(),
        number(&RunStatus::ALL, &run.status),
        run.steps,
        run.arrived_at.as_millis().saturating_sub(run.entered_at.as_millis()),
        run.due_at.map(Timestamp::as_millis),
        run.ended_at.map(Timestamp::as_millis),
        node,
        run.held.as_ref().map(document).transpose()?,
        run.exit_reason,
    ];
    if before.is_some() {
        const UPDATE: &str =
            "UPDATE automation_runs SET revision = revision + 1, status = ?3, steps = ?4, arrived = ?5,
            due_at = ?6, ended_at = ?7, node = ?8, held = ?9, exit_reason = ?10, untold = 0 WHERE automation = ?1 AND id = ?2";
        expect_one(connection.prepare_cached(UPDATE)?.execute(key)?)?;
    } else {
        const INSERT: &str =
            "INSERT INTO automation_runs (automation, id, status, steps, arrived, due_at, ended_at, node,
                held, exit_reason, contact, version, revision, depth, entered_at, entry_event, untold)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 1, ?13, ?14, ?15, ?16)";
        let rest = params![contact, run.version, run.depth, run.entered_at.as_millis(), entry_event(run), is_untold];
        let row: Vec<_> = key.iter().chain(rest).copied().collect();
        connection.prepare_cached(INSERT)?.execute(&row[..])?;
        put_inputs(connection, automation, run)?;
        deltas.add_automation(AutomationCounter::Version(automation, run.version), 1);
    }
    let after = Place { status: run.status, node };
    if before != Some(after) {
        if let Some(before) = before {
            before.count(deltas, automation, -1);
        }
        after.count(deltas, automation, 1);
    }
    if !put.steps.is_empty() && !is_untold {
        connection
            .prepare_cached(
                "INSERT INTO automation_run_steps (automation, run, revision, steps) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![automation, run.id.to_bytes(), revision + 1, steps_text(&put.steps)?])?;
    }
    for (message, node) in &put.messages {
        let node = listeners.node(connection, automation, node)?;
        connection
            .prepare_cached("INSERT INTO automation_messages (message, automation, run, node) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![message.to_bytes(), automation, run.id.to_bytes(), node])?;
    }
    match run.due_at {
        Some(due_at) => listeners.due(connection, workspace, automation, contact, due_at),
        None => Ok(()),
    }
}

fn put_inputs(connection: &Connection, automation: i64, run: &Run) -> Result<(), Fault> {
    if run.event.is_empty() && run.key.is_none() {
        return Ok(());
    }
    let event = if run.event.is_empty() { None } else { Some(document(&run.event)?) };
    connection
        .prepare_cached("INSERT INTO automation_run_inputs (automation, run, event, key) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![automation, run.id.to_bytes(), event, run.key])?;
    Ok(())
}

pub(super) fn get(connection: &Connection, of: Of, id: RunId) -> Result<Option<Stored<Run>>, Fault> {
    const SQL: &str = concat!(
        run_rows!(),
        "WHERE r.automation = (SELECT n FROM automations WHERE workspace = ?1 AND id = ?2 AND removed = 0) AND r.id = ?3"
    );
    one(connection, SQL, params![of.0.to_bytes(), of.1.to_bytes(), id.to_bytes()], |row| run(of, row))
}

/// A page of runs. They are chosen by their rows alone; what else there is of them is read for the page.
pub(super) fn list(
    connection: &Connection,
    of: Of,
    wanted: &RunFilter,
    page: &PageRequest,
) -> Result<Slice<Run>, Fault> {
    const ALL: &str = "SELECT id, status, node FROM automation_runs
        WHERE automation = ?1 AND id < ?2 AND ?4 IS NULL ORDER BY id DESC LIMIT ?3";
    // The sort is of the runs of one contact, of which there are few.
    const OF_CONTACT: &str = "SELECT id, status, node FROM automation_runs INDEXED BY automation_runs_by_contact
        WHERE automation = ?1 AND id < ?2 AND contact = ?4 ORDER BY id DESC LIMIT ?3";
    const NODE: &str = "SELECT n FROM automation_nodes WHERE automation = ?1 AND id = ?2";
    let empty = Slice { items: Vec::new(), next: None };
    let connection = &*connection.unchecked_transaction()?;
    let Some(n) = automation_number(connection, of.0, of.1)? else { return Ok(empty) };
    let node = match &wanted.node_id {
        None => None,
        Some(node) => match one(connection, NODE, params![n, node], |row| Ok(row.get::<_, i64>(0)?))? {
            None => return Ok(empty),
            node => node,
        },
    };
    let contact = match wanted.contact_id {
        None => None,
        Some(contact) => match contact_number(connection, of.0, contact)? {
            None => return Ok(empty),
            contact => contact,
        },
    };
    let status = wanted.status.map(|status| number(&RunStatus::ALL, &status));
    let mut statement = connection.prepare_cached(if contact.is_some() { OF_CONTACT } else { ALL })?;
    let mut rows = statement.query(params![n, below(page), MAX_SCANNED, contact])?;
    let (mut ids, mut scanned, mut last) = (Vec::new(), 0, None);
    let mut is_more = false;
    while let Some(row) = rows.next()? {
        let matches = status.is_none_or(|status| row.get(1) == Ok(status))
            && node.is_none_or(|node| row.get(2) == Ok(Some(node)));
        if matches && ids.len() == page.limit {
            is_more = true;
            break;
        }
        scanned += 1;
        last = Some(row.get::<_, [u8; 16]>(0)?);
        ids.extend(matches.then_some(last).flatten());
    }
    let mut items = Vec::with_capacity(ids.len());
    for id in &ids {
        items.extend(get(connection, of, RunId::from_bytes(*id))?.map(|stored| stored.record));
    }
    let next = if is_more { ids.last().copied() } else { last.filter(|_| scanned == MAX_SCANNED) };
    Ok(Slice { items, next: next.map(StoreCursor::from_bytes) })
}

pub(super) fn steps(connection: &Connection, run: RunKey) -> Result<Vec<RunStep>, Fault> {
    const SQL: &str = concat!(
        "WITH a AS MATERIALIZED (SELECT n FROM automations WHERE workspace = ?1 AND id = ?2 AND removed = 0)
         SELECT s.steps, s.revision FROM a CROSS JOIN automation_run_steps s ON s.automation = a.n AND s.run = ?3
         UNION ALL SELECT ",
        untold_steps!(),
        ", 1 FROM a CROSS JOIN automation_runs r ON r.automation = a.n AND r.id = ?3
             CROSS JOIN automation_nodes node ON node.n = r.node WHERE r.untold
         ORDER BY 2"
    );
    let key = params![run.workspace_id.to_bytes(), run.automation_id.to_bytes(), run.run_id.to_bytes()];
    let commits = many(connection, SQL, key, |row| {
        let text = row.get_ref(0)?.as_str().map_err(|_| Fault::Malformed("a document is not text"))?;
        read_steps(text).ok_or(Fault::Malformed("a step cannot be read"))
    })?;
    Ok(commits.into_iter().flatten().collect())
}

pub(super) fn of_message(
    connection: &Connection,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<Option<RunKey>, Fault> {
    const SQL: &str = "SELECT a.id, m.run FROM automation_messages m CROSS JOIN automations a ON a.n = m.automation
        WHERE m.message = ?1 AND a.workspace = ?2 AND a.removed = 0";
    one(connection, SQL, [message.to_bytes(), workspace.to_bytes()], |row| {
        Ok(RunKey { workspace_id: workspace, automation_id: id(row, 0)?, run_id: id(row, 1)? })
    })
}

pub(super) fn due(
    connection: &Connection,
    of: Of,
    shard: u8,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Stored<Run>>, Fault> {
    const DUE: &str = "SELECT r.id FROM automation_runs r INDEXED BY automation_runs_due
        CROSS JOIN contacts c ON c.n = r.contact
        WHERE r.automation = ?1 AND r.contact & 3 = ?2 AND r.due_at <= ?3 ORDER BY r.due_at, r.id LIMIT ?4";
    // One transaction: of one moment.
    let connection = &*connection.unchecked_transaction()?;
    let Some(n) = automation_number(connection, of.0, of.1)? else { return Ok(Vec::new()) };
    let bounds = params![n, shard, now.as_millis(), sql_limit(limit)];
    let ids: Vec<RunId> = many(connection, DUE, bounds, |row| id(row, 0))?;
    let mut runs = Vec::with_capacity(ids.len());
    for id in ids {
        runs.extend(get(connection, of, id)?);
    }
    Ok(runs)
}

pub(super) fn next_due(connection: &Connection, automation: i64, shard: u8) -> Result<Option<Timestamp>, Fault> {
    const SQL: &str = "SELECT r.due_at FROM automation_runs r INDEXED BY automation_runs_due
        CROSS JOIN contacts c ON c.n = r.contact
        WHERE r.automation = ?1 AND r.contact & 3 = ?2 AND r.due_at IS NOT NULL ORDER BY r.due_at LIMIT 1";
    one(connection, SQL, params![automation, shard], |row| time(row, 0))
}

pub(super) fn open(connection: &Connection, of: Of, contacts: &[ContactId]) -> Result<Vec<Stored<Run>>, Fault> {
    const OPEN: &str = "SELECT id FROM automation_runs INDEXED BY automation_runs_by_contact
        WHERE contact = ?1 AND automation = ?2 AND ended_at IS NULL ORDER BY id";
    let connection = &*connection.unchecked_transaction()?;
    let Some(n) = automation_number(connection, of.0, of.1)? else { return Ok(Vec::new()) };
    let mut runs = Vec::new();
    for contact in contacts {
        let Some(contact) = contact_number(connection, of.0, *contact)? else { continue };
        let ids: Vec<RunId> = many(connection, OPEN, [contact, n], |row| id(row, 0))?;
        for id in ids {
            runs.extend(get(connection, of, id)?);
        }
    }
    Ok(runs)
}
