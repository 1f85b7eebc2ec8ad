//! Jobs that a newer version wrote, which this version leaves to it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::ids::JobId;
use messaging_core::time::Monotonic;

/// Time until such a job is claimed again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Time after which a job that was not met again counts as done by a newer version.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(90);

/// Largest number of jobs that are counted.
const MOST: usize = 10_000;

/// Jobs of unknown kinds that this process met lately.
#[derive(Debug, Default)]
pub(crate) struct UnknownKinds(Mutex<HashMap<JobId, Monotonic>>);

impl UnknownKinds {
    /// Records that a job was met.
    pub(crate) fn meet(&self, job: JobId, now: Monotonic) {
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut met, now);
        if met.len() < MOST || met.contains_key(&job) {
            met.insert(job, now);
        }
    }

    /// Number of jobs of unknown kinds that this process met lately.
    pub(crate) fn count(&self, now: Monotonic) -> usize {
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut met, now);
        met.len()
    }
}

fn forget(met: &mut HashMap<JobId, Monotonic>, now: Monotonic) {
    met.retain(|_, at| now.since(*at) < FORGOTTEN_AFTER);
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;

    use super::*;

    #[test]
    fn a_job_counts_once_and_until_it_is_met_no_more() {
        let at = |seconds| Monotonic::new(Duration::from_secs(seconds));
        let job = |byte| JobId::from_bytes([byte; 16]);
        let unknown = UnknownKinds::default();
        for seconds in [0, 30, 60] {
            unknown.meet(job(1), at(seconds));
        }
        unknown.meet(job(2), at(60));
        assert_eq!(unknown.count(at(60)), 2);
        unknown.meet(job(2), at(90));
        assert_eq!(unknown.count(at(150)), 1);
        assert_eq!(unknown.count(at(180)), 0);
    }

    #[test]
    fn a_queue_of_them_takes_no_more_memory_than_so_much() {
        let unknown = UnknownKinds::default();
        for n in 0..20_000_u128 {
            unknown.meet(JobId::from_bytes(n.to_be_bytes()), Monotonic::new(Duration::ZERO));
        }
        assert_eq!(unknown.count(Monotonic::new(Duration::ZERO)), MOST);
    }
}
