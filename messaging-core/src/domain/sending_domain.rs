//! Sending domains, as far as they decide whether a sender is allowed.
//!
//! Contract sections 4.1 (`from_email`) and 14.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{DomainId, WorkspaceId};
use crate::time::Timestamp;

/// Whether a domain may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DomainStatus {
    /// Records not found yet.
    Pending,
    /// May send.
    Verified,
    /// Broken for too long.
    Failed,
}

/// A domain of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingDomain {
    /// Its id.
    pub id: DomainId,
    /// Whose.
    pub workspace_id: WorkspaceId,
    /// Lower case, A-labels; unique in the workspace.
    pub domain: String,
    /// Whether it may send.
    pub status: DomainStatus,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was first verified.
    pub verified_at: Option<Timestamp>,
}

impl SendingDomain {
    /// Whether `host` (lower case, A-labels) is the domain or a sub-domain of it.
    pub fn covers(&self, host: &str) -> bool {
        host.strip_suffix(self.domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

/// The domain of the workspace that a sender belongs to: the longest match, verified or not.
pub fn responsible<'a>(domains: &'a [SendingDomain], host: &str) -> Option<&'a SendingDomain> {
    domains.iter().filter(|domain| domain.covers(host)).max_by_key(|domain| domain.domain.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_match_is_responsible() {
        let domain = |name: &str| SendingDomain {
            id: "dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            domain: name.to_owned(),
            status: DomainStatus::Verified,
            created_at: Timestamp::from_millis(0),
            verified_at: None,
        };
        let domains = [domain("acme.com"), domain("mail.acme.com")];
        let name = |host| responsible(&domains, host).map(|found| found.domain.as_str());
        assert_eq!(name("acme.com"), Some("acme.com"));
        assert_eq!(name("eu.mail.acme.com"), Some("mail.acme.com"));
        assert_eq!(name("shop.acme.com"), Some("acme.com"));
        assert_eq!(name("notacme.com"), None);
        assert_eq!(name("com"), None);
    }
}
