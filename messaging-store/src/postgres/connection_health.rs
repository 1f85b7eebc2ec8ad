//! Bounds how long an answer of the database is waited for.
//!
//! A server that is cut off says nothing: no packet tells that it is gone, and what was sent waits for as long as TCP tries.
//! So every answer is waited for for a while, and longer only while others arrive. Where none does, the connections that
//! were taken before are not used again, because they lead to where nobody answers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::error::Chain;
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;

/// So long an answer is waited for while nothing is heard of the database: whoever asks for something hears within five
/// seconds that it cannot be had.
pub(super) const SILENCE: Duration = Duration::from_millis(4_500);

/// A commit is waited for a little longer, so that one that got no connection says so itself: it was certainly not done.
const SILENCE_OF_COMMIT: Duration = Duration::from_millis(4_700);

/// How long a commit is waited for while the database answers others.
const LONGEST_COMMIT: Duration = Duration::from_mins(1);

/// Interval between two log lines about a database that cannot be used.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// So long after a connection was lost others may be found lost as well.
const LATELY: Duration = Duration::from_secs(10);

/// What is known of the way to the database.
#[derive(Debug, Default)]
pub(super) struct ConnectionHealth(Mutex<HealthState>);

#[derive(Debug, Default)]
struct HealthState {
    /// When the last answer came.
    heard: Option<Instant>,
    /// When an answer was given up.
    silent: Option<Instant>,
    /// When something was not done last because there was no connection, or it was lost.
    lost: Option<Instant>,
    /// When it was logged last that the database cannot be used.
    logged: Option<Instant>,
}

impl ConnectionHealth {
    /// Waits for an answer to what is asked since a moment, at most for so long.
    pub(super) fn answer<T>(
        &self,
        since: Instant,
        longest: Duration,
        answer: impl Future<Output = Result<T, Fault>>,
    ) -> impl Future<Output = Result<T, Fault>> {
        let answered = self.wait(since, longest, answer);
        async move {
            let outcome = answered.await;
            let is_heard = outcome.as_ref().err().is_none_or(|fault| !fault.is_of_connection());
            if is_heard {
                self.heard();
            }
            outcome
        }
    }

    /// The same for what may come without the database, such as a connection that is free.
    pub(super) fn wait<T>(
        &self,
        since: Instant,
        longest: Duration,
        awaited: impl Future<Output = Result<T, Fault>>,
    ) -> impl Future<Output = Result<T, Fault>> {
        let answered = self.within(since, SILENCE, longest, awaited);
        async move {
            let outcome = answered.await.unwrap_or(Err(Fault::NoAnswer));
            if let Err(fault) = &outcome
                && self.is_to_log(fault)
            {
                tracing::warn!(error = %Chain(fault), "the database cannot be used; requests get 503 and jobs wait");
            }
            if outcome.as_ref().err().is_some_and(Fault::is_of_connection) {
                self.known().lost = Some(Instant::now());
            }
            outcome
        }
    }

    /// Whether a fault says why the database cannot be used, and none did within the last minute: all requests and jobs
    /// meet the same cause.
    fn is_to_log(&self, fault: &Fault) -> bool {
        let mut known = self.known();
        let is_due = known.logged.is_none_or(|logged_at| logged_at.elapsed() >= LOG_EVERY);
        if !is_due || !fault.is_of_database() {
            return false;
        }
        known.logged = Some(Instant::now());
        true
    }

    /// What comes before the database was silent for so long, and within the longest time.
    fn within<T>(
        &self,
        since: Instant,
        silence: Duration,
        longest: Duration,
        awaited: impl Future<Output = T>,
    ) -> impl Future<Output = Option<T>> {
        // It may be large, and this future is part of many others.
        let mut awaited = Box::pin(awaited);
        async move {
            loop {
                let until = (self.heard_since(since).unwrap_or(since) + silence).min(since + longest);
                if until <= Instant::now() {
                    self.unanswered(since);
                    return None;
                }
                if let Ok(outcome) = timeout_at(until, &mut awaited).await {
                    return Some(outcome);
                }
            }
        }
    }

    /// Waits for a commit on behalf of somebody who waits for it. Where no answer comes, it may be done all the same.
    pub(super) async fn commit(&self, commit: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
        let committed = self.within(Instant::now(), SILENCE_OF_COMMIT, LONGEST_COMMIT, commit).await;
        committed.unwrap_or(Err(Fault::OutcomeUnknown))
    }

    /// An answer has come.
    pub(super) fn heard(&self) {
        self.known().heard = Some(Instant::now());
    }

    /// What was asked at a moment was not answered. If nothing else was answered since, no connection of before is of use.
    pub(super) fn unanswered(&self, since: Instant) {
        let is_silent = self.heard_since(since).is_none();
        let mut known = self.known();
        known.lost = Some(Instant::now());
        if is_silent {
            known.silent = known.lost;
        }
    }

    /// Whether the connection to the database was lost a moment ago.
    pub(super) fn was_lost_lately(&self) -> bool {
        self.known().lost.is_some_and(|lost_at| lost_at.elapsed() < LATELY)
    }

    /// Whether a connection may be used that was taken last at a moment.
    pub(super) fn is_usable(&self, taken_at: std::time::Instant) -> bool {
        self.known().silent.is_none_or(|silent_at| Instant::from_std(taken_at) > silent_at)
    }

    /// When the last answer came, if that was after a moment.
    fn heard_since(&self, moment: Instant) -> Option<Instant> {
        self.known().heard.filter(|heard_at| *heard_at > moment)
    }

    fn known(&self) -> MutexGuard<'_, HealthState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const LONGEST: Duration = Duration::from_secs(15);

    async fn ask(health: &ConnectionHealth) -> Duration {
        let since = Instant::now();
        let outcome = health.answer(since, LONGEST, pending::<Result<(), Fault>>()).await;
        assert!(matches!(outcome, Err(Fault::NoAnswer)));
        since.elapsed()
    }

    fn is_about(found: Duration, expected: Duration) -> bool {
        found >= expected && found < expected + Duration::from_millis(20)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_waited_for_while_others_come() {
        let health = ConnectionHealth::default();
        assert!(is_about(ask(&health).await, SILENCE), "nobody has answered yet");
        let others = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(2)).await;
                health.answer(Instant::now(), LONGEST, ready(Ok(()))).await.unwrap();
            }
            pending::<()>().await;
        };
        tokio::select! {
            waited = ask(&health) => assert!(is_about(waited, Duration::from_secs(6) + SILENCE), "{waited:?}"),
            () = others => {}
        }
        let others = async {
            loop {
                tokio::time::sleep(Duration::from_secs(2)).await;
                health.heard();
            }
        };
        tokio::select! {
            waited = ask(&health) => assert!(is_about(waited, LONGEST), "{waited:?}"),
            () = others => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_cannot_be_used_is_logged_once_a_minute() {
        let health = ConnectionHealth::default();
        let refused = || Fault::NoConnection("too many connections".into());
        assert!(!health.is_to_log(&Fault::Conflict), "the database works");
        assert!(health.is_to_log(&refused()));
        assert!(!health.is_to_log(&Fault::NoAnswer));
        tokio::time::advance(LOG_EVERY).await;
        assert!(health.is_to_log(&refused()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_that_got_no_connection_is_known_not_to_be_kept() {
        let health = ConnectionHealth::default();
        let without = async {
            let taken = Instant::now();
            health.wait(taken, LONGEST, pending::<Result<(), Fault>>()).await
        };
        assert!(matches!(health.commit(without).await, Err(Fault::NoAnswer)));
        assert!(matches!(health.commit(pending()).await, Err(Fault::OutcomeUnknown)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_is_known_for_a_while() {
        let health = ConnectionHealth::default();
        let ask = |outcome: Result<(), Fault>| health.answer(Instant::now(), LONGEST, ready(outcome));
        ask(Ok(())).await.unwrap();
        ask(Err(Fault::Malformed("a row"))).await.unwrap_err();
        assert!(!health.was_lost_lately());
        ask(Err(Fault::NoConnection("refused".into()))).await.unwrap_err();
        assert!(health.was_lost_lately());
        tokio::time::advance(LATELY).await;
        assert!(!health.was_lost_lately());
        self::ask(&health).await;
        assert!(health.was_lost_lately(), "no answer came");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_before_a_silence_are_not_used() {
        let health = ConnectionHealth::default();
        let before = Instant::now().into_std();
        assert!(health.is_usable(before));
        let asked = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        health.heard();
        health.unanswered(asked);
        assert!(health.is_usable(before), "another was answered since");
        ask(&health).await;
        assert!(!health.is_usable(before));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(health.is_usable(Instant::now().into_std()));
    }
}
