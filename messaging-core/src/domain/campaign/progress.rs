//! Progress of the work on a campaign: read, advanced and written by its job under its revision.
//!
//! People change the campaign, its job changes its progress; so neither makes the other decide again. First the
//! audience is judged, piece by piece ([`Freeze`]); then the test group of an A/B test is drawn, if it has one.
//! Messages are made wave by wave ([`FanOut`]): for a regular campaign while its audience is still being judged, for an
//! A/B test once the number of recipients is known, because the shares of the variants follow from it.

use serde::{Deserialize, Serialize};

use super::audience::{AudienceCounts, Judged};
use super::split::{self, Split};
use super::{Campaign, CampaignKind, CampaignPhase};
use crate::domain::message::content::TemplateUse;
use crate::ids::{CampaignId, Id as _, WorkspaceId};
use crate::time::Timestamp;

/// Maximum number of messages that wait to be sent before more are made.
pub const MAX_AHEAD: u64 = 50_000;

/// Progress of the work on a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignProgress {
    /// The workspace that sends it.
    pub workspace_id: WorkspaceId,
    /// The campaign.
    pub campaign_id: CampaignId,
    /// Moment as of which the audience is judged: `started_at` of the campaign.
    pub as_of: Timestamp,
    /// The templates of its variants at the versions of the start, in the order of the variants; a regular campaign has
    /// one.
    pub templates: Vec<TemplateUse>,
    /// The senders of its variants, in their order; `None` on channels that have none.
    pub senders: Vec<Option<String>>,
    /// Progress of judging the audience.
    pub freeze: Freeze,
    /// Numbers of contacts by verdict, in the part of the audience that was judged so far.
    pub counts: AudienceCounts,
    /// Numbers of recipients by the time at which they are due, in the order of time.
    pub waves: Vec<Wave>,
    /// Place in the audience from which messages are made next.
    pub fan_out: FanOut,
}

/// Progress of judging an audience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freeze {
    /// The piece to judge next; `None` for the first one of the workspace.
    Judging(Option<u64>),
    /// The whole audience is judged. From this piece on its recipients are drawn into the test group (size 0 of the
    /// split) and the rest (size 1).
    Drawing(u64, Split),
    /// The audience is known.
    Done,
}

/// Recipients who are due at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wave {
    /// Due time, which follows from the time zones of these recipients.
    pub due_at: Timestamp,
    /// Number of recipients who are due then.
    pub recipients: u64,
}

/// Group of recipients for which messages are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// All recipients.
    #[default]
    Everyone,
    /// The test group of an A/B test.
    Test,
    /// Everybody but the test group.
    Rest,
}

/// Place in the audience from which messages are made next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// Group of recipients for which messages are made: everyone, the test group or the rest.
    pub group: Group,
    /// Due time of the current wave; `None` for the first one.
    pub due_at: Option<Timestamp>,
    /// Current piece of the wave.
    pub piece: u64,
    /// First place of the piece without a message.
    pub place: u16,
    /// Draws the variant of each recipient; `None` if all recipients get the same one.
    pub variants: Option<Split>,
    /// True if the whole group has messages.
    pub is_done: bool,
}

impl CampaignProgress {
    /// Returns the progress of a campaign that has just begun.
    pub fn new(campaign: &Campaign, as_of: Timestamp, variants: Vec<(TemplateUse, Option<String>)>) -> Self {
        let (templates, senders) = variants.into_iter().unzip();
        Self {
            workspace_id: campaign.workspace_id,
            campaign_id: campaign.id,
            as_of,
            templates,
            senders,
            freeze: Freeze::Judging(None),
            counts: AudienceCounts::default(),
            waves: Vec::new(),
            fan_out: FanOut::default(),
        }
    }

    /// Adds the verdicts on a piece, with the recipients of each wave; `next` is the piece after it. Returns true if it
    /// was the last.
    pub fn note_judged(
        &mut self,
        campaign: &Campaign,
        judged: &Judged,
        waves: impl IntoIterator<Item = Wave>,
        next: Option<u64>,
    ) -> bool {
        self.counts += judged.counts();
        for wave in waves {
            match self.waves.binary_search_by_key(&wave.due_at, |known| known.due_at) {
                Ok(place) => self.waves[place].recipients += wave.recipients,
                Err(place) => self.waves.insert(place, wave),
            }
        }
        self.freeze = match next {
            Some(next) => Freeze::Judging(Some(next)),
            None if self.has_test(campaign) => Freeze::Drawing(0, self.test_split(campaign)),
            None => Freeze::Done,
        };
        let is_last = next.is_none();
        if is_last {
            let has_test = self.has_test(campaign);
            if campaign.plan.kind == CampaignKind::AbTest {
                let (group, total) = if has_test {
                    (Group::Test, self.test_size(campaign))
                } else {
                    (Group::Everyone, self.counts.recipients)
                };
                self.fan_out = FanOut { group, variants: Some(variant_split(campaign, total)), ..FanOut::default() };
            }
        }
        is_last
    }

    /// Returns the size of the test group.
    fn test_size(&self, campaign: &Campaign) -> u64 {
        let percent = campaign.plan.settings.ab_test.map_or(100, |test| test.test_percent);
        split::test_group(self.counts.recipients, percent, campaign.plan.variants.len())
    }

    /// Returns true if some of the recipients belong to a test group and some do not. Known once the whole audience is
    /// judged.
    pub fn has_test(&self, campaign: &Campaign) -> bool {
        campaign.plan.kind == CampaignKind::AbTest
            && campaign.plan.settings.ab_test.is_some()
            && self.test_size(campaign) < self.counts.recipients
    }

    fn test_split(&self, campaign: &Campaign) -> Split {
        let size = self.test_size(campaign);
        Split::new(campaign.id, vec![size, self.counts.recipients - size])
    }

    /// Begins to make messages for the rest, because there is a winner.
    pub fn begin_rest(&mut self) {
        self.fan_out = FanOut { group: Group::Rest, ..FanOut::default() };
    }

    /// Returns true if messages may be made for recipients who are known and have none yet.
    pub fn may_fan_out(&self, campaign: &Campaign) -> bool {
        if self.fan_out.is_done {
            return false;
        }
        match (campaign.plan.kind, self.fan_out.group) {
            // The first wave follows the judging.
            (CampaignKind::Regular, _) => true,
            (CampaignKind::AbTest, Group::Rest) => campaign.phase == Some(CampaignPhase::Winner),
            (CampaignKind::AbTest, Group::Everyone | Group::Test) => self.freeze == Freeze::Done,
        }
    }

    /// Returns the wave for which messages are made; `None` when none is left, or none is known yet.
    pub fn wave(&self) -> Option<Timestamp> {
        let at = self.fan_out.due_at.unwrap_or(self.as_of);
        let next = self.waves.iter().map(|wave| wave.due_at).find(|due| *due >= at)?;
        // Until the audience is judged, earlier waves may be found, except before the first one.
        (next == self.as_of || !matches!(self.freeze, Freeze::Judging(_))).then_some(next)
    }

    /// Continues with the next wave, or ends, when all recipients of this one have messages.
    pub fn end_wave(&mut self, wave: Option<Timestamp>) {
        if matches!(self.freeze, Freeze::Judging(_)) {
            return;
        }
        let next = wave.and_then(|wave| self.waves.iter().map(|one| one.due_at).find(|due| *due > wave));
        match next {
            Some(next) => {
                self.fan_out.due_at = Some(next);
                (self.fan_out.piece, self.fan_out.place) = (0, 0);
            }
            None => self.fan_out.is_done = true,
        }
    }

    /// Returns true if every recipient has a message.
    pub fn is_complete(&self, campaign: &Campaign) -> bool {
        let is_last_group = match self.fan_out.group {
            Group::Everyone | Group::Rest => true,
            Group::Test => !self.has_test(campaign),
        };
        self.freeze == Freeze::Done && self.fan_out.is_done && is_last_group
    }
}

/// Returns the split of `total` recipients into variants. With settings of an A/B test no variant stays empty, as far
/// as the recipients suffice. The draws differ from those of the test group, which follow from the same campaign and
/// place.
fn variant_split(campaign: &Campaign, total: u64) -> Split {
    let weights = campaign.plan.weights();
    let sizes = match campaign.plan.settings.ab_test {
        Some(_) => split::sizes_of_at_least_one(total, &weights),
        None => split::sizes(total, &weights),
    };
    let mut key = campaign.id.to_bytes();
    key[15] ^= 1;
    Split::new(CampaignId::from_bytes(key), sizes)
}
