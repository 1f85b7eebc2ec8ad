//! Comparison of stored counters with the rows: each is one read transaction on a connection of its own.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::domain::analytics::tally::{Counts, Row, of_event, tally};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::{EngagementFlags, Skip};
use messaging_core::domain::message::{EventKind, MessageContent, MessageStatus};
use messaging_core::ids::{AutomationId, CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::verification::{MessageOfJob, PlacedContent, Verified};
use messaging_core::ports::store::{StoreCursor, StoreError};
use rusqlite::{CachedStatement, Connection, params};

use super::Sqlite;
use super::fault::Fault;
use super::query::many;
use crate::comparing::{CountedIn, Recount};
use crate::database::at_once;
use crate::pages::{numbered_place, place_number, sql_limit};
use crate::row::{id, maybe_id, numbered};
use crate::tables::verification::{Verifier, message_jobs, workspace_of};

#[async_trait]
impl Verifier for Sqlite {
    async fn verify_rows_of(&self, workspace: WorkspaceId) -> Result<Verified, StoreError> {
        self.readers.read_at_length(move |mut connection| at_once(workspace_of(&mut connection, workspace))).await
    }

    async fn verify_rows_of_jobs(&self, kind: &'static str, message_of: MessageOfJob) -> Result<Verified, StoreError> {
        self.readers
            .read_at_length(move |mut connection| at_once(message_jobs(&mut connection, kind, message_of)))
            .await
    }

    async fn contents_behind(
        &self,
        after: Option<StoreCursor>,
        limit: usize,
    ) -> Result<Vec<PlacedContent>, StoreError> {
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

/// Counts the rows of a workspace's messages, each of which is read once. Memory holds one sum for each variant, link
/// and channel.
pub(super) fn recount(connection: &Connection, workspace: WorkspaceId) -> Result<Recount, Fault> {
    const MESSAGES: &str = "SELECT id, status, channel, campaign, variant, automation, seen, skip, links FROM messages
        NOT INDEXED WHERE workspace = ?1 AND is_test IS NULL";
    const VISITS: &str = "SELECT kind, meta ->> '$.machine' IS 1, count(*) FROM message_events
        WHERE workspace = ?1 AND message = ?2 AND kind IN (6, 7) GROUP BY 1, 2";
    let mut recount = Recount::default();
    let mut visits = connection.prepare_cached(VISITS)?;
    let mut statement = connection.prepare_cached(MESSAGES)?;
    let mut rows = statement.query([workspace.to_bytes()])?;
    while let Some(row) = rows.next()? {
        let seen = EngagementFlags::from_bits(row.get(6)?);
        let skip: Option<i64> = row.get(7)?;
        let status = numbered(&MessageStatus::ALL, row.get(1)?)?;
        let skip = skip.map(|skip| numbered(&Skip::ALL, skip)).transpose()?;
        let mut found = tally(&Row { status, seen, skip, sent_at: None, delivered_at: None });
        let visits_show = [EngagementFlags::OPENED, EngagementFlags::CLICKED, EngagementFlags::MACHINE_OPENED];
        if visits_show.into_iter().any(|one| seen.has(one)) {
            found += visited(&mut visits, workspace, row.get(0)?)?;
        }
        let campaign: Option<CampaignId> = maybe_id(row, 3)?;
        let variant = row.get::<_, Option<u8>>(4)?.unwrap_or_default();
        let counted_in = CountedIn {
            channel: numbered(&Channel::ALL, row.get(2)?)?,
            campaign: campaign.map(|campaign| (campaign, variant)),
            is_automatic: maybe_id::<AutomationId>(row, 5)?.is_some(),
        };
        recount.add(counted_in, found);
        let Some(campaign) = campaign else { continue };
        recount.add_seen(campaign, seen, 1);
        let links: i64 = row.get(8)?;
        for link in (0..64).filter(|link| links >> link & 1 == 1) {
            recount.add_clicked(campaign, variant, link, 1);
        }
    }
    Ok(recount)
}

/// Number of times that a message was opened and its links followed.
fn visited(statement: &mut CachedStatement<'_>, workspace: WorkspaceId, message: [u8; 16]) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    let mut rows = statement.query(params![workspace.to_bytes(), message])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(2)?;
        let one = of_event(numbered(&EventKind::ALL, row.get(0)?)?, row.get(1)?);
        counts += one.iter().map(|(counter, _)| (counter, number)).collect();
    }
    Ok(counts)
}
