//! How many sending domains are looked at at one time.

use tokio::sync::Semaphore;

/// Domains that requests look at at a time, a dozen questions each; further requests are told to come
/// back.
const BY_REQUESTS: usize = 32;

/// Domains that background work looks at at a time.
const IN_BACKGROUND: usize = 8;

/// How many domains are being looked at.
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
