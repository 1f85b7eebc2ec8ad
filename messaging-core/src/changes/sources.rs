//! Changes of sources, of their paths, and of the workspaces that may name them.

use std::net::IpAddr;

use crate::domain::delivery::ip_pool::IpGrant;
use crate::domain::delivery::ip_pool::source::{PathRow, SourceRow};
use crate::ids::WorkspaceId;
use crate::revision::Expect;

/// A change of the records of sources.
#[derive(Debug, Clone)]
pub enum SourceWrite {
    /// Lets a workspace name an address in its pools; no conflict when it may already.
    Grant(IpGrant),
    /// Withdraws a grant; no conflict if there is none. Pools that name the address stay as they are.
    Revoke(WorkspaceId, IpAddr),
    /// Creates or replaces the record of a source, by the node that has it. No node is notified.
    PutSource(SourceRow, Expect),
    /// Like [`Self::PutSource`], by the operator: every node is notified
    /// ([`Topic::Sources`](crate::ports::store::Topic::Sources)).
    OrderSource(SourceRow, Expect),
    /// Creates or replaces the record of a path, by the node that has the source. No node is notified.
    PutPath(Box<PathRow>, Expect),
    /// Like [`Self::PutPath`], by the operator: every node is notified.
    OrderPath(Box<PathRow>, Expect),
}

impl SourceWrite {
    /// True if it stores something new on behalf of a caller, see [`Changes::adds`](super::Changes::adds).
    pub(super) const fn adds(&self) -> bool {
        matches!(self, Self::Grant(_))
    }
}
