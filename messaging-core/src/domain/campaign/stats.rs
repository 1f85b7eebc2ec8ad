//! Statistics of a campaign, calculated from counters alone.
//!
//! Contract sections 12.4 and 12.5.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audience::AudienceCounts;
use super::settings::WinnerMetric;
use super::winner::{Score, Trials, Verdict, scores};
use super::{Campaign, CampaignStatus};
use crate::domain::analytics::tally::{Counter, Counts, rate};
use crate::ids::CampaignId;

/// Statistics of a campaign: its recipients, messages, opens, clicks and unsubscribes, in all and by variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignStats {
    /// The campaign.
    pub campaign_id: CampaignId,
    /// Contacts who get the campaign; 0 until the audience is known.
    pub recipients: u64,
    /// Messages that were handed to the channel.
    pub sent: u64,
    /// Messages that arrived.
    pub delivered: u64,
    /// Opens by people; repeated ones count again.
    pub opens: u64,
    /// Messages that people opened at least once.
    pub unique_opens: u64,
    /// Clicks on links by people; repeated ones count again.
    pub clicks: u64,
    /// Messages in which people clicked at least one link.
    pub unique_clicks: u64,
    /// Messages that were refused or came back.
    pub bounces: u64,
    /// Messages that recipients reported as spam.
    pub complaints: u64,
    /// Messages through which people unsubscribed.
    pub unsubscribes: u64,
    /// Unique opens for each delivered message, rounded to 4 decimals.
    pub open_rate: f64,
    /// Unique clicks for each delivered message, rounded to 4 decimals.
    pub click_rate: f64,
    /// Opens by machines, such as mail proxies that load images in advance.
    pub machine_opens: u64,
    /// Recipients whose first attempt has not begun.
    pub waiting: u64,
    /// Messages with an attempt under way.
    pub sending: u64,
    /// Messages that wait for another attempt.
    pub deferred: u64,
    /// Messages that could not be sent.
    pub failed: u64,
    /// Recipients who get nothing because the campaign or their message was cancelled.
    pub cancelled: u64,
    /// Contacts in the audience who do not get the campaign, by reason.
    pub skipped: Skipped,
    /// Statistics of each variant; empty without an A/B test.
    pub variants: Vec<VariantStats>,
}

/// Contacts in the audience who do not get a campaign, by reason: excluded when the audience was fixed, or by the last
/// check before sending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// The address is suppressed.
    pub suppressed: u64,
    /// The contact has not consented.
    pub no_consent: u64,
    /// The contact has no address.
    pub no_address: u64,
    /// The contact has already received as many messages as the frequency cap permits.
    pub frequency_cap: u64,
    /// Another contact in the audience has the same address.
    pub duplicates: u64,
}

/// Statistics of one variant of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantStats {
    /// Its name.
    pub name: String,
    /// Messages that were handed to the channel.
    pub sent: u64,
    /// Messages that arrived.
    pub delivered: u64,
    /// Messages that people opened at least once.
    pub unique_opens: u64,
    /// Messages in which people clicked at least one link.
    pub unique_clicks: u64,
    /// Unique opens for each delivered message, rounded to 4 decimals.
    pub open_rate: f64,
    /// Unique clicks for each delivered message, rounded to 4 decimals.
    pub click_rate: f64,
    /// Probability that the variant is the best; fixed when the winner is chosen.
    pub probability_best: f64,
    /// Interval in which the true rate lies with a probability of 95 %.
    pub interval: (f64, f64),
    /// Verdict on the probability: `clear` from 0.95 on, `likely` from 0.8 on, `open` below that.
    pub verdict: Verdict,
}

/// Returns the counters of each variant in their order. `kept` may be shorter, because a variant without messages has
/// no counters.
fn by_variant(campaign: &Campaign, kept: &[Counts]) -> Vec<Counts> {
    (0..campaign.plan.variants.len()).map(|place| kept.get(place).copied().unwrap_or_default()).collect()
}

/// Returns deliveries and successes of each variant, for their comparison. A success is a unique click if the test
/// compares click rates, else a unique open. `variants` are the counters in the order of the variants.
pub fn trials(campaign: &Campaign, variants: &[Counts]) -> Vec<Trials> {
    let by_clicks = campaign.plan.settings.ab_test.is_some_and(|test| test.winner_metric == WinnerMetric::ClickRate);
    let counter = if by_clicks { Counter::UniqueClicks } else { Counter::UniqueOpens };
    let of = |counts: &Counts| Trials { delivered: counts.total(Counter::Delivered), successes: counts.total(counter) };
    by_variant(campaign, variants).iter().map(of).collect()
}

impl Campaign {
    /// Returns true if recipients without a message will get none: the campaign was cancelled or failed.
    pub const fn is_withdrawn(&self) -> bool {
        matches!(self.status, CampaignStatus::Cancelled | CampaignStatus::Failed)
    }

    /// Returns the number of recipients without a message yet.
    fn without_message(&self, all: &Counts) -> u64 {
        self.recipients.unwrap_or(0).saturating_sub(all.messages())
    }

    /// Returns the number of recipients whose first attempt has not begun, from the counters of its variants.
    pub fn waiting(&self, variants: &[Counts]) -> u64 {
        let all: Counts = variants.iter().copied().sum();
        let unborn = if self.is_withdrawn() { 0 } else { self.without_message(&all) };
        unborn + all.total(Counter::Waiting)
    }
}

impl CampaignStats {
    /// Returns the statistics of a campaign, from the counts made when its audience was fixed and the counters of its
    /// variants in their order. A regular campaign has the counters of one variant.
    pub fn of(campaign: &Campaign, audience: AudienceCounts, variants: &[Counts]) -> Self {
        let all: Counts = variants.iter().copied().sum();
        let total = |counter| all.total(counter);
        let recipients = campaign.recipients.unwrap_or(0);
        let unborn = campaign.without_message(&all);
        let (waiting, cancelled) = if campaign.is_withdrawn() { (0, unborn) } else { (unborn, 0) };
        let delivered = total(Counter::Delivered);
        Self {
            campaign_id: campaign.id,
            recipients,
            sent: total(Counter::Sent),
            delivered,
            opens: total(Counter::Opens),
            unique_opens: total(Counter::UniqueOpens),
            clicks: total(Counter::Clicks),
            unique_clicks: total(Counter::UniqueClicks),
            bounces: total(Counter::Bounces),
            complaints: total(Counter::Complaints),
            unsubscribes: total(Counter::Unsubscribes),
            open_rate: rate(total(Counter::UniqueOpens), delivered),
            click_rate: rate(total(Counter::UniqueClicks), delivered),
            machine_opens: total(Counter::MachineOpens),
            waiting: waiting + total(Counter::Waiting),
            sending: total(Counter::Sending),
            deferred: total(Counter::Deferred),
            failed: total(Counter::Failed),
            cancelled: cancelled + total(Counter::Cancelled),
            skipped: Skipped {
                suppressed: audience.suppressed + total(Counter::SkippedSuppressed),
                no_consent: audience.no_consent + total(Counter::SkippedNoConsent),
                no_address: audience.no_address,
                frequency_cap: total(Counter::SkippedFrequencyCap),
                duplicates: audience.duplicates,
            },
            variants: VariantStats::of(campaign, variants),
        }
    }
}

impl VariantStats {
    fn of(campaign: &Campaign, variants: &[Counts]) -> Vec<Self> {
        if campaign.plan.variants.is_empty() {
            return Vec::new();
        }
        let counts = by_variant(campaign, variants);
        let scores = if campaign.scores.len() == counts.len() {
            campaign.scores.clone()
        } else {
            scores(&trials(campaign, &counts))
        };
        let one = |((variant, counts), score): ((&super::Variant, &Counts), Score)| {
            let delivered = counts.total(Counter::Delivered);
            Self {
                name: variant.name.clone(),
                sent: counts.total(Counter::Sent),
                delivered,
                unique_opens: counts.total(Counter::UniqueOpens),
                unique_clicks: counts.total(Counter::UniqueClicks),
                open_rate: rate(counts.total(Counter::UniqueOpens), delivered),
                click_rate: rate(counts.total(Counter::UniqueClicks), delivered),
                probability_best: score.probability_best,
                interval: score.interval,
                verdict: Verdict::of(score.probability_best),
            }
        };
        campaign.plan.variants.iter().zip(&counts).zip(scores).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::state::tests::{campaign, draft, test_plan};
    use super::*;

    fn counts(numbers: &[(Counter, i64)]) -> Counts {
        numbers.iter().copied().collect()
    }

    #[test]
    fn a_draft_answers_zeros() {
        let stats = CampaignStats::of(&draft(), AudienceCounts::default(), &[]);
        let shown = serde_json::to_value(&stats).unwrap();
        let members = shown.as_object().unwrap();
        let numbers =
            members.iter().filter(|(name, _)| !["campaign_id", "skipped", "variants"].contains(&name.as_str()));
        assert!(numbers.clone().all(|(_, value)| value.as_f64() == Some(0.0)), "{shown}");
        assert_eq!(numbers.count(), 18);
    }

    #[test]
    fn everybody_is_somewhere() {
        let variant = counts(&[
            (Counter::Waiting, 5),
            (Counter::Sending, 1),
            (Counter::Deferred, 2),
            (Counter::Sent, 90),
            (Counter::Delivered, 88),
            (Counter::Bounces, 2),
            (Counter::UniqueOpens, 40),
            (Counter::Opens, 50),
            (Counter::UniqueClicks, 10),
            (Counter::SkippedNoConsent, 1),
            (Counter::SkippedFrequencyCap, 3),
        ]);
        let audience = AudienceCounts { recipients: 120, no_consent: 4, no_address: 1, ..AudienceCounts::default() };
        let sending = Campaign { recipients: Some(120), ..campaign(draft().plan, CampaignStatus::Sending) };
        let stats = CampaignStats::of(&sending, audience, &[variant]);
        assert_eq!((stats.open_rate, stats.click_rate), (0.4545, 0.1136));
        assert_eq!((stats.waiting, stats.cancelled), (18 + 5, 0));
        assert_eq!(sending.waiting(&[variant]), stats.waiting);
        assert_eq!((stats.skipped.no_consent, stats.skipped.no_address, stats.skipped.frequency_cap), (5, 1, 3));
        let by_last_look = 1 + 3;
        let parts = stats.waiting + stats.sending + stats.deferred + stats.sent + stats.failed + stats.cancelled;
        assert_eq!(parts + by_last_look, stats.recipients);
        // Recipients without a message are cancelled with the campaign.
        let cancelled = Campaign { status: CampaignStatus::Cancelled, ..sending };
        let stats = CampaignStats::of(&cancelled, audience, &[variant]);
        assert_eq!((stats.waiting, stats.cancelled), (5, 18));
        assert_eq!(cancelled.waiting(&[variant]), stats.waiting);
    }

    #[test]
    fn variants_have_what_was_known_when_the_winner_was_chosen() {
        let (a, b) = (
            counts(&[(Counter::Delivered, 100), (Counter::UniqueOpens, 20), (Counter::UniqueClicks, 9)]),
            counts(&[(Counter::Delivered, 100), (Counter::UniqueOpens, 40), (Counter::UniqueClicks, 1)]),
        );
        let testing = campaign(test_plan(), CampaignStatus::Sending);
        let stats = CampaignStats::of(&testing, AudienceCounts::default(), &[a, b]);
        assert_eq!((stats.variants[1].verdict, stats.variants[0].verdict), (Verdict::Clear, Verdict::Open));
        assert_eq!((stats.variants[1].open_rate, stats.variants[1].click_rate), (0.4, 0.01));
        let known = vec![Score { probability_best: 0.85, interval: (0.1, 0.3) }; 2];
        let decided = Campaign { scores: known, ..testing.clone() };
        let stats = CampaignStats::of(&decided, AudienceCounts::default(), &[a, b]);
        assert_eq!((stats.variants[0].verdict, stats.variants[0].interval), (Verdict::Likely, (0.1, 0.3)));

        let mut by_clicks = testing;
        by_clicks.plan.settings = serde_json::from_value(
            json!({"ab_test": {"test_percent": 20, "wait_minutes": 1, "winner_metric": "click_rate"}}),
        )
        .unwrap();
        let stats = CampaignStats::of(&by_clicks, AudienceCounts::default(), &[a, b]);
        assert_eq!(stats.variants[0].verdict, Verdict::Clear);
    }
}
