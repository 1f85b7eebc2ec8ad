//! How far the work on a campaign has come: what its job reads, advances and writes under its revision.
//!
//! People change the campaign, its job changes its progress; so neither makes the other decide again. First the
//! audience is judged, piece by piece ([`Freeze`]); of an A/B test with a test group that group is drawn then. Messages
//! are made wave by wave ([`FanOut`]): of a regular campaign while it is still being judged, of one that compares
//! variants once the number of recipients is known, because their shares follow from it.

use serde::{Deserialize, Serialize};

use super::audience::{AudienceCounts, Judged};
use super::split::{self, Split};
use super::{Campaign, CampaignKind, CampaignPhase};
use crate::domain::message::content::TemplateUse;
use crate::ids::{CampaignId, Id as _, WorkspaceId};
use crate::time::Timestamp;

/// Messages that wait to be sent, at most, before more are made.
pub const MAX_AHEAD: u64 = 50_000;

/// How far the work on a campaign has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignProgress {
    /// The workspace that sends it.
    pub workspace_id: WorkspaceId,
    /// The campaign.
    pub campaign_id: CampaignId,
    /// The moment as of which its audience is judged: `started_at`.
    pub as_of: Timestamp,
    /// The templates of its variants at the versions of the start, in the order of the variants; a regular campaign has
    /// one.
    pub templates: Vec<TemplateUse>,
    /// The senders of its variants, in their order; `None` on channels that have none.
    pub senders: Vec<Option<String>>,
    /// How far its audience is known.
    pub freeze: Freeze,
    /// Numbers of contacts by verdict, in the part of the audience that was judged so far.
    pub counts: AudienceCounts,
    /// How many recipients are due when, in the order of time.
    pub waves: Vec<Wave>,
    /// Place in the audience from which messages are made next.
    pub fan_out: FanOut,
}

/// How far an audience is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freeze {
    /// This piece is judged next; the first one of the workspace is `None`.
    Judging(Option<u64>),
    /// Everybody is judged. From this piece on it is drawn who belongs to the test group (size 0 of the split) and who to
    /// the rest (size 1).
    Drawing(u64, Split),
    /// It is known.
    Done,
}

/// Recipients who are due at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wave {
    /// When the clocks of their zones let them have it.
    pub due_at: Timestamp,
    /// How many recipients are due then.
    pub recipients: u64,
}

/// Which recipients are given messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// All.
    #[default]
    Everyone,
    /// The test group of an A/B test.
    Test,
    /// Everybody but the test group.
    Rest,
}

/// Where making messages of recipients goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// Group of recipients for which messages are made: everyone, the test group or the rest.
    pub group: Group,
    /// The wave it is at; `None` at the first.
    pub due_at: Option<Timestamp>,
    /// The piece within the wave.
    pub piece: u64,
    /// The first place of the piece that is left.
    pub place: u16,
    /// Draws the variants, where they are compared.
    pub variants: Option<Split>,
    /// Whether the whole group has messages.
    pub is_done: bool,
}

impl CampaignProgress {
    /// That of a campaign that has just begun.
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

    /// Notes what was judged of a piece, with the recipients of each wave; `next` is the piece after it. Answers whether
    /// it was the last.
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

    /// How many belong to the test group, if there is one.
    fn test_size(&self, campaign: &Campaign) -> u64 {
        let percent = campaign.plan.settings.ab_test.map_or(100, |test| test.test_percent);
        split::test_group(self.counts.recipients, percent, campaign.plan.variants.len())
    }

    /// Whether some of the recipients belong to a test group and some do not. Known when everybody is judged.
    pub fn has_test(&self, campaign: &Campaign) -> bool {
        campaign.plan.kind == CampaignKind::AbTest
            && campaign.plan.settings.ab_test.is_some()
            && self.test_size(campaign) < self.counts.recipients
    }

    fn test_split(&self, campaign: &Campaign) -> Split {
        let size = self.test_size(campaign);
        Split::new(campaign.id, vec![size, self.counts.recipients - size])
    }

    /// The rest gets messages from now on: there is a winner.
    pub fn begin_rest(&mut self) {
        self.fan_out = FanOut { group: Group::Rest, ..FanOut::default() };
    }

    /// Whether messages may be made of recipients who are known, and are not yet.
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

    /// The wave of which messages are made; `None` when there is none left, or none is known yet.
    pub fn wave(&self) -> Option<Timestamp> {
        let at = self.fan_out.due_at.unwrap_or(self.as_of);
        let next = self.waves.iter().map(|wave| wave.due_at).find(|due| *due >= at)?;
        // Others may come before all but the first one until everybody is judged.
        (next == self.as_of || !matches!(self.freeze, Freeze::Judging(_))).then_some(next)
    }

    /// Goes on to the next wave, or ends, when nobody of this one is left.
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

    /// Whether everybody who is to get it has a message.
    pub fn is_complete(&self, campaign: &Campaign) -> bool {
        let is_last_group = match self.fan_out.group {
            Group::Everyone | Group::Rest => true,
            Group::Test => !self.has_test(campaign),
        };
        self.freeze == Freeze::Done && self.fan_out.is_done && is_last_group
    }
}

/// Draws the variants of so many recipients. Where they are a test group, nobody of the variants goes without. The draws
/// are others than those of the test group, which follow from the same campaign and place.
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
