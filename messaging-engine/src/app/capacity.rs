//! How much of what is scarce is used at one time.

use super::heavy_work::HeavyWork;
use crate::fair_semaphore::{Bounds, FairSemaphore};

/// RSA keys made at a time; each takes a processor for some hundred milliseconds.
pub(crate) const DKIM_KEYS_AT_A_TIME: usize = 1;

/// Calls that may wait for their turn.
pub(crate) const DKIM_KEYS_WAITING: usize = 32;

/// Hashes at a time; each takes 19 MiB and a processor.
pub(crate) const HASHES_AT_A_TIME: u64 = 2;

/// Calls that may wait for their turn.
pub(crate) const HASHES_WAITING: usize = 64;

/// Calls of one network that may wait for their turn.
pub(crate) const HASHES_WAITING_OF_ONE: usize = 8;

/// Designs that are made, and long renderings, at a time; each takes a processor.
pub(crate) const TEMPLATE_WORK_AT_A_TIME: usize = 2;

/// Calls that may wait for their turn.
pub(crate) const TEMPLATE_WORK_WAITING: usize = 64;

/// Files that are received at one time; each holds less than a mebibyte of memory.
pub(crate) const UPLOADS_AT_A_TIME: u64 = 32;

/// Callbacks of providers that are worked on at one time; a workspace has at most a quarter of them.
pub(crate) const CALLBACKS_AT_A_TIME: u64 = 64;

/// Callbacks that may wait for their turn.
pub(crate) const CALLBACKS_WAITING: usize = 512;

/// Callbacks of one workspace that may wait for their turn.
pub(crate) const CALLBACKS_WAITING_OF_ONE: usize = 64;

/// Sign-ins that the single sign-on provider is asked about at one time.
pub(crate) const SIGN_ONS_AT_A_TIME: u64 = 16;

/// Sign-ins that may wait for their turn.
pub(crate) const SIGN_ONS_WAITING: usize = 128;

/// Sign-ins of one network that may wait for their turn.
pub(crate) const SIGN_ONS_WAITING_OF_ONE: usize = 16;

/// Parts that may be committed at one time: one is written while the next is decided.
pub(crate) const PARTS_AT_A_TIME: usize = 2;

/// Imports whose rows are read at one time; others take turns with them.
pub(crate) const IMPORTS_AT_A_TIME: usize = 1;

/// Bytes of stored contents, and of what is made of them for sending, that may be in memory at one time.
pub(crate) const CONTENT_MEMORY: u64 = 32 << 20;

/// Bytes of attachments that may be in memory at one time.
pub(crate) const FILE_MEMORY: u64 = 56 << 20;

/// The queue for making keys.
pub(crate) fn dkim_keys() -> HeavyWork {
    HeavyWork::new(DKIM_KEYS_AT_A_TIME, DKIM_KEYS_WAITING)
}

/// The turns of password hashing.
pub(crate) fn passwords() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: HASHES_AT_A_TIME,
        waiting: HASHES_WAITING,
        waiting_of_one: HASHES_WAITING_OF_ONE,
    })
}

/// The queue for what takes a processor for a while.
pub(crate) fn template_work(is_inline: bool) -> HeavyWork {
    HeavyWork::new(TEMPLATE_WORK_AT_A_TIME, TEMPLATE_WORK_WAITING).inline(is_inline)
}

/// The places for uploads. Nobody waits for one: a client that sends a file can come back.
pub(crate) fn uploads() -> FairSemaphore {
    FairSemaphore::new(Bounds { permits: UPLOADS_AT_A_TIME, waiting: 0, waiting_of_one: 0 })
}

/// Dry runs at one time; each has a database of its own and at most a processor. A workspace has half of them.
pub(crate) const DRY_RUNS_AT_A_TIME: u64 = 2;

/// Calls that may wait for their turn.
pub(crate) const DRY_RUNS_WAITING: usize = 64;

/// Calls of one workspace that may wait for their turn.
pub(crate) const DRY_RUNS_WAITING_OF_ONE: usize = 8;

/// The turns of dry runs.
pub(crate) fn dry_runs() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: DRY_RUNS_AT_A_TIME,
        waiting: DRY_RUNS_WAITING,
        waiting_of_one: DRY_RUNS_WAITING_OF_ONE,
    })
}

/// The turns to ask the single sign-on provider.
pub(crate) fn sign_ons() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: SIGN_ONS_AT_A_TIME,
        waiting: SIGN_ONS_WAITING,
        waiting_of_one: SIGN_ONS_WAITING_OF_ONE,
    })
}

/// The turns of callbacks.
pub(crate) fn callbacks() -> FairSemaphore {
    FairSemaphore::new(Bounds {
        permits: CALLBACKS_AT_A_TIME,
        waiting: CALLBACKS_WAITING,
        waiting_of_one: CALLBACKS_WAITING_OF_ONE,
    })
}
