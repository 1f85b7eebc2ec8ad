//! A suppression in a request.
//!
//! Contract section 10.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SuppressionReason;
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::input::Input;
use crate::validate::{Setters, Validate};
use crate::violation::Violations;

/// An address to suppress.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SuppressionInput {
    /// The channel.
    pub channel: Channel,
    /// The address, in the format that `to` has in messages of the channel.
    #[validate(length(min = 1, max = 4096))]
    pub address: String,
    /// Reason of the suppression. All but `unsubscribe` stop transactional messages too.
    // An option only so that an unknown reason does not keep the address from being judged.
    #[validate(required)]
    pub reason: Option<SuppressionReason>,
}

impl Input for SuppressionInput {
    fn check(&self, violations: &mut Violations) {
        address::check_sent(self.channel, &self.address, "/address", "not an address of this channel", violations);
    }
}
