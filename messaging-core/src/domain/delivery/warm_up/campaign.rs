//! Number of days that a campaign takes while sources warm up.

use super::{RESERVE, WarmUp};
use crate::time::Timestamp;

/// Maximum number of days that are counted.
pub const MAX_DAYS: u32 = 366;

/// Recipients of a campaign at one site, and the sources that may reach them.
#[derive(Debug, Clone, Copy)]
pub struct SiteDemand<'a> {
    /// Number of recipients at the site.
    pub recipients: u64,
    /// Factor of the site: how many times the allowance of an unknown site it takes.
    pub factor: u32,
    /// Warm-up of each source's path to the site, as it is at the beginning
    /// ([`PathState::warm_up`](crate::domain::delivery::path::PathState::warm_up)).
    pub sources: &'a [WarmUp],
}

/// Returns the number of days, counting the first, that the warm-up spreads a campaign over: 1 if it all goes at once,
/// at most [`MAX_DAYS`]. Assumes that every day is a healthy one and that nothing else is sent; the day of `now` counts
/// by the hours that are left of it.
pub fn days(now: Timestamp, demands: &[SiteDemand<'_>]) -> u32 {
    demands.iter().map(|demand| days_at(now, demand)).max().unwrap_or(1)
}

fn days_at(now: Timestamp, demand: &SiteDemand<'_>) -> u32 {
    let mut sources: Vec<WarmUp> = demand.sources.iter().map(|one| one.at(now, demand.factor, false)).collect();
    let mut left = demand.recipients;
    for day in 1..=MAX_DAYS {
        for source in &mut sources {
            let Some(allowed) = source.allowed_today(demand.factor) else { return day };
            let hours = if day == 1 { hours_left(now) } else { 24 };
            let by_hour = u64::from(super::hourly(allowed)) * hours;
            let free = u64::from((allowed - allowed / RESERVE).saturating_sub(source.sent)).min(by_hour).min(left);
            left -= free;
            source.sent = source.sent.saturating_add(u32::try_from(free).unwrap_or(u32::MAX));
            source.is_pressed = true;
            source.end_day(demand.factor, false);
            (source.sent, source.is_spoiled) = (0, false);
        }
        if left == 0 {
            return day;
        }
    }
    MAX_DAYS
}

/// Returns the number of hours of the day that have not ended.
fn hours_left(now: Timestamp) -> u64 {
    let hour = now.as_millis().rem_euclid(super::DAY_MILLIS) / super::HOUR_MILLIS;
    24 - hour.unsigned_abs().min(23)
}
