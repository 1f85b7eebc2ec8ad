//! Telling a provider where to call.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::WorkspaceId;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Waits after failures, in minutes; the last one is repeated.
const WAITS: [u64; 4] = [1, 5, 15, 60];

/// Tells the provider of a channel where to call, again when that changes, for as long as its settings stay.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RegisterCallback {
    /// The workspace.
    pub(crate) workspace_id: WorkspaceId,
    /// The channel.
    pub(crate) channel: Channel,
    /// How often it failed in a row.
    pub(crate) failures: u8,
}

impl RegisterCallback {
    /// How long until the next look at whether the provider still knows the right address.
    pub(crate) const LOOK: Duration = Duration::from_mins(10);

    /// The same after a failure, and how long until it is tried again.
    pub(crate) fn failed(self) -> (Self, Duration) {
        let wait = WAITS[usize::from(self.failures).min(WAITS.len() - 1)];
        (Self { failures: self.failures.saturating_add(1), ..self }, Duration::from_mins(wait))
    }
}

impl JobData for RegisterCallback {
    const KIND: &'static str = "register_callback";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        Lane::new(JobClass::Transactional, self.workspace_id, lanes::CALLBACKS)
    }
}
