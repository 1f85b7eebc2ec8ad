//! Runs, what they did, and the messages that they sent.

use messaging_core::changes::{Expect, PutRun, RunKey};
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::ids::{AutomationId, ContactId, MessageId, RunId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, RunFilter, Slice, StoreCursor, StoreError, Stored};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::listeners;
use super::super::numbers::{automation_number, contact_number};
use super::super::query::{Queries, many, one, params};
use super::super::reads::Reads;
use super::super::row::{
    below_id, document, get as column, id, maybe_time, number, numbered, or_empty, small, sql_limit, time, uuid,
};
use super::super::transaction::Transaction;
use super::look_up::{self, revision};
use crate::automation_rows::{Place, entry_event, read_entry_event, read_steps, steps_text};
use crate::counter_deltas::AutomationCounter;

/// How many rows one call of a listing looks at.
const MAX_SCANNED: i64 = 20_000;

/// The columns that [`run`] reads, in its order, and where they come from.
macro_rules! run_rows {
    () => {
        "SELECT r.revision, r.id, r.version, c.id, r.status::bigint, node.id, r.due_at, r.entered_at, r.arrived,
             r.ended_at, r.exit_reason, r.steps::bigint, r.depth::bigint, i.event, r.entry_event, i.key, r.held
         FROM automation_runs r
         JOIN contacts c ON c.n = r.contact
         LEFT JOIN automation_nodes node ON node.n = r.node
         LEFT JOIN automation_run_inputs i ON i.automation = r.automation AND i.run = r.id "
    };
}

/// Whose runs.
pub(super) type Of = (WorkspaceId, AutomationId);

fn run((workspace, automation): Of, row: &Row) -> Result<Stored<Run>, Fault> {
    let entered_at = time(row, 7)?;
    let entry_event = match column::<Option<&[u8]>>(row, 14)? {
        Some(bytes) => Some(read_entry_event(bytes, entered_at).ok_or(Fault::Malformed("an id is of sixteen bytes"))?),
        None => None,
    };
    let record = Run {
        id: id(row, 1)?,
        workspace_id: workspace,
        automation_id: automation,
        version: small(row, 2)?,
        contact_id: id(row, 3)?,
        status: numbered(&RunStatus::ALL, column(row, 4)?)?,
        node_id: column(row, 5)?,
        due_at: maybe_time(row, 6)?,
        entered_at,
        arrived_at: Timestamp::from_millis(entered_at.as_millis().saturating_add(column(row, 8)?)),
        ended_at: maybe_time(row, 9)?,
        exit_reason: column(row, 10)?,
        steps: small(row, 11)?,
        depth: small(row, 12)?,
        event: or_empty(row, 13)?,
        entry_event,
        key: column(row, 15)?,
        held: column::<Option<&str>>(row, 16)?.map(serde_json::from_str).transpose()?,
    };
    Ok(Stored { record, revision: small(row, 0)? })
}

pub(in super::super) async fn put(transaction: &mut Transaction, put: &PutRun) -> Result<(), Fault> {
    let run = &put.run;
    let workspace = run.workspace_id;
    listeners::share(transaction, workspace);
    listeners::write_notes(transaction).await?;
    let automation = look_up::automation(transaction, workspace, run.automation_id).await?.ok_or(Fault::Conflict)?;
    let contact = look_up::contact(transaction, workspace, run.contact_id).await?.ok_or(Fault::Conflict)?;
    let before = match put.expect {
        Expect::Absent => None,
        Expect::Revision(_) => {
            Some(look_up::place(transaction, automation, (run.id, contact), revision(put.expect)).await?)
        }
    };
    let node = match &run.node_id {
        Some(node) => Some(look_up::node(transaction, automation, node).await?),
        None => None,
    };
    put_row(transaction, put, (automation, contact), node)?;
    if before.is_none() {
        put_inputs(transaction, automation, run)?;
        transaction.deltas.add_automation(AutomationCounter::Version(automation, run.version), 1);
    }
    let after = Place { status: run.status, node };
    if before != Some(after) {
        if let Some(before) = before {
            before.count(&mut transaction.deltas, automation, -1);
        }
        after.count(&mut transaction.deltas, automation, 1);
    }
    put_steps(transaction, automation, put)?;
    put_messages(transaction, automation, put).await?;
    match run.due_at {
        Some(due_at) => listeners::due(transaction, workspace, automation, contact, due_at).await,
        None => Ok(()),
    }
}

/// The row itself. Its contact is there until the commit; while a run begins nobody writes notes of the contact, so that
/// whoever does afterwards sees the run.
fn put_row(
    transaction: &mut Transaction,
    put: &PutRun,
    (automation, contact): (i64, i64),
    node: Option<i64>,
) -> Result<(), Fault> {
    const UPDATE: &str = "UPDATE automation_runs r SET revision = revision + 1, status = $4, steps = $5, arrived = $6,
            due_at = $7, ended_at = $8, node = $9, held = $10, exit_reason = $11
        FROM (SELECT n FROM contacts WHERE n = $3 FOR KEY SHARE) c
        WHERE r.automation = $1 AND r.id = $2 AND r.contact = c.n AND r.revision = $12";
    const INSERT: &str =
        "INSERT INTO automation_runs (automation, id, contact, status, steps, arrived, due_at, ended_at,
            node, held, exit_reason, version, revision, depth, entered_at, entry_event)
        SELECT $1, $2, n, $4, $5, $6, $7, $8, $9, $10, $11, $12, 1, $13, $14, $15
        FROM contacts WHERE n = $3 FOR SHARE";
    const TOO_LARGE: Fault = Fault::Malformed("a number is out of range");
    let run = &put.run;
    let mut row = params![
        automation,
        uuid(run.id),
        contact,
        i16::try_from(number(&RunStatus::ALL, &run.status)).map_err(|_| TOO_LARGE)?,
        i32::try_from(run.steps).map_err(|_| TOO_LARGE)?,
        run.arrived_at.as_millis().saturating_sub(run.entered_at.as_millis()),
        run.due_at.map(Timestamp::as_millis),
        run.ended_at.map(Timestamp::as_millis),
        node,
        run.held.as_ref().map(document).transpose()?,
        run.exit_reason.clone(),
    ];
    match put.expect {
        Expect::Revision(_) => {
            row.push(revision(put.expect).into());
            transaction.run_one(UPDATE, row);
        }
        Expect::Absent => {
            let (version, depth) = (i64::from(run.version), i16::from(run.depth));
            row.extend(params![version, depth, run.entered_at.as_millis(), entry_event(run)]);
            transaction.run_one(INSERT, row);
        }
    }
    Ok(())
}

fn put_inputs(transaction: &mut Transaction, automation: i64, run: &Run) -> Result<(), Fault> {
    if run.event.is_empty() && run.key.is_none() {
        return Ok(());
    }
    let event = if run.event.is_empty() { None } else { Some(document(&run.event)?) };
    transaction.run(
        "INSERT INTO automation_run_inputs (automation, run, event, key) VALUES ($1, $2, $3, $4)",
        params![automation, uuid(run.id), event, run.key.clone()],
    );
    Ok(())
}

fn put_steps(transaction: &mut Transaction, automation: i64, put: &PutRun) -> Result<(), Fault> {
    if !put.steps.is_empty() {
        transaction.run(
            "INSERT INTO automation_run_steps (automation, run, revision, steps) VALUES ($1, $2, $3, $4)",
            params![automation, uuid(put.run.id), revision(put.expect) + 1, steps_text(&put.steps)?],
        );
    }
    Ok(())
}

async fn put_messages(transaction: &mut Transaction, automation: i64, put: &PutRun) -> Result<(), Fault> {
    if put.messages.is_empty() {
        return Ok(());
    }
    let (mut messages, mut nodes): (Vec<Uuid>, Vec<i64>) = (Vec::new(), Vec::new());
    for (message, node) in &put.messages {
        messages.push(uuid(*message));
        nodes.push(look_up::node(transaction, automation, node).await?);
    }
    transaction.run(
        "INSERT INTO automation_messages (message, automation, run, node)
         SELECT message, $1, $2, node FROM unnest($3::uuid[], $4::bigint[]) AS sent (message, node)",
        params![automation, uuid(put.run.id), messages, nodes],
    );
    Ok(())
}

pub(super) async fn get(reads: &Reads, of: Of, id: RunId) -> Result<Option<Stored<Run>>, StoreError> {
    const SQL: &str = concat!(
        run_rows!(),
        "WHERE r.automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed) AND r.id = $3"
    );
    reads.one(SQL, params![uuid(of.0), uuid(of.1), uuid(id)], |row| run(of, row)).await
}

/// Runs of an automation, by its number, in the order of their ids' list; without those whose contact is gone.
async fn those(on: &mut impl Queries, of: Of, automation: i64, ids: Vec<Uuid>) -> Result<Vec<Stored<Run>>, Fault> {
    const SQL: &str = concat!(
        run_rows!(),
        "JOIN unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, place) ON wanted.id = r.id
         WHERE r.automation = $1 AND r.id = ANY ($2) ORDER BY wanted.place"
    );
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    many(on, SQL, params![automation, ids], |row| run(of, row)).await
}

/// What a listing is narrowed to, by numbers.
struct Narrowed {
    automation: i64,
    node: Option<i64>,
    contact: Option<i64>,
    status: Option<i16>,
}

/// `None` where nothing is listed.
async fn narrowed(on: &mut impl Queries, of: Of, wanted: &RunFilter) -> Result<Option<Narrowed>, Fault> {
    const NODE: &str = "SELECT n FROM automation_nodes WHERE automation = $1 AND id = $2";
    let Some(automation) = automation_number(on, of.0, of.1).await? else { return Ok(None) };
    let node = match &wanted.node_id {
        None => None,
        Some(node) => match one(on, NODE, params![automation, node.clone()], |row| column(row, 0)).await? {
            None => return Ok(None),
            node => node,
        },
    };
    let contact = match wanted.contact_id {
        None => None,
        Some(contact) => match contact_number(on, of.0, contact).await? {
            None => return Ok(None),
            contact => contact,
        },
    };
    let status = wanted.status.map(|status| number(&RunStatus::ALL, &status)).map(i16::try_from);
    let status = status.transpose().map_err(|_| Fault::Malformed("a number is out of range"))?;
    Ok(Some(Narrowed { automation, node, contact, status }))
}

/// A page of runs. They are chosen by their rows alone; what else there is of them is read for the page.
pub(super) async fn list(
    reads: &Reads,
    of: Of,
    wanted: &RunFilter,
    page: &PageRequest,
) -> Result<Slice<Run>, StoreError> {
    // Looking ends with the page, or after so many rows.
    const MATCHING: &str = "SELECT id FROM (
            SELECT id, status, node FROM automation_runs WHERE automation = $1 AND id < $2 ORDER BY id DESC LIMIT $3
        ) AS scanned
        WHERE ($4::smallint IS NULL OR status = $4) AND ($5::bigint IS NULL OR node = $5) LIMIT $6";
    // The sort is of the runs of one contact, of which there are few.
    const OF_CONTACT: &str = "SELECT id FROM automation_runs WHERE contact = $3 AND automation = $1 AND id < $2
            AND ($4::smallint IS NULL OR status = $4) AND ($5::bigint IS NULL OR node = $5)
        ORDER BY id DESC LIMIT $6";
    const LAST_SCANNED: &str = "SELECT id FROM automation_runs WHERE automation = $1 AND id < $2
        ORDER BY id DESC OFFSET $3 LIMIT 1";
    let mut snapshot = reads.snapshot().await?;
    let Some(narrowed) = narrowed(&mut snapshot, of, wanted).await? else {
        snapshot.end().await?;
        return Ok(Slice { items: Vec::new(), next: None });
    };
    let sql = if narrowed.contact.is_some() { OF_CONTACT } else { MATCHING };
    let third = narrowed.contact.unwrap_or(MAX_SCANNED);
    let (n, room) = (narrowed.automation, sql_limit(page.limit).saturating_add(1));
    let bounds = params![n, below_id(page), third, narrowed.status, narrowed.node, room];
    let mut ids: Vec<Uuid> = many(&mut snapshot, sql, bounds, |row| column(row, 0)).await?;
    let next = if ids.len() > page.limit {
        ids.truncate(page.limit);
        ids.last().copied()
    } else if narrowed.contact.is_none() {
        let bounds = params![n, below_id(page), MAX_SCANNED - 1];
        one(&mut snapshot, LAST_SCANNED, bounds, |row| column(row, 0)).await?
    } else {
        None
    };
    let items = those(&mut snapshot, of, n, ids).await?;
    snapshot.end().await?;
    let items = items.into_iter().map(|stored| stored.record).collect();
    Ok(Slice { items, next: next.map(|id| StoreCursor::from_bytes(id.into_bytes())) })
}

pub(super) async fn steps(reads: &Reads, run: RunKey) -> Result<Vec<RunStep>, StoreError> {
    const SQL: &str = "SELECT steps FROM automation_run_steps
        WHERE automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed) AND run = $3
        ORDER BY revision";
    let key = params![uuid(run.workspace_id), uuid(run.automation_id), uuid(run.run_id)];
    let read = |row: &Row| read_steps(column(row, 0)?).ok_or(Fault::Malformed("a step cannot be read"));
    let commits = reads.many(SQL, key, read).await?;
    Ok(commits.into_iter().flatten().collect())
}

pub(super) async fn of_message(
    reads: &Reads,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<Option<RunKey>, StoreError> {
    const SQL: &str = "SELECT a.id, m.run FROM automation_messages m JOIN automations a ON a.n = m.automation
        WHERE m.message = $1 AND a.workspace = $2 AND NOT a.removed";
    let read = |row: &Row| Ok(RunKey { workspace_id: workspace, automation_id: id(row, 0)?, run_id: id(row, 1)? });
    reads.one(SQL, params![uuid(message), uuid(workspace)], read).await
}

pub(super) async fn due(
    reads: &Reads,
    of: Of,
    shard: u8,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Stored<Run>>, StoreError> {
    const DUE: &str = concat!(
        run_rows!(),
        "WHERE r.automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
             AND r.contact & 3 = $3 AND r.due_at <= $4 ORDER BY r.due_at, r.id LIMIT $5"
    );
    let bounds = params![uuid(of.0), uuid(of.1), i64::from(shard), now.as_millis(), sql_limit(limit)];
    reads.many(DUE, bounds, |row| run(of, row)).await
}

pub(super) async fn next_due(on: &mut impl Queries, automation: i64, shard: u8) -> Result<Option<Timestamp>, Fault> {
    const SQL: &str = "SELECT r.due_at FROM automation_runs r JOIN contacts c ON c.n = r.contact
        WHERE r.automation = $1 AND r.contact & 3 = $2 AND r.due_at IS NOT NULL ORDER BY r.due_at LIMIT 1";
    one(on, SQL, params![automation, i64::from(shard)], |row| time(row, 0)).await
}

pub(super) async fn open(reads: &Reads, of: Of, contacts: &[ContactId]) -> Result<Vec<Stored<Run>>, StoreError> {
    const OPEN: &str = concat!(
        run_rows!(),
        "JOIN unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place) ON wanted.id = c.id
         WHERE r.automation = (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
             AND r.contact = ANY (ARRAY(SELECT n FROM contacts
                 WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                     AND id = ANY ($3)))
             AND r.ended_at IS NULL ORDER BY wanted.place, r.id"
    );
    let contacts: Vec<Uuid> = contacts.iter().map(|contact| uuid(*contact)).collect();
    reads.many(OPEN, params![uuid(of.0), uuid(of.1), contacts], |row| run(of, row)).await
}
