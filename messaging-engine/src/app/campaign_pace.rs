//! Rate limits of campaigns, enforced by the times when their messages began.
//!
//! One process sends a campaign. Messages that another process sent before are not known here, so a campaign that this
//! process did not begin itself counts as having used up its limit when it is first met.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::domain::delivery::recipient_time::pacing::Pacing;
use messaging_core::ids::CampaignId;
use messaging_core::time::Timestamp;

/// Number of campaigns beyond which those that have not sent lately are forgotten.
const REMEMBERED: usize = 1000;

/// Time after which a released message that has neither begun nor come back is not waited for.
const LOST: Duration = Duration::from_mins(1);

/// Recent sends of campaigns with a rate limit.
#[derive(Debug, Default)]
pub(crate) struct CampaignPace(Mutex<HashMap<CampaignId, Paced>>);

#[derive(Debug)]
struct Paced {
    begun: Pacing,
    /// Release times of messages that have not begun.
    released: VecDeque<Timestamp>,
}

/// Number of messages of a campaign that may be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Number of messages that may be released now.
    pub(crate) free: usize,
    /// Time when more may be released, if that depends on the clock.
    pub(crate) next_at: Option<Timestamp>,
}

impl CampaignPace {
    fn with<T>(&self, id: CampaignId, limit: u32, now: Timestamp, act: impl FnOnce(&mut Paced) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.retain(|_, paced| paced.begun.next_at(now).is_some() || !paced.released.is_empty());
        }
        let known =
            all.entry(id).or_insert_with(|| Paced { begun: Pacing::used_up(limit, now), released: VecDeque::new() });
        while known.released.front().is_some_and(|at| *at + LOST < now) {
            known.released.pop_front();
        }
        act(known)
    }

    /// Begins to count a campaign whose sending begins in this process.
    pub(crate) fn start(&self, id: CampaignId, limit: u32) {
        let fresh = Paced { begun: Pacing::new(limit), released: VecDeque::new() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, fresh);
    }

    /// Returns the number of messages that may be released.
    pub(crate) fn look(&self, id: CampaignId, limit: u32, now: Timestamp) -> Pace {
        self.with(id, limit, now, |paced| {
            let free = usize::try_from(paced.begun.free(now)).unwrap_or(usize::MAX);
            Pace { free: free.saturating_sub(paced.released.len()), next_at: paced.begun.next_at(now) }
        })
    }

    /// Counts released messages.
    pub(crate) fn release(&self, id: CampaignId, limit: u32, count: usize, now: Timestamp) {
        self.with(id, limit, now, |paced| paced.released.extend(std::iter::repeat_n(now, count)));
    }

    /// Begins a released message; the error is the time until which the limit makes it wait.
    pub(crate) fn begin(&self, id: CampaignId, limit: u32, now: Timestamp) -> Result<(), Timestamp> {
        self.with(id, limit, now, |paced| {
            if paced.begun.take(1, now) == 0 {
                return Err(paced.begun.next_at(now).unwrap_or(now));
            }
            paced.released.pop_front();
            Ok(())
        })
    }

    /// Counts released messages that do not begin: others may be released in their place.
    pub(crate) fn put_back(&self, id: CampaignId, count: usize) {
        if let Some(paced) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&id) {
            paced.released.drain(..count.min(paced.released.len()));
        }
    }
}
