//! Comparing what is kept with the rows.
//!
//! Each comparison is one snapshot, so that it is of one moment whatever is written meanwhile, and takes as long as it
//! takes. Rows are counted by the database.

mod automations;
mod jobs;
mod messages;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::message::MessageContent;
use messaging_core::ids::{Id as _, ListId, MessageId, SegmentId, WorkspaceId};
use messaging_core::ports::store::verification::{MessageOfJob, PlacedContent, Verified};
use messaging_core::ports::store::{StoreCursor, StoreError, Verification};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Fault;
use super::numbers::{COUNT_BITS, workspace_number};
use super::query::{Queries, many, one, params};
use super::reads::Snapshot;
use super::row::{get, id, small, sql_limit, uuid};
use crate::comparing::compare_events;

#[async_trait]
impl Verification for PostgresStore {
    async fn workspace_after(&self, after: Option<WorkspaceId>) -> Result<Option<WorkspaceId>, StoreError> {
        const SQL: &str = "SELECT id FROM workspaces WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT 1";
        self.reads.one(SQL, params![after.map(uuid)], |row| id(row, 0)).await
    }

    async fn verify_workspace(&self, workspace: WorkspaceId) -> Result<Verified, StoreError> {
        let mut snapshot = self.reads.long_snapshot().await?;
        let verified = verify(&mut snapshot, workspace).await?;
        snapshot.end().await?;
        Ok(verified)
    }

    async fn verify_message_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError> {
        let mut snapshot = self.reads.long_snapshot().await?;
        let verified = jobs::verify(&mut snapshot, kind, message_of).await?;
        snapshot.end().await?;
        Ok(verified)
    }

    /// Ids of messages begin with the time of their acceptance.
    async fn contents_after(&self, after: Option<StoreCursor>, limit: usize) -> Result<Vec<PlacedContent>, StoreError> {
        const SQL: &str = "SELECT message, workspace, request FROM message_contents
            WHERE message > $1 ORDER BY message, workspace LIMIT $2";
        let after = after.map_or(Uuid::nil(), |after| Uuid::from_bytes(after.to_bytes()));
        self.reads
            .many(SQL, params![after, sql_limit(limit)], |row| {
                let message_id: MessageId = id(row, 0)?;
                Ok(PlacedContent {
                    place: StoreCursor::from_bytes(message_id.to_bytes()),
                    workspace_id: id(row, 1)?,
                    message_id,
                    content: MessageContent { request: Bytes::from(get::<Vec<u8>>(row, 2)?) },
                })
            })
            .await
    }
}

async fn verify(on: &mut Snapshot, workspace: WorkspaceId) -> Result<Verified, Fault> {
    let mut verified = Verified::default();
    if let Some(number) = workspace_number(on, workspace).await? {
        contacts(on, workspace, number, &mut verified).await?;
        product_events(on, number, &mut verified).await?;
    }
    messages::verify(on, workspace, &mut verified).await?;
    automations::verify(on, workspace, &mut verified).await?;
    Ok(verified)
}

/// Contacts of the workspace, and members of its lists and segments.
async fn contacts(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    number: i64,
    verified: &mut Verified,
) -> Result<(), Fault> {
    const CONTACTS: &str = "SELECT
        (SELECT coalesce(sum(contacts), 0)::bigint FROM contact_counts WHERE workspace_number = $1),
        (SELECT count(*) FROM contacts WHERE n BETWEEN $2 AND $3)";
    const LISTS: &str = "SELECT id,
            (SELECT coalesce(sum(c.members), 0)::bigint FROM list_counts c WHERE c.list = lists.n),
            (SELECT count(*) FROM list_members m WHERE m.list = lists.n)
        FROM lists WHERE workspace_number = $1 AND NOT removed ORDER BY n";
    const SEGMENTS: &str = "SELECT id,
            (SELECT coalesce(sum(s.members), 0)::bigint FROM segment_sizes s WHERE s.segment = segments.n),
            (SELECT count(*) FROM segment_members m WHERE m.segment = segments.n)
        FROM segments WHERE workspace_number = $1 AND NOT removed ORDER BY n";
    let (first, last) = range(number);
    let counted = one(on, CONTACTS, params![number, first, last], |row| Ok((get(row, 0)?, get(row, 1)?))).await?;
    if let Some((stored, counted)) = counted {
        verified.compare(|| format!("{workspace}: contacts"), stored, counted);
    }
    let lists = many(on, LISTS, params![number], |row| Ok((id::<ListId>(row, 0)?, get(row, 1)?, get(row, 2)?))).await?;
    for (list, stored, counted) in lists {
        verified.compare(|| format!("{list}: contacts"), stored, counted);
    }
    let segments =
        many(on, SEGMENTS, params![number], |row| Ok((id::<SegmentId>(row, 0)?, get(row, 1)?, get(row, 2)?))).await?;
    for (segment, stored, counted) in segments {
        verified.compare(|| format!("{segment}: contacts"), stored, counted);
    }
    Ok(())
}

/// Product events by name and quarter of an hour.
async fn product_events(on: &mut impl Queries, number: i64, verified: &mut Verified) -> Result<(), Fault> {
    const NAMES: &str = "SELECT n, name FROM event_names WHERE workspace_number = $1";
    const KEPT: &str = "SELECT name, quarter::bigint, sum(events)::bigint FROM product_event_activity
        WHERE name IN (SELECT n FROM event_names WHERE workspace_number = $1) GROUP BY name, quarter";
    // Divided downwards, also before 1970.
    const ROWS: &str =
        "SELECT name, (at - CASE WHEN at < 0 THEN 899999 ELSE 0 END) / 900000 AS quarter, count(*) FROM product_events
        WHERE contact BETWEEN $1 AND $2 GROUP BY name, quarter";
    let numbers = |row: &Row| Ok(((get(row, 0)?, small(row, 1)?), get(row, 2)?));
    let names: BTreeMap<i64, String> =
        many(on, NAMES, params![number], |row| Ok((get(row, 0)?, get(row, 1)?))).await?.into_iter().collect();
    let (first, last) = range(number);
    let counted = many(on, ROWS, params![first, last], numbers).await?;
    let kept = many(on, KEPT, params![number], numbers).await?;
    compare_events(&names, kept, counted, verified);
    Ok(())
}

/// The numbers that contacts of a workspace have.
const fn range(workspace_number: i64) -> (i64, i64) {
    let first = workspace_number << COUNT_BITS;
    (first, first | ((1 << COUNT_BITS) - 1))
}
