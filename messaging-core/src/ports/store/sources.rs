//! Sources of mail and their paths.

use async_trait::async_trait;

use super::{StoreError, Stored};
use crate::domain::delivery::ip_pool::source::{NamedSource, NodeSource, PathRow, SourceAddress, SourceRow};
use crate::domain::delivery::lane::Lane;
use crate::time::Timestamp;

/// Reads of sources and paths, which belong to the operator and to no workspace.
#[async_trait]
pub trait Sources {
    /// Says which sources this process has, in place of what it said before; they are told until it ends, or is declared
    /// dead. A process beside the one that does the work on one file says nothing.
    async fn announce_sources(&self, sources: &[NamedSource]) -> Result<(), StoreError>;
    /// The sources of the processes that live, those first that started first, and in the order in which each said them. On
    /// one file they are those of the process that does the work, and where it was killed those of that one until the next
    /// begins.
    async fn live_sources(&self) -> Result<Vec<NodeSource>, StoreError>;
    /// The lane beside a lane, or the one that it is beside, whose jobs the process with this number ([`NodeSource::joined`])
    /// claims; `None` where it claims none, and on one file.
    async fn lane_of_node(&self, lane: &Lane, joined: i64) -> Result<Option<Lane>, StoreError>;
    /// What is kept of sources, by the text of their address, those after `after`, at most `limit`.
    async fn source_rows(
        &self,
        after: Option<SourceAddress>,
        limit: usize,
    ) -> Result<Vec<Stored<SourceRow>>, StoreError>;
    /// What is kept of a source.
    async fn source_row(&self, ip: SourceAddress) -> Result<Option<Stored<SourceRow>>, StoreError>;
    /// What is kept of a path.
    async fn path_row(&self, ip: SourceAddress, site: &str) -> Result<Option<Stored<PathRow>>, StoreError>;
    /// The paths of a source by site, those after the site `after`, at most `limit`.
    async fn path_rows(
        &self,
        ip: SourceAddress,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Stored<PathRow>>, StoreError>;
    /// The paths of a source over which most was sent on a day, the busiest first, then by site; at most `limit`.
    async fn busiest_paths(&self, ip: SourceAddress, day: i64, limit: usize) -> Result<Vec<PathRow>, StoreError>;
    /// Forgets paths that were last written before a time and are not stopped, at most `limit`; answers how many.
    async fn forget_paths(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
