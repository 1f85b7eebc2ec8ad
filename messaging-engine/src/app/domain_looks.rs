//! Limits on the sending domains that are checked at one time.

use tokio::sync::Semaphore;

/// Number of domains that requests check at one time, a dozen look-ups each; further requests are refused with a time
/// to try again.
const BY_REQUESTS: usize = 32;

/// Number of domains that background work checks at one time.
const IN_BACKGROUND: usize = 8;

/// Permits to check a domain.
#[derive(Debug)]
pub(crate) struct DomainLooks {
    pub(crate) by_requests: Semaphore,
    pub(crate) in_background: Semaphore,
}

impl Default for DomainLooks {
    fn default() -> Self {
        Self { by_requests: Semaphore::new(BY_REQUESTS), in_background: Semaphore::new(IN_BACKGROUND) }
    }
}
