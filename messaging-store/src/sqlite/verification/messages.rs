//! Counters of messages against a recount.
//!
//! All messages of a workspace are looked at once. What is kept in memory is a sum for each variant, link and channel.

use std::collections::BTreeMap;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::{Seen, Skip};
use messaging_core::domain::message::{EventKind, MessageStatus};
use messaging_core::domain::tally::{Counter, Counts, Row, tally};
use messaging_core::ids::{AutomationId, CampaignId, Id as _, WorkspaceId};
use messaging_core::ports::store::verification::Verified;
use rusqlite::{CachedStatement, Connection, params};

use super::super::counters::{self, SERIES, SourceKind, TOTALS};
use super::super::fault::Fault;
use super::super::query::many;
use super::super::row::{id, maybe_id, numbered};

/// What the rows say.
#[derive(Default)]
struct Recount {
    totals: BTreeMap<(CampaignId, u8), Counts>,
    activity: BTreeMap<(Channel, SourceKind), Counts>,
    unique_clicks: BTreeMap<(CampaignId, u8, u8), i64>,
    seen: BTreeMap<(CampaignId, u8), i64>,
}

pub(super) fn verify(connection: &Connection, workspace: WorkspaceId, verified: &mut Verified) -> Result<(), Fault> {
    const CAMPAIGNS: &str = "SELECT n, id FROM campaigns WHERE workspace = ?1 AND removed = 0";
    let recount = Recount::of(connection, workspace)?;
    recount.compare_activity(connection, workspace, verified)?;
    let campaigns =
        many(connection, CAMPAIGNS, [workspace.to_bytes()], |row| Ok((row.get(0)?, id::<CampaignId>(row, 1)?)))?;
    for (n, campaign) in campaigns {
        recount.compare_campaign(connection, n, campaign, verified)?;
        waiting(connection, workspace, n, campaign, verified)?;
    }
    Ok(())
}

impl Recount {
    fn of(connection: &Connection, workspace: WorkspaceId) -> Result<Self, Fault> {
        const MESSAGES: &str =
            "SELECT id, status, channel, campaign, variant, automation, seen, skip, links FROM messages
            NOT INDEXED WHERE workspace = ?1";
        const VISITS: &str = "SELECT kind, meta ->> '$.machine' IS 1, count(*) FROM message_events
            WHERE workspace = ?1 AND message = ?2 AND kind IN (6, 7) GROUP BY 1, 2";
        let mut recount = Self::default();
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
            let automation: Option<AutomationId> = maybe_id(row, 5)?;
            let kind = match (campaign, automation) {
                (Some(_), _) => SourceKind::Campaign,
                (None, Some(_)) => SourceKind::Automation,
                (None, None) => SourceKind::Transactional,
            };
            let channel = numbered(&Channel::ALL, row.get(2)?)?;
            *recount.activity.entry((channel, kind)).or_default() += found;
            let Some(campaign) = campaign else { continue };
            let variant = row.get::<_, Option<u8>>(4)?.unwrap_or_default();
            *recount.totals.entry((campaign, variant)).or_default() += found;
            for one in seen.each() {
                *recount.seen.entry((campaign, one.bits())).or_default() += 1;
            }
            let links: i64 = row.get(8)?;
            for link in (0..64).filter(|link| links >> link & 1 == 1) {
                *recount.unique_clicks.entry((campaign, variant, link)).or_default() += 1;
            }
        }
        Ok(recount)
    }

    /// Series of the workspace sum to its totals.
    fn compare_activity(
        &self,
        connection: &Connection,
        workspace: WorkspaceId,
        verified: &mut Verified,
    ) -> Result<(), Fault> {
        for channel in Channel::ALL {
            for kind in SourceKind::ALL {
                let stored = counters::sum_of_activity(connection, workspace, channel, kind)?;
                let counted = self.activity.get(&(channel, kind)).copied().unwrap_or_default();
                for counter in SERIES {
                    let what = || {
                        format!("{workspace}: {} over time, {}, {}", counter.as_str(), channel.as_str(), kind.as_str())
                    };
                    verified.compare(what, stored.get(counter), counted.get(counter));
                }
            }
        }
        Ok(())
    }

    fn compare_campaign(
        &self,
        connection: &Connection,
        n: i64,
        campaign: CampaignId,
        verified: &mut Verified,
    ) -> Result<(), Fault> {
        const LINKS: &str = "SELECT variant, link, unique_clicks FROM campaign_links WHERE campaign = ?1";
        const SEEN: &str = "SELECT seen, count(*) FROM campaign_engagements WHERE campaign = ?1 GROUP BY seen";
        let mut variants: BTreeMap<u8, (Counts, Counts)> = BTreeMap::new();
        for (variant, stored) in counters::totals(connection, n)? {
            variants.entry(variant).or_default().0 = stored;
        }
        for ((_, variant), counted) in self.totals.range((campaign, u8::MIN)..=(campaign, u8::MAX)) {
            variants.entry(*variant).or_default().1 = *counted;
        }
        for (variant, (stored, counted)) in &variants {
            for counter in TOTALS {
                let what = || format!("{campaign}, variant {variant}: {}", counter.as_str());
                verified.compare(what, stored.get(counter), counted.get(counter));
            }
        }
        let (over_time, all) =
            (counters::sum_of_campaign(connection, n)?, variants.values().map(|(_, one)| *one).sum::<Counts>());
        for counter in SERIES {
            let what = || format!("{campaign}: {} over time", counter.as_str());
            verified.compare(what, over_time.get(counter), all.get(counter));
        }
        let mut links: BTreeMap<(u8, u8), (i64, i64)> = BTreeMap::new();
        for (key, stored) in many(connection, LINKS, [n], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))? {
            links.entry(key).or_default().0 = stored;
        }
        for ((_, variant, link), counted) in self.unique_clicks.range((campaign, 0, 0)..=(campaign, u8::MAX, u8::MAX)) {
            links.entry((*variant, *link)).or_default().1 = *counted;
        }
        for ((variant, link), (stored, counted)) in links {
            verified.compare(|| format!("{campaign}, variant {variant}, link {link}: unique_clicks"), stored, counted);
        }
        let mut seen: BTreeMap<u8, (i64, i64)> = BTreeMap::new();
        for (bit, stored) in many(connection, SEEN, [n], |row| Ok((row.get(0)?, row.get(1)?)))? {
            seen.entry(bit).or_default().0 = stored;
        }
        for ((_, bit), counted) in self.seen.range((campaign, u8::MIN)..=(campaign, u8::MAX)) {
            seen.entry(*bit).or_default().1 = *counted;
        }
        for (bit, (stored, counted)) in seen {
            let what = || format!("{campaign}: messages in the listing of those {}", seen_text(Seen::from_bits(bit)));
            verified.compare(what, stored, counted);
        }
        Ok(())
    }
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

const fn seen_text(seen: Seen) -> &'static str {
    match seen {
        Seen::OPENED => "opened",
        Seen::CLICKED => "clicked",
        Seen::COMPLAINED => "complained of",
        Seen::UNSUBSCRIBED => "unsubscribed by",
        _ => "opened by machines",
    }
}
