//! Comparison of stored counters with the rows they count, for every backend.

use std::collections::BTreeMap;

use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::analytics::tally::{Counter, Counts};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::milestones::EngagementFlags;
use messaging_core::ids::{CampaignId, Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::verification::Verified;

use crate::counter_deltas::SourceKind;

/// Maximum number of messages named by jobs that are held in memory at a time.
const AT_A_TIME: u64 = 500_000;

/// The counters that a message is part of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedIn {
    pub(crate) channel: Channel,
    /// Its campaign and variant.
    pub(crate) campaign: Option<(CampaignId, u8)>,
    /// True if the message was sent by an automation.
    pub(crate) is_automatic: bool,
}

/// Counters computed from the rows of a workspace's messages.
#[derive(Debug, Default)]
pub(crate) struct Recount {
    totals: BTreeMap<(CampaignId, u8), Counts>,
    activity: BTreeMap<(Channel, SourceKind), Counts>,
    unique_clicks: BTreeMap<(CampaignId, u8, u8), i64>,
    seen: BTreeMap<(CampaignId, u8), i64>,
}

/// Stored counters of a campaign.
#[derive(Debug, Default)]
pub(crate) struct KeptOfCampaign {
    /// By variant.
    pub(crate) totals: Vec<(u8, Counts)>,
    /// The sum of its series.
    pub(crate) over_time: Counts,
    /// Messages of which people followed a link, by variant and link.
    pub(crate) unique_clicks: Vec<((u8, u8), i64)>,
    /// Messages that are listed as seen, by the bit of the kind.
    pub(crate) seen: Vec<(u8, i64)>,
}

impl Recount {
    /// Adds the counts of messages.
    pub(crate) fn add(&mut self, of: CountedIn, counts: Counts) {
        let kind = match (of.campaign, of.is_automatic) {
            (Some(_), _) => SourceKind::Campaign,
            (None, true) => SourceKind::Automation,
            (None, false) => SourceKind::Transactional,
        };
        *self.activity.entry((of.channel, kind)).or_default() += counts;
        if let Some(campaign) = of.campaign {
            *self.totals.entry(campaign).or_default() += counts;
        }
    }

    /// Adds messages of a campaign that share the same engagement.
    pub(crate) fn add_seen(&mut self, campaign: CampaignId, seen: EngagementFlags, messages: i64) {
        for one in seen.iter() {
            *self.seen.entry((campaign, one.bits())).or_default() += messages;
        }
    }

    /// Adds messages of a campaign whose recipients followed a link.
    pub(crate) fn add_clicked(&mut self, campaign: CampaignId, variant: u8, link: u8, messages: i64) {
        *self.unique_clicks.entry((campaign, variant, link)).or_default() += messages;
    }

    /// Compares the sums of the workspace's series with the totals.
    pub(crate) fn compare_activity(
        &self,
        workspace: WorkspaceId,
        kept: &BTreeMap<(Channel, SourceKind), Counts>,
        verified: &mut Verified,
    ) {
        for channel in Channel::ALL {
            for kind in SourceKind::ALL {
                let of = |counts: &BTreeMap<_, Counts>| counts.get(&(channel, kind)).copied().unwrap_or_default();
                let (stored, counted) = (of(kept), of(&self.activity));
                for counter in in_series() {
                    let what = || {
                        format!("{workspace}: {} over time, {}, {}", counter.as_str(), channel.as_str(), kind.as_str())
                    };
                    verified.compare(what, stored.get(counter), counted.get(counter));
                }
            }
        }
    }

    /// Compares the totals and series of a campaign, its links, and the listings by engagement.
    pub(crate) fn compare_campaign(&self, campaign: CampaignId, kept: KeptOfCampaign, verified: &mut Verified) {
        let totals = self.totals.range((campaign, u8::MIN)..=(campaign, u8::MAX));
        let variants = both(kept.totals, totals.map(|((_, variant), counted)| (*variant, *counted)));
        for (variant, (stored, counted)) in &variants {
            for counter in Counter::ALL {
                let what = || format!("{campaign}, variant {variant}: {}", counter.as_str());
                verified.compare(what, stored.get(counter), counted.get(counter));
            }
        }
        let all = variants.values().map(|(_, counted)| *counted).sum::<Counts>();
        for counter in in_series() {
            let what = || format!("{campaign}: {} over time", counter.as_str());
            verified.compare(what, kept.over_time.get(counter), all.get(counter));
        }
        let clicked = self.unique_clicks.range((campaign, 0, 0)..=(campaign, u8::MAX, u8::MAX));
        let clicked = clicked.map(|((_, variant, link), counted)| ((*variant, *link), *counted));
        for ((variant, link), (stored, counted)) in both(kept.unique_clicks, clicked) {
            verified.compare(|| format!("{campaign}, variant {variant}, link {link}: unique_clicks"), stored, counted);
        }
        let seen = self.seen.range((campaign, u8::MIN)..=(campaign, u8::MAX));
        for (bit, (stored, counted)) in both(kept.seen, seen.map(|((_, bit), counted)| (*bit, *counted))) {
            let what = || {
                let seen = seen_text(EngagementFlags::from_bits(bit));
                format!("{campaign}: messages in the listing of those {seen}")
            };
            verified.compare(what, stored, counted);
        }
    }
}

/// Compares the numbers of product events by the number of their name and the quarter of an hour.
pub(crate) fn compare_events(
    names: &BTreeMap<i64, String>,
    kept: impl IntoIterator<Item = ((i64, i32), i64)>,
    counted: impl IntoIterator<Item = ((i64, i32), i64)>,
    verified: &mut Verified,
) {
    for ((name, quarter), (stored, counted)) in both(kept, counted) {
        let what = || {
            let name = names.get(&name).map_or("", String::as_str);
            format!("product events {name:?} from {}", Quarter(quarter).start())
        };
        verified.compare(what, stored, counted);
    }
}

/// A part of all messages, as many as are held in memory at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    number: u64,
    of: u64,
}

impl Part {
    /// Divides this many messages into parts.
    pub(crate) fn all(messages: u64) -> impl Iterator<Item = Self> {
        let of = messages / AT_A_TIME + 1;
        (0..of).map(move |number| Self { number, of })
    }

    /// Returns true if a message belongs to the part: the last bytes are random.
    pub(crate) fn has(self, message: MessageId) -> bool {
        let bytes = message.to_bytes();
        bytes.last_chunk().map_or(0, |last| u64::from_be_bytes(*last)) % self.of == self.number
    }
}

/// Joins stored and computed values by their keys.
fn both<K: Ord, V: Default>(
    kept: impl IntoIterator<Item = (K, V)>,
    counted: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<K, (V, V)> {
    let mut both: BTreeMap<K, (V, V)> = BTreeMap::new();
    for (key, number) in kept {
        both.entry(key).or_default().0 = number;
    }
    for (key, number) in counted {
        both.entry(key).or_default().1 = number;
    }
    both
}

fn in_series() -> impl Iterator<Item = Counter> {
    Counter::ALL.into_iter().filter(|counter| counter.is_in_series())
}

const fn seen_text(seen: EngagementFlags) -> &'static str {
    match seen {
        EngagementFlags::OPENED => "opened",
        EngagementFlags::CLICKED => "clicked",
        EngagementFlags::COMPLAINED => "complained of",
        EngagementFlags::UNSUBSCRIBED => "unsubscribed by",
        _ => "opened by machines",
    }
}
