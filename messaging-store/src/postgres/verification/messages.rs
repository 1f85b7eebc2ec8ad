//! Counters of messages against a recount.
//!
//! The database looks at all messages of a workspace at once and answers how many are alike. What is kept in memory is
//! a sum for each variant, link and channel.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::{Seen, Skip};
use messaging_core::domain::message::{EventKind, MessageStatus};
use messaging_core::domain::tally::{self, Counter, Counts, of_event};
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::verification::Verified;
use tokio_postgres::Row;

use super::super::fault::Fault;
use super::super::query::{Queries, many, params};
use super::super::row::{get, id, maybe_id, numbered, small, uuid};
use crate::comparing::{CountedIn, KeptOfCampaign, Recount};
use crate::counter_deltas::SourceKind;

pub(super) async fn verify(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    verified: &mut Verified,
) -> Result<(), Fault> {
    let recount = recount(on, workspace).await?;
    recount.compare_activity(workspace, &activity(on, workspace).await?, verified);
    for (campaign, kept) in kept(on, workspace).await? {
        recount.compare_campaign(campaign, kept, verified);
    }
    waiting(on, workspace, verified).await
}

/// What the rows say.
async fn recount(on: &mut impl Queries, workspace: WorkspaceId) -> Result<Recount, Fault> {
    const MESSAGES: &str = "SELECT channel::bigint, campaign, coalesce(variant, 0)::bigint, automation IS NOT NULL,
            count(*), status::bigint, seen::bigint, skip::bigint
        FROM messages WHERE workspace = $1 GROUP BY 1, 2, 3, 4, 6, 7, 8";
    // Not by functions of JSON, which refuse U+0000.
    const VISITS: &str = "SELECT m.channel::bigint, m.campaign, coalesce(m.variant, 0)::bigint,
            m.automation IS NOT NULL, count(*), e.kind::bigint, coalesce(strpos(e.meta, '\"machine\":true') > 0, false)
        FROM messages m JOIN message_events e ON e.workspace = m.workspace AND e.message = m.id AND e.kind IN (6, 7)
        WHERE m.workspace = $1 AND m.seen & $2 <> 0 GROUP BY 1, 2, 3, 4, 6, 7";
    const CLICKED: &str = "SELECT campaign, coalesce(variant, 0)::bigint, link::bigint, count(*)
        FROM messages CROSS JOIN generate_series(0, 63) AS link
        WHERE workspace = $1 AND campaign IS NOT NULL AND links <> 0 AND (links >> link) & 1 = 1 GROUP BY 1, 2, 3";
    let mut recount = Recount::default();
    let alike = many(on, MESSAGES, params![uuid(workspace)], |row| {
        let seen = Seen::from_bits(small(row, 6)?);
        let skip = get::<Option<i64>>(row, 7)?.map(|skip| numbered(&Skip::ALL, skip)).transpose()?;
        let status = numbered(&MessageStatus::ALL, get(row, 5)?)?;
        let one = tally::tally(&tally::Row { status, seen, skip, sent_at: None, delivered_at: None });
        Ok((counted_in(row)?, get(row, 4)?, seen, one))
    });
    for (counted_in, messages, seen, one) in alike.await? {
        recount.add(counted_in, times(one, messages));
        if let Some((campaign, _)) = counted_in.campaign {
            recount.add_seen(campaign, seen, messages);
        }
    }
    let visited = i64::from(Seen::OPENED.with(Seen::CLICKED).with(Seen::MACHINE).bits());
    let visits = many(on, VISITS, params![uuid(workspace), visited], |row| {
        let one = of_event(numbered(&EventKind::ALL, get(row, 5)?)?, get(row, 6)?);
        Ok((counted_in(row)?, times(one, get(row, 4)?)))
    });
    for (counted_in, counts) in visits.await? {
        recount.add(counted_in, counts);
    }
    let clicked = many(on, CLICKED, params![uuid(workspace)], |row| {
        Ok((id(row, 0)?, small(row, 1)?, small(row, 2)?, get(row, 3)?))
    });
    for (campaign, variant, link, messages) in clicked.await? {
        recount.add_clicked(campaign, variant, link, messages);
    }
    Ok(recount)
}

/// From the first columns: the channel, the campaign, the variant, whether there is an automation.
fn counted_in(row: &Row) -> Result<CountedIn, Fault> {
    let variant = small(row, 2)?;
    Ok(CountedIn {
        channel: numbered(&Channel::ALL, get(row, 0)?)?,
        campaign: maybe_id::<CampaignId>(row, 1)?.map(|campaign| (campaign, variant)),
        is_automatic: get(row, 3)?,
    })
}

/// What so many messages count for that each count for the same.
fn times(one: Counts, messages: i64) -> Counts {
    one.iter().map(|(counter, number)| (counter, number * messages)).collect()
}

/// The sums of the series of a workspace.
async fn activity(
    on: &mut impl Queries,
    workspace: WorkspaceId,
) -> Result<BTreeMap<(Channel, SourceKind), Counts>, Fault> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let rest = "FROM activity WHERE workspace = $1 GROUP BY channel, source";
        sums("channel::bigint, source::bigint", in_series, rest)
    });
    let found = many(on, &SQL, params![uuid(workspace)], |row| {
        let key = (numbered(&Channel::ALL, get(row, 0)?)?, numbered(&SourceKind::ALL, get(row, 1)?)?);
        Ok((key, counts(row, 2, in_series)?))
    });
    Ok(found.await?.into_iter().collect())
}

/// What is kept of the campaigns of a workspace that are there.
async fn kept(on: &mut impl Queries, workspace: WorkspaceId) -> Result<BTreeMap<CampaignId, KeptOfCampaign>, Fault> {
    static OVER_TIME: LazyLock<String> = LazyLock::new(|| {
        let rest = "FROM campaigns c LEFT JOIN campaign_activity t ON t.campaign = c.n
            WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id";
        sums("c.id", in_series, rest)
    });
    static TOTALS: LazyLock<String> = LazyLock::new(|| {
        let rest = "FROM campaigns c JOIN campaign_counts t ON t.campaign = c.n
            WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id, t.variant";
        sums("c.id, t.variant::bigint", |_| true, rest)
    });
    const CLICKED: &str = "SELECT c.id, t.variant::bigint, t.link::bigint, sum(t.unique_clicks)::bigint
        FROM campaigns c JOIN campaign_link_counts t ON t.campaign = c.n
        WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id, t.variant, t.link";
    const SEEN: &str = "SELECT c.id, t.seen::bigint, count(*)
        FROM campaigns c JOIN campaign_engagements t ON t.campaign = c.n
        WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id, t.seen";
    let key = || params![uuid(workspace)];
    let campaigns = many(on, &OVER_TIME, key(), |row| {
        Ok((id(row, 0)?, KeptOfCampaign { over_time: counts(row, 1, in_series)?, ..KeptOfCampaign::default() }))
    });
    let mut kept: BTreeMap<CampaignId, KeptOfCampaign> = campaigns.await?.into_iter().collect();
    let totals = many(on, &TOTALS, key(), |row| Ok((id(row, 0)?, (small(row, 1)?, counts(row, 2, |_| true)?))));
    for (campaign, total) in totals.await? {
        kept.entry(campaign).or_default().totals.push(total);
    }
    let clicked = many(on, CLICKED, key(), |row| Ok((id(row, 0)?, ((small(row, 1)?, small(row, 2)?), get(row, 3)?))));
    for (campaign, link) in clicked.await? {
        kept.entry(campaign).or_default().unique_clicks.push(link);
    }
    let seen = many(on, SEEN, key(), |row| Ok((id(row, 0)?, (small(row, 1)?, get(row, 2)?))));
    for (campaign, messages) in seen.await? {
        kept.entry(campaign).or_default().seen.push(messages);
    }
    Ok(kept)
}

/// Rows that say a message waits name messages that do.
async fn waiting(on: &mut impl Queries, workspace: WorkspaceId, verified: &mut Verified) -> Result<(), Fault> {
    const SQL: &str = "SELECT c.id, count(w.message), count(m.id) FROM campaigns c
        LEFT JOIN campaign_waiting w ON w.campaign = c.n
        LEFT JOIN messages m
            ON m.workspace = c.workspace AND m.id = w.message AND m.campaign = c.id AND m.status IN (0, 4)
        WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id";
    let found =
        many(on, SQL, params![uuid(workspace)], |row| Ok((id::<CampaignId>(row, 0)?, get(row, 1)?, get(row, 2)?)));
    for (campaign, stored, counted) in found.await? {
        verified.compare(|| format!("{campaign}: messages that wait to be released"), stored, counted);
    }
    Ok(())
}

const fn in_series(counter: Counter) -> bool {
    counter.is_in_series()
}

/// A query for some columns and the sums of the columns of counters, which are named after them.
fn sums(first: &str, is_wanted: fn(Counter) -> bool, rest: &str) -> String {
    let wanted = Counter::ALL.into_iter().filter(|counter| is_wanted(*counter));
    let columns: String = wanted.map(|counter| format!(", coalesce(sum({}), 0)::bigint", counter.as_str())).collect();
    format!("SELECT {first}{columns} {rest}")
}

/// The counters of such columns, from one on.
fn counts(row: &Row, first: usize, is_wanted: fn(Counter) -> bool) -> Result<Counts, Fault> {
    let wanted = Counter::ALL.into_iter().filter(|counter| is_wanted(*counter));
    wanted.enumerate().map(|(n, counter)| Ok((counter, get(row, first + n)?))).collect()
}
