//! How far a request has come, and how long it is pursued and remembered.

use std::time::Duration;

use messaging_core::changes::ReplyKey;
use messaging_core::domain::limits::MAX_BULK;

use crate::services::page_size::PageSize;

/// How often an operation is run because the data changed while it decided. Calls that change the same
/// resource wait for one another, so every further run is owed to another commit in between.
pub(super) const MAX_RUNS: usize = 32;

/// How long a reply is remembered (contract section 1.7).
pub(super) const REMEMBERED_FOR: Duration = Duration::from_hours(24);

/// How far a request has come that is done in parts.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    /// The Idempotency-Key and the fingerprint of the request.
    pub(super) key: Option<(&'a ReplyKey, u128)>,
    /// Parts that are done, or were before.
    pub(super) done: usize,
    /// Whether the next part may have been done by an earlier request: not after one that was not.
    pub(super) is_repetition: bool,
    /// Whether the request is done in parts even if it fits into one commit, because the store refused that one.
    pub(super) is_split: bool,
    /// Whether it would be done in parts then.
    pub(super) is_divisible: bool,
    /// How many items the next part has.
    pub(super) page: PageSize,
}

impl<'a> Progress<'a> {
    /// No part is done by this request yet.
    pub(super) fn new(key: Option<(&'a ReplyKey, u128)>, is_split: bool) -> Self {
        let page = PageSize::new(usize::try_from(MAX_BULK).unwrap_or(usize::MAX));
        Self { key, done: 0, is_repetition: key.is_some(), is_split, is_divisible: false, page }
    }

    /// Whether a request whose items fit into one commit is done in one: not after the store refused that one.
    pub(super) fn is_whole(&mut self, fits: bool) -> bool {
        self.is_divisible = true;
        fits && !self.is_split
    }
}
