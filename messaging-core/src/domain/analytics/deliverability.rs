//! Summary of a workspace's deliverability in one or two sentences: the worst problems, in numbers, and what to do.
//!
//! Contract section 14.6. The limits are those that Gmail and Yahoo publish for bulk senders: complaints stay below 0.1
//! % of delivered messages, and never reach 0.3 %.

use crate::domain::analytics::site_tally::{SiteCounter, SiteCounts};
use crate::domain::delivery::path::{BrakeReason, PathStatus};
use crate::domain::mail::dmarc::verdict::grouped;
use crate::time::Timestamp;

/// Complaints in a thousand delivered messages above which bulk senders are warned.
const WARN_COMPLAINTS: u64 = 1;

/// Complaints in a thousand delivered messages above which bulk senders are refused.
const MAX_COMPLAINTS: u64 = 3;

/// Hard bounces in a hundred recipients above which a list is bad.
const MAX_HARD_BOUNCES: u64 = 5;

/// Deferred attempts in a hundred above which a site is said to defer.
const MAX_DEFERRED: u64 = 10;

/// Minimum number of recipients (for bounces) or attempts (for deferrals) at a site for which shares are judged.
const LEAST_ATTEMPTS: u64 = 20;

/// Maximum number of sentences of a summary.
const SENTENCES: usize = 2;

/// Facts that the summary is made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct SummaryFacts<'a> {
    /// Counts by site, for the period.
    pub sites: &'a [(String, SiteCounts)],
    /// Sending domains that lack a record which mailbox providers require.
    pub broken: &'a [BrokenDomain],
    /// Paths that are braked now, to sites that mail of the workspace goes to.
    pub brakes: &'a [BrakedPath],
    /// Sources of the workspace that warm up.
    pub warming: &'a [WarmingSource],
}

/// A sending domain that lacks a record which mailbox providers require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenDomain {
    /// The domain.
    pub domain: String,
    /// The missing records: `SPF`, `DKIM`, `DMARC`.
    pub missing: Vec<&'static str>,
}

/// A path that is braked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrakedPath {
    /// Address of the source.
    pub source: String,
    /// The site.
    pub site: String,
    /// `slowed`, `resting` or `stopped`.
    pub status: PathStatus,
    /// Reason of the brake; `None` if an operator stopped the path.
    pub reason: Option<BrakeReason>,
    /// Time at which a rest ends.
    pub until: Option<Timestamp>,
}

/// A source that warms up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmingSource {
    /// Address of the source.
    pub source: String,
    /// Level of the warm-up.
    pub level: u32,
    /// Messages that left today.
    pub sent_today: u64,
    /// Messages that may leave today; `None` where nothing left yet.
    pub allowed_today: Option<u64>,
}

/// Returns the summary of at most two sentences: the worst problems first, then totals and warm-up.
pub fn summary(facts: &SummaryFacts<'_>) -> String {
    let refused = complaints(facts.sites, MAX_COMPLAINTS);
    // Complaints above the higher line are above the lower one as well.
    let warned = if refused.is_none() { complaints(facts.sites, WARN_COMPLAINTS) } else { None };
    let found = [
        refused,
        brake(facts.brakes, PathStatus::Stopped),
        hard_bounces(facts.sites),
        warned,
        brake(facts.brakes, PathStatus::Resting),
        authentication(facts.broken),
        deferrals(facts.sites),
        brake(facts.brakes, PathStatus::Slowed),
        Some(totals(facts.sites)),
        warm_up(facts.warming),
    ];
    let sentences: Vec<_> = found.into_iter().flatten().take(SENTENCES).collect();
    sentences.join(" ")
}

/// Returns a sentence about the site with most complaints among those with more than `line` in a thousand delivered
/// messages.
fn complaints(sites: &[(String, SiteCounts)], line: u64) -> Option<String> {
    let of = |counts: &SiteCounts| (counts.total(SiteCounter::Complaints), counts.total(SiteCounter::Delivered));
    let is_above = |(_, counts): &&(String, SiteCounts)| {
        let (complaints, delivered) = of(counts);
        complaints.saturating_mul(1000) > line * delivered
    };
    let (site, counts) = sites.iter().filter(is_above).max_by_key(|(_, counts)| of(counts).0)?;
    let (complaints, delivered) = of(counts);
    let of_all = match delivered {
        0 => String::new(),
        delivered => format!(" for {} ({})", of_delivered(delivered), share(complaints, delivered)),
    };
    let advice = if line == MAX_COMPLAINTS {
        "Gmail and Yahoo mind above 0.1 % and begin to refuse at 0.3 %, so stop the campaign that they complain about, and send \
         only to people who opened lately until it is below 0.1 % again"
    } else {
        "Gmail and Yahoo want bulk senders below 0.1 % and begin to refuse at 0.3 %, so leave out people who do not open, and \
         make unsubscribing easier to find"
    };
    Some(format!("{} at {}{of_all}: {advice}.", times(complaints, "complaint"), called(site)))
}

fn of_delivered(delivered: u64) -> String {
    format!("{} delivered message{}", grouped(delivered), if delivered == 1 { "" } else { "s" })
}

fn brake(brakes: &[BrakedPath], status: PathStatus) -> Option<String> {
    let mut of_status = brakes.iter().filter(|brake| brake.status == status);
    let first = of_status.next()?;
    let more = match of_status.count() {
        0 => String::new(),
        more => format!(", as on {more} more {}", if more == 1 { "path" } else { "paths" }),
    };
    let (source, site) = (&first.source, called(&first.site));
    let why = first.reason.map_or("the operator stopped it", BrakeReason::words);
    Some(match status {
        PathStatus::Ok => return None,
        PathStatus::Stopped if first.reason.is_none() => {
            format!("Nothing leaves from {source} to {site}{more}, because {why}; the operator can release the path.")
        }
        PathStatus::Stopped => {
            format!(
                "Nothing leaves from {source} to {site}{more}, because {why}: mend what its reply names, then let the operator \
                 release the path."
            )
        }
        PathStatus::Resting => {
            let until = first.until.map(|until| format!(" until {}", clock(until))).unwrap_or_default();
            format!(
                "Sending from {source} to {site} rests{until}{more}, because {why}; it then continues without your help."
            )
        }
        PathStatus::Slowed => {
            format!(
                "Sending from {source} to {site} is slowed down{more}, because {why}; it grows again by itself while no \
                 further reply says so."
            )
        }
    })
}

fn hard_bounces(sites: &[(String, SiteCounts)]) -> Option<String> {
    let of = |counts: &SiteCounts| (counts.total(SiteCounter::BouncedHard), ended(counts));
    let bad = |(_, counts): &&(String, SiteCounts)| {
        let (hard, ended) = of(counts);
        ended >= LEAST_ATTEMPTS && hard * 100 > MAX_HARD_BOUNCES * ended
    };
    let (site, counts) = sites.iter().filter(bad).max_by_key(|(_, counts)| of(counts).0)?;
    let (hard, ended) = of(counts);
    Some(format!(
        "{} of {} ({}) cannot be reached at {}, where more than 5 % is taken for a bad list: stop sending to addresses that \
         nobody confirmed.",
        grouped(hard),
        times(ended, "recipient"),
        share(hard, ended),
        called(site)
    ))
}

fn deferrals(sites: &[(String, SiteCounts)]) -> Option<String> {
    let of = |counts: &SiteCounts| {
        let deferred = counts.total(SiteCounter::Deferred);
        (deferred, deferred + ended(counts))
    };
    let slow = |(_, counts): &&(String, SiteCounts)| {
        let (deferred, attempts) = of(counts);
        attempts >= LEAST_ATTEMPTS && deferred * 100 > MAX_DEFERRED * attempts
    };
    let (site, counts) = sites.iter().filter(slow).max_by_key(|(_, counts)| of(counts).0)?;
    let (deferred, attempts) = of(counts);
    Some(format!(
        "{} deferred {} of {} ({}): they are tried again, and the attempts of a message show what {} says.",
        called(site),
        grouped(deferred),
        times(attempts, "attempt"),
        share(deferred, attempts),
        called(site)
    ))
}

fn authentication(broken: &[BrokenDomain]) -> Option<String> {
    let first = broken.first()?;
    let more = match broken.len() - 1 {
        0 => String::new(),
        1 => ", and 1 more domain is not in order".to_owned(),
        more => format!(", and {more} more domains are not in order"),
    };
    Some(format!(
        "{} lacks {}{more}: publish the records that are shown for it, because Gmail, Microsoft and Yahoo refuse mail without.",
        first.domain,
        listed(&first.missing),
    ))
}

fn warm_up(warming: &[WarmingSource]) -> Option<String> {
    let first = warming.first()?;
    let today = first.allowed_today.map_or_else(String::new, |allowed| {
        format!(": {} of the {} that today may have", grouped(first.sent_today), times(allowed, "message"))
    });
    let more = match warming.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!("{} warms up at level {}{today}{more}; send every day.", first.source, first.level))
}

fn totals(sites: &[(String, SiteCounts)]) -> String {
    let mut all = SiteCounts::default();
    for (_, counts) in sites {
        all += *counts;
    }
    let delivered = all.total(SiteCounter::Delivered);
    let ended = ended(&all);
    if ended == 0 {
        return match all.total(SiteCounter::Deferred) {
            0 => "No email went to a mailbox provider in this time, so there is nothing to judge.".to_owned(),
            1 => "Nothing was delivered in this time: 1 attempt was put off, and is made again.".to_owned(),
            more => {
                format!(
                    "Nothing was delivered in this time: {} attempts were put off, and are made again.",
                    grouped(more)
                )
            }
        };
    }
    let median = match all.median_seconds() {
        Some(seconds) if delivered > 0 => format!(", half of them within {}", duration(seconds)),
        _ => String::new(),
    };
    format!("{} of {} arrived ({}){median}.", grouped(delivered), times(ended, "message"), share(delivered, ended))
}

/// Returns the number of recipients with a final outcome.
fn ended(counts: &SiteCounts) -> u64 {
    [SiteCounter::Delivered, SiteCounter::BouncedHard, SiteCounter::BouncedSoft]
        .into_iter()
        .map(|counter| counts.total(counter))
        .sum()
}

/// Returns the brand name of a site, or else its name.
fn called(site: &str) -> &str {
    match site {
        "gmail" => "Gmail",
        "microsoft" => "Microsoft",
        "yahoo" => "Yahoo",
        "icloud" => "iCloud",
        "gmx" => "GMX",
        "proton" => "Proton",
        "other" => "other sites",
        site => site,
    }
}

fn times(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats a share as a percentage: one decimal, two below one per cent.
fn share(part: u64, whole: u64) -> String {
    // Hundredths of a per cent, rounded half up.
    let (part, whole) = (u128::from(part), u128::from(whole.max(1)));
    let hundredths = (part * 20_000 + whole) / (2 * whole);
    if hundredths >= 100 {
        // A share below the whole is never rounded up to 100 %.
        let tenths = ((hundredths + 5) / 10).min(if part < whole { 999 } else { u128::MAX });
        format!("{}.{} %", tenths / 10, tenths % 10)
    } else {
        format!("0.{hundredths:02} %")
    }
}

/// Formats the time of day in UTC.
fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.get(11..16).unwrap_or(&text))
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => times(seconds, "second"),
        120..7200 => times(seconds / 60, "minute"),
        _ => times(seconds / 3600, "hour"),
    }
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "authentication".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
