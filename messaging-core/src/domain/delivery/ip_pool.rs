//! IP pools: named sets of addresses that the mail of a sending domain leaves from.
//!
//! Contract section 14.2. The addresses are the operator's ([`source`]); a workspace names those in its pools that the
//! operator has released to it.

pub mod source;
mod usable;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ids::{PoolId, WorkspaceId};
use crate::time::Timestamp;

pub use usable::{MailKind, Usable, pool_of, usable_sources};

/// Maximum number of pools of a workspace, and of shared pools.
pub const MAX_POOLS: usize = 100;

/// Maximum number of addresses in a pool.
pub const MAX_IPS: usize = 100;

/// A pool of a workspace, or one that the operator shares with all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpPool {
    /// Id of the pool.
    pub id: PoolId,
    /// Workspace that owns the pool; `None` for one that is shared with all workspaces and changed by none.
    pub workspace_id: Option<WorkspaceId>,
    /// Name for people; unique in the workspace, and among the shared ones.
    pub name: String,
    /// The addresses without repetition, in the order in which they were given. No running node needs to have them.
    pub ips: Vec<IpAddr>,
    /// Time at which the pool was made.
    pub created_at: Timestamp,
    /// Time of the latest change of the pool.
    pub updated_at: Timestamp,
}

impl IpPool {
    /// Returns true for a pool that every workspace may use.
    pub const fn is_shared(&self) -> bool {
        self.workspace_id.is_none()
    }

    /// Returns true if a workspace may use the pool: it is its own or shared.
    pub fn is_open_to(&self, workspace: WorkspaceId) -> bool {
        self.workspace_id.is_none_or(|owner| owner == workspace)
    }
}

/// Permission by the operator for a workspace to put an address into its pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpGrant {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The address.
    pub ip: IpAddr,
    /// Time at which the operator first released the address to the workspace.
    pub granted_at: Timestamp,
}

/// Parses an address into the canonical form in which addresses are compared and stored: an IPv4-mapped IPv6 address
/// becomes the IPv4 address. `None` for any other text, including an address with a zone, a prefix length or a port.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id as _;

    #[test]
    fn an_address_has_one_form() {
        let parsed = |text: &str| parse_ip(text).map(|ip| ip.to_string());
        for (text, expected) in [
            ("203.0.113.7", Some("203.0.113.7")),
            ("::ffff:203.0.113.7", Some("203.0.113.7")),
            ("2001:DB8:0:0::7", Some("2001:db8::7")),
            ("203.0.113.07", None),
            ("203.0.113.0/24", None),
            ("203.0.113.7:25", None),
            ("fe80::1%eth0", None),
            ("mail.example.org", None),
            ("", None),
        ] {
            assert_eq!(parsed(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_pool_is_open_to_its_owner_or_to_all() {
        let [mine, other] = [1, 2].map(|n| WorkspaceId::from_bytes([n; 16]));
        let pool = |workspace_id| IpPool {
            id: PoolId::from_bytes([3; 16]),
            workspace_id,
            name: "marketing".to_owned(),
            ips: Vec::new(),
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        };
        assert!(pool(Some(mine)).is_open_to(mine) && !pool(Some(mine)).is_open_to(other));
        assert!(pool(None).is_open_to(mine) && pool(None).is_shared() && !pool(Some(mine)).is_shared());
    }
}
