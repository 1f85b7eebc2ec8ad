//! Position of the sweep of sends.

use std::sync::Mutex;

/// Position of sweeps in the sends: contact and channel of the last row examined.
#[derive(Debug)]
pub(in super::super) struct SendsLook(pub(super) Mutex<(i64, i64)>);

impl Default for SendsLook {
    fn default() -> Self {
        Self(Mutex::new((i64::MIN, i64::MIN)))
    }
}
