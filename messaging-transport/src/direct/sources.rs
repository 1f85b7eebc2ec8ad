//! Choice of the source address that an attempt leaves from.
//!
//! A node has one source or several. The keeper of paths ([`Paths`]) chooses among them; without one, those that reach
//! the exchangers take turns. A host that the operator named (`--mx-override`) is reached from the address that the
//! system chooses, because it need not be reachable from any other.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::ports::paths::{Departure, Leave, PathRequest, PathTerms, PathWait, Paths, Reach};
use messaging_core::ports::transport::{Outcome, OutcomeClass, Response};
use tokio::time::Instant;

use super::route::{Exchangers, Routing};
use crate::guard::Guard;
use crate::smtp::DECIDED_HERE;

/// Recognizes public addresses, even if private ones may be dialed: only exchangers at public ones have paths.
const PUBLIC: Guard = Guard { allow_private: false };

/// The sources of a node.
pub(super) struct Sources {
    /// The sources; at least one.
    all: Vec<Arc<NamedSource>>,
    /// Address that the system chooses, with the name of the machine.
    by_system: Arc<NamedSource>,
    paths: Mutex<Option<Weak<dyn Paths>>>,
    /// Number of the next turn, used if nobody keeps paths.
    turn: AtomicUsize,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(ToString::to_string)).finish()
    }
}

/// Source and exchangers of an attempt. If it is dropped before the attempt has ended, its transaction is taken back
/// from the path.
pub(super) struct Departing {
    pub(super) leave: Leave,
    /// The exchangers that the source was chosen for; `None` if they were not looked up.
    pub(super) exchangers: Option<Exchangers>,
    /// Keeper of the path, until it is told the result of the attempt; `None` without a path.
    paths: Option<Arc<dyn Paths>>,
}

impl Departing {
    fn without_path(source: &Arc<NamedSource>) -> Self {
        Self { leave: Leave { source: Arc::clone(source), path: None }, exchangers: None, paths: None }
    }

    /// Reports to the keeper of the path the answers of the exchangers, or that there were none.
    pub(super) fn ended(mut self, outcomes: &[Outcome]) {
        let Some(paths) = self.paths.take() else { return };
        let is_answer = |outcome: &&Outcome| outcome.answer().is_some_and(|answer| is_of_peer(&answer.response));
        let answers: Vec<_> = outcomes.iter().filter(is_answer).collect();
        // If the last reply was lost, the site may have the message.
        if answers.is_empty() && outcomes.iter().all(|outcome| outcome.class() != Some(OutcomeClass::Ambiguous)) {
            paths.given_up(&self.leave);
        } else {
            paths.ended(&self.leave, &answers);
        }
    }
}

impl Drop for Departing {
    fn drop(&mut self) {
        if let Some(paths) = self.paths.take() {
            paths.given_up(&self.leave);
        }
    }
}

impl Sources {
    /// Creates the sources of a machine of this name; if none are given, the system chooses the address.
    pub(super) fn new(hostname: &str, given: Vec<NamedSource>) -> Self {
        let by_system = Arc::new(NamedSource::by_system(hostname));
        let mut all: Vec<_> = given.into_iter().map(Arc::new).collect();
        if all.is_empty() {
            all.push(Arc::clone(&by_system));
        }
        Self { all, by_system, paths: Mutex::default(), turn: AtomicUsize::default() }
    }

    /// Lets `paths` choose from now on.
    pub(super) fn attach(&self, paths: Weak<dyn Paths>) {
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = Some(paths);
    }

    /// Returns the keeper of paths, if there is one.
    fn paths(&self) -> Option<Arc<dyn Paths>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }

    /// Chooses the source of an attempt; `Err` if the message has to wait. `limit` bounds the look-ups.
    pub(super) async fn depart(
        &self,
        routing: &Routing,
        domain: &str,
        (class, terms): (JobClass, &PathTerms),
        limit: Duration,
    ) -> Result<Departing, PathWait> {
        if matches!(routing, Routing::Override(_)) {
            return Ok(Departing::without_path(&self.by_system));
        }
        let paths = self.paths();
        if let (None, [only]) = (&paths, &self.all[..]) {
            return Ok(Departing::without_path(only));
        }
        let exchangers = match routing.exchangers(domain).await {
            Ok(exchangers) if !exchangers.hosts.is_empty() => exchangers,
            // The attempt itself finds the outcome of a message without exchangers.
            _ => return Ok(Departing::without_path(&self.all[0])),
        };
        let reach = self.reach(routing, &exchangers.hosts, limit).await;
        let Some(paths) = paths else {
            let leave = Leave { source: self.next(reach), path: None };
            return Ok(Departing { leave, exchangers: Some(exchangers), paths: None });
        };
        match paths.depart(&PathRequest { domain, exchangers: &exchangers.hosts, reach, class, terms }) {
            Departure::Leaves(leave) => {
                let paths = leave.path.is_some().then_some(paths);
                Ok(Departing { leave, exchangers: Some(exchangers), paths })
            }
            Departure::Waits(wait) => Err(wait),
        }
    }

    /// Returns the kinds of addresses that the exchangers have. No further exchangers are looked up once every source
    /// reaches one.
    async fn reach(&self, routing: &Routing, exchangers: &[String], limit: Duration) -> Reach {
        let began = Instant::now();
        let mut reach = Reach::default();
        for host in exchangers {
            let left = limit.saturating_sub(began.elapsed());
            for address in routing.addresses(host, left).await.unwrap_or_default() {
                reach.add(address.ip(), PUBLIC.permits(address.ip()));
            }
            let is_found = reach.ipv4 || reach.ipv6;
            if left.is_zero() || is_found && self.all.iter().all(|source| reach.is_reached_by(source)) {
                break;
            }
        }
        reach
    }

    /// Returns the source whose turn it is among those that reach an exchanger, or the first one if none does.
    fn next(&self, reach: Reach) -> Arc<NamedSource> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let fit: Vec<_> = self.all.iter().filter(|source| reach.is_reached_by(source)).collect();
        Arc::clone(fit.get(turn % fit.len().max(1)).copied().unwrap_or(&self.all[0]))
    }
}

/// Returns true for the reply of an exchanger, unlike a result that was decided here.
fn is_of_peer(response: &Response) -> bool {
    response.code.is_some() && response.host.is_some() && !response.text.contains(DECIDED_HERE)
}
