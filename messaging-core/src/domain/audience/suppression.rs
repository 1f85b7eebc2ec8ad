//! The suppression list: addresses that are no longer sent to, with the reason.
//!
//! Contract section 10.

pub mod input;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::ids::{SuppressionId, WorkspaceId};
use crate::time::Timestamp;

/// Reason for which an address is suppressed; ordered, because a repeated report only raises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum SuppressionReason {
    Unsubscribe,
    Manual,
    Invalid,
    Bounce,
    Complaint,
}

impl SuppressionReason {
    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsubscribe => "unsubscribe",
            Self::Manual => "manual",
            Self::Invalid => "invalid",
            Self::Bounce => "bounce",
            Self::Complaint => "complaint",
        }
    }

    /// True if the reason also stops transactional messages to the address (contract section 10, second table).
    pub const fn stops_transactional(self) -> bool {
        !matches!(self, Self::Unsubscribe)
    }
}

impl Suppression {
    /// Returns the record after the address was reported again: the reason rises, never falls (contract section 10).
    /// `None` if nothing changes.
    pub fn raised(&self, reason: SuppressionReason, detail: Option<String>) -> Option<Self> {
        (reason > self.reason).then(|| Self { reason, detail, ..self.clone() })
    }
}

/// Source of a suppression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuppressionSource {
    /// A call of the API.
    Api,
    /// A bounce or complaint.
    System,
    /// The recipient.
    Recipient,
}

/// One suppressed address of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    /// Its id.
    pub id: SuppressionId,
    /// Workspace on whose suppression list the address is.
    pub workspace_id: WorkspaceId,
    /// The channel.
    pub channel: Channel,
    /// The address, normalised (see [`crate::domain::channel::address::normalize`]); unique per channel.
    pub address: String,
    /// Reason for which the address must not be sent to.
    pub reason: SuppressionReason,
    /// Detail of the reason.
    pub detail: Option<String>,
    /// Source of the suppression: a call of the API, a bounce or complaint, or the recipient.
    pub source: SuppressionSource,
    /// When the address was listed.
    pub created_at: Timestamp,
}

/// Filter of a listing of suppressions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuppressionFilter {
    /// Only suppressions of this channel.
    pub channel: Option<Channel>,
    /// Only suppressions of this address, as the caller spells it.
    pub address: Option<String>,
    /// Only suppressions with this reason.
    pub reason: Option<SuppressionReason>,
}

impl SuppressionFilter {
    /// Returns the only rows that can match a filter with an address: one of each channel, spelled as that channel
    /// spells addresses.
    pub fn candidates(&self) -> Option<Vec<(Channel, String)>> {
        let address = self.address.as_deref()?;
        let channels = Channel::ALL.into_iter().filter(|channel| self.channel.is_none_or(|only| only == *channel));
        Some(channels.map(|channel| (channel, address::normalize(channel, address))).collect())
    }

    /// True if a suppression matches in channel and reason.
    pub fn matches(&self, suppression: &Suppression) -> bool {
        self.channel.is_none_or(|channel| channel == suppression.channel)
            && self.reason.is_none_or(|reason| reason == suppression.reason)
    }
}
