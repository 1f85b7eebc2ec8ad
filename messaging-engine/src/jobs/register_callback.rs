//! Registering our callback address with a provider.

use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::WorkspaceId;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Delays before the next try after each failure in a row, in minutes; the last one is repeated.
const RETRY_DELAYS: [u64; 4] = [1, 5, 15, 60];

/// Registers our callback address with the provider of a channel, and again whenever the address changes, for as long
/// as the settings of the channel stay as they are.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RegisterCallback {
    /// Workspace that owns the settings of the channel.
    pub(crate) workspace_id: WorkspaceId,
    /// Channel whose provider is told.
    pub(crate) channel: Channel,
    /// Failures in a row.
    pub(crate) failures: u8,
}

impl RegisterCallback {
    /// Interval between two checks that the registered address is still right.
    pub(crate) const CHECK_INTERVAL: Duration = Duration::from_mins(10);

    /// The job after a failure, and the delay before the next try.
    pub(crate) fn failed(self) -> (Self, Duration) {
        let wait = RETRY_DELAYS[usize::from(self.failures).min(RETRY_DELAYS.len() - 1)];
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
