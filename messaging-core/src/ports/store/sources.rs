//! Sources of mail and their paths.

use async_trait::async_trait;

use super::{StoreError, Stored};
use crate::domain::delivery::ip_pool::source::{NamedSource, NodeSource, PathRow, SourceAddress, SourceRow};
use crate::domain::delivery::lane::Lane;
use crate::time::Timestamp;

/// Reads of sources and paths, which belong to the operator and to no workspace.
#[async_trait]
pub trait Sources {
    /// Announces the sources of this process, in place of earlier ones; they are listed until it ends, or is declared
    /// dead. A process beside the working one on one file announces none.
    async fn announce_sources(&self, sources: &[NamedSource]) -> Result<(), StoreError>;
    /// Returns the sources of the live processes, by start of the process and in the order of the announcement. On one
    /// file they are those of the working process, and after a kill those of the killed one until the next begins.
    async fn live_sources(&self) -> Result<Vec<NodeSource>, StoreError>;
    /// Returns the lane beside a lane, or the one that it is beside, whose jobs the process with this number
    /// ([`NodeSource::joined`]) claims; `None` if it claims none, and on one file.
    async fn lane_of_node(&self, lane: &Lane, joined: i64) -> Result<Option<Lane>, StoreError>;
    /// Returns the records of sources, by the text of their address, those after `after`, at most `limit`.
    async fn source_rows(
        &self,
        after: Option<SourceAddress>,
        limit: usize,
    ) -> Result<Vec<Stored<SourceRow>>, StoreError>;
    /// Looks up the record of a source.
    async fn source_row(&self, ip: SourceAddress) -> Result<Option<Stored<SourceRow>>, StoreError>;
    /// Looks up the record of a path.
    async fn path_row(&self, ip: SourceAddress, site: &str) -> Result<Option<Stored<PathRow>>, StoreError>;
    /// Returns the paths of a source by site, those after the site `after`, at most `limit`.
    async fn path_rows(
        &self,
        ip: SourceAddress,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Stored<PathRow>>, StoreError>;
    /// Returns the paths of a source with most messages on a day, the busiest first, then by site; at most `limit`.
    async fn busiest_paths(&self, ip: SourceAddress, day: i64, limit: usize) -> Result<Vec<PathRow>, StoreError>;
    /// Deletes paths that were last written before a time and are not stopped, at most `limit`; returns how many.
    async fn forget_paths(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
