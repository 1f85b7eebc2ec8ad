//! How much goes to one recipient domain at a time, how fast, and whether at all.
//!
//! A lane starts narrow and widens as messages are answered. A receiver that says it is too much gets
//! half as many at a time, and those spaced. A domain that cannot be reached is left alone for a moment
//! and then probed by one attempt; everybody else learns at once what the last failure was, so that a
//! dead domain does not hold up what goes elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::domain::delivery::lane::Flow;
use messaging_core::ports::transport::{Response, RouteState};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::waiting::WaitQueue;

/// The shortest and the longest time between two transactions to a receiver that wants it slower.
const SPACING: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

/// The measures of a lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Transactions at a time with a domain that is new.
    pub(super) start: usize,
    /// Transactions at a time with a domain that takes everything.
    pub(super) most: usize,
    /// How long a domain that could not be reached is not tried again.
    pub(super) rest: Duration,
}

/// What becomes of a wish to send.
pub(super) enum LaneAdmission {
    /// Send now, and say how it went.
    Go(Permit),
    /// The domain could not be reached, so long ago, for this reason.
    Unreachable(Response, Duration),
    /// No turn came up in time.
    TooMany,
}

/// How an attempt went, as far as the lane cares.
pub(super) enum Report {
    /// The receiver answers.
    Fine,
    /// The receiver answers that it is too much, or cuts off.
    Busy(Response),
    /// No exchanger of the domain can be talked to.
    Unreachable(Response),
}

/// One recipient domain.
pub(super) struct Lane {
    pace: Pace,
    state: Mutex<State>,
}

struct State {
    running: usize,
    limit: usize,
    /// Attempts that were fine since the limit was last raised.
    credit: usize,
    /// How long after a transaction the next one begins; zero when they need no spacing.
    spacing: Duration,
    /// When the next one may begin.
    next: Instant,
    /// When the lane was last narrowed. Attempts that began before do not narrow it again: it is the
    /// same trouble they met.
    narrowed: Option<Instant>,
    unreachable: Option<Unreachable>,
    /// Last answer that it is too much, until the spacing that followed from it is over.
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

    /// Waits for a turn, at most until `deadline`; flows take turns.
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

    /// State of the lane, for whoever asks why a message waits.
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

    /// When somebody was last here.
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

    /// An attempt has ended: the lane learns from it, and whoever is next goes.
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
                    // Not slower, but not at all.
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
            // Who went away in this moment gives the permit back by dropping it.
            drop(waiting.send(admission));
        }
    }

    /// Never held over an await, nor while a permit is dropped.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The answer to everyone but the probe, while the domain is unreachable.
    fn refuse(&self) -> Option<LaneAdmission> {
        let unreachable = self.unreachable.as_ref()?;
        Some(LaneAdmission::Unreachable(unreachable.response.clone(), unreachable.since.elapsed()))
    }

    /// When this transaction may begin, if that is before the deadline.
    fn begin(&mut self, deadline: Instant) -> Option<Instant> {
        let begin = self.next.max(Instant::now());
        if begin > deadline {
            return None;
        }
        self.next = begin + self.spacing;
        Some(begin)
    }

    /// One more at a time for each round of attempts that were fine; spaced ones come closer first.
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
    /// `None` once it was given back.
    lane: Option<Arc<Lane>>,
    began: Instant,
    is_probe: bool,
}

impl Permit {
    /// Gives the turn back.
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
