//! Writes of sources, of their paths, and of which workspaces may name them.

use std::net::IpAddr;

use crate::domain::delivery::ip_pool::IpGrant;
use crate::domain::delivery::ip_pool::source::{PathRow, SourceRow};
use crate::ids::WorkspaceId;
use crate::revision::Expect;

/// A change of what is kept of sources.
#[derive(Debug, Clone)]
pub enum SourceWrite {
    /// Lets a workspace name an address in its pools; no conflict when it may already.
    Grant(IpGrant),
    /// Withdraws a grant; no conflict if there is none. Pools that name the address stay as they are.
    Revoke(WorkspaceId, IpAddr),
    /// Creates or replaces what is kept of a source, by the node that has it. Nobody is told.
    PutSource(SourceRow, Expect),
    /// Like [`Self::PutSource`], by the operator: every node is told ([`Topic::Sources`](crate::ports::store::Topic::Sources)).
    OrderSource(SourceRow, Expect),
    /// Creates or replaces what is kept of a path, by the node that has the source. Nobody is told.
    PutPath(Box<PathRow>, Expect),
    /// Like [`Self::PutPath`], by the operator: every node is told.
    OrderPath(Box<PathRow>, Expect),
}

impl SourceWrite {
    /// Whether it stores something new on behalf of somebody, see [`Changes::adds`](super::Changes::adds).
    pub(super) const fn adds(&self) -> bool {
        matches!(self, Self::Grant(_))
    }
}
