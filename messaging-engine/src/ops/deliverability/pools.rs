//! The IP pools of a workspace with the figures of their sources, and what of it the summary tells.

use std::collections::HashMap;
use std::net::IpAddr;

use messaging_core::domain::analytics::deliverability::{BrakedPath, WarmingSource};
use messaging_core::domain::analytics::site_tally::SiteCounts;
use messaging_core::domain::delivery::ip_pool::MAX_POOLS;
use messaging_core::domain::delivery::ip_pool::source::{SourceAddress, SourceStatus};
use messaging_core::domain::delivery::path::PathStatus;
use messaging_core::ids::{PoolId, WorkspaceId};
use messaging_core::ports::store::PageRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::ip_pools::PoolSourceStatus;
use crate::services::sources::{KnownSources, day_of, path_report};

/// Sources whose paths are read for an answer.
const MAX_SOURCES: usize = 100;

/// Paths of a source that are read, the busiest of the day.
const MAX_PATHS: usize = 50;

/// An address of a pool with its figures of today (UTC).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PoolSourceFigures {
    /// The address.
    pub ip: IpAddr,
    /// State of the address; `absent` where no node that lives has it.
    pub status: PoolSourceStatus,
    /// Level of its warm-up, from 0.
    pub level: u32,
    /// Messages that left from it today, over its 50 busiest paths.
    pub sent_today: u64,
    /// Number of messages that may leave today to the sites that it sent to; null if one of them has no limit, or it
    /// has sent nothing.
    pub allowed_today: Option<u64>,
}

/// An IP pool with what leaves from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PoolDeliverability {
    /// Id of the pool.
    pub id: PoolId,
    /// Name of the pool.
    pub name: String,
    /// Its addresses.
    pub sources: Vec<PoolSourceFigures>,
}

/// Pools of a workspace, and brakes and warm-ups of its sources.
pub(super) struct Found {
    pub(super) pools: Vec<PoolDeliverability>,
    pub(super) brakes: Vec<BrakedPath>,
    pub(super) warming: Vec<WarmingSource>,
}

/// Figures of a source over its paths.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    sent_today: u64,
    allowed_today: Option<u64>,
}

/// Looks at the pools of a workspace, and at the sources that its mail may leave from.
pub(super) async fn look_at(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    sites: &[(String, SiteCounts)],
) -> Result<Found, Error> {
    let page = PageRequest { after: None, limit: 2 * MAX_POOLS };
    let pools = cx.store().ip_pools(workspace, page).await?.items;
    let known = cx.app.known_sources().await?;
    let mut sources = cx.app.sources_of(workspace, known.live()).await?;
    let live = |ip: &SourceAddress| known.live().iter().any(|live| live.source.ip == *ip);
    let in_pools = pools.iter().flat_map(|pool| &pool.ips).map(|ip| SourceAddress::from(*ip));
    sources.extend(in_pools.filter(live));
    sources.sort_unstable();
    sources.dedup();
    sources.truncate(MAX_SOURCES);
    let mut figures = HashMap::new();
    let (mut brakes, mut warming) = (Vec::new(), Vec::new());
    for ip in sources {
        let found = figures_of(cx, ip, sites, &mut brakes).await?;
        if known.status(ip) == SourceStatus::Warming && found.sent_today > 0 {
            let Figures { sent_today, allowed_today } = found;
            warming.push(WarmingSource { source: ip.to_string(), level: level(&known, ip), sent_today, allowed_today });
        }
        figures.insert(ip, found);
    }
    let source = |ip: &IpAddr| {
        let address = SourceAddress::from(*ip);
        let Figures { sent_today, allowed_today } = figures.get(&address).copied().unwrap_or_default();
        let status = known.status_of(*ip).into();
        PoolSourceFigures { ip: *ip, status, level: level(&known, address), sent_today, allowed_today }
    };
    let pools = pools.iter().map(|pool| PoolDeliverability {
        id: pool.id,
        name: pool.name.clone(),
        sources: pool.ips.iter().map(source).collect(),
    });
    Ok(Found { pools: pools.collect(), brakes, warming })
}

fn level(known: &KnownSources, ip: SourceAddress) -> u32 {
    known.row(ip).map_or(0, |row| row.level)
}

/// Sums the busiest paths of a source; those that are braked, to sites that mail of the workspace goes to, are added to
/// `brakes`.
async fn figures_of(
    cx: &Context<'_>,
    ip: SourceAddress,
    sites: &[(String, SiteCounts)],
    brakes: &mut Vec<BrakedPath>,
) -> Result<Figures, Error> {
    let mut figures = Figures::default();
    let mut allowed = Some(0);
    let paths = cx.store().busiest_paths(ip, day_of(cx.now), MAX_PATHS).await?;
    for row in &paths {
        let report = path_report(cx.app.site_rules(), row, cx.now);
        figures.sent_today += u64::from(report.sent_today);
        allowed = allowed.zip(report.allowed_today).map(|(sum, more)| sum + u64::from(more));
        if report.status != PathStatus::Ok && sites.iter().any(|(site, _)| *site == row.site) {
            brakes.push(BrakedPath {
                source: ip.to_string(),
                site: row.site.clone(),
                status: report.status,
                reason: report.reason,
                until: report.until,
            });
        }
    }
    figures.allowed_today = allowed.filter(|_| !paths.is_empty());
    Ok(figures)
}
