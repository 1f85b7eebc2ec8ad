//! Cancelling of the waiting work of a database that is a copy.

use messaging_core::domain::delivery::lane::Lane;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Job that cancels all waiting work, and then takes the fence down.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CancelWaiting {}

impl JobData for CancelWaiting {
    const KIND: &'static str = "cancel_waiting";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::of_installation(lanes::CANCELLING)
    }
}
