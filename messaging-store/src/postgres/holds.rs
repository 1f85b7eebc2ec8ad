//! What open campaigns and active automations hold: lists, segments, templates and sending domains that cannot be removed
//! meanwhile. So does whatever a version of an automation names that has open runs: they finish on it.
//!
//! Whoever begins to hold something locks it together with others, whoever removes it alone, each before it looks: of the
//! two that come at the same moment, the later one finds what the first has done.

use std::collections::BTreeSet;

use messaging_core::domain::campaign::Reference;
use messaging_core::ids::{AutomationId, CampaignId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use uuid::Uuid;

use super::query::params;
use super::reads::Reads;
use super::row::{id, sql_limit, uuid};
use super::transaction::Transaction;

const LIST: i16 = 0;
const SEGMENT: i16 = 1;
const TEMPLATE: i16 = 2;
const DOMAIN: i16 = 3;

/// Who holds something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder {
    Campaign(CampaignId),
    Automation(AutomationId),
}

impl Holder {
    /// The kind and the id, as stored.
    fn key(self) -> (i16, Uuid) {
        match self {
            Self::Campaign(id) => (0, uuid(id)),
            Self::Automation(id) => (1, uuid(id)),
        }
    }
}

/// The kind and the id of what is named, as stored.
fn key(reference: Reference) -> (i16, Uuid) {
    match reference {
        Reference::List(id) => (LIST, uuid(id)),
        Reference::Segment(id) => (SEGMENT, uuid(id)),
        Reference::Template(id) => (TEMPLATE, uuid(id)),
        Reference::Domain(id) => (DOMAIN, uuid(id)),
    }
}

/// The automations that have open runs on a version which names something.
macro_rules! by_runs_sql {
    ($workspace:literal, $text:literal) => {
        concat!(
            "SELECT a.id AS holder FROM automations a WHERE a.workspace = ",
            $workspace,
            " AND NOT a.removed AND EXISTS (
                SELECT FROM automation_versions v JOIN automation_runs r
                    ON r.automation = v.automation AND r.version = v.version AND r.status IN (0, 1)
                WHERE v.automation = a.n AND position(",
            $text,
            "::text IN v.doc) > 0)"
        )
    };
}

/// Holds what somebody needs from now on, and lets go what is needed no more. A conflict when something is to be held
/// that is gone; what is held already cannot be.
pub(super) fn follow(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    holder: Holder,
    wanted: &BTreeSet<Reference>,
) {
    const LOCK: &str = "SELECT pg_advisory_xact_lock_shared(uuid_hash_extended(id, 7012 + kind))
        FROM unnest($1::smallint[], $2::uuid[]) AS wanted (kind, id)";
    const LET_GO: &str = "DELETE FROM holds WHERE workspace = $1 AND holder_kind = $2 AND holder = $3
        AND NOT EXISTS (SELECT FROM unnest($4::smallint[], $5::uuid[]) AS wanted (kind, id)
            WHERE wanted.kind = holds.kind AND wanted.id = holds.id)";
    const EXPECT: &str = "SELECT expect_rows((
            SELECT count(*) FROM unnest($4::smallint[], $5::uuid[]) AS wanted (kind, id)
            WHERE EXISTS (SELECT FROM holds WHERE workspace = $1 AND holds.kind = wanted.kind AND holds.id = wanted.id
                    AND holder_kind = $2 AND holder = $3)
                OR CASE wanted.kind
                    WHEN 0 THEN EXISTS (SELECT FROM lists WHERE lists.id = wanted.id AND NOT removed
                        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                    WHEN 1 THEN EXISTS (SELECT FROM segments WHERE segments.id = wanted.id AND NOT removed
                        AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                    WHEN 2 THEN EXISTS (SELECT FROM templates
                        WHERE workspace = $1 AND templates.id = wanted.id AND removed_at IS NULL)
                    ELSE EXISTS (SELECT FROM sending_domains
                        WHERE workspace = $1 AND sending_domains.id = wanted.id)
                END
        ), cardinality($4)::bigint)";
    const HOLD: &str = "INSERT INTO holds (workspace, holder_kind, holder, kind, id)
        SELECT $1, $2, $3, kind, id FROM unnest($4::smallint[], $5::uuid[]) AS wanted (kind, id)
        ON CONFLICT DO NOTHING";
    let (holder_kind, holder) = holder.key();
    let (kinds, ids): (Vec<_>, Vec<_>) = wanted.iter().copied().map(key).unzip();
    let all = || params![uuid(workspace), holder_kind, holder, kinds.clone(), ids.clone()];
    if !wanted.is_empty() {
        transaction.run(LOCK, params![kinds.clone(), ids.clone()]);
    }
    transaction.run(LET_GO, all());
    if !wanted.is_empty() {
        transaction.run(EXPECT, all());
        transaction.run(HOLD, all());
    }
}

/// Lets go everything that somebody holds.
pub(super) fn let_go(transaction: &mut Transaction, workspace: WorkspaceId, holder: Holder) {
    let (kind, holder) = holder.key();
    let sql = "DELETE FROM holds WHERE workspace = $1 AND holder_kind = $2 AND holder = $3";
    transaction.run(sql, params![uuid(workspace), kind, holder]);
}

/// A conflict while somebody holds this.
pub(super) fn expect_unused(transaction: &mut Transaction, workspace: WorkspaceId, reference: Reference) {
    let (kind, id) = key(reference);
    // The lock is that of `follow`. The next statement sees what was committed before it was given.
    transaction.run("SELECT pg_advisory_xact_lock(uuid_hash_extended($1, 7012 + $2::smallint))", params![id, kind]);
    transaction.run(
        "SELECT expect_rows((SELECT count(*) FROM (
             SELECT FROM holds WHERE workspace = $1 AND kind = $2 AND id = $3 LIMIT 1) AS held), 0)",
        params![uuid(workspace), kind, id],
    );
    transaction.run(
        concat!("SELECT expect_rows((SELECT count(*) FROM (", by_runs_sql!("$1", "$2"), " LIMIT 1) AS held), 0)"),
        params![uuid(workspace), reference.id_text()],
    );
}

/// The campaigns that hold this.
pub(super) async fn campaigns(
    reads: &Reads,
    workspace: WorkspaceId,
    reference: Reference,
    limit: usize,
) -> Result<Vec<CampaignId>, StoreError> {
    const SQL: &str = "SELECT holder FROM holds
        WHERE workspace = $1 AND kind = $2 AND id = $3 AND holder_kind = 0 ORDER BY holder LIMIT $4";
    let (kind, reference) = key(reference);
    let bounds = params![uuid(workspace), kind, reference, sql_limit(limit)];
    reads.many(SQL, bounds, |row| id(row, 0)).await
}

/// The automations that hold this.
pub(super) async fn automations(
    reads: &Reads,
    workspace: WorkspaceId,
    reference: Reference,
    limit: usize,
) -> Result<Vec<AutomationId>, StoreError> {
    const SQL: &str = concat!(
        "SELECT holder FROM holds WHERE workspace = $1 AND kind = $2 AND id = $3 AND holder_kind = 1 UNION ",
        by_runs_sql!("$1", "$4"),
        " ORDER BY holder LIMIT $5"
    );
    let (kind, held) = key(reference);
    let bounds = params![uuid(workspace), kind, held, reference.id_text(), sql_limit(limit)];
    reads.many(SQL, bounds, |row| id(row, 0)).await
}
