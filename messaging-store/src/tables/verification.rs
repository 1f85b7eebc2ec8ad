//! Comparison of stored counters with the rows.
//!
//! Each comparison is of one moment, whatever is written meanwhile, and has no time limit. On PostgreSQL stored counts
//! are sums over shards.

mod automations;
mod jobs;
mod messages;

use std::collections::BTreeMap;

use async_trait::async_trait;
use messaging_core::ids::{ListId, SegmentId, WorkspaceId};
use messaging_core::ports::store::verification::{MessageOfJob, PlacedContent, Verified};
use messaging_core::ports::store::{StoreCursor, StoreError, Verification};

use crate::comparing::compare_events;
use crate::database::open_commit::{Answers, Snapshot};
use crate::database::{Database, Query, SqlStore};
use crate::fault::Fault;
use crate::row::{Row, get, id};
use crate::sql::{Sql, key, params, sql};

pub(crate) use self::jobs::verify as message_jobs;

/// Number of low bits in a contact's number that number the contacts within the workspace.
const COUNT_BITS: i64 = 40;

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait Verifier {
    /// Runs [`workspace_of`] on a snapshot.
    async fn verify_rows_of(&self, workspace: WorkspaceId) -> Result<Verified, StoreError>;

    /// Runs [`message_jobs`] on a snapshot.
    async fn verify_rows_of_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError>;

    /// See [`Verification::contents_after`].
    async fn contents_behind(&self, after: Option<StoreCursor>, limit: usize)
    -> Result<Vec<PlacedContent>, StoreError>;
}

#[async_trait]
impl<D: Database + Verifier> Verification for SqlStore<D> {
    async fn workspace_after(&self, after: Option<WorkspaceId>) -> Result<Option<WorkspaceId>, StoreError> {
        const FIRST: Sql = sql!("SELECT id FROM workspaces ORDER BY id LIMIT 1");
        const NEXT: Sql = sql!("SELECT id FROM workspaces WHERE id > $1 ORDER BY id LIMIT 1");
        let (sql, params) = after.map_or((FIRST, params![]), |after| (NEXT, params![key(after)]));
        self.one(Query::new(sql, params, |row| id(row, 0)).point()).await
    }

    async fn verify_workspace(&self, workspace: WorkspaceId) -> Result<Verified, StoreError> {
        self.verify_rows_of(workspace).await
    }

    async fn verify_message_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError> {
        self.verify_rows_of_jobs(kind, message_of).await
    }

    async fn contents_after(&self, after: Option<StoreCursor>, limit: usize) -> Result<Vec<PlacedContent>, StoreError> {
        self.contents_behind(after, limit).await
    }
}

/// Compares all counters of a workspace.
pub(crate) async fn workspace_of(on: &mut impl Snapshot, workspace: WorkspaceId) -> Result<Verified, Fault> {
    const NUMBER: Sql = sql!("SELECT number FROM workspace_numbers WHERE workspace = $1");
    let mut verified = Verified::default();
    if let Some(number) = on.one(Query::new(NUMBER, params![key(workspace)], |row| get(row, 0))).await? {
        contacts(on, workspace, number, &mut verified).await?;
        product_events(on, number, &mut verified).await?;
    }
    messages::verify(on, workspace, &mut verified).await?;
    automations::verify(on, workspace, &mut verified).await?;
    Ok(verified)
}

/// Compares the numbers of contacts of the workspace, and of members of its lists and segments.
async fn contacts(
    on: &mut impl Answers,
    workspace: WorkspaceId,
    number: i64,
    verified: &mut Verified,
) -> Result<(), Fault> {
    const CONTACTS: Sql = sql!(
        sqlite: "SELECT contacts, (SELECT count(*) FROM contacts c WHERE c.n BETWEEN $2 AND $3)
            FROM workspace_numbers WHERE number = $1",
        postgres: "SELECT
            (SELECT coalesce(sum(contacts), 0)::bigint FROM contact_counts WHERE workspace_number = $1),
            (SELECT count(*) FROM contacts WHERE n BETWEEN $2 AND $3)",
    );
    const LISTS: Sql = sql!(
        sqlite: "SELECT id, contacts, (SELECT count(*) FROM list_members m WHERE m.list = lists.n)
            FROM lists WHERE workspace_number = $1 AND NOT removed",
        postgres: "SELECT id,
                (SELECT coalesce(sum(c.members), 0)::bigint FROM list_counts c WHERE c.list = lists.n),
                (SELECT count(*) FROM list_members m WHERE m.list = lists.n)
            FROM lists WHERE workspace_number = $1 AND NOT removed ORDER BY n",
    );
    const SEGMENTS: Sql = sql!(
        sqlite: "SELECT id, members, (SELECT count(*) FROM segment_members m WHERE m.segment = segments.n)
            FROM segments WHERE workspace_number = $1 AND NOT removed",
        postgres: "SELECT id,
                (SELECT coalesce(sum(s.members), 0)::bigint FROM segment_sizes s WHERE s.segment = segments.n),
                (SELECT count(*) FROM segment_members m WHERE m.segment = segments.n)
            FROM segments WHERE workspace_number = $1 AND NOT removed ORDER BY n",
    );
    let (first, last) = range(number);
    let counted = Query::new(CONTACTS, params![number, first, last], |row| Ok((get(row, 0)?, get(row, 1)?)));
    if let Some((stored, counted)) = on.one(counted).await? {
        verified.compare(|| format!("{workspace}: contacts"), stored, counted);
    }
    let lists = Query::new(LISTS, params![number], |row| Ok((id::<ListId>(row, 0)?, get(row, 1)?, get(row, 2)?)));
    for (list, stored, counted) in on.many(lists).await? {
        verified.compare(|| format!("{list}: contacts"), stored, counted);
    }
    let segments =
        Query::new(SEGMENTS, params![number], |row| Ok((id::<SegmentId>(row, 0)?, get(row, 1)?, get(row, 2)?)));
    for (segment, stored, counted) in on.many(segments).await? {
        verified.compare(|| format!("{segment}: contacts"), stored, counted);
    }
    Ok(())
}

/// Compares product events by name and quarter of an hour.
async fn product_events(on: &mut impl Answers, number: i64, verified: &mut Verified) -> Result<(), Fault> {
    const NAMES: Sql = sql!("SELECT n, name FROM event_names WHERE workspace_number = $1");
    const KEPT: Sql = sql!(
        "SELECT name, quarter, CAST(sum(events) AS bigint) FROM product_event_activity
         WHERE name IN (SELECT n FROM event_names WHERE workspace_number = $1) GROUP BY name, quarter"
    );
    // Rounded down, also before 1970.
    const ROWS: Sql = sql!(
        "SELECT name, (at - CASE WHEN at < 0 THEN 899999 ELSE 0 END) / 900000 AS quarter, count(*) FROM product_events
         WHERE contact BETWEEN $1 AND $2 GROUP BY name, quarter"
    );
    let numbers = |row: &dyn Row| Ok(((get(row, 0)?, get(row, 1)?), get(row, 2)?));
    let names = Query::new(NAMES, params![number], |row| Ok((get(row, 0)?, get(row, 1)?)));
    let names: BTreeMap<i64, String> = on.many(names).await?.into_iter().collect();
    let (first, last) = range(number);
    let counted = on.many(Query::new(ROWS, params![first, last], numbers)).await?;
    let kept = on.many(Query::new(KEPT, params![number], numbers)).await?;
    compare_events(&names, kept, counted, verified);
    Ok(())
}

/// Range of the numbers of a workspace's contacts.
const fn range(workspace_number: i64) -> (i64, i64) {
    let first = workspace_number << COUNT_BITS;
    (first, first | ((1 << COUNT_BITS) - 1))
}
