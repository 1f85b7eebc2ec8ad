//! A receipt whose message nobody knows yet.

use std::time::Duration;

use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ports::inbound::ReceiptLink;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Waits between looks, in seconds: an attempt may take minutes until its commit.
const WAITS: [u64; 6] = [1, 5, 20, 60, 180, 600];

/// Looks for the message of a receipt again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SettleReceipt {
    /// Which message it is about.
    pub(crate) about: ReceiptLink,
    /// Content of the receipt: what became of the message, or that it was read.
    pub(crate) receipt: Receipt,
    /// Number of times that the message was looked for.
    pub(crate) looks: u8,
}

impl SettleReceipt {
    /// Time until the message is looked for again.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs(WAITS[usize::from(self.looks).min(WAITS.len() - 1)])
    }

    /// The next look; `None` after the last one.
    pub(crate) fn again(self) -> Option<Self> {
        let looks = self.looks + 1;
        (usize::from(looks) < WAITS.len()).then_some(Self { looks, ..self })
    }
}

impl JobData for SettleReceipt {
    const KIND: &'static str = "settle_receipt";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        let (ReceiptLink::Message { workspace_id, .. } | ReceiptLink::Provider { workspace_id, .. }) = &self.about;
        Lane::new(JobClass::Transactional, *workspace_id, lanes::RECEIPTS)
    }
}
