//! The daily look at the records of a sending domain.

use messaging_core::changes::NewJob;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::next_look;
use messaging_core::ids::{DomainId, JobId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach};

/// Looks at a domain.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct VerifyDomain {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) domain_id: DomainId,
}

impl VerifyDomain {
    /// The job of a domain.
    pub fn of(domain: &SendingDomain) -> Self {
        Self { workspace_id: domain.workspace_id, domain_id: domain.id }
    }

    /// The row to enqueue when the domain is added. Whoever adds it looks by himself once the records
    /// are published; this is for those who do not.
    pub fn first(&self, id: JobId, domain: &SendingDomain, now: Timestamp) -> NewJob {
        self.enqueue(id, next_look(domain, now))
    }
}

impl JobData for VerifyDomain {
    const KIND: &'static str = "verify_domain";
    const REACH: Reach = Reach::Inside;

    /// Shared by all workspaces: what is slow is one resolver.
    fn lane(&self) -> Lane {
        Lane::of_installation(Self::KIND)
    }
}
