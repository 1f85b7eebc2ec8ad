//! The open transaction of a commit.
//!
//! Statements are queued and sent together: the writes of a commit, with `BEGIN` and `COMMIT`, take one round trip,
//! unless a write has to read something first. Each statement says how many rows it must touch; the database itself
//! raises an error if another number is touched (`expect_rows`), which aborts the whole transaction.
//!
//! Rows that many commits add to the same table are gathered into one statement, which takes columns as arrays: 128
//! requests take as many statements as one.

mod settle;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::Object;
use futures_util::future::join_all;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::error::Chain;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Topic, Topics};
use tokio::time::Instant;
use tokio_postgres::{Row, Statement};

use super::automations::LookupCache;
use super::column;
use super::connection_health::ConnectionHealth;
use super::counts::CountDeltas;
use super::expected::{self, Raises};
use super::fault::Fault;
use super::known_subscriptions::KnownSubscriptions;
use super::lease_table::JobUses;
use super::listeners::Hearing;
use super::outbox::Outbox;
use super::query::{Queries, as_refs, prepared};
use super::slots::{Outcome, Slot};
use crate::counter_deltas::CounterDeltas;
use crate::sql::{Params, Value, params};

/// Maximum time for statements that were sent together, each of which ends within five seconds.
const ANSWER: Duration = Duration::from_secs(15);

/// Number of rows that a statement must touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Any number.
    Any,
    /// This number; another is a conflict.
    Exactly(i64),
    /// One; if there is none, the statement raises its own error.
    OneOr(Raises),
    /// One for each gathered row; another number is a conflict.
    Gathered,
    /// One for each gathered row; another number raises an error of the statement's own.
    GatheredOr(Raises),
}

/// A statement that was not sent yet.
#[derive(Debug)]
struct Queued {
    sql: &'static str,
    params: Params,
    /// Gathered rows, passed as parameters.
    gathered: Vec<Vec<Value>>,
    rows: Rows,
}

impl Queued {
    const fn new(sql: &'static str, params: Params, rows: Rows) -> Self {
        Self { sql, params, gathered: Vec::new(), rows }
    }
}

/// A transaction. One that is dropped before it ended takes its connection with it.
#[derive(Debug)]
pub(super) struct Transaction {
    connection: Option<Object>,
    queue: Vec<Queued>,
    /// Index of the first queued statement from which on rows can be gathered: no later one may read gathered rows.
    gathers_from: usize,
    /// True if the transaction serves a single commit, whose rows are changed one after the other.
    is_alone: bool,
    /// Changes of counters, written once before the transaction ends.
    pub(super) deltas: CounterDeltas,
    /// Changes of contacts that segments read, written once before the transaction ends.
    pub(super) outbox: Outbox,
    /// True if the transaction may rely on the subscriptions that this process saw last.
    pub(super) may_assume: bool,
    /// Workspaces for which it has relied on them.
    pub(super) assumed: Vec<WorkspaceId>,
    /// Automations that listen, as far as the transaction has read them, and the notes it will write for them.
    pub(super) hearing: Hearing,
    /// Rows that writes about automations have looked up.
    pub(super) looked_up: LookupCache,
    /// Changes of the numbers of contacts and members, written once before the transaction ends.
    pub(super) counts: CountDeltas,
    /// Numbers of names of product events, which never change.
    pub(super) event_names: HashMap<(WorkspaceId, String), i64>,
    /// Number of automations in a row that led to the present changes.
    pub(super) depth: u8,
    /// The job whose commit is applied.
    pub(super) own_job: Option<Lane>,
    /// True if it wakes lanes that its writes do not name.
    pub(super) has_woken: bool,
    /// Jobs that it names.
    pub(super) uses: JobUses,
    slot: Slot,
}

impl Transaction {
    /// Creates a transaction that first touches a slot, see [`Writes::begin`](super::writes::Writes::begin). Nothing is
    /// sent yet.
    pub(super) fn begin(connection: Object, slot: Slot) -> Self {
        let begin = Queued::new("BEGIN", Vec::new(), Rows::Any);
        let sql = "UPDATE writers SET n = $3 WHERE term = $1 AND slot = $2 AND n < $3";
        let touch = Queued::new(sql, params![slot.term, slot.number, slot.transaction], Rows::OneOr(Raises::Term));
        Self {
            connection: Some(connection),
            queue: vec![begin, touch],
            gathers_from: 0,
            is_alone: true,
            deltas: CounterDeltas::default(),
            outbox: Outbox::default(),
            may_assume: false,
            assumed: Vec::new(),
            hearing: Hearing::default(),
            looked_up: LookupCache::default(),
            counts: CountDeltas::default(),
            event_names: HashMap::new(),
            depth: 0,
            own_job: None,
            has_woken: false,
            uses: JobUses::new(Arc::clone(slot.lease_table())),
            slot,
        }
    }

    /// Health of the connection to the database.
    pub(super) fn health(&self) -> Arc<ConnectionHealth> {
        Arc::clone(self.slot.health())
    }

    /// Term under which the transaction writes.
    pub(super) const fn term(&self) -> i64 {
        self.slot.term
    }

    /// Makes the transaction serve several commits: their changes of existing rows are gathered, past statements of
    /// each other. If the order matters after all, or a row changes at the same moment, a statement touches too few
    /// rows, and each commit is tried alone.
    pub(super) const fn serve_several(&mut self) {
        self.is_alone = false;
    }

    /// Subscriptions as this process saw them last.
    pub(super) fn known_subscriptions(&self) -> &KnownSubscriptions {
        self.slot.known_subscriptions()
    }

    /// Begins the next set of changes of the batch.
    pub(super) fn begin_changes(&mut self, changes: &Changes) {
        self.depth = 0;
        self.own_job = changes.writes().iter().find_map(Write::claim).map(|job| job.lane.clone());
    }

    /// Queues a statement that may touch any number of rows.
    pub(super) fn run(&mut self, sql: &'static str, params: Params) {
        self.queue.push(Queued::new(sql, params, Rows::Any));
        self.gathers_from = self.queue.len();
    }

    /// Queues a statement that must touch this number of rows; another number is a conflict. It has no `RETURNING`.
    pub(super) fn run_exactly(&mut self, rows: usize, sql: &'static str, params: Params) {
        self.queue.push(Queued::new(sql, params, Rows::Exactly(super::row::sql_limit(rows))));
        self.gathers_from = self.queue.len();
    }

    /// Queues a statement that must touch exactly one row, by its key; anything else is a conflict. It has no `RETURNING`.
    pub(super) fn run_one(&mut self, sql: &'static str, params: Params) {
        self.queue.push(Queued::new(sql, params, Rows::Exactly(1)));
    }

    /// Queues a statement that must touch the row of a job; where it is gone, the claim is lost. It has no `RETURNING`.
    pub(super) fn run_claimed(&mut self, sql: &'static str, params: Params) {
        self.queue.push(Queued::new(sql, params, Rows::OneOr(Raises::Claim)));
    }

    /// Queues a row for a statement that takes columns as arrays, and adds them. It may run before statements that were
    /// queued earlier, if each of those is about one row by its key.
    pub(super) fn add_row(&mut self, sql: &'static str, row: Params) {
        self.gather(sql, row, Rows::Any);
    }

    /// Like `add_row`, for a statement that must touch as many rows as were queued for it; another number is a
    /// conflict. It has no `RETURNING`.
    pub(super) fn add_one_row(&mut self, sql: &'static str, row: Params) {
        self.gather(sql, row, Rows::Gathered);
    }

    /// Removes a row by its key, if it exists. `many` takes columns of keys as arrays, and serves several commits.
    pub(super) fn remove_row(&mut self, one: &'static str, many: &'static str, key: Params) {
        if self.is_alone {
            self.run(one, key);
        } else if !self.open_change(many).is_some_and(|open| column::has(&self.queue[open].gathered, &key)) {
            self.gather_change(many, key.len(), key, Rows::Any);
        }
    }

    /// Changes a row by its key, the first `key` values, and must touch it; anything else is a conflict. `many` takes columns
    /// as arrays, and serves several commits. Neither has a `RETURNING`.
    pub(super) fn change_one_row(&mut self, one: &'static str, many: &'static str, key: usize, row: Params) {
        if self.is_alone {
            self.run_one(one, row);
        } else {
            self.gather_change(many, key, row, Rows::Gathered);
        }
    }

    /// Like `change_one_row`, for the row of a claimed job; if the row is gone, the claim is lost.
    pub(super) fn change_claimed_row(&mut self, one: &'static str, many: &'static str, key: usize, row: Params) {
        if self.is_alone {
            self.run_claimed(one, row);
        } else {
            self.gather_change(many, key, row, Rows::GatheredOr(Raises::Claim));
        }
    }

    /// Index of a queued statement to which further changed rows may be added.
    fn open_change(&self, sql: &'static str) -> Option<usize> {
        let open = self.queue.iter().skip(self.gathers_from).rposition(|queued| queued.sql == sql)?;
        Some(open + self.gathers_from)
    }

    /// Gathers a row that is changed. No two rows of one statement have the same key.
    fn gather_change(&mut self, sql: &'static str, key: usize, row: Params, rows: Rows) {
        let open = self.open_change(sql);
        let open = open.filter(|place| !column::has(&self.queue[*place].gathered, &row[..key.min(row.len())]));
        let open = open.unwrap_or(self.queue.len());
        if open == self.queue.len() {
            self.queue.push(Queued::new(sql, Vec::new(), rows));
        }
        column::add(&mut self.queue[open].gathered, row);
    }

    fn gather(&mut self, sql: &'static str, row: Params, rows: Rows) {
        let open = self.queue.iter().skip(self.gathers_from).position(|queued| queued.sql == sql);
        let open = open.map_or(self.queue.len(), |place| place + self.gathers_from);
        if open == self.queue.len() {
            self.queue.push(Queued::new(sql, Vec::new(), rows));
        }
        column::add(&mut self.queue[open].gathered, row);
    }

    /// Runs a statement now; returns the number of rows it touched.
    pub(super) async fn execute(&mut self, sql: &'static str, params: Params) -> Result<u64, Fault> {
        let queue = self.take_queue();
        let last = Queued::new(sql, params, Rows::Any);
        Ok(self.send_with(queue, last).await?.touched)
    }

    /// Sends the queue, and several queries behind it; returns the rows of each.
    pub(super) async fn rows_of_each(&mut self, queries: Vec<(&'static str, Params)>) -> Result<Vec<Vec<Row>>, Fault> {
        let queue = self.take_queue();
        let asked = queries.into_iter().map(|(sql, params)| Queued::new(sql, params, Rows::Any)).collect();
        Ok(self.send(queue, asked).await?.into_iter().map(|answer| answer.rows).collect())
    }

    fn take_queue(&mut self) -> Vec<Queued> {
        self.gathers_from = 0;
        std::mem::take(&mut self.queue)
    }

    /// Sends the queue.
    pub(super) async fn flush(&mut self) -> Result<(), Fault> {
        let queue = self.take_queue();
        self.send(queue, Vec::new()).await.map(drop)
    }

    /// Sends the queue and `COMMIT`. Called by [`settle`] alone, after it has written the gathered changes.
    async fn send_commit(mut self) -> Result<(), Fault> {
        let queue = self.take_queue();
        let commit = Queued::new("COMMIT", Vec::new(), Rows::Any);
        let Err(fault) = self.send_with(queue, commit).await else {
            self.committed(true);
            return Ok(());
        };
        // Where the database has answered, the transaction is over; where the connection was lost, it has to be asked.
        if !fault.lost_connection() {
            self.roll_back().await;
            return Err(fault);
        }
        tracing::debug!(error = %Chain(&fault), "the connection was lost in a commit");
        drop(self.connection.take().map(Object::take));
        match self.slot.outcome().await {
            Outcome::Committed => {
                self.committed(false);
                Ok(())
            }
            Outcome::NotCommitted => Err(Fault::NotCommitted),
            Outcome::Unknown => Err(Fault::OutcomeUnknown),
        }
    }

    fn committed(mut self, keeps_connection: bool) {
        self.slot.counters().transactions.fetch_add(1, Ordering::Relaxed);
        if keeps_connection {
            drop(self.connection.take());
        }
        let uses = std::mem::replace(&mut self.uses, JobUses::new(Arc::clone(self.slot.lease_table())));
        uses.committed();
        if self.has_woken {
            let mut work = Topics::NONE;
            work.insert(Topic::Work);
            self.slot.notifier().tell_here(work);
            self.slot.notifier().tell_others(work);
        }
    }

    /// Rolls the transaction back.
    pub(super) async fn roll_back(mut self) {
        let Some(connection) = &self.connection else { return };
        let ended = async { Ok(connection.batch_execute("ROLLBACK").await?) };
        if self.slot.health().answer(Instant::now(), ANSWER, ended).await.is_ok() {
            drop(self.connection.take());
        }
    }

    /// Sends statements, the last of which returns an answer.
    async fn send_with(&mut self, queue: Vec<Queued>, last: Queued) -> Result<Answer, Fault> {
        Ok(self.send(queue, vec![last]).await?.pop().unwrap_or_default())
    }

    /// Sends statements, of which `asked` return answers, and waits at most for the time that an answer may take. If
    /// none comes, the connection is given up.
    async fn send(&mut self, queue: Vec<Queued>, asked: Vec<Queued>) -> Result<Vec<Answer>, Fault> {
        self.slot.counters().round_trips.fetch_add(1, Ordering::Relaxed);
        let answer = self.try_to_send(queue, asked);
        let outcome = self.slot.health().answer(Instant::now(), ANSWER, answer).await;
        if matches!(outcome, Err(Fault::NoAnswer)) {
            drop(self.connection.take().map(Object::take));
        }
        outcome
    }

    /// Sends statements in one go and waits for all of them; returns the answers of those in `asked`.
    async fn try_to_send(&self, queue: Vec<Queued>, asked: Vec<Queued>) -> Result<Vec<Answer>, Fault> {
        let Some(connection) = &self.connection else { return Err(Fault::Unhealthy) };
        let mut all: Vec<(&'static str, Params, bool)> = Vec::with_capacity(queue.len() + asked.len());
        for queued in queue {
            let Queued { sql, mut params, gathered, rows } = queued;
            let gathered_rows = super::row::sql_limit(column::rows(&gathered));
            params.extend(gathered.into_iter().map(Value::List));
            let sql = match rows {
                Rows::Any => sql,
                Rows::Exactly(count) => expected::expecting(sql, &mut params, count),
                Rows::Gathered => expected::expecting(sql, &mut params, gathered_rows),
                Rows::GatheredOr(raises) => expected::expecting_all(sql, &mut params, gathered_rows, raises),
                Rows::OneOr(raises) => expected::expecting_one(sql, raises),
            };
            all.push((sql, params, false));
        }
        let answered_from = all.len();
        all.extend(asked.into_iter().map(|asked| (asked.sql, asked.params, true)));
        let prepared = prepared(connection, all.iter().map(|(sql, ..)| *sql)).await?;
        let mut statements: Vec<(&Statement, Params, bool)> = Vec::with_capacity(all.len());
        for (sql, params, is_asked) in all {
            statements.push((prepared.get(sql).ok_or(Fault::Unhealthy)?, params, is_asked));
        }
        let sent = statements.iter().map(|(statement, params, is_asked)| async move {
            let params = as_refs(params);
            if *is_asked && !statement.columns().is_empty() {
                let rows = connection.query(*statement, &params).await?;
                Ok::<_, tokio_postgres::Error>(Answer { touched: 0, rows })
            } else {
                Ok(Answer { touched: connection.execute(*statement, &params).await?, rows: Vec::new() })
            }
        });
        // The first failure is the cause of those after it.
        let mut answers = join_all(sent).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(answers.split_off(answered_from))
    }
}

/// The answer to a statement: the number of rows it changed, or the rows it returned.
#[derive(Debug, Default)]
struct Answer {
    touched: u64,
    rows: Vec<Row>,
}

impl Queries for Transaction {
    async fn rows(&mut self, sql: &'static str, params: Params) -> Result<Vec<Row>, Fault> {
        let queue = self.take_queue();
        let last = Queued::new(sql, params, Rows::Any);
        Ok(self.send_with(queue, last).await?.rows)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}
