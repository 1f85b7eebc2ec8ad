//! How far the work on a campaign has come: what its jobs read, advance and write under its revision.
//!
//! People change the campaign, jobs change its progress; so neither makes the other decide again.

use serde::{Deserialize, Serialize};

use super::audience::AudienceCounts;
use super::split::Split;
use crate::domain::content::TemplateUse;
use crate::domain::recipient_time::pacing::Pacing;
use crate::ids::{CampaignId, WorkspaceId};
use crate::time::Timestamp;

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
    /// The piece that is judged next; `None` once all are.
    pub next_piece: Option<u64>,
    /// What was judged so far.
    pub counts: AudienceCounts,
    /// How many recipients are due when, in the order of time.
    pub waves: Vec<Wave>,
    /// Where making messages goes on.
    pub fan_out: FanOut,
    /// When a job last got somewhere, or had a reason to wait; see
    /// [`has_stalled`](super::schedule::has_stalled).
    pub advanced_at: Timestamp,
    /// What its rate limit remembers, if it has one.
    pub pacing: Option<Pacing>,
}

/// Recipients who are due at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wave {
    /// When.
    pub due_at: Timestamp,
    /// How many.
    pub recipients: u64,
}

/// Where making messages of recipients goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// The wave it is at.
    pub due_at: Option<Timestamp>,
    /// The piece within the wave.
    pub piece: u64,
    /// The first place of the piece that is left.
    pub place: u16,
    /// How many messages were made.
    pub made: u64,
    /// Draws who belongs to the test group (place 0) and who to the rest (place 1), until all are drawn.
    pub test: Option<Split>,
    /// Draws the variants of those who are given messages now.
    pub variants: Option<Split>,
    /// Whether all recipients have messages.
    pub is_done: bool,
}
