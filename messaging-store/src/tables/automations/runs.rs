//! Runs, their steps, and the messages that they sent.

use messaging_core::changes::{Expect, PutRun, RunKey};
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::ids::{ContactId, MessageId, RunId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, RunFilter, Slice, StoreCursor, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::keys::{Of, automation, contact, key_of};
use crate::automation_rows::{
    RunPosition, are_untold, entry_event, read_entry_event, read_steps, steps_text, untold_steps,
};
use crate::counter_deltas::{AutomationCounter, CounterDeltas};
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::{below, number, sql_limit};
use crate::row::{Row, document, get as column, id as id_of, maybe_time, numbered, or_empty, time};
use crate::sql::{Sql, Value, key, params, sql};

/// Maximum number of rows that one call of a listing reads.
const MAX_SCANNED: usize = 20_000;

/// Selects the columns that [`run`] reads, of runs `r` and their contacts `c`.
macro_rules! select {
    ($from:literal) => {
        concat!(
            "SELECT r.revision, r.id, r.version, c.id, r.status, node.id, r.due_at, r.entered_at, r.arrived, r.ended_at,
                 r.exit_reason, r.steps, r.depth, i.event, r.entry_event, i.key, r.held
             FROM ",
            $from,
            " LEFT JOIN automation_nodes node ON node.n = r.node
             LEFT JOIN automation_run_inputs i ON i.automation = r.automation AND i.run = r.id "
        )
    };
}

fn run((workspace, automation): Of, row: &dyn Row) -> Result<Stored<Run>, Fault> {
    let entered_at = time(row, 7)?;
    let entry_event = match column::<Option<&[u8]>>(row, 14)? {
        Some(bytes) => Some(read_entry_event(bytes, entered_at).ok_or(Fault::Malformed("an id is of sixteen bytes"))?),
        None => None,
    };
    let record = Run {
        id: id_of(row, 1)?,
        workspace_id: workspace,
        automation_id: automation,
        version: column(row, 2)?,
        contact_id: id_of(row, 3)?,
        status: numbered(&RunStatus::ALL, column(row, 4)?)?,
        node_id: column(row, 5)?,
        due_at: maybe_time(row, 6)?,
        entered_at,
        arrived_at: Timestamp::from_millis(entered_at.as_millis().saturating_add(column(row, 8)?)),
        ended_at: maybe_time(row, 9)?,
        exit_reason: column(row, 10)?,
        steps: column(row, 11)?,
        depth: column(row, 12)?,
        event: or_empty(row, 13)?,
        entry_event,
        key: column(row, 15)?,
        held: column::<Option<&str>>(row, 16)?.map(serde_json::from_str).transpose()?,
    };
    Ok(Stored { record, revision: column(row, 0)? })
}

/// State of a run before a change, as far as the change depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PriorRun {
    pub(crate) position: RunPosition,
    /// True if the first steps of the run have no row, see [`are_untold`].
    pub(crate) is_untold: bool,
}

impl PriorRun {
    /// Reads the run `$2` of the automation `$1` at the revision `$3` and of the contact `$4`.
    pub(crate) const SQL: Sql = sql!(
        "SELECT status, node, untold FROM automation_runs
         WHERE automation = $1 AND id = $2 AND revision = $3 AND contact = $4"
    );

    /// Reads status, node and `is_untold` from three columns, the first at `at`.
    pub(crate) fn read(row: &dyn Row, at: usize) -> Result<Self, Fault> {
        let position = RunPosition { status: numbered(&RunStatus::ALL, column(row, at)?)?, node: column(row, at + 1)? };
        Ok(Self { position, is_untold: column(row, at + 2)? })
    }
}

/// A change of a run with the numbers of the records it names.
#[derive(Debug)]
pub(crate) struct NumberedRun<'a> {
    pub(crate) put: &'a PutRun,
    pub(crate) automation: i64,
    pub(crate) contact: i64,
    /// State before the change; `None` for a run that begins.
    pub(crate) before: Option<PriorRun>,
    pub(crate) node: Option<i64>,
    /// Nodes that sent the messages of the run, in the order of `put.messages`.
    pub(crate) senders: Vec<i64>,
}

impl NumberedRun<'_> {
    /// Counts the run at its new position, and no longer at the former one.
    pub(crate) fn count(&self, deltas: &mut CounterDeltas) {
        let after = RunPosition { status: self.put.run.status, node: self.node };
        let before = self.before.map(|before| before.position);
        if before.is_none() {
            deltas.add_automation(AutomationCounter::Version(self.automation, self.put.run.version), 1);
        }
        if before != Some(after) {
            if let Some(before) = before {
                before.count(deltas, self.automation, -1);
            }
            after.count(deltas, self.automation, 1);
        }
    }
}

pub(crate) fn write(on: &mut dyn Statements, run: &NumberedRun<'_>) -> Result<(), Fault> {
    const TELL: Sql = sql!(concat!(
        "INSERT INTO automation_run_steps (automation, run, revision, steps) SELECT r.automation, r.id, 1, ",
        untold_steps!(),
        " FROM automation_runs r {CROSS} JOIN automation_nodes node ON node.n = r.node
         WHERE r.automation = $1 AND r.id = $2"
    ));
    let put = run.put;
    if run.before.is_some_and(|before| before.is_untold) {
        on.run_one(TELL, params![run.automation, key(put.run.id)])?;
    }
    let is_untold = run.before.is_none() && are_untold(&put.run, &put.steps);
    write_row(on, run, is_untold)?;
    if run.before.is_none() {
        write_inputs(on, run.automation, &put.run)?;
    }
    if !put.steps.is_empty() && !is_untold {
        write_steps(on, run.automation, put)?;
    }
    write_messages(on, run)
}

/// Revision before a change; 0 for a new record.
fn revision(expect: Expect) -> u32 {
    match expect {
        Expect::Absent => 0,
        Expect::Revision(revision) => revision,
    }
}

/// Writes the row of the run. On PostgreSQL the contact's row is locked against deletion until the commit; while a run
/// begins, no notes of the contact are written, so that later writers of notes see the run.
fn write_row(on: &mut dyn Statements, numbered: &NumberedRun<'_>, is_untold: bool) -> Result<(), Fault> {
    macro_rules! update {
        ($of_contact:literal) => {
            concat!(
                "UPDATE automation_runs SET revision = revision + 1, status = $4, steps = $5, arrived = $6, due_at = $7,
                     ended_at = $8, node = $9, held = $10, exit_reason = $11, untold = false ",
                $of_contact,
                " AND automation = $1 AND automation_runs.id = $2 AND revision = $12"
            )
        };
    }
    macro_rules! insert {
        ($values:literal) => {
            concat!(
                "INSERT INTO automation_runs (automation, id, contact, status, steps, arrived, due_at, ended_at, node, held,
                     exit_reason, version, revision, depth, entered_at, entry_event, untold) ",
                $values
            )
        };
    }
    const UPDATE: Sql = sql!(
        sqlite: update!("WHERE contact = $3"),
        postgres: update!("FROM (SELECT n FROM contacts WHERE n = $3 FOR KEY SHARE) c WHERE contact = c.n"),
    );
    const INSERT: Sql = sql!(
        sqlite: insert!("VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 1, $13, $14, $15, $16)"),
        postgres: insert!(
            "SELECT $1, $2, n, $4, $5, $6, $7, $8, $9, $10, $11, $12, 1, $13, $14, $15, $16
             FROM contacts WHERE n = $3 FOR SHARE"
        ),
    );
    let run = &numbered.put.run;
    let mut row = params![
        numbered.automation,
        key(run.id),
        numbered.contact,
        number(&RunStatus::ALL, &run.status),
        run.steps,
        run.arrived_at.as_millis().saturating_sub(run.entered_at.as_millis()),
        run.due_at,
        run.ended_at,
        numbered.node,
        run.held.as_ref().map(document).transpose()?,
        run.exit_reason.clone(),
    ];
    match numbered.put.expect {
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(UPDATE, row)
        }
        Expect::Absent => {
            row.extend(params![run.version, run.depth, run.entered_at, entry_event(run), is_untold]);
            on.run_one(INSERT, row)
        }
    }
}

fn write_inputs(on: &mut dyn Statements, automation: i64, run: &Run) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO automation_run_inputs (automation, run, event, key) VALUES ($1, $2, $3, $4)",
        postgres: "INSERT INTO automation_run_inputs (automation, run, event, key)
            SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[])",
    );
    if run.event.is_empty() && run.key.is_none() {
        return Ok(());
    }
    let event = if run.event.is_empty() { None } else { Some(document(&run.event)?) };
    on.gather(SQL, params![automation, key(run.id), event, run.key.clone()])
}

fn write_steps(on: &mut dyn Statements, automation: i64, put: &PutRun) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO automation_run_steps (automation, run, revision, steps) VALUES ($1, $2, $3, $4)",
        postgres: "INSERT INTO automation_run_steps (automation, run, revision, steps)
            SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[])",
    );
    on.gather(SQL, params![automation, key(put.run.id), revision(put.expect) + 1, steps_text(&put.steps)?])
}

fn write_messages(on: &mut dyn Statements, run: &NumberedRun<'_>) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO automation_messages (message, automation, run, node) VALUES ($1, $2, $3, $4)",
        postgres: "INSERT INTO automation_messages (message, automation, run, node)
            SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bigint[])",
    );
    for ((message, _), node) in run.put.messages.iter().zip(&run.senders) {
        on.gather(SQL, params![key(*message), run.automation, key(run.put.run.id), *node])?;
    }
    Ok(())
}

pub(super) async fn get(database: &impl Database, of: Of, id: RunId) -> Result<Option<Stored<Run>>, StoreError> {
    const SQL: Sql = sql!(concat!(
        select!("automation_runs r {CROSS} JOIN contacts c ON c.n = r.contact"),
        "WHERE r.automation = ",
        automation!(),
        " AND r.id = $3"
    ));
    let mut wanted = key_of(of);
    wanted.push(key(id));
    database.one(Query::new(SQL, wanted, move |row| run(of, row)).point()).await
}

/// Returns a page of runs. The search reads rows of `automation_runs` alone; further data is read for the page only.
pub(super) async fn list(
    database: &impl Database,
    of: Of,
    wanted: &RunFilter,
    page: &PageRequest,
) -> Result<Slice<Run>, StoreError> {
    macro_rules! is_wanted {
        () => {
            concat!(
                "(CAST ($5 AS bigint) IS NULL OR status = CAST ($5 AS bigint)) AND (CAST ($6 AS text) IS NULL
                     OR node = (SELECT n FROM automation_nodes WHERE automation = ",
                automation!(),
                " AND id = CAST ($6 AS text)))"
            )
        };
    }
    // The search ends with the page, or after a limited number of rows.
    const MATCHING: Sql = sql!(concat!(
        "SELECT id FROM (SELECT id, status, node FROM automation_runs WHERE automation = ",
        automation!(),
        " AND id < $3 ORDER BY id DESC LIMIT $4) AS scanned WHERE ",
        is_wanted!(),
        " LIMIT $7"
    ));
    // Sorts only the few runs of one contact.
    const OF_CONTACT: Sql = sql!(concat!(
        "SELECT id FROM automation_runs {INDEXED BY automation_runs_by_contact} WHERE contact = ",
        contact!("$4"),
        " AND automation = ",
        automation!(),
        " AND id < $3 AND ",
        is_wanted!(),
        " ORDER BY id DESC LIMIT $7"
    ));
    const LAST_SCANNED: Sql = sql!(concat!(
        "SELECT id FROM automation_runs WHERE automation = ",
        automation!(),
        " AND id < $3 ORDER BY id DESC LIMIT 1 OFFSET $4"
    ));
    let mut bounds = key_of(of);
    bounds.push(below(page).into());
    let mut rest = bounds.clone();
    rest.push(sql_limit(MAX_SCANNED - 1).into());
    bounds.extend(params![
        wanted.contact_id.map_or_else(|| sql_limit(MAX_SCANNED).into(), key),
        wanted.status.map(|status| number(&RunStatus::ALL, &status)),
        wanted.node_id.clone(),
        sql_limit(page.limit).saturating_add(1),
    ]);
    let sql = if wanted.contact_id.is_some() { OF_CONTACT } else { MATCHING };
    let id = |row: &dyn Row| column::<[u8; 16]>(row, 0);
    let mut ids = database.many(Query::new(sql, bounds, id)).await?;
    let next = if ids.len() > page.limit {
        ids.truncate(page.limit);
        ids.last().copied()
    } else if wanted.contact_id.is_none() {
        database.one(Query::new(LAST_SCANNED, rest, id)).await?
    } else {
        None
    };
    Ok(Slice { items: those(database, of, ids).await?, next: next.map(StoreCursor::from_bytes) })
}

/// Reads runs by their ids, the newest first, without those whose contact is deleted.
async fn those(database: &impl Database, of: Of, ids: Vec<[u8; 16]>) -> Result<Vec<Run>, StoreError> {
    macro_rules! select_those {
        ($among:literal) => {
            concat!(
                select!("automation_runs r {CROSS} JOIN contacts c ON c.n = r.contact"),
                "WHERE r.automation = ",
                automation!(),
                " AND r.id ",
                $among,
                " ORDER BY r.id DESC"
            )
        };
    }
    const SQL: Sql = sql!(
        sqlite: select_those!("IN (SELECT unhex(value) FROM json_each($3))"),
        postgres: select_those!("= ANY ($3)"),
    );
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut wanted = key_of(of);
    wanted.push(ids.into());
    database.many(Query::new(SQL, wanted, move |row| Ok(run(of, row)?.record))).await
}

pub(super) async fn steps(database: &impl Database, run: RunKey) -> Result<Vec<RunStep>, StoreError> {
    const SQL: Sql = sql!(concat!(
        "WITH a AS MATERIALIZED (SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed)
         SELECT s.steps, s.revision FROM a {CROSS} JOIN automation_run_steps s ON s.automation = a.n AND s.run = $3
         UNION ALL SELECT ",
        untold_steps!(),
        ", 1 FROM a {CROSS} JOIN automation_runs r ON r.automation = a.n AND r.id = $3
             {CROSS} JOIN automation_nodes node ON node.n = r.node WHERE r.untold
         ORDER BY 2"
    ));
    let key = params![key(run.workspace_id), key(run.automation_id), key(run.run_id)];
    let read = |row: &dyn Row| read_steps(column(row, 0)?).ok_or(Fault::Malformed("a step cannot be read"));
    Ok(database.many(Query::new(SQL, key, read)).await?.into_iter().flatten().collect())
}

pub(super) async fn of_message(
    database: &impl Database,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<Option<RunKey>, StoreError> {
    const SQL: Sql = sql!(
        "SELECT a.id, m.run FROM automation_messages m {CROSS} JOIN automations a ON a.n = m.automation
         WHERE m.message = $1 AND a.workspace = $2 AND NOT a.removed"
    );
    let query = Query::new(SQL, params![key(message), key(workspace)], move |row| {
        Ok(RunKey { workspace_id: workspace, automation_id: id_of(row, 0)?, run_id: id_of(row, 1)? })
    });
    database.one(query.point()).await
}

/// Returns due runs of a shard of the contacts, the longest due first, at most `limit`.
pub(super) async fn due(
    database: &impl Database,
    of: Of,
    shard: u8,
    (now, limit): (Timestamp, usize),
) -> Result<Vec<Stored<Run>>, StoreError> {
    const SQL: Sql = sql!(concat!(
        select!("automation_runs r {INDEXED BY automation_runs_due} {CROSS} JOIN contacts c ON c.n = r.contact"),
        "WHERE r.automation = ",
        automation!(),
        " AND r.contact & 3 = $3 AND r.due_at <= $4 ORDER BY r.due_at, r.id LIMIT $5"
    ));
    let mut bounds = key_of(of);
    bounds.extend(params![shard, now, sql_limit(limit)]);
    database.many(Query::new(SQL, bounds, move |row| run(of, row))).await
}

/// Returns the open runs of contacts, in the order of the given contacts.
pub(super) async fn open(
    database: &impl Database,
    of: Of,
    contacts: &[ContactId],
) -> Result<Vec<Stored<Run>>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: concat!(
            select!(
                "json_each($3) AS wanted
                 CROSS JOIN contacts c ON c.id = unhex(wanted.value)
                     AND c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
                 CROSS JOIN automation_runs r INDEXED BY automation_runs_by_contact ON r.contact = c.n"
            ),
            "WHERE r.automation = ",
            automation!(),
            " AND r.ended_at IS NULL ORDER BY wanted.key, r.id"
        ),
        postgres: concat!(
            select!(
                "automation_runs r JOIN contacts c ON c.n = r.contact
                 JOIN unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place) ON wanted.id = c.id"
            ),
            "WHERE r.automation = ",
            automation!(),
            " AND r.contact = ANY (ARRAY (SELECT n FROM contacts
                  WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = ANY ($3)))
              AND r.ended_at IS NULL ORDER BY wanted.place, r.id"
        ),
    );
    let mut wanted = key_of(of);
    wanted.push(Value::List(contacts.iter().copied().map(key).collect()));
    database.many(Query::new(SQL, wanted, move |row| run(of, row))).await
}
