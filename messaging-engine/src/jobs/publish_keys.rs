//! The records of new DKIM keys, published by the kept account of a sending domain.

use std::time::Duration;

use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::ids::{DomainId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Minutes until the next round while the records are not seen; then the daily look at the domain begins anew.
const WAITS: [u64; 6] = [1, 2, 5, 15, 60, 240];

/// Publishes the records of keys that are not found published, removes those of keys that are gone, and looks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PublishKeys {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) domain_id: DomainId,
    /// Rounds so far.
    #[serde(default)]
    pub(crate) rounds: u8,
}

impl PublishKeys {
    /// The job of a domain.
    pub(crate) fn of(domain: &SendingDomain) -> Self {
        Self { workspace_id: domain.workspace_id, domain_id: domain.id, rounds: 0 }
    }

    /// The next round and how long until then; `None` after the last.
    pub(crate) fn next(self) -> Option<(Self, Duration)> {
        let wait = WAITS.get(usize::from(self.rounds))?;
        Some((Self { rounds: self.rounds + 1, ..self }, Duration::from_mins(*wait)))
    }
}

impl JobData for PublishKeys {
    const KIND: &'static str = "publish_keys";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        Lane::new(JobClass::Transactional, self.workspace_id, lanes::DNS)
    }
}
