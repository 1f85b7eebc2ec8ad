//! Counters of messages against a recount.

use std::collections::BTreeMap;

use messaging_core::domain::analytics::tally::Counts;
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::verification::Verified;

use crate::comparing::KeptOfCampaign;
use crate::counter_deltas::SourceKind;
use crate::database::Query;
use crate::database::open_commit::{Answers, Snapshot};
use crate::fault::Fault;
use crate::row::{get, id, numbered};
use crate::sql::{Sql, key, params, sql};
use crate::tables::counters::columns::{self, sums, with_series, with_totals};

pub(super) async fn verify(
    on: &mut impl Snapshot,
    workspace: WorkspaceId,
    verified: &mut Verified,
) -> Result<(), Fault> {
    let recount = on.recount(workspace).await?;
    recount.compare_activity(workspace, &activity(on, workspace).await?, verified);
    for (campaign, kept) in kept(on, workspace).await? {
        recount.compare_campaign(campaign, kept, verified);
    }
    waiting(on, workspace, verified).await
}

/// The sums of the series of a workspace.
async fn activity(
    on: &mut impl Answers,
    workspace: WorkspaceId,
) -> Result<BTreeMap<(Channel, SourceKind), Counts>, Fault> {
    const SQL: Sql =
        sql!(with_series!(sums!("channel, source", " FROM activity WHERE workspace = $1 GROUP BY channel, source")));
    let found = Query::new(SQL, params![key(workspace)], |row| {
        let key = (numbered(&Channel::ALL, get(row, 0)?)?, numbered(&SourceKind::ALL, get(row, 1)?)?);
        Ok((key, columns::series(row, 2)?))
    });
    Ok(on.many(found).await?.into_iter().collect())
}

/// Stored counters of the existing campaigns of a workspace.
async fn kept(on: &mut impl Answers, workspace: WorkspaceId) -> Result<BTreeMap<CampaignId, KeptOfCampaign>, Fault> {
    const OVER_TIME: Sql = sql!(with_series!(sums!(
        "c.id",
        " FROM campaigns c LEFT JOIN campaign_activity t ON t.campaign = c.n
         WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id"
    )));
    const TOTALS: Sql = sql!(with_totals!(sums!(
        "c.id, t.variant",
        " FROM campaigns c JOIN campaign_counts t ON t.campaign = c.n
         WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id, t.variant"
    )));
    macro_rules! clicked {
        ($table:literal) => {
            concat!(
                "SELECT c.id, t.variant, t.link, CAST(sum(t.unique_clicks) AS bigint)
                 FROM campaigns c JOIN ",
                $table,
                " t ON t.campaign = c.n WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id, t.variant, t.link"
            )
        };
    }
    const CLICKED: Sql = sql!(sqlite: clicked!("campaign_links"), postgres: clicked!("campaign_link_counts"));
    const SEEN: Sql = sql!(
        "SELECT c.id, t.seen, count(*) FROM campaigns c JOIN campaign_engagements t ON t.campaign = c.n
         WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id, t.seen"
    );
    let campaigns = Query::new(OVER_TIME, params![key(workspace)], |row| {
        Ok((id(row, 0)?, KeptOfCampaign { over_time: columns::series(row, 1)?, ..KeptOfCampaign::default() }))
    });
    let mut kept: BTreeMap<CampaignId, KeptOfCampaign> = on.many(campaigns).await?.into_iter().collect();
    let totals =
        Query::new(TOTALS, params![key(workspace)], |row| Ok((id(row, 0)?, (get(row, 1)?, columns::totals(row, 2)?))));
    for (campaign, total) in on.many(totals).await? {
        kept.entry(campaign).or_default().totals.push(total);
    }
    let clicked = Query::new(CLICKED, params![key(workspace)], |row| {
        Ok((id(row, 0)?, ((get(row, 1)?, get(row, 2)?), get(row, 3)?)))
    });
    for (campaign, link) in on.many(clicked).await? {
        kept.entry(campaign).or_default().unique_clicks.push(link);
    }
    let seen = Query::new(SEEN, params![key(workspace)], |row| Ok((id(row, 0)?, (get(row, 1)?, get(row, 2)?))));
    for (campaign, messages) in on.many(seen).await? {
        kept.entry(campaign).or_default().seen.push(messages);
    }
    Ok(kept)
}

/// Compares the rows of waiting messages with the messages that wait.
async fn waiting(on: &mut impl Answers, workspace: WorkspaceId, verified: &mut Verified) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        "SELECT c.id, count(w.message), count(m.id) FROM campaigns c
         LEFT JOIN campaign_waiting w ON w.campaign = c.n
         LEFT JOIN messages m
             ON m.workspace = c.workspace AND m.id = w.message AND m.campaign = c.id AND m.status IN (0, 4)
         WHERE c.workspace = $1 AND NOT c.removed GROUP BY c.id"
    );
    let found =
        Query::new(SQL, params![key(workspace)], |row| Ok((id::<CampaignId>(row, 0)?, get(row, 1)?, get(row, 2)?)));
    for (campaign, stored, counted) in on.many(found).await? {
        verified.compare(|| format!("{campaign}: messages that wait to be released"), stored, counted);
    }
    Ok(())
}
