//! References that open campaigns and active automations hold to lists, segments, templates and sending domains, which
//! cannot be removed meanwhile. A version of an automation with open runs holds what it names too, because those runs
//! finish on it.
//!
//! On PostgreSQL a transaction that adds a hold takes a shared advisory lock of the object, and one that removes the
//! object an exclusive lock, each before it reads. So of two at the same moment the later one sees the result of the
//! first.

use std::collections::BTreeSet;

use messaging_core::domain::campaign::Reference;
use messaging_core::ids::{AutomationId, CampaignId, WorkspaceId};
use messaging_core::ports::store::StoreError;

use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::id;
use crate::sql::{Params, Sql, Value, key, params, sql};

const LIST: i64 = 0;
const SEGMENT: i64 = 1;
const TEMPLATE: i64 = 2;
const DOMAIN: i64 = 3;

/// A campaign or an automation that needs an object, so that the object cannot be removed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder {
    Campaign(CampaignId),
    Automation(AutomationId),
}

impl Holder {
    /// The kind and the id, as stored.
    fn key(self) -> (i64, Value) {
        match self {
            Self::Campaign(id) => (0, key(id)),
            Self::Automation(id) => (1, key(id)),
        }
    }
}

/// The kind and the id of an object, as stored.
fn object_key(reference: Reference) -> (i64, Value) {
    match reference {
        Reference::List(id) => (LIST, key(id)),
        Reference::Segment(id) => (SEGMENT, key(id)),
        Reference::Template(id) => (TEMPLATE, key(id)),
        Reference::Domain(id) => (DOMAIN, key(id)),
    }
}

/// The rows `wanted (kind, id)` of two parameters: a list of kinds and one of ids.
macro_rules! wanted {
    (sqlite $kinds:literal, $ids:literal) => {
        concat!(
            "(SELECT kinds.value AS kind, unhex(ids.value) AS id FROM json_each(",
            $kinds,
            ") AS kinds JOIN json_each(",
            $ids,
            ") AS ids ON ids.key = kinds.key) AS wanted"
        )
    };
    (postgres $kinds:literal, $ids:literal) => {
        concat!("unnest(", $kinds, "::smallint[], ", $ids, "::uuid[]) AS wanted (kind, id)")
    };
}

/// Deletes the holds of a holder on objects that it needs no more.
macro_rules! release_unneeded {
    ($database:ident) => {
        concat!(
            "DELETE FROM holds WHERE workspace = $1 AND holder_kind = $2 AND holder = $3 AND NOT EXISTS (SELECT 1 FROM ",
            wanted!($database "$4", "$5"),
            " WHERE wanted.kind = holds.kind AND wanted.id = holds.id)"
        )
    };
}

/// Counts the wanted objects that are removed. One that the holder holds already cannot be, and is not looked up.
macro_rules! missing {
    ($database:ident) => {
        concat!(
            "SELECT count(*) FROM ",
            wanted!($database "$4", "$5"),
            " WHERE NOT EXISTS (SELECT 1 FROM holds WHERE workspace = $1 AND holds.kind = wanted.kind
                    AND holds.id = wanted.id AND holder_kind = $2 AND holder = $3)
                AND NOT CASE wanted.kind
                    WHEN 0 THEN EXISTS (SELECT 1 FROM lists WHERE lists.id = wanted.id AND NOT removed
                        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                    WHEN 1 THEN EXISTS (SELECT 1 FROM segments WHERE segments.id = wanted.id AND NOT removed
                        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                    WHEN 2 THEN EXISTS (SELECT 1 FROM templates
                        WHERE workspace = $1 AND templates.id = wanted.id AND removed_at IS NULL)
                    ELSE EXISTS (SELECT 1 FROM sending_domains
                        WHERE workspace = $1 AND sending_domains.id = wanted.id)
                END"
        )
    };
}

/// Replaces the objects that a holder holds with `wanted`. A conflict when one of them is removed.
pub(crate) fn replace_held(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    holder: Holder,
    wanted: &BTreeSet<Reference>,
) -> Result<(), Fault> {
    const LOCK: Sql = sql!(
        sqlite: "",
        postgres: concat!(
            "SELECT pg_advisory_xact_lock_shared(uuid_hash_extended(id, 7012 + kind)) FROM ",
            wanted!(postgres "$1", "$2")
        ),
    );
    const RELEASE: Sql = sql!(sqlite: release_unneeded!(sqlite), postgres: release_unneeded!(postgres));
    const MISSING: Sql = sql!(sqlite: missing!(sqlite), postgres: missing!(postgres));
    const HOLD: Sql = sql!(
        sqlite: concat!(
            "INSERT OR IGNORE INTO holds (workspace, holder_kind, holder, kind, id) SELECT $1, $2, $3, kind, id FROM ",
            wanted!(sqlite "$4", "$5")
        ),
        postgres: concat!(
            "INSERT INTO holds (workspace, holder_kind, holder, kind, id) SELECT $1, $2, $3, kind, id FROM ",
            wanted!(postgres "$4", "$5"),
            " ON CONFLICT DO NOTHING"
        ),
    );
    let (holder_kind, holder) = holder.key();
    let (kinds, ids): (Vec<i64>, Vec<Value>) = wanted.iter().copied().map(object_key).unzip();
    let (kinds, ids) = (Value::from(kinds), Value::List(ids));
    let all = || -> Params { vec![key(workspace), holder_kind.into(), holder.clone(), kinds.clone(), ids.clone()] };
    if wanted.is_empty() {
        return on.run(RELEASE, all());
    }
    on.run(LOCK, vec![kinds.clone(), ids.clone()])?;
    on.run(RELEASE, all())?;
    on.expect(0, MISSING, all())?;
    on.run(HOLD, all())
}

/// Deletes all holds of a holder.
pub(crate) fn release_all(on: &mut dyn Statements, workspace: WorkspaceId, holder: Holder) -> Result<(), Fault> {
    let (kind, holder) = holder.key();
    on.run(
        sql!("DELETE FROM holds WHERE workspace = $1 AND holder_kind = $2 AND holder = $3"),
        params![key(workspace), kind, holder],
    )
}

/// The automations with open runs on a version whose design names an object.
macro_rules! with_open_runs {
    ($workspace:literal, $text:literal) => {
        concat!(
            "SELECT a.id AS holder FROM automations a WHERE a.workspace = ",
            $workspace,
            " AND NOT a.removed AND EXISTS (
                SELECT 1 FROM automation_versions v WHERE v.automation = a.n AND v.doc LIKE '%' || ",
            $text,
            " || '%' AND EXISTS (
                    SELECT 1 FROM automation_runs r
                    WHERE r.automation = v.automation AND r.version = v.version AND r.status IN (0, 1)))"
        )
    };
}

/// A conflict while a campaign or an automation holds the object.
pub(crate) fn expect_unused(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    reference: Reference,
) -> Result<(), Fault> {
    // Excludes the shared lock of `replace_held`. The next statement sees what was committed before the lock was taken.
    const LOCK: Sql = sql!(
        sqlite: "",
        postgres: "SELECT pg_advisory_xact_lock(uuid_hash_extended($1, 7012 + $2::smallint))",
    );
    const HOLDERS: Sql = sql!(
        "SELECT count(*) FROM (
             SELECT 1 FROM holds WHERE workspace = $1 AND kind = $2 AND id = $3 LIMIT 1) AS held"
    );
    const OPEN_RUNS: Sql = sql!(concat!("SELECT count(*) FROM (", with_open_runs!("$1", "$2"), " LIMIT 1) AS held"));
    let (kind, id) = object_key(reference);
    on.run(LOCK, params![id.clone(), kind])?;
    on.expect(0, HOLDERS, params![key(workspace), kind, id])?;
    on.expect(0, OPEN_RUNS, params![key(workspace), reference.id_text()])
}

/// Campaigns that hold an object, at most `limit`, ordered by id.
pub(crate) async fn campaigns(
    database: &impl Database,
    workspace: WorkspaceId,
    reference: Reference,
    limit: usize,
) -> Result<Vec<CampaignId>, StoreError> {
    const SQL: Sql = sql!(
        "SELECT holder FROM holds
         WHERE workspace = $1 AND kind = $2 AND id = $3 AND holder_kind = 0 ORDER BY holder LIMIT $4"
    );
    let (kind, held) = object_key(reference);
    let bounds = params![key(workspace), kind, held, sql_limit(limit)];
    database.many(Query::new(SQL, bounds, |row| id(row, 0))).await
}

/// Automations that hold an object, at most `limit`, ordered by id.
pub(crate) async fn automations(
    database: &impl Database,
    workspace: WorkspaceId,
    reference: Reference,
    limit: usize,
) -> Result<Vec<AutomationId>, StoreError> {
    const SQL: Sql = sql!(concat!(
        "SELECT holder FROM holds WHERE workspace = $1 AND kind = $2 AND id = $3 AND holder_kind = 1 UNION ",
        with_open_runs!("$1", "$4"),
        " ORDER BY holder LIMIT $5"
    ));
    let (kind, held) = object_key(reference);
    let bounds = params![key(workspace), kind, held, reference.id_text(), sql_limit(limit)];
    database.many(Query::new(SQL, bounds, |row| id(row, 0))).await
}
