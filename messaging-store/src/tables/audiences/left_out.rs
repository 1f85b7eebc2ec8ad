//! Addresses of recipients that are left out because other recipients of the campaign have them.
//!
//! They are few, and read when messages are created and attempted: a row for each piece that has some. Messages are
//! attempted after their campaign has been sent, so its rows are removed by a sweep, days later.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::audience::{address_digest, place_of};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::keys::{Of, campaign, expect_campaign, insert, key_of};
use crate::audience_rows::{left_out_bytes, left_out_entries};
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{get, record};
use crate::sql::{Sql, params, sql};

/// Time after a campaign was sent from which no message of it is attempted any more: the longest of them expire after
/// 72 hours.
const ATTEMPTED_FOR: Duration = Duration::from_hours(7 * 24);
/// Number of pieces removed in one step: some megabytes at most.
const SLICE: usize = 4;
/// Number of campaigns that one sweep examines.
const LOOKED_AT: usize = 1000;

pub(crate) fn put(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    campaign: CampaignId,
    piece: u64,
    entries: &[(u16, u64)],
) -> Result<(), Fault> {
    const DELETE: Sql =
        sql!(concat!("DELETE FROM campaign_left_out WHERE campaign = ", campaign!(), " AND piece = $3"));
    const PUT: Sql = insert!(
        "campaign_left_out (campaign, piece, entries)",
        "$3, $4",
        " ON CONFLICT (campaign, piece) DO UPDATE SET entries = excluded.entries"
    );
    let of = (workspace, campaign);
    let mut row = key_of(of);
    row.push(piece.cast_signed().into());
    if entries.is_empty() {
        expect_campaign(on, of)?;
        return on.run(DELETE, row);
    }
    row.push(left_out_bytes(entries).into());
    on.run_one(PUT, row)
}

pub(crate) fn forget(on: &mut dyn Statements, workspace: WorkspaceId, campaign: CampaignId) -> Result<(), Fault> {
    const SQL: Sql = sql!(concat!("DELETE FROM campaign_left_out WHERE campaign = ", campaign!()));
    on.run(SQL, key_of((workspace, campaign)))
}

/// Removes up to `limit` pieces of one campaign that was sent long ago; returns the number removed.
pub(crate) async fn forget_old(database: &impl Database, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
    const HELD: Sql = sql!(
        sqlite: "SELECT c.n, c.doc FROM (SELECT DISTINCT campaign FROM campaign_left_out) l
            CROSS JOIN campaigns c ON c.n = l.campaign WHERE NOT c.removed LIMIT $1",
        postgres: "SELECT c.n, c.doc FROM campaigns c
            WHERE NOT c.removed AND c.n IN (SELECT campaign FROM campaign_left_out) LIMIT $1",
    );
    const FORGET: Sql = sql!(
        sqlite: "DELETE FROM campaign_left_out WHERE (campaign, piece) IN
            (SELECT campaign, piece FROM campaign_left_out WHERE campaign = $1 LIMIT $2)",
        postgres: "DELETE FROM campaign_left_out WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM campaign_left_out WHERE campaign = $1 ORDER BY piece LIMIT $2 FOR UPDATE SKIP LOCKED))",
    );
    if limit == 0 {
        return Ok(0);
    }
    let held = Query::new(HELD, params![sql_limit(LOOKED_AT)], |row| {
        let campaign: Campaign = record(row, 1)?;
        Ok((get::<i64>(row, 0)?, campaign.completed_at))
    });
    let is_old = |completed_at: Timestamp| completed_at + ATTEMPTED_FOR <= now;
    let old = database.many(held).await?.into_iter().find(|(_, completed_at)| completed_at.is_some_and(is_old));
    let Some((campaign, _)) = old else { return Ok(0) };
    let mut forgotten = 0;
    while forgotten < limit as u64 {
        let slice = SLICE.min(limit - usize::try_from(forgotten).unwrap_or(limit));
        let gone = database.sweep(FORGET, params![campaign, sql_limit(slice)]).await?;
        forgotten += gone;
        if gone < slice as u64 {
            break;
        }
    }
    Ok(forgotten)
}

/// Addresses that a campaign leaves out in some pieces.
#[derive(Debug)]
pub(super) struct LeftOut {
    workspace: WorkspaceId,
    channel: Channel,
    /// Piece, place and digest.
    entries: HashSet<(u64, u16, u64)>,
}

impl LeftOut {
    /// Reads the pieces that have the contacts with these numbers.
    pub(super) async fn read(
        database: &impl Database,
        of: Of,
        channel: Channel,
        numbers: &[u64],
    ) -> Result<Self, StoreError> {
        macro_rules! select {
            ($among:literal) => {
                concat!(
                    "SELECT piece, entries FROM campaign_left_out WHERE campaign = ",
                    campaign!(),
                    " AND piece ",
                    $among
                )
            };
        }
        const SQL: Sql = sql!(
            sqlite: select!("IN (SELECT value FROM json_each($3))"),
            postgres: select!("= ANY ($3)"),
        );
        let pieces: BTreeSet<i64> = numbers.iter().map(|number| place_of(*number).0.cast_signed()).collect();
        let mut wanted = key_of(of);
        wanted.push(pieces.into_iter().collect::<Vec<_>>().into());
        let query = Query::new(SQL, wanted, |row| {
            let piece = get::<i64>(row, 0)?.cast_unsigned();
            let entries =
                left_out_entries(get(row, 1)?).ok_or(Fault::Malformed("addresses that are left out cannot be read"))?;
            Ok(entries.map(|(place, digest)| (piece, place, digest)).collect::<Vec<_>>())
        });
        let entries = database.many(query.point()).await?.into_iter().flatten().collect();
        Ok(Self { workspace: of.0, channel, entries })
    }

    /// Returns true if an address of the contact with a number is left out.
    pub(super) fn contains(&self, number: u64, address: &str) -> bool {
        let (piece, place) = place_of(number);
        !self.entries.is_empty()
            && self.entries.contains(&(piece, place, address_digest(self.workspace, self.channel, address)))
    }
}
