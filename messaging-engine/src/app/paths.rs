//! Delivery paths of this node's sources, with the state of their warm-up and brakes, in memory.
//!
//! The transport asks before each attempt and reports the answers ([`Paths`]); both only count under a lock that is
//! never held over a wait. The counts are written to the database in batches ([`rows`]): a crash loses some seconds of
//! counting, and no message waits for such a commit.
//!
//! Each node keeps the paths of the sources that it uses, so a path belongs to one node: if several nodes name one
//! address the oldest uses it, and the next one continues from the stored state once that node is gone ([`holding`]).

mod holding;
mod rows;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::domain::delivery::ip_pool::source::{NamedSource, SourceAddress, SourceRow, SourceStatus};
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::delivery::path::{
    BrakeChange, PathReply, PathState, PathStatus, Permission, Priority, Wait, WaitReason,
};
use messaging_core::domain::delivery::site::{SiteLimits, SiteName, SiteRules};
use messaging_core::domain::delivery::source_choice::{Candidate, Choice, Turns, choose};
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ports::clock::{Clock, Entropy};
use messaging_core::ports::paths::{Departure, Leave, OpenPath, PathRequest, PathWait, Paths};
use messaging_core::ports::transport::{Answer, Outcome};
use messaging_core::time::Timestamp;

pub(crate) use rows::SAVE_EVERY;

/// Time an unused path is kept, here and in the database. Its warm-up starts again before that.
pub(crate) const KEPT_FOR: Duration = Duration::from_hours(60 * 24);

/// Maximum number of paths in memory; the least recently used are dropped then ([`State::make_room`]).
const MAX_PATHS: usize = 50_000;

/// Number of paths dropped at once, so that the search for them is rare.
const DROPPED_AT_ONCE: usize = MAX_PATHS / 50;

/// Time until room for a path is looked for again after none was found.
const LOOKED_FOR_ROOM: Duration = Duration::from_secs(1);

/// Time after its last use in which a path is not dropped.
const IDLE_AFTER: Duration = Duration::from_mins(1);

/// Maximum number of recipient domains for which the path of the last message is remembered.
const MAX_DOMAINS: usize = 50_000;

/// Maximum number of turns, one for each site and set of sources, that are remembered; beyond it all begin anew.
const MAX_TURNS: usize = 10_000;

/// Longest time until a message that waits for a path asks again.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Time until a message asks again if only an operator can open a path, or another node has to start.
pub(crate) const UNTIL_SOMEBODY_ACTS: Duration = Duration::from_mins(5);

/// Time until a transactional message asks again for a node that has an address for it: one may just be starting.
const UNTIL_A_NODE_COMES: Duration = Duration::from_secs(30);

/// The shortest wait.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// Wait for a path's rate at or above which marketing mail is shown as held.
const TOLD_FROM: Duration = Duration::from_mins(1);

/// Largest random addition to the wait of marketing mail: messages that wait for one moment do not all come back at
/// that moment.
const LONGEST_SPREAD: Duration = Duration::from_mins(10);

/// Index of a source, and the site that its mail is sent to.
type PathKey = (usize, SiteName);

/// The paths of a node.
pub(crate) struct PathKeeper {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    rules: Arc<SiteRules>,
    /// Sources of the node; at least one.
    sources: Vec<Arc<NamedSource>>,
    /// True for each source that this node uses; changed under the lock of the state.
    uses: Vec<AtomicBool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// True once the stored paths were read: paths are chosen from then on; before, mail leaves without one.
    is_loaded: bool,
    /// State of the sources, in their order.
    sources: Vec<KeptSource>,
    paths: HashMap<PathKey, KeptPath>,
    turns: HashMap<(SiteName, Vec<usize>), Turns>,
    /// Path over which the last message to a domain left, by domain.
    last_paths: HashMap<String, PathKey>,
    /// Number of the next turn of mail that leaves without a path.
    turn: usize,
    /// Time at which no path could be dropped to make room; `None` after success.
    was_full: Option<Timestamp>,
}

/// State of a source, with its stored row.
struct KeptSource {
    row: SourceRow,
    /// Revision of the stored row; `None` before there is one.
    revision: Option<u32>,
    /// True if the row has to be written soon.
    is_changed: bool,
}

/// State of a path, with its stored row.
#[derive(Default)]
struct KeptPath {
    state: PathState,
    /// Revision of the stored row; `None` before there is one.
    revision: Option<u32>,
    is_changed: bool,
    saved_at: Option<Timestamp>,
    /// Next turn of marketing mail that waits.
    next_turn: Option<Timestamp>,
    /// Time until which the path is kept free for transactional mail.
    kept_free_until: Option<Timestamp>,
}

/// A path for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownPath {
    pub(crate) source: String,
    pub(crate) site: String,
    pub(crate) status: PathStatus,
}

impl PathKeeper {
    /// Keeps the paths of these sources; without any, of the one whose address the system chooses.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        rules: Arc<SiteRules>,
        given: &[NamedSource],
        hostname: &str,
    ) -> Self {
        let mut sources: Vec<_> = given.iter().cloned().map(Arc::new).collect();
        if sources.is_empty() {
            sources.push(Arc::new(NamedSource::by_system(hostname)));
        }
        let uses = sources.iter().map(|_| AtomicBool::new(true)).collect();
        Self { clock, entropy, rules, sources, uses, state: Mutex::default() }
    }

    /// Returns the sources of this node.
    pub(crate) fn sources(&self) -> &[Arc<NamedSource>] {
        &self.sources
    }

    /// Returns true once the stored paths were read.
    pub(crate) fn is_loaded(&self) -> bool {
        self.lock().is_loaded
    }

    /// Counts a complaint about mail that an exchanger took from a source. Returns the site at which the complaint has
    /// to be stored, because another node uses the path.
    pub(crate) fn complained(&self, source: SourceAddress, exchanger: &str) -> Option<SiteName> {
        let site = self.rules.site_of(&[exchanger])?;
        let Some(at) = self.sources.iter().position(|one| one.ip == source).filter(|at| self.uses_at(*at)) else {
            return Some(site);
        };
        let (key, now) = ((at, site), self.clock.now());
        let mut state = self.lock();
        let Some(path) = state.paths.get_mut(&key) else { return Some(key.1) };
        let change = path.state.complained(&self.rules.limits(&key.1), now);
        path.is_changed = true;
        drop(state);
        self.tell(&key, change.as_ref());
        None
    }

    /// Returns the paths that are slowed, paused or stopped, and those to sites that the rules name; at most `limit`.
    pub(crate) fn shown(&self, limit: usize) -> Vec<ShownPath> {
        let now = self.clock.now();
        let state = self.lock();
        let mut shown: Vec<_> = state
            .paths
            .iter()
            .map(|(key, path)| (key, path.state.status(now)))
            .filter(|((source, site), status)| {
                self.uses_at(*source) && (*status != PathStatus::Ok || self.rules.names(site))
            })
            .collect();
        drop_least(&mut shown, limit);
        let show = |((source, site), status): (&PathKey, PathStatus)| ShownPath {
            source: self.sources[*source].ip.to_string(),
            site: site.as_str().to_owned(),
            status,
        };
        shown.into_iter().map(show).collect()
    }

    /// Returns a sentence about why no path to a domain is open at the moment; `None` if one is, or nothing is known of
    /// the domain.
    pub(crate) fn sentence_for(&self, domain: &str) -> Option<String> {
        let now = self.clock.now();
        let state = self.lock();
        let (source, site) = state.last_paths.get(domain)?;
        let path = state.paths.get(&(*source, site.clone()))?;
        match path.state.may_send(&self.rules.limits(site), now, Priority::Marketing) {
            Permission::Wait(Wait { reason: WaitReason::Pace, .. }) | Permission::Allowed | Permission::Overdue => None,
            Permission::Wait(wait) => Some(wait.reason.sentence(&self.sources[*source].ip.to_string(), site.as_str())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a change of a brake to the log.
    fn tell(&self, (source, site): &PathKey, change: Option<&BrakeChange>) {
        let Some(BrakeChange { action, reason, until, evidence }) = change else { return };
        let (source, until) = (self.sources[*source].ip, until.map(tracing::field::display));
        tracing::warn!(%source, site = site.as_str(), ?action, ?reason, until, evidence, "the brake of a path changed");
    }

    /// Returns the wait of a message that may ask again at a time; bulk mail gets a random addition.
    fn wait(&self, until: Option<Timestamp>, now: Timestamp, class: JobClass) -> Duration {
        let Some(until) = until else { return UNTIL_SOMEBODY_ACTS };
        let wait = until.since(now).clamp(SHORTEST_WAIT, LONGEST_WAIT);
        match class {
            JobClass::Transactional => wait,
            JobClass::Bulk => wait + (wait * 4).min(LONGEST_SPREAD).mul_f64(self.chance()),
        }
    }

    /// Returns a random number from 0 to 1.
    fn chance(&self) -> f64 {
        let mut bytes = [0; 4];
        self.entropy.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
    }

    /// Returns true if an exchanger belongs to a site. A domain may name exchangers of several operators, and anybody
    /// may name one of their own beside those of a site: its answers are not the site's.
    fn operates(&self, site: &SiteName, exchanger: &str) -> bool {
        self.rules.site_of(&[exchanger]).as_ref() == Some(site)
    }

    fn leave(&self, source: usize, path: Option<OpenPath>) -> Departure {
        Departure::Leaves(Leave { source: Arc::clone(&self.sources[source]), path })
    }

    /// Chooses among the paths of sources to a site.
    fn over_path(&self, state: &mut State, sources: &[usize], site: SiteName, request: &PathRequest<'_>) -> Departure {
        let now = self.clock.now();
        let limits = self.rules.limits(&site);
        let priority = match request.class {
            JobClass::Bulk => Priority::Marketing,
            JobClass::Transactional => Priority::Transactional {
                expires_at: request.terms.expires_at.unwrap_or(Timestamp::from_millis(i64::MAX)),
            },
        };
        let candidates: Vec<_> =
            sources.iter().map(|&source| state.candidate(source, &site, &limits, now, priority)).collect();
        match state.choose(sources, &site, &candidates) {
            Choice::Source(place) => {
                let key = (sources[place], site);
                if !state.begin(&key, &self.rules, now, request) {
                    return self.leave(key.0, None);
                }
                let of_site = |host: &&String| self.operates(&key.1, host);
                let path = OpenPath {
                    exchangers: request.exchangers.iter().filter(of_site).cloned().collect(),
                    site: key.1.clone(),
                    connections: count(limits.connections),
                    messages_per_connection: count(limits.messages_per_connection),
                };
                self.leave(key.0, Some(path))
            }
            Choice::Wait(wait) => {
                let place = candidates.iter().position(|one| one.permission == Permission::Wait(wait));
                let key = (sources[place.unwrap_or_default()], site);
                let time = self.turn_of(state.paths.get_mut(&key), wait.until, &limits, now, request.class);
                let is_told = request.class == JobClass::Bulk && time >= TOLD_FROM;
                Departure::Waits(PathWait {
                    reason: match wait.reason {
                        WaitReason::Pace => is_told.then_some(HoldReason::DomainPace),
                        WaitReason::WarmingUp { .. } => Some(HoldReason::WarmingUp),
                        WaitReason::Braked(_) => Some(HoldReason::Braked),
                    },
                    wait: time,
                    sentence: wait.reason.sentence(&self.sources[key.0].ip.to_string(), key.1.as_str()),
                })
            }
            Choice::NoSource => no_source(request.class),
        }
    }
}

impl Paths for PathKeeper {
    fn depart(&self, request: &PathRequest<'_>) -> Departure {
        let is_usable =
            |source: &NamedSource| request.terms.sources.as_ref().is_none_or(|all| all.contains(&source.ip));
        let places = 0..self.sources.len();
        let usable: Vec<usize> = places.filter(|&at| is_usable(&self.sources[at]) && self.uses_at(at)).collect();
        let Some(&first) = usable.first() else { return no_source(request.class) };
        let reaches = |at: &usize| request.reach.is_reached_by(&self.sources[*at]);
        let reaching: Vec<usize> = usable.into_iter().filter(reaches).collect();
        if reaching.is_empty() {
            // The attempt then fails, because no source reaches an exchanger.
            return self.leave(first, None);
        }
        let site = request.reach.is_public.then(|| self.rules.site_of(request.exchangers)).flatten();
        let mut state = self.lock();
        match site {
            Some(site) if state.is_loaded => self.over_path(&mut state, &reaching, site, request),
            _ => {
                state.turn = state.turn.wrapping_add(1);
                self.leave(reaching[state.turn % reaching.len()], None)
            }
        }
    }

    fn ended(&self, leave: &Leave, outcomes: &[&Outcome]) {
        let Some(OpenPath { site, .. }) = &leave.path else { return };
        let Some(source) = self.sources.iter().position(|one| one.ip == leave.source.ip) else { return };
        // Replies are judged before the lock is taken, because that searches patterns.
        let reply = |answer: &Answer| {
            let is_of_site = answer.response.host.as_deref().is_none_or(|host| self.operates(site, host));
            is_of_site.then(|| PathReply::of(&self.rules, site, answer)).flatten()
        };
        let replies: Vec<_> = outcomes.iter().filter_map(|outcome| reply(outcome.answer()?)).collect();
        let (now, limits) = (self.clock.now(), self.rules.limits(site));
        let key = (source, site.clone());
        let mut changes = Vec::new();
        {
            let mut state = self.lock();
            let Some(path) = state.paths.get_mut(&key) else { return };
            path.is_changed = true;
            for (at, reply) in replies.iter().enumerate() {
                // The first transaction was counted when the message was allowed to leave.
                if at > 0 {
                    path.state.sent(&limits, now);
                }
                changes.extend(path.state.answered(&limits, now, reply));
            }
        }
        for change in &changes {
            self.tell(&key, Some(change));
        }
    }

    fn given_up(&self, leave: &Leave) {
        let Some(OpenPath { site, .. }) = &leave.path else { return };
        let Some(source) = self.sources.iter().position(|one| one.ip == leave.source.ip) else { return };
        let (now, limits) = (self.clock.now(), self.rules.limits(site));
        if let Some(path) = self.lock().paths.get_mut(&(source, site.clone())) {
            path.state.unsent(&limits, now);
            path.is_changed = true;
        }
    }
}

impl State {
    /// Returns the view of a source that the choice works with; a stopped one waits for the operator.
    fn candidate(
        &self,
        source: usize,
        site: &SiteName,
        limits: &SiteLimits,
        now: Timestamp,
        priority: Priority,
    ) -> Candidate {
        if self.status_of(source) == SourceStatus::Stopped {
            let stopped = Wait { until: None, reason: WaitReason::Braked(None) };
            return Candidate { permission: Permission::Wait(stopped), weight: 1 };
        }
        match self.paths.get(&(source, site.clone())) {
            Some(path) => path.candidate(limits, now, priority),
            None => Candidate::of(&self.fresh(source), limits, now, priority),
        }
    }

    /// Returns the state of a path over which nothing was sent yet.
    fn fresh(&self, source: usize) -> PathState {
        if self.status_of(source) == SourceStatus::Warm { PathState::known() } else { PathState::default() }
    }

    fn status_of(&self, source: usize) -> SourceStatus {
        self.sources.get(source).map(|kept| kept.row.status).unwrap_or_default()
    }

    fn choose(&mut self, sources: &[usize], site: &SiteName, candidates: &[Candidate]) -> Choice {
        if sources.len() == 1 {
            return choose(candidates, &mut Turns::default());
        }
        if self.turns.len() >= MAX_TURNS {
            self.turns.clear();
        }
        choose(candidates, self.turns.entry((site.clone(), sources.to_vec())).or_default())
    }

    /// Drops the paths that were not used for longest. Their rows stay, and a path that is used again continues from
    /// its row ([`Self::take_row`]). Braked paths stay, and those whose warm-up is not written yet.
    fn make_room(&mut self, rules: &SiteRules, now: Timestamp) {
        if self.was_full.is_some_and(|at| at <= now && now.since(at) < LOOKED_FOR_ROOM) {
            return;
        }
        let mut idle: Vec<(Timestamp, PathKey)> = Vec::new();
        for (key, path) in &self.paths {
            let used = path.state.last_used().or(path.saved_at).unwrap_or(now);
            let is_written = || !path.is_changed || !path.state.warm_up(&rules.limits(&key.1), now).is_warming();
            if now.since(used) >= IDLE_AFTER && path.state.status(now) == PathStatus::Ok && is_written() {
                idle.push((used, key.clone()));
            }
        }
        if idle.len() > DROPPED_AT_ONCE {
            idle.select_nth_unstable(DROPPED_AT_ONCE);
            idle.truncate(DROPPED_AT_ONCE);
        }
        self.was_full = idle.is_empty().then_some(now);
        for (_, key) in idle {
            self.paths.remove(&key);
        }
    }

    /// Counts a transaction that begins; `false` if so many paths are braked or in use that another cannot be kept.
    fn begin(&mut self, key: &PathKey, rules: &SiteRules, now: Timestamp, request: &PathRequest<'_>) -> bool {
        let domain = request.domain;
        if !self.paths.contains_key(key) {
            if self.paths.len() >= MAX_PATHS {
                self.make_room(rules, now);
            }
            if self.paths.len() >= MAX_PATHS {
                return false;
            }
            let state = self.fresh(key.0);
            self.paths.insert(key.clone(), KeptPath { state, ..KeptPath::default() });
        }
        let Some(path) = self.paths.get_mut(key) else { return false };
        path.state.sent(&rules.limits(&key.1), now);
        path.is_changed = true;
        if request.class == JobClass::Transactional {
            path.kept_free_until = None;
        }
        if let Some(last) = self.last_paths.get_mut(domain) {
            if last != key {
                last.clone_from(key);
            }
            return true;
        }
        if self.last_paths.len() >= MAX_DOMAINS {
            self.last_paths.clear();
        }
        self.last_paths.insert(domain.to_owned(), key.clone());
        true
    }
}

/// Sorts paths by status, the most severe (stopped) first, and keeps the first `limit`.
fn drop_least(shown: &mut Vec<(&PathKey, PathStatus)>, limit: usize) {
    let place = |status: PathStatus| PathStatus::ALL.iter().rev().position(|one| *one == status);
    shown.sort_by(|(one, status), (other, of_other)| place(*status).cmp(&place(*of_other)).then(one.0.cmp(&other.0)));
    shown.truncate(limit);
}

/// Returns the answer for a message if this node uses none of its addresses.
fn no_source(class: JobClass) -> Departure {
    Departure::Waits(PathWait {
        reason: Some(HoldReason::NoSource),
        wait: if class == JobClass::Transactional { UNTIL_A_NODE_COMES } else { UNTIL_SOMEBODY_ACTS },
        sentence: "No server that runs has an address that the message may be sent from.".to_owned(),
    })
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl std::fmt::Debug for PathKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PathKeeper").field("sources", &self.sources).finish_non_exhaustive()
    }
}
