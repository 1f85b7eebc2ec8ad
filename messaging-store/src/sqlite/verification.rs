//! Comparing what is kept with the rows.
//!
//! Each comparison is one read transaction on a connection of its own, so that it is of one moment whatever is written
//! meanwhile, and takes as long as it takes.

mod automations;
mod jobs;
mod messages;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::message::MessageContent;
use messaging_core::ids::{Id, ListId, SegmentId, WorkspaceId};
use messaging_core::ports::store::verification::{MessageOfJob, PlacedContent, Verified};
use messaging_core::ports::store::{StoreCursor, StoreError, Verification};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Fault;
use super::numbers::{COUNT_BITS, workspace_number};
use super::query::{many, one};
use super::row::{id, numbered_place, place_number, sql_limit};
use crate::comparing::compare_events;

#[async_trait]
impl Verification for SqliteStore {
    async fn workspace_after(&self, after: Option<WorkspaceId>) -> Result<Option<WorkspaceId>, StoreError> {
        const SQL: &str = "SELECT id FROM workspaces WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT 1";
        self.readers
            .point_read(move |connection| one(connection, SQL, [after.map(Id::to_bytes)], |row| id(row, 0)))
            .await
    }

    async fn verify_workspace(&self, workspace: WorkspaceId) -> Result<Verified, StoreError> {
        self.readers
            .read_at_length(move |connection| {
                let mut verified = Verified::default();
                if let Some(number) = workspace_number(connection, workspace)? {
                    contacts(connection, workspace, number, &mut verified)?;
                    product_events(connection, number, &mut verified)?;
                }
                messages::verify(connection, workspace, &mut verified)?;
                automations::verify(connection, workspace, &mut verified)?;
                Ok(verified)
            })
            .await
    }

    async fn verify_message_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError> {
        self.readers.read_at_length(move |connection| jobs::verify(connection, kind, message_of)).await
    }

    async fn contents_after(&self, after: Option<StoreCursor>, limit: usize) -> Result<Vec<PlacedContent>, StoreError> {
        const SQL: &str =
            "SELECT n, workspace, message, request FROM message_contents WHERE n > ?1 ORDER BY n LIMIT ?2";
        let after = after.map_or(0, place_number);
        self.readers
            .read(move |connection| {
                many(connection, SQL, params![after, sql_limit(limit)], |row| {
                    let request = Bytes::from(row.get::<_, Vec<u8>>(3)?);
                    Ok(PlacedContent {
                        place: numbered_place(row.get(0)?),
                        workspace_id: id(row, 1)?,
                        message_id: id(row, 2)?,
                        content: MessageContent { request },
                    })
                })
            })
            .await
    }
}

/// Contacts of the workspace, and members of its lists and segments.
fn contacts(
    connection: &Connection,
    workspace: WorkspaceId,
    number: i64,
    verified: &mut Verified,
) -> Result<(), Fault> {
    const CONTACTS: &str = "SELECT contacts, (SELECT count(*) FROM contacts c WHERE c.n BETWEEN ?2 AND ?3)
        FROM workspace_numbers WHERE number = ?1";
    const LISTS: &str = "SELECT id, contacts, (SELECT count(*) FROM list_members m WHERE m.list = lists.n)
        FROM lists WHERE workspace_number = ?1 AND removed = 0";
    const SEGMENTS: &str = "SELECT id, members, (SELECT count(*) FROM segment_members m WHERE m.segment = segments.n)
        FROM segments WHERE workspace_number = ?1 AND removed = 0";
    let range = range(number);
    let counted = one(connection, CONTACTS, params![number, range.0, range.1], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let Some((stored, counted)) = counted {
        verified.compare(|| format!("{workspace}: contacts"), stored, counted);
    }
    for (list, stored, counted) in
        many(connection, LISTS, [number], |row| Ok((id::<ListId>(row, 0)?, row.get(1)?, row.get(2)?)))?
    {
        verified.compare(|| format!("{list}: contacts"), stored, counted);
    }
    for (segment, stored, counted) in
        many(connection, SEGMENTS, [number], |row| Ok((id::<SegmentId>(row, 0)?, row.get(1)?, row.get(2)?)))?
    {
        verified.compare(|| format!("{segment}: contacts"), stored, counted);
    }
    Ok(())
}

/// Product events by name and quarter of an hour.
fn product_events(connection: &Connection, number: i64, verified: &mut Verified) -> Result<(), Fault> {
    const NAMES: &str = "SELECT n, name FROM event_names WHERE workspace_number = ?1";
    const KEPT: &str = "SELECT name, quarter, events FROM product_event_activity
        WHERE name IN (SELECT n FROM event_names WHERE workspace_number = ?1)";
    // Divided downwards, also before 1970.
    const ROWS: &str = "SELECT name, (at - (at < 0) * 899999) / 900000 AS quarter, count(*) FROM product_events
        WHERE contact BETWEEN ?1 AND ?2 GROUP BY name, quarter";
    let names: BTreeMap<i64, String> =
        many(connection, NAMES, [number], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect();
    let range = range(number);
    let counted =
        many(connection, ROWS, params![range.0, range.1], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    let kept = many(connection, KEPT, [number], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    compare_events(&names, kept, counted, verified);
    Ok(())
}

/// The numbers that contacts of a workspace have.
const fn range(workspace_number: i64) -> (i64, i64) {
    let first = workspace_number << COUNT_BITS;
    (first, first | ((1 << COUNT_BITS) - 1))
}
