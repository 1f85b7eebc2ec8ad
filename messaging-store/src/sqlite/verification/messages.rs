//! Counters of messages against a recount.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::{Seen, Skip};
use messaging_core::domain::message::{EventKind, MessageStatus};
use messaging_core::domain::tally::{Counter, Counts};
use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::verification::Verified;
use rusqlite::{CachedStatement, Connection, params};

use super::super::counters::{self, SourceKind};
use super::super::fault::Fault;
use super::super::query::many;
use super::super::row::{id, maybe_id, numbered};
use crate::recount::{KeptOfCampaign, Recount, RecountedMessage, has_visits};

pub(super) fn verify(connection: &Connection, workspace: WorkspaceId, verified: &mut Verified) -> Result<(), Fault> {
    const CAMPAIGNS: &str = "SELECT n, id FROM campaigns WHERE workspace = ?1 AND removed = 0";
    let recount = recount(connection, workspace)?;
    for channel in Channel::ALL {
        for kind in SourceKind::ALL {
            let stored = counters::sum_of_activity(connection, workspace, channel, kind)?;
            recount.compare_activity(workspace, (channel, kind), &stored, verified);
        }
    }
    let campaigns =
        many(connection, CAMPAIGNS, [workspace.to_bytes()], |row| Ok((row.get(0)?, id::<CampaignId>(row, 1)?)))?;
    for (n, campaign) in campaigns {
        recount.compare_campaign(campaign, &kept(connection, n)?, verified);
        waiting(connection, workspace, n, campaign, verified)?;
    }
    Ok(())
}

fn recount(connection: &Connection, workspace: WorkspaceId) -> Result<Recount, Fault> {
    const MESSAGES: &str = "SELECT id, status, channel, campaign, variant, automation, seen, skip, links FROM messages
        NOT INDEXED WHERE workspace = ?1";
    const VISITS: &str = "SELECT kind, meta ->> '$.machine' IS 1, count(*) FROM message_events
        WHERE workspace = ?1 AND message = ?2 AND kind IN (6, 7) GROUP BY 1, 2";
    let mut recount = Recount::default();
    let mut visits = connection.prepare_cached(VISITS)?;
    let mut statement = connection.prepare_cached(MESSAGES)?;
    let mut rows = statement.query([workspace.to_bytes()])?;
    while let Some(row) = rows.next()? {
        let seen = Seen::from_bits(row.get(6)?);
        let skip: Option<i64> = row.get(7)?;
        recount.add(&RecountedMessage {
            status: numbered(&MessageStatus::ALL, row.get(1)?)?,
            channel: numbered(&Channel::ALL, row.get(2)?)?,
            campaign: maybe_id(row, 3)?,
            variant: row.get::<_, Option<u8>>(4)?.unwrap_or_default(),
            automation: maybe_id(row, 5)?,
            seen,
            skip: skip.map(|skip| numbered(&Skip::ALL, skip)).transpose()?,
            links: row.get(8)?,
            visits: if has_visits(seen) { visited(&mut visits, workspace, row.get(0)?)? } else { Counts::default() },
        });
    }
    Ok(recount)
}

/// How often a message was opened and its links followed.
fn visited(statement: &mut CachedStatement<'_>, workspace: WorkspaceId, message: [u8; 16]) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    let mut rows = statement.query(params![workspace.to_bytes(), message])?;
    while let Some(row) = rows.next()? {
        let counter = match (numbered(&EventKind::ALL, row.get(0)?)?, row.get(1)?) {
            (EventKind::Open, false) => Counter::Opens,
            (EventKind::Open, true) => Counter::MachineOpens,
            (EventKind::Click, false) => Counter::Clicks,
            _ => continue,
        };
        counts.count(counter, row.get(2)?);
    }
    Ok(counts)
}

fn kept(connection: &Connection, n: i64) -> Result<KeptOfCampaign, Fault> {
    const LINKS: &str = "SELECT variant, link, unique_clicks FROM campaign_links WHERE campaign = ?1";
    const SEEN: &str = "SELECT seen, count(*) FROM campaign_engagements WHERE campaign = ?1 GROUP BY seen";
    Ok(KeptOfCampaign {
        totals: counters::totals(connection, n)?,
        over_time: counters::sum_of_campaign(connection, n)?,
        unique_clicks: many(connection, LINKS, [n], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?,
        seen: many(connection, SEEN, [n], |row| Ok((row.get(0)?, row.get(1)?)))?,
    })
}

/// Rows that say a message waits name messages that do.
fn waiting(
    connection: &Connection,
    workspace: WorkspaceId,
    n: i64,
    campaign: CampaignId,
    verified: &mut Verified,
) -> Result<(), Fault> {
    const SQL: &str = "SELECT count(*), count(m.id) FROM campaign_waiting w
        LEFT JOIN messages m ON m.workspace = ?2 AND m.id = w.message AND m.campaign = ?3 AND m.status IN (0, 4)
        WHERE w.campaign = ?1";
    for (stored, counted) in many(connection, SQL, params![n, workspace.to_bytes(), campaign.to_bytes()], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })? {
        verified.compare(|| format!("{campaign}: messages that wait to be released"), stored, counted);
    }
    Ok(())
}
