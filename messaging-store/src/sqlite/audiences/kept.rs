//! Sets of contacts that were frozen.

use messaging_core::changes::AudienceRow;
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{AudienceSet, place_of};
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use rusqlite::{Connection, Row, params};

use super::super::fault::Fault;
use super::super::numbers::{campaign_number, contact_number};
use super::super::query::{many, one};
use super::super::row::sql_limit;
use super::left_out;
use crate::audience_rows::{set_key, set_of_key};

fn bits(row: &Row<'_>, column: usize) -> Result<Bits, Fault> {
    const MALFORMED: Fault = Fault::Malformed("a set of contacts cannot be read");
    Bits::decode(row.get_ref(column)?.as_blob().map_err(|_| MALFORMED)?).map_err(|_| MALFORMED)
}

pub(in super::super) fn put(connection: &Connection, row: &AudienceRow) -> Result<(), Fault> {
    let campaign = campaign_number(connection, row.workspace_id, row.campaign_id)?.ok_or(Fault::Conflict)?;
    let (kind, due_at) = set_key(row.set);
    let piece = row.piece.cast_signed();
    if row.bits.is_empty() {
        let sql = "DELETE FROM campaign_audience WHERE campaign = ?1 AND kind = ?2 AND due_at = ?3 AND piece = ?4";
        connection.prepare_cached(sql)?.execute([campaign, kind, due_at, piece])?;
    } else {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO campaign_audience (campaign, kind, due_at, piece, places)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![campaign, kind, due_at, piece, row.bits.encode()])?;
    }
    Ok(())
}

/// Lets go up to `limit` rows of a campaign that was removed, in steps of a few megabytes; answers how many went.
pub(in super::super) fn forget_campaign(connection: &Connection, campaign: i64, limit: usize) -> Result<usize, Fault> {
    let mut forgotten = 0;
    for (sql, most) in [
        (
            "DELETE FROM campaign_audience WHERE (campaign, kind, due_at, piece) IN
                 (SELECT campaign, kind, due_at, piece FROM campaign_audience WHERE campaign = ?1 LIMIT ?2)",
            200,
        ),
        (
            "DELETE FROM campaign_addresses WHERE (campaign, n) IN
                 (SELECT campaign, n FROM campaign_addresses WHERE campaign = ?1 LIMIT ?2)",
            4,
        ),
    ] {
        let room = sql_limit(limit.saturating_sub(forgotten).min(most));
        forgotten += connection.prepare_cached(sql)?.execute([campaign, room])?;
    }
    let room = limit.saturating_sub(forgotten).min(left_out::SLICE);
    Ok(forgotten + left_out::forget_some(connection, campaign, room)?)
}

pub(super) fn rows(
    connection: &Connection,
    workspace_id: WorkspaceId,
    campaign_id: CampaignId,
    set: AudienceSet,
    from: u64,
    limit: usize,
) -> Result<Vec<AudienceRow>, Fault> {
    const SQL: &str = "SELECT piece, places FROM campaign_audience
        WHERE campaign = ?1 AND kind = ?2 AND due_at = ?3 AND piece >= ?4 ORDER BY piece LIMIT ?5";
    let connection = &*connection.unchecked_transaction()?;
    let Some(campaign) = campaign_number(connection, workspace_id, campaign_id)? else { return Ok(Vec::new()) };
    let (kind, due_at) = set_key(set);
    // Beyond all pieces there is none.
    let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
    many(connection, SQL, [campaign, kind, due_at, from, sql_limit(limit)], |row| {
        let piece = row.get::<_, i64>(0)?.cast_unsigned();
        Ok(AudienceRow { workspace_id, campaign_id, piece, set, bits: bits(row, 1)? })
    })
}

pub(super) fn sets_of(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    contact: ContactId,
) -> Result<Vec<AudienceSet>, Fault> {
    // One step for each set of the campaign: a step over all its rows would read the whole audience.
    const NEXT: &str = "SELECT kind, due_at FROM campaign_audience
        WHERE campaign = ?1 AND (kind, due_at) > (?2, ?3) ORDER BY kind, due_at LIMIT 1";
    const PLACES: &str =
        "SELECT places FROM campaign_audience WHERE campaign = ?1 AND kind = ?2 AND due_at = ?3 AND piece = ?4";
    let connection = &*connection.unchecked_transaction()?;
    let campaign = campaign_number(connection, workspace, campaign)?;
    let contact = contact_number(connection, workspace, contact)?;
    let (Some(campaign), Some(contact)) = (campaign, contact) else { return Ok(Vec::new()) };
    let (piece, place) = place_of(contact.cast_unsigned());
    let mut sets = Vec::new();
    let mut last = (-1, 0);
    while let Some(next) =
        one(connection, NEXT, [campaign, last.0, last.1], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?
    {
        let (kind, due_at) = next;
        let row_key = [campaign, kind, due_at, piece.cast_signed()];
        if one(connection, PLACES, row_key, |row| Ok(bits(row, 0)?.contains(place)))? == Some(true) {
            sets.push(set_of_key(next).ok_or(Fault::Malformed("a number stands for nothing"))?);
        }
        last = next;
    }
    Ok(sets)
}
