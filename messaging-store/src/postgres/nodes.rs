//! The processes of an installation: which of them are alive, and which one claims the jobs of which places.
//!
//! Every process renews its row at intervals and reads those of the others; only the clock of the database decides who
//! is alive. Any process may declare another dead that was not seen for long: it deletes the rows of its term, which
//! waits for its open transactions and refuses all later ones. Places are assigned to the living by rendezvous hashing;
//! a living owner hands its places over itself.

mod keys;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use messaging_core::error::Chain;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_core::ports::store::StoreHealth;
use tokio::sync::watch;
use tokio::time::Instant;

use super::fault::Fault;
use super::lease_table::LeaseTable;
use super::news::ChangeNotifier;
use super::places::owner;
use super::writes::Writes;
use crate::row::get;
use crate::sql::params;

/// Largest difference in milliseconds between the clock of a process and the database's; a process beyond it claims no
/// jobs.
const CLOCK_TOLERANCE: i64 = 1_000;

/// Time limit of one look at the other processes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time within which a new term has to begin.
const RENEWAL: Duration = Duration::from_secs(15);

/// Time to wait for the open transactions of a dead process before they are terminated.
const GRACE: &str = "SET LOCAL lock_timeout = '2s'";

/// Number of attempts to declare a dead process dead in one look.
const TRIES: usize = 3;

/// The size of the database is measured in one of this many looks.
const SIZE_EVERY: u64 = 30;

/// Interval of heartbeats, and the limits after which a silent process is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeats {
    /// Interval between two heartbeats of one process.
    pub every: Duration,
    /// Time without an answer after which a process starts no work.
    pub silent_after: Duration,
    /// Time after which others declare the process dead.
    pub dead_after: Duration,
    /// Time for which a place that moves to another process is not claimed from while its jobs end. If they have not
    /// ended by then, the place stays for the same time before the next try.
    pub hand_over: Duration,
}

impl Default for Heartbeats {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(2),
            silent_after: Duration::from_secs(6),
            dead_after: Duration::from_secs(10),
            hand_over: Duration::from_secs(20),
        }
    }
}

/// State of a process, stored as a number in the table `nodes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeState {
    Working,
    Idle,
    Draining,
    Clock,
}

impl NodeState {
    /// Returns true if a process in this state claims jobs.
    const fn claims(self) -> bool {
        matches!(self, Self::Working | Self::Idle)
    }

    const fn number(self) -> i16 {
        match self {
            Self::Working => 0,
            Self::Idle => 1,
            Self::Draining => 2,
            Self::Clock => 4,
        }
    }
}

/// This process among the others.
#[derive(Debug)]
pub(super) struct Membership {
    pool: Pool,
    writes: Writes,
    lease_table: Arc<LeaseTable>,
    notifier: Arc<ChangeNotifier>,
    options: NodeOptions,
    /// Start of the last look that was answered.
    heard_at: Mutex<Option<Instant>>,
    offset: AtomicI64,
    is_draining: AtomicBool,
    /// Places that move to other processes, or could not, each with the time since when.
    leaving: Mutex<HashMap<i16, Instant>>,
    /// Ids of the secret keys that this process holds, separated by commas; `None` until they are announced.
    keys: Mutex<Option<String>>,
    /// Sources of this process as JSON; `None` until they are announced.
    sources: Mutex<Option<String>>,
    renewing: tokio::sync::Mutex<()>,
    health: watch::Sender<StoreHealth>,
    looks: AtomicU64,
    database_bytes: AtomicU64,
    /// Number of times that others ended the term of this process.
    pub(super) fenced: AtomicU64,
}

/// Options of a process as a node of the installation.
#[derive(Debug, Clone)]
pub(super) struct NodeOptions {
    pub(super) name: String,
    pub(super) works: bool,
    /// The `application_name` of its connections, by which other processes find those of one that died.
    pub(super) connections: String,
    pub(super) slots: usize,
    pub(super) heartbeats: Heartbeats,
    /// True if its clock is compared with the database's.
    pub(super) follows_clock: bool,
}

/// Another process, or this one.
#[derive(Debug)]
struct ClusterNode {
    term: i64,
    works: bool,
    /// True if it claims jobs in its present state: false while it drains, and while its clock is wrong.
    claims: bool,
    is_dead: bool,
}

impl Membership {
    pub(super) fn new(pool: Pool, writes: Writes, options: NodeOptions) -> Self {
        let (lease_table, notifier) = (Arc::clone(&writes.0.lease_table), Arc::clone(&writes.0.notifier));
        Self {
            pool,
            writes,
            lease_table,
            notifier,
            options,
            heard_at: Mutex::default(),
            offset: AtomicI64::new(0),
            is_draining: AtomicBool::new(false),
            leaving: Mutex::default(),
            keys: Mutex::default(),
            sources: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            health: watch::Sender::default(),
            looks: AtomicU64::new(0),
            database_bytes: AtomicU64::new(0),
            fenced: AtomicU64::new(0),
        }
    }

    pub(super) const fn works(&self) -> bool {
        self.options.works
    }

    pub(super) const fn health(&self) -> &watch::Sender<StoreHealth> {
        &self.health
    }

    pub(super) fn offset_ms(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    pub(super) fn database_bytes(&self) -> u64 {
        self.database_bytes.load(Ordering::Relaxed)
    }

    /// Returns true if the clock of this process differs from the database's by no more than the tolerance.
    pub(super) fn has_right_clock(&self) -> bool {
        self.offset_ms().abs() <= CLOCK_TOLERANCE
    }

    /// Fails when the database has not been heard of for so long that others may have declared this process dead.
    pub(super) fn require_voice(&self) -> Result<(), Fault> {
        if self.is_silent() || *self.health.borrow() == StoreHealth::Closed { Err(Fault::Unhealthy) } else { Ok(()) }
    }

    fn is_silent(&self) -> bool {
        let heard_at = *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner);
        heard_at.is_none_or(|at| at.elapsed() > self.options.heartbeats.silent_after)
    }

    /// Joins the installation: takes a term, and the places that are free.
    pub(super) async fn join(&self) -> Result<(), Fault> {
        let term = self.take_term().await?;
        self.writes.begin_term(term);
        self.look().await
    }

    /// Renews the heartbeat and looks after the other processes until this process ends.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut has_missed = false;
        loop {
            let wait = if self.leaving().is_empty() && !has_missed {
                self.options.heartbeats.every
            } else {
                self.options.heartbeats.every / 8
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.notifier.places.notified() => {}
            }
            has_missed = !self.try_to_look(has_missed).await;
            self.tell_health();
        }
    }

    /// Takes one look within the time limit; returns true if it was answered. Of several in a row that were not, one is
    /// logged.
    async fn try_to_look(&self, has_missed: bool) -> bool {
        let began = Instant::now();
        match tokio::time::timeout(PATIENCE, self.look()).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) if has_missed => {
                tracing::debug!(error = %Chain(&error), "the other processes cannot be seen");
            }
            Ok(Err(error)) => tracing::warn!(error = %Chain(&error), "the other processes cannot be seen"),
            Err(_) => {
                if !has_missed {
                    tracing::warn!("the database does not answer, so the other processes cannot be seen");
                }
                self.writes.0.health.unanswered(began);
                // Other processes may still be heard; but these connections are not used again.
                drop(self.pool.retain(|_, _| false));
            }
        }
        false
    }

    /// Publishes the health of the store: whether the database was heard recently.
    pub(super) fn tell_health(&self) {
        let state = if self.is_silent() { StoreHealth::IoError } else { StoreHealth::Healthy };
        self.health.send_if_modified(|health| {
            let changes = *health != state && !health.is_final();
            if changes {
                *health = state;
            }
            changes
        });
    }

    /// Begins a new term if `ended` is the current one, which others have ended.
    pub(super) async fn renew(&self, ended: i64) -> Result<(), Fault> {
        self.writes.0.health.answer(Instant::now(), RENEWAL, self.begin_anew(ended)).await
    }

    async fn begin_anew(&self, ended: i64) -> Result<(), Fault> {
        let _turn = self.renewing.lock().await;
        if self.writes.term() != ended {
            return Ok(());
        }
        self.fenced.fetch_add(1, Ordering::Relaxed);
        tracing::warn!("others took this process for dead; it drops what it has claimed and begins anew");
        let term = self.take_term().await?;
        self.leaving().clear();
        self.writes.begin_term(term);
        // Nobody needs the rows of the former term.
        self.end_term(ended, None).await?;
        self.say(term).await?;
        self.notifier.places.notify_one();
        Ok(())
    }

    /// Takes one look: renews the heartbeat, declares dead processes dead, and settles the owners of places.
    pub(super) async fn look(&self) -> Result<(), Fault> {
        let term = self.writes.term();
        let said = self.state();
        if !self.say(term).await? {
            return self.renew(term).await;
        }
        // The clock difference in the answer is not to wait for the next look.
        if self.state() != said && !self.say(term).await? {
            return self.renew(term).await;
        }
        let seen = self.others().await?;
        for dead in seen.iter().filter(|node| node.is_dead && node.term != term) {
            if self.end_term(dead.term, Some(self.options.heartbeats.dead_after)).await? {
                if dead.works {
                    tracing::warn!(term = dead.term, "a process was not seen for long and is declared dead");
                } else {
                    tracing::debug!(term = dead.term, "a command did not say that it has ended");
                }
            }
        }
        if self.looks.fetch_add(1, Ordering::Relaxed).is_multiple_of(SIZE_EVERY) {
            let connection = self.connection().await?;
            let row = connection.query_one("SELECT pg_database_size(current_database())", &[]).await?;
            self.database_bytes.store(get::<i64>(&row, 0)?.unsigned_abs(), Ordering::Relaxed);
        }
        if self.works() {
            let mut living: Vec<i64> =
                seen.iter().filter(|node| node.claims && !node.is_dead).map(|node| node.term).collect();
            living.sort_unstable();
            self.settle(term, &living).await?;
        }
        Ok(())
    }

    /// Renews the heartbeat; returns false if the term is over.
    async fn say(&self, term: i64) -> Result<bool, Fault> {
        const SQL: &str = "UPDATE nodes SET seen_at = now_ms(), state = $2, clock_offset_ms = $3
            WHERE term = $1 AND EXISTS (SELECT 1 FROM writers WHERE writers.term = $1) RETURNING now_ms()";
        let connection = self.connection().await?;
        let statement = connection.prepare_cached(SQL).await?;
        let (began, before) = (Instant::now(), own_clock());
        let row = connection.query_opt(&statement, &[&term, &self.state().number(), &self.offset_ms()]).await?;
        let Some(row) = row else { return Ok(false) };
        if self.options.follows_clock {
            let offset = get::<i64>(&row, 0)? - i64::midpoint(before, own_clock());
            if offset.abs() > CLOCK_TOLERANCE && self.has_right_clock() {
                tracing::warn!(offset_ms = offset, "the clock differs from the database");
            }
            self.offset.store(offset, Ordering::Relaxed);
        }
        *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
        self.writes.0.health.heard();
        self.tell_health();
        Ok(true)
    }

    fn state(&self) -> NodeState {
        if self.is_draining.load(Ordering::Relaxed) {
            NodeState::Draining
        } else if !self.has_right_clock() {
            NodeState::Clock
        } else if !self.works() || self.lease_table.lock().leases.is_empty() {
            NodeState::Idle
        } else {
            NodeState::Working
        }
    }

    async fn others(&self) -> Result<Vec<ClusterNode>, Fault> {
        const SQL: &str = "SELECT term, works, works AND state < 2, seen_at < now_ms() - $1 FROM nodes";
        let connection = self.connection().await?;
        let statement = connection.prepare_cached(SQL).await?;
        let dead_after = millis(self.options.heartbeats.dead_after);
        let rows = connection.query(&statement, &[&dead_after]).await?;
        rows.iter()
            .map(|row| {
                Ok(ClusterNode { term: get(row, 0)?, works: get(row, 1)?, claims: get(row, 2)?, is_dead: get(row, 3)? })
            })
            .collect()
    }

    /// Takes free places that are assigned to this process, and hands over those that are assigned to others.
    async fn settle(&self, term: i64, living: &[i64]) -> Result<(), Fault> {
        const SQL: &str = "SELECT place, CASE WHEN EXISTS (SELECT 1 FROM nodes WHERE nodes.term = places.term)
            THEN term END FROM places";
        let connection = self.connection().await?;
        let statement = connection.prepare_cached(SQL).await?;
        let rows = connection.query(&statement, &[]).await?;
        drop(connection);
        let (mut wanted, mut mine) = (Vec::new(), Vec::new());
        for row in &rows {
            let (place, of): (i16, Option<i64>) = (get(row, 0)?, get(row, 1)?);
            let to = owner(place, living);
            if of.is_none() && to == Some(term) {
                wanted.push(place);
            } else if of == Some(term) {
                mine.push((place, to.filter(|to| *to != term)));
            }
        }
        // No claim is on its way while places change hands.
        let hands_over = mine.iter().any(|(_, to)| to.is_some());
        let _turn = if hands_over { Some(self.lease_table.claiming.lock().await) } else { None };
        let handed = self.leave(&mine);
        if wanted.is_empty() && handed.is_empty() {
            return Ok(());
        }
        let mut transaction = self.writes.begin().await?;
        if transaction.term() != term {
            return Ok(());
        }
        transaction.run(
            "UPDATE places SET term = $1 WHERE place = ANY ($2)
             AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.term = places.term)",
            params![term, wanted],
        );
        let (places, owners): (Vec<i16>, Vec<i64>) = handed.iter().copied().unzip();
        transaction.run(
            "UPDATE places SET term = nodes.term FROM unnest($2::smallint[], $3::bigint[]) AS new (place, term)
             JOIN nodes ON nodes.term = new.term WHERE places.place = new.place AND places.term = $1",
            params![term, places.clone(), owners],
        );
        transaction.commit().await?;
        self.notifier.tell_of_places();
        let mut leaving = self.leaving();
        let mut memory = self.lease_table.lock();
        for place in places {
            leaving.remove(&place);
            memory.leaving.remove(&place);
        }
        Ok(())
    }

    /// Stops claiming from places that are assigned to others; returns those in which nothing runs any more.
    fn leave(&self, mine: &[(i16, Option<i64>)]) -> Vec<(i16, i64)> {
        let mut leaving = self.leaving();
        let mut handed = Vec::new();
        leaving.retain(|place, _| mine.iter().any(|(other, to)| other == place && to.is_some()));
        self.lease_table.lock().leaving.retain(|place| leaving.contains_key(place));
        for (place, to) in mine {
            let Some(to) = to else { continue };
            let since = leaving.entry(*place).or_insert_with(Instant::now).elapsed();
            if since > self.options.heartbeats.hand_over && self.state().claims() {
                // Its jobs take long: they continue, and so does claiming from the place, until another try.
                self.lease_table.lock().leaving.remove(place);
                if since > self.options.heartbeats.hand_over * 2 {
                    leaving.remove(place);
                }
                continue;
            }
            self.lease_table.lock().leaving.insert(*place);
            if self.lease_table.is_quiet(*place) {
                handed.push((*place, *to));
            }
        }
        handed
    }

    fn leaving(&self) -> MutexGuard<'_, HashMap<i16, Instant>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a term; fails while the database is sealed under a secret key that this process does not hold.
    async fn take_term(&self) -> Result<i64, Fault> {
        const SQL: &str = "WITH node AS (
                INSERT INTO nodes (term, name, version, works, state, connections, clock_offset_ms, seen_at, keys, sources)
                VALUES (nextval('terms'), $1, $2, $3, $4, $5, $6, now_ms(), $8, $9) RETURNING term),
            slots AS (INSERT INTO writers (term, slot, n) SELECT term, slot, 0 FROM node, generate_series(0::bigint, $7) AS slot)
            SELECT term FROM node";
        let version = env!("CARGO_PKG_VERSION");
        let last = i64::try_from(self.options.slots).unwrap_or(i64::MAX) - 1;
        let NodeOptions { name, works, connections, .. } = &self.options;
        let (state, keys, sources) = (self.state().number(), self.keys().clone(), self.sources().clone());
        let mut connection = self.connection().await?;
        let transaction = connection.transaction().await?;
        keys::require_current(&transaction, keys.as_deref()).await?;
        let offset = self.offset_ms();
        let row = transaction
            .query_one(SQL, &[name, &version, works, &state, connections, &offset, &last, &keys, &sources])
            .await?;
        transaction.commit().await?;
        get(&row, 0)
    }

    /// Announces the secret keys that this process holds, also for all later terms.
    pub(super) async fn announce_keys(&self, ids: &[String]) -> Result<(), Fault> {
        let keys = ids.join(",");
        loop {
            let term = {
                // So that no term begins meanwhile with the former keys.
                let _turn = self.renewing.lock().await;
                *self.keys() = Some(keys.clone());
                let (mut connection, term) = (self.connection().await?, self.writes.term());
                if keys::announce(&mut connection, term, &keys).await? {
                    return Ok(());
                }
                term
            };
            self.renew(term).await?;
        }
    }

    /// Announces the sources of this process, also for all later terms.
    pub(super) async fn announce_sources(&self, sources: String) -> Result<(), Fault> {
        const SQL: &str = "UPDATE nodes SET sources = $2 WHERE term = $1";
        loop {
            let term = {
                // So that no term begins meanwhile with the former sources.
                let _turn = self.renewing.lock().await;
                *self.sources() = Some(sources.clone());
                let (connection, term) = (self.connection().await?, self.writes.term());
                if connection.execute(SQL, &[&term, &sources]).await? == 1 {
                    return Ok(());
                }
                term
            };
            self.renew(term).await?;
        }
    }

    /// Milliseconds without a heartbeat after which a process is declared dead.
    pub(super) fn dead_after_ms(&self) -> i64 {
        millis(self.options.heartbeats.dead_after)
    }

    fn sources(&self) -> MutexGuard<'_, Option<String>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keys(&self) -> MutexGuard<'_, Option<String>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a term, if its process was not seen for `unseen_for`; returns true if it was ended.
    async fn end_term(&self, term: i64, unseen_for: Option<Duration>) -> Result<bool, Fault> {
        for _ in 1..TRIES {
            match self.try_to_end(term, unseen_for).await {
                Err(Fault::Postgres(error))
                    if error.code() == Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE) =>
                {
                    self.writes.0.health.heard();
                }
                outcome => return outcome,
            }
            // Terminates an open transaction of the process, on a connection that perhaps nobody holds any more.
            let connection = self.connection().await?;
            let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = (SELECT connections FROM nodes WHERE term = $1)
                    AND datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
            connection.execute(sql, &[&term]).await?;
        }
        self.try_to_end(term, unseen_for).await
    }

    async fn try_to_end(&self, term: i64, unseen_for: Option<Duration>) -> Result<bool, Fault> {
        let mut connection = self.connection().await?;
        let transaction = connection.transaction().await?;
        transaction.batch_execute(GRACE).await?;
        let unseen_for = unseen_for.map_or(i64::MIN / 2, millis);
        let sql = "DELETE FROM nodes WHERE term = $1 AND seen_at < now_ms() - $2";
        if transaction.execute(sql, &[&term, &unseen_for]).await? == 0 {
            return Ok(false);
        }
        transaction.execute("DELETE FROM writers WHERE term = $1", &[&term]).await?;
        transaction.execute("UPDATE places SET term = NULL WHERE term = $1", &[&term]).await?;
        transaction.commit().await?;
        self.notifier.tell_of_places();
        Ok(true)
    }

    /// Stops claiming; each place is handed to a living process as soon as none of its jobs is in work here.
    pub(super) fn hand_over(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.notifier.places.notify_one();
    }

    /// Leaves the installation: living processes take the places at once.
    pub(super) async fn part(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        let ended = tokio::time::timeout(PATIENCE, self.end_term(self.writes.term(), None)).await;
        if !matches!(ended, Ok(Ok(_))) {
            tracing::debug!("the term of this process was not ended; others do that in a while");
        }
    }

    async fn connection(&self) -> Result<Object, Fault> {
        Ok(self.pool.get().await?)
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Current time by the clock of this process, in milliseconds.
fn own_clock() -> i64 {
    SystemClock.now().as_millis()
}
