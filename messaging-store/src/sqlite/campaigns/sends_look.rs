//! Where the sweep of sends goes on.

use std::sync::Mutex;

/// How far sweeps have looked through the sends: the last row that was looked at, contact and channel.
#[derive(Debug)]
pub(in super::super) struct SendsLook(pub(super) Mutex<(i64, i64)>);

impl Default for SendsLook {
    fn default() -> Self {
        Self(Mutex::new((i64::MIN, i64::MIN)))
    }
}
