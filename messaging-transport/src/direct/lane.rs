//! Limits how many transactions with one recipient domain run at a time and how fast they follow each other.
//!
//! A lane starts narrow and widens as messages are answered. A receiver that answers "too much" gets half as many at a
//! time, and those spaced. A domain that cannot be reached is left alone for a moment and then probed by one attempt;
//! all others get the last failure at once, so that a dead domain does not hold up mail to other domains.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::domain::delivery::lane::Flow;
use messaging_core::ports::transport::{Response, RouteState};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::waiting::WaitQueue;

/// Shortest and longest time between two transactions with a receiver that asks for fewer.
const SPACING: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

/// Limits of a lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Maximum number of transactions at a time with a new domain.
    pub(super) start: usize,
    /// Maximum number of transactions at a time with a domain that answers well.
    pub(super) most: usize,
    /// Time for which a domain that could not be reached is not tried again.
    pub(super) rest: Duration,
}

/// Answer to a request for a turn.
pub(super) enum LaneAdmission {
    /// Send now, and report the result to the permit.
    Go(Permit),
    /// The domain could not be reached: the last failure, and the time since then.
    Unreachable(Response, Duration),
    /// No turn came up in time, or too many messages wait.
    TooMany,
}

/// Result of an attempt, from which the lane sets its limits.
pub(super) enum Report {
    /// The receiver answers normally.
    Fine,
    /// The receiver answers "too much", or the connection broke.
    Busy(Response),
    /// No connection to any exchanger of the domain could be opened.
    Unreachable(Response),
}

/// Lane of one recipient domain.
pub(super) struct Lane {
    pace: Pace,
    state: Mutex<State>,
}

struct State {
    running: usize,
    limit: usize,
    /// Attempts that were fine since the limit was last raised.
    credit: usize,
    /// Time between the starts of two transactions; zero if they need no spacing.
    spacing: Duration,
    /// Earliest start of the next transaction.
    next: Instant,
    /// The time at which the lane was last narrowed. Attempts that began before do not narrow it again: they met the
    /// same trouble.
    narrowed: Option<Instant>,
    unreachable: Option<Unreachable>,
    /// Last answer of "too much", until the spacing that followed from it is over.
    last_refusal: Option<Response>,
    is_probed: bool,
    waiting: WaitQueue<LaneAdmission>,
    last_used: Instant,
}

struct Unreachable {
    since: Instant,
    response: Response,
}

enum Entry {
    Now(LaneAdmission),
    Later(oneshot::Receiver<LaneAdmission>),
}

impl Lane {
    pub(super) fn new(pace: Pace) -> Self {
        let now = Instant::now();
        let state = State {
            running: 0,
            limit: pace.start,
            credit: 0,
            spacing: Duration::ZERO,
            next: now,
            narrowed: None,
            unreachable: None,
            last_refusal: None,
            is_probed: false,
            waiting: WaitQueue::default(),
            last_used: now,
        };
        Self { pace, state: Mutex::new(state) }
    }

    /// Waits for a turn, at most until `deadline`; the waiting flows are served in turn.
    pub(super) async fn admit(self: &Arc<Self>, deadline: Instant, flow: Flow) -> LaneAdmission {
        let admission = match self.enter(flow) {
            Entry::Now(admission) => admission,
            Entry::Later(waiting) => match timeout_at(deadline, waiting).await {
                Ok(admission) => admission.unwrap_or(LaneAdmission::TooMany),
                Err(_) => LaneAdmission::TooMany,
            },
        };
        let LaneAdmission::Go(mut permit) = admission else { return admission };
        let Some(begin) = self.lock().begin(deadline) else { return LaneAdmission::TooMany };
        if begin > Instant::now() {
            sleep_until(begin).await;
            if !permit.is_probe
                && let Some(admission) = self.lock().refuse()
            {
                return admission;
            }
        }
        permit.began = Instant::now();
        LaneAdmission::Go(permit)
    }

    /// Returns the state of the lane, for callers that ask why a message waits.
    pub(super) fn state(&self) -> RouteState {
        let state = self.lock();
        if let Some(unreachable) = &state.unreachable {
            let rests_for = Some(self.pace.rest.saturating_sub(unreachable.since.elapsed()));
            let last_refusal = Some(unreachable.response.clone());
            return RouteState { rests_for, last_refusal, ..RouteState::default() };
        }
        let is_spaced = state.spacing > Duration::ZERO;
        let per_minute = is_spaced.then(|| 60.0 / state.spacing.as_secs_f64());
        RouteState { rests_for: None, per_minute, last_refusal: state.last_refusal.clone() }
    }

    /// Lets attempts begin again at once, as many at a time as before, if the domain could not be reached.
    pub(super) fn forget_unreachable(&self) {
        self.lock().unreachable = None;
    }

    /// Returns the time of the last request for a turn.
    pub(super) fn last_used(&self) -> Instant {
        self.lock().last_used
    }

    fn enter(self: &Arc<Self>, flow: Flow) -> Entry {
        let mut state = self.lock();
        let now = Instant::now();
        state.last_used = now;
        if let Some(unreachable) = &state.unreachable {
            if state.is_probed || now < unreachable.since + self.pace.rest {
                return Entry::Now(state.refuse().unwrap_or(LaneAdmission::TooMany));
            }
            state.is_probed = true;
            state.running += 1;
            return Entry::Now(LaneAdmission::Go(self.permit(now, true)));
        }
        if state.running < state.limit {
            state.running += 1;
            return Entry::Now(LaneAdmission::Go(self.permit(now, false)));
        }
        state.waiting.push(flow).map_or(Entry::Now(LaneAdmission::TooMany), Entry::Later)
    }

    fn permit(self: &Arc<Self>, began: Instant, is_probe: bool) -> Permit {
        Permit { lane: Some(Arc::clone(self)), began, is_probe }
    }

    /// Ends an attempt: adjusts the lane to its report, and admits those that wait.
    fn leave(self: &Arc<Self>, report: Option<Report>, began: Instant, is_probe: bool) {
        let mut admissions = Vec::new();
        {
            let mut state = self.lock();
            let now = Instant::now();
            state.running -= 1;
            state.is_probed &= !is_probe;
            match report {
                Some(Report::Fine) => state.widen(self.pace),
                Some(Report::Busy(response)) => {
                    state.narrow(began, now);
                    state.last_refusal = Some(response);
                }
                Some(Report::Unreachable(response)) => {
                    state.narrow(began, now);
                    // While the domain is unreachable nothing is spaced: nothing is sent at all.
                    state.spacing = Duration::ZERO;
                    state.unreachable = Some(Unreachable { since: now, response });
                    while let Some(waiting) = state.waiting.pop() {
                        admissions.extend(state.refuse().map(|admission| (waiting, admission)));
                    }
                }
                // Dropped half-way: nothing was learned.
                None => {}
            }
            if state.unreachable.is_none() {
                while state.running < state.limit
                    && let Some(waiting) = state.waiting.pop()
                {
                    if !waiting.is_closed() {
                        state.running += 1;
                        admissions.push((waiting, LaneAdmission::Go(self.permit(now, false))));
                    }
                }
            }
        }
        for (waiting, admission) in admissions {
            // If the waiting attempt was given up at this moment, dropping its permit gives the turn back.
            drop(waiting.send(admission));
        }
    }

    /// Locks the state. The guard must not be held over an await, nor while a permit is dropped.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the refusal for all but the probe, while the domain is unreachable.
    fn refuse(&self) -> Option<LaneAdmission> {
        let unreachable = self.unreachable.as_ref()?;
        Some(LaneAdmission::Unreachable(unreachable.response.clone(), unreachable.since.elapsed()))
    }

    /// Reserves the start of a transaction, if it is before the deadline.
    fn begin(&mut self, deadline: Instant) -> Option<Instant> {
        let begin = self.next.max(Instant::now());
        if begin > deadline {
            return None;
        }
        self.next = begin + self.spacing;
        Some(begin)
    }

    /// Allows one more transaction at a time after each round of attempts that were fine; spaced ones first come
    /// closer.
    fn widen(&mut self, pace: Pace) {
        self.unreachable = None;
        if self.spacing > Duration::ZERO {
            self.spacing /= 2;
            if self.spacing < SPACING.0 {
                self.spacing = Duration::ZERO;
                self.last_refusal = None;
            }
            return;
        }
        self.credit += 1;
        if self.credit >= self.limit && self.limit < pace.most {
            self.limit += 1;
            self.credit = 0;
        }
    }

    fn narrow(&mut self, began: Instant, now: Instant) {
        self.unreachable = None;
        if self.narrowed.is_some_and(|narrowed| began < narrowed) {
            return;
        }
        self.narrowed = Some(now);
        self.credit = 0;
        self.limit = (self.limit / 2).max(1);
        self.spacing = (self.spacing * 2).clamp(SPACING.0, SPACING.1);
        self.next = now + self.spacing;
    }
}

/// A turn in a lane, given back when dropped.
pub(super) struct Permit {
    /// `None` once the turn was given back.
    lane: Option<Arc<Lane>>,
    began: Instant,
    is_probe: bool,
}

impl Permit {
    /// Gives the turn back, with the result of the attempt.
    pub(super) fn report(mut self, report: Report) {
        if let Some(lane) = self.lane.take() {
            lane.leave(Some(report), self.began, self.is_probe);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take() {
            lane.leave(None, self.began, self.is_probe);
        }
    }
}

#[cfg(test)]
mod tests;
