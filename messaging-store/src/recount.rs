//! Counters of messages against a recount, as every store makes it.
//!
//! All messages of a workspace are looked at once. What is kept in memory is a sum for each variant, link and channel.

use std::collections::BTreeMap;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::message::milestones::{Seen, Skip};
use messaging_core::domain::tally::{Counts, Row, tally};
use messaging_core::ids::{AutomationId, CampaignId, WorkspaceId};
use messaging_core::ports::store::verification::Verified;

use crate::counter_columns::{SERIES, TOTALS};
use crate::counter_deltas::SourceKind;

/// What the row of a message says.
#[derive(Debug)]
pub(crate) struct RecountedMessage {
    pub(crate) status: MessageStatus,
    pub(crate) channel: Channel,
    pub(crate) campaign: Option<CampaignId>,
    pub(crate) variant: u8,
    pub(crate) automation: Option<AutomationId>,
    pub(crate) seen: Seen,
    pub(crate) skip: Option<Skip>,
    pub(crate) links: i64,
    /// How often it was opened and its links followed, by its events.
    pub(crate) visits: Counts,
}

/// What is kept of a campaign.
#[derive(Debug, Default)]
pub(crate) struct KeptOfCampaign {
    /// By variant.
    pub(crate) totals: Vec<(u8, Counts)>,
    /// The sum of its series.
    pub(crate) over_time: Counts,
    /// By variant and link, in how many messages it was followed.
    pub(crate) unique_clicks: Vec<((u8, u8), i64)>,
    /// How many messages are in the listing of those of which something was seen, by its bit.
    pub(crate) seen: Vec<(u8, i64)>,
}

/// What the rows say.
#[derive(Debug, Default)]
pub(crate) struct Recount {
    totals: BTreeMap<(CampaignId, u8), Counts>,
    activity: BTreeMap<(Channel, SourceKind), Counts>,
    unique_clicks: BTreeMap<(CampaignId, u8, u8), i64>,
    seen: BTreeMap<(CampaignId, u8), i64>,
}

/// Whether messages of which this was seen may have visits.
pub(crate) fn has_visits(seen: Seen) -> bool {
    [Seen::OPENED, Seen::CLICKED, Seen::MACHINE].into_iter().any(|one| seen.has(one))
}

impl Recount {
    /// Counts a message.
    pub(crate) fn add(&mut self, message: &RecountedMessage) {
        let RecountedMessage { status, channel, campaign, variant, automation, seen, skip, links, visits } = *message;
        let found = visits + tally(&Row { status, seen, skip, sent_at: None, delivered_at: None });
        let kind = match (campaign, automation) {
            (Some(_), _) => SourceKind::Campaign,
            (None, Some(_)) => SourceKind::Automation,
            (None, None) => SourceKind::Transactional,
        };
        *self.activity.entry((channel, kind)).or_default() += found;
        let Some(campaign) = campaign else { return };
        *self.totals.entry((campaign, variant)).or_default() += found;
        for one in seen.each() {
            *self.seen.entry((campaign, one.bits())).or_default() += 1;
        }
        for link in (0..64).filter(|link| links >> link & 1 == 1) {
            *self.unique_clicks.entry((campaign, variant, link)).or_default() += 1;
        }
    }

    /// A series of the workspace, of which this is the sum, sums to its totals.
    pub(crate) fn compare_activity(
        &self,
        workspace: WorkspaceId,
        (channel, kind): (Channel, SourceKind),
        stored: &Counts,
        verified: &mut Verified,
    ) {
        let counted = self.activity.get(&(channel, kind)).copied().unwrap_or_default();
        for counter in SERIES {
            let what =
                || format!("{workspace}: {} over time, {}, {}", counter.as_str(), channel.as_str(), kind.as_str());
            verified.compare(what, stored.get(counter), counted.get(counter));
        }
    }

    pub(crate) fn compare_campaign(&self, campaign: CampaignId, kept: &KeptOfCampaign, verified: &mut Verified) {
        let mut variants: BTreeMap<u8, (Counts, Counts)> = BTreeMap::new();
        for (variant, stored) in &kept.totals {
            variants.entry(*variant).or_default().0 = *stored;
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
        let all = variants.values().map(|(_, one)| *one).sum::<Counts>();
        for counter in SERIES {
            let what = || format!("{campaign}: {} over time", counter.as_str());
            verified.compare(what, kept.over_time.get(counter), all.get(counter));
        }
        let mut links: BTreeMap<(u8, u8), (i64, i64)> = BTreeMap::new();
        for (key, stored) in &kept.unique_clicks {
            links.entry(*key).or_default().0 = *stored;
        }
        for ((_, variant, link), counted) in self.unique_clicks.range((campaign, 0, 0)..=(campaign, u8::MAX, u8::MAX)) {
            links.entry((*variant, *link)).or_default().1 = *counted;
        }
        for ((variant, link), (stored, counted)) in links {
            verified.compare(|| format!("{campaign}, variant {variant}, link {link}: unique_clicks"), stored, counted);
        }
        let mut seen: BTreeMap<u8, (i64, i64)> = BTreeMap::new();
        for (bit, stored) in &kept.seen {
            seen.entry(*bit).or_default().0 = *stored;
        }
        for ((_, bit), counted) in self.seen.range((campaign, u8::MIN)..=(campaign, u8::MAX)) {
            seen.entry(*bit).or_default().1 = *counted;
        }
        for (bit, (stored, counted)) in seen {
            let what = || format!("{campaign}: messages in the listing of those {}", seen_text(Seen::from_bits(bit)));
            verified.compare(what, stored, counted);
        }
    }
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
