//! Limits on the concurrent use of scarce resources.

use super::heavy_work::HeavyWork;
use crate::fair_semaphore::{Bounds, FairSemaphore};

/// Number of RSA keys made at a time; each takes a processor for some hundred milliseconds.
pub(crate) const DKIM_KEYS_AT_A_TIME: usize = 1;

/// Number of calls that may wait to make keys.
pub(crate) const DKIM_KEYS_WAITING: usize = 32;

/// Number of password hashes at a time; each takes 19 MiB and a processor.
pub(crate) const HASHES_AT_A_TIME: u64 = 2;

/// Number of calls that may wait for a password hash.
pub(crate) const HASHES_WAITING: usize = 64;

/// Number of calls of one network that may wait for a password hash.
pub(crate) const HASHES_WAITING_OF_ONE: usize = 8;

/// Number of designs compiled, and of long renderings, at a time; each takes a processor.
pub(crate) const TEMPLATE_WORK_AT_A_TIME: usize = 2;

/// Number of calls that may wait for template work.
pub(crate) const TEMPLATE_WORK_WAITING: usize = 64;

/// Number of files that are received at one time; each holds less than a mebibyte of memory.
pub(crate) const UPLOADS_AT_A_TIME: u64 = 32;

/// Number of providers' callbacks in work at one time; a workspace has at most a quarter of them.
pub(crate) const CALLBACKS_AT_A_TIME: u64 = 64;

/// Number of callbacks that may wait for their turn.
pub(crate) const CALLBACKS_WAITING: usize = 512;

/// Number of callbacks of one workspace that may wait for their turn.
pub(crate) const CALLBACKS_WAITING_OF_ONE: usize = 64;

/// Number of sign-ins that are completed with the single sign-on provider at one time.
pub(crate) const SIGN_ONS_AT_A_TIME: u64 = 16;

/// Number of sign-ins that may wait for their turn.
pub(crate) const SIGN_ONS_WAITING: usize = 128;

/// Number of sign-ins of one network that may wait for their turn.
pub(crate) const SIGN_ONS_WAITING_OF_ONE: usize = 16;

/// Number of parts that may be committed at one time: one is written while the next is decided.
pub(crate) const PARTS_AT_A_TIME: usize = 2;

/// Number of imports whose rows are read at one time; others take turns with them.
pub(crate) const IMPORTS_AT_A_TIME: usize = 1;

/// Bytes of stored contents, and of their copies for sending, that may be in memory at one time.
pub(crate) const CONTENT_MEMORY: u64 = 32 << 20;

/// Bytes of attachments that may be in memory at one time.
pub(crate) const FILE_MEMORY: u64 = 56 << 20;

/// Makes the queue for making keys.
pub(crate) fn dkim_keys() -> HeavyWork {
    HeavyWork::new(DKIM_KEYS_AT_A_TIME, DKIM_KEYS_WAITING)
}

/// Makes the semaphore of password hashing.
pub(crate) fn passwords() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: HASHES_AT_A_TIME,
        waiting: HASHES_WAITING,
        waiting_of_one: HASHES_WAITING_OF_ONE,
    })
}

/// Makes the queue for template work.
pub(crate) fn template_work(is_inline: bool) -> HeavyWork {
    HeavyWork::new(TEMPLATE_WORK_AT_A_TIME, TEMPLATE_WORK_WAITING).inline(is_inline)
}

/// Makes the semaphore of uploads. Nobody waits for a permit: a client that sends a file can try again.
pub(crate) fn uploads() -> FairSemaphore {
    FairSemaphore::new(Bounds { permits: UPLOADS_AT_A_TIME, waiting: 0, waiting_of_one: 0 })
}

/// Number of dry runs at one time; each has a database of its own and at most a processor. A workspace has half of
/// them.
pub(crate) const DRY_RUNS_AT_A_TIME: u64 = 2;

/// Number of calls that may wait for a dry run.
pub(crate) const DRY_RUNS_WAITING: usize = 64;

/// Number of calls of one workspace that may wait for a dry run.
pub(crate) const DRY_RUNS_WAITING_OF_ONE: usize = 8;

/// Makes the semaphore of dry runs.
pub(crate) fn dry_runs() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: DRY_RUNS_AT_A_TIME,
        waiting: DRY_RUNS_WAITING,
        waiting_of_one: DRY_RUNS_WAITING_OF_ONE,
    })
}

/// Makes the semaphore of sign-ins with the single sign-on provider.
pub(crate) fn sign_ons() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: SIGN_ONS_AT_A_TIME,
        waiting: SIGN_ONS_WAITING,
        waiting_of_one: SIGN_ONS_WAITING_OF_ONE,
    })
}

/// Makes the semaphore of callbacks.
pub(crate) fn callbacks() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: CALLBACKS_AT_A_TIME,
        waiting: CALLBACKS_WAITING,
        waiting_of_one: CALLBACKS_WAITING_OF_ONE,
    })
}
