//! Time limits for answers of the database.
//!
//! A server that is cut off sends nothing: no packet shows that it is gone, and a query waits for as long as TCP tries.
//! So an answer is waited for a limited time, and longer only while other answers arrive. If none arrives, the
//! connections that were taken before are not used again, because they may lead to a dead server.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::error::Chain;
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;

/// Time that an answer is waited for while the database is silent: callers hear within five seconds that the database
/// cannot be used.
pub(super) const SILENCE: Duration = Duration::from_millis(4_500);

/// Such a time for a commit: a little longer, so that one that got no connection says so itself, and is certainly not
/// done.
const SILENCE_OF_COMMIT: Duration = Duration::from_millis(4_700);

/// Time that a commit is waited for while the database answers others.
const LONGEST_COMMIT: Duration = Duration::from_mins(1);

/// Interval between two log lines about a database that cannot be used.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Time after the loss of a connection during which others may be found lost as well.
const LATELY: Duration = Duration::from_secs(10);

/// State of the connection to the database.
#[derive(Debug, Default)]
pub(super) struct ConnectionHealth(Mutex<HealthState>);

#[derive(Debug, Default)]
struct HealthState {
    /// Time of the last answer.
    heard: Option<Instant>,
    /// Time when an answer was last given up while the database was silent.
    silent: Option<Instant>,
    /// Time when an operation last failed because there was no connection, or it was lost.
    lost: Option<Instant>,
    /// Time when it was last logged that the database cannot be used.
    logged: Option<Instant>,
}

impl ConnectionHealth {
    /// Waits for the answer to a request made at `since`, at most for `longest`.
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

    /// Like `answer`, for results that do not prove an answer of the database, such as a free connection.
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

    /// Returns true if a fault means that the database cannot be used, and none was logged within the last minute: all
    /// requests and jobs meet the same cause.
    fn is_to_log(&self, fault: &Fault) -> bool {
        let mut known = self.known();
        let is_due = known.logged.is_none_or(|logged_at| logged_at.elapsed() >= LOG_EVERY);
        if !is_due || !fault.is_of_database() {
            return false;
        }
        known.logged = Some(Instant::now());
        true
    }

    /// Waits for a result, until the database was silent for `silence`, and at most for `longest`; `None` if none came.
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

    /// Waits for a commit of a caller. If no answer comes, the commit may be done all the same.
    pub(super) async fn commit(&self, commit: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
        let committed = self.within(Instant::now(), SILENCE_OF_COMMIT, LONGEST_COMMIT, commit).await;
        committed.unwrap_or(Err(Fault::OutcomeUnknown))
    }

    /// Records an answer of the database.
    pub(super) fn heard(&self) {
        self.known().heard = Some(Instant::now());
    }

    /// Records that a request made at `since` was not answered. If no other was answered since, connections taken
    /// before are not used again.
    pub(super) fn unanswered(&self, since: Instant) {
        let is_silent = self.heard_since(since).is_none();
        let mut known = self.known();
        known.lost = Some(Instant::now());
        if is_silent {
            known.silent = known.lost;
        }
    }

    /// Returns true if the connection to the database was lost within the last ten seconds.
    pub(super) fn was_lost_lately(&self) -> bool {
        self.known().lost.is_some_and(|lost_at| lost_at.elapsed() < LATELY)
    }

    /// Returns true if a connection that was last taken at `taken_at` may be used.
    pub(super) fn is_usable(&self, taken_at: std::time::Instant) -> bool {
        self.known().silent.is_none_or(|silent_at| Instant::from_std(taken_at) > silent_at)
    }

    /// Returns the time of the last answer, if it came after `moment`.
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
