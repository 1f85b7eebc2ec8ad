//! Progress of a request, and the bounds of its retries and of the memory of its reply.

use std::time::Duration;

use messaging_core::changes::ReplyKey;
use messaging_core::domain::limits::MAX_BULK;

use crate::services::page_size::PageSize;

/// Largest number of runs of an operation when the data changes while it decides. Calls that change the same resource
/// wait for one another, so every further run is owed to another commit in between.
pub(super) const MAX_RUNS: usize = 32;

/// Time a reply is remembered (contract section 1.7).
pub(super) const REMEMBERED_FOR: Duration = Duration::from_hours(24);

/// Progress of a request that is done in parts.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    /// The Idempotency-Key and the fingerprint of the request.
    pub(super) key: Option<(&'a ReplyKey, u128)>,
    /// Number of parts that are done, by this request or an earlier one.
    pub(super) done: usize,
    /// True if an earlier request may have done the next part; false from the first part that was not done.
    pub(super) is_repetition: bool,
    /// True if the request is done in parts even if it fits into one commit, because the store refused that commit.
    pub(super) is_split: bool,
    /// True if the operation can do the request in parts after a refusal.
    pub(super) is_divisible: bool,
    /// Size of the next part.
    pub(super) page: PageSize,
}

impl<'a> Progress<'a> {
    /// The state before any part is done by this request.
    pub(super) fn new(key: Option<(&'a ReplyKey, u128)>, is_split: bool) -> Self {
        let page = PageSize::new(usize::try_from(MAX_BULK).unwrap_or(usize::MAX));
        Self { key, done: 0, is_repetition: key.is_some(), is_split, is_divisible: false, page }
    }

    /// Returns true if a request whose items fit into one commit is done in one; false once the store refused that
    /// commit.
    pub(super) fn is_whole(&mut self, fits: bool) -> bool {
        self.is_divisible = true;
        fits && !self.is_split
    }
}
