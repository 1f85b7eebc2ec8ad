//! Counters of messages against a recount.
//!
//! All messages of a workspace are looked at once. What is kept in memory is a sum for each variant, link and channel.

use std::collections::BTreeMap;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::{Seen, Skip};
use messaging_core::domain::message::{EventKind, MessageStatus};
use messaging_core::domain::tally::{Counts, Row, of_event, tally};
use messaging_core::ids::{AutomationId, CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::verification::Verified;
use rusqlite::{CachedStatement, Connection, params};

use super::super::counters::{self, SourceKind};
use super::super::fault::Fault;
use super::super::query::many;
use super::super::row::{id, maybe_id, numbered};
use crate::comparing::{CountedIn, KeptOfCampaign, Recount};

pub(super) fn verify(connection: &Connection, workspace: WorkspaceId, verified: &mut Verified) -> Result<(), Fault> {
    const CAMPAIGNS: &str = "SELECT n, id FROM campaigns WHERE workspace = ?1 AND NOT removed";
    let recount = recount(connection, workspace)?;
    recount.compare_activity(workspace, &activity(connection, workspace)?, verified);
    let campaigns =
        many(connection, CAMPAIGNS, [workspace.to_bytes()], |row| Ok((row.get(0)?, id::<CampaignId>(row, 1)?)))?;
    for (n, campaign) in campaigns {
        recount.compare_campaign(campaign, kept(connection, n)?, verified);
        waiting(connection, workspace, n, campaign, verified)?;
    }
    Ok(())
}

/// What the rows say.
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
        let status = numbered(&MessageStatus::ALL, row.get(1)?)?;
        let skip = skip.map(|skip| numbered(&Skip::ALL, skip)).transpose()?;
        let mut found = tally(&Row { status, seen, skip, sent_at: None, delivered_at: None });
        if [Seen::OPENED, Seen::CLICKED, Seen::MACHINE].into_iter().any(|one| seen.has(one)) {
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

/// The sums of the series of a workspace.
fn activity(connection: &Connection, workspace: WorkspaceId) -> Result<BTreeMap<(Channel, SourceKind), Counts>, Fault> {
    let mut sums = BTreeMap::new();
    for channel in Channel::ALL {
        for kind in SourceKind::ALL {
            sums.insert((channel, kind), counters::sum_of_activity(connection, workspace, channel, kind)?);
        }
    }
    Ok(sums)
}

/// What is kept of a campaign.
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

/// How often a message was opened and its links followed.
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
