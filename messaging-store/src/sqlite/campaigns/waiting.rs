//! Messages of campaigns that wait to be released.

use messaging_core::changes::{NewWaiting, WaitingKey};
use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::{Fault, expect_one};
use super::super::numbers::campaign_number;
use super::super::query::one;
use crate::row::time;
use crate::tables::messages::insert_row;

const INSERT: &str = "INSERT INTO campaign_waiting (campaign, track, due_at, message) VALUES (?1, ?2, ?3, ?4)";

pub(in super::super) fn insert(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    waiting: &[NewWaiting],
) -> Result<(), Fault> {
    let n = campaign_number(connection, workspace, campaign)?.ok_or(Fault::Conflict)?;
    let mut on = connection;
    let mut rows = connection.prepare_cached(INSERT)?;
    for new in waiting {
        insert_row(&mut on, &new.message)?;
        rows.execute(params![n, new.track, new.due_at.as_millis(), new.message.id.to_bytes()])?;
    }
    Ok(())
}

pub(in super::super) fn take(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    keys: &[WaitingKey],
) -> Result<(), Fault> {
    let n = campaign_number(connection, workspace, campaign)?.ok_or(Fault::Conflict)?;
    let mut delete = connection.prepare_cached(
        "DELETE FROM campaign_waiting WHERE campaign = ?1 AND track = ?2 AND due_at = ?3 AND message = ?4",
    )?;
    for key in keys {
        expect_one(delete.execute(params![n, key.track, key.due_at.as_millis(), key.message_id.to_bytes()])?)?;
    }
    Ok(())
}

pub(in super::super) fn put(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    key: WaitingKey,
) -> Result<(), Fault> {
    let n = campaign_number(connection, workspace, campaign)?.ok_or(Fault::Conflict)?;
    let row = params![n, key.track, key.due_at.as_millis(), key.message_id.to_bytes()];
    connection.prepare_cached(INSERT)?.execute(row)?;
    Ok(())
}

/// Looks up the first row of each track, instead of reading all that wait.
pub(super) fn tracks(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
) -> Result<Vec<(u8, Timestamp)>, Fault> {
    const NEXT: &str = "SELECT track, due_at FROM campaign_waiting WHERE campaign = ?1 AND track > ?2
        ORDER BY track, due_at LIMIT 1";
    // One transaction: all of one moment.
    let connection = connection.unchecked_transaction()?;
    let Some(n) = campaign_number(&connection, workspace, campaign)? else { return Ok(Vec::new()) };
    let (mut found, mut after) = (Vec::new(), -1);
    while let Some((track, due_at)) =
        one(&connection, NEXT, params![n, after], |row| Ok((row.get::<_, u8>(0)?, time(row, 1)?)))?
    {
        found.push((track, due_at));
        after = i64::from(track);
    }
    Ok(found)
}
