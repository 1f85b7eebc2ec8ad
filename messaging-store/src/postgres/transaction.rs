//! The open transaction of a commit.
//!
//! Statements are queued and sent together: what a commit writes, with its `BEGIN` and `COMMIT`, is one round trip, unless
//! a write has to look at something first. Each statement says how many rows it must touch; the database itself raises an
//! error when that is not so (`expect_rows` of V0001), which takes the whole transaction with it.

mod settle;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Object;
use futures_util::future::join_all;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::lane::Lane;
use messaging_core::error::Chain;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Topic, Topics};
use tokio_postgres::{Row, Statement};

use super::automations::LookedUp;
use super::counts::CountDeltas;
use super::desk::Uses;
use super::expected::{self, Raises};
use super::fault::Fault;
use super::listeners::Hearing;
use super::outbox::Outbox;
use super::query::{Params, Queries, as_refs, params};
use super::slots::{Outcome, Slot};
use crate::counter_deltas::CounterDeltas;

/// How long statements that were sent together may take, each of which ends within five seconds.
const ANSWER: Duration = Duration::from_secs(15);

/// How many rows a statement must touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Whatever it finds.
    Any,
    /// So many; another number is a conflict.
    Exactly(i64),
    /// One; none raises something of its own.
    OneOr(Raises),
}

/// A statement that was not sent yet.
#[derive(Debug)]
struct Queued {
    sql: &'static str,
    params: Params,
    rows: Rows,
}

/// A transaction. One that is dropped before it ended takes its connection with it.
#[derive(Debug)]
pub(super) struct Transaction {
    connection: Option<Object>,
    queue: Vec<Queued>,
    /// What counters change by, written once before it ends.
    pub(super) deltas: CounterDeltas,
    /// What changed of contacts that segments read, written once before it ends.
    pub(super) outbox: Outbox,
    /// What automations hear of.
    pub(super) hearing: Hearing,
    /// What writes about automations have to know.
    pub(super) looked_up: LookedUp,
    /// By how much numbers of contacts and members change, written in the same way.
    pub(super) counts: CountDeltas,
    /// Numbers of names of product events, which stay for ever.
    pub(super) event_names: HashMap<(WorkspaceId, String), i64>,
    /// By how many automations in a row the present changes were caused.
    pub(super) depth: u8,
    /// The job whose commit is applied.
    pub(super) own_job: Option<Lane>,
    /// Whether it wakes lanes that its writes do not name.
    pub(super) has_woken: bool,
    /// The jobs that it names.
    pub(super) uses: Uses,
    slot: Slot,
}

impl Transaction {
    /// Begins one that touches a slot first, see [`Writes::begin`](super::writes::Writes::begin). Nothing is sent yet.
    pub(super) fn begin(connection: Object, slot: Slot) -> Self {
        let begin = Queued { sql: "BEGIN", params: Vec::new(), rows: Rows::Any };
        let sql = "UPDATE writers SET n = $3 WHERE term = $1 AND slot = $2 AND n < $3";
        let touch = params![slot.term, slot.number, slot.n];
        let touch = Queued { sql, params: touch, rows: Rows::OneOr(Raises::Term) };
        Self {
            connection: Some(connection),
            queue: vec![begin, touch],
            deltas: CounterDeltas::default(),
            outbox: Outbox::default(),
            hearing: Hearing::default(),
            looked_up: LookedUp::default(),
            counts: CountDeltas::default(),
            event_names: HashMap::new(),
            depth: 0,
            own_job: None,
            has_woken: false,
            uses: Uses::new(Arc::clone(slot.desk())),
            slot,
        }
    }

    /// The term under which it writes.
    pub(super) const fn term(&self) -> i64 {
        self.slot.term
    }

    /// Begins the next set of changes of the batch.
    pub(super) fn begin_changes(&mut self, changes: &Changes) {
        self.depth = 0;
        self.own_job = changes.writes().iter().find_map(Write::claim).map(|job| job.lane.clone());
    }

    /// Queues a statement that may touch any number of rows.
    pub(super) fn run(&mut self, sql: &'static str, params: Params) {
        self.queue.push(Queued { sql, params, rows: Rows::Any });
    }

    /// Queues a statement that must touch exactly one row; anything else is a conflict. It has no `RETURNING`.
    pub(super) fn run_one(&mut self, sql: &'static str, params: Params) {
        self.run_exactly(1, sql, params);
    }

    /// Queues a statement that must touch so many rows; anything else is a conflict. It has no `RETURNING`.
    pub(super) fn run_exactly(&mut self, rows: usize, sql: &'static str, params: Params) {
        let rows = Rows::Exactly(super::row::sql_limit(rows));
        self.queue.push(Queued { sql, params, rows });
    }

    /// Queues a statement that must touch the row of a job; where it is gone, the claim is lost. It has no `RETURNING`.
    pub(super) fn run_claimed(&mut self, sql: &'static str, params: Params) {
        self.queue.push(Queued { sql, params, rows: Rows::OneOr(Raises::Claim) });
    }

    /// Runs a statement now; answers how many rows it touched.
    pub(super) async fn execute(&mut self, sql: &'static str, params: Params) -> Result<u64, Fault> {
        let queue = std::mem::take(&mut self.queue);
        let last = Queued { sql, params, rows: Rows::Any };
        Ok(self.send(queue, Some(last)).await?.touched)
    }

    /// Sends what is queued.
    pub(super) async fn flush(&mut self) -> Result<(), Fault> {
        let queue = std::mem::take(&mut self.queue);
        self.send(queue, None).await.map(drop)
    }

    /// Sends what is queued and `COMMIT`. Known here and to [`settle`] alone, where what was gathered is written first.
    async fn send_commit(mut self) -> Result<(), Fault> {
        let queue = std::mem::take(&mut self.queue);
        let commit = Queued { sql: "COMMIT", params: Vec::new(), rows: Rows::Any };
        let Err(fault) = self.send(queue, Some(commit)).await else {
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
        if keeps_connection {
            drop(self.connection.take());
        }
        let uses = std::mem::replace(&mut self.uses, Uses::new(Arc::clone(self.slot.desk())));
        uses.committed();
        if self.has_woken {
            let mut work = Topics::NONE;
            work.insert(Topic::Work);
            self.slot.teller().tell_here(work);
            self.slot.teller().tell_others(work);
        }
    }

    /// Ends it, as if it had not been.
    pub(super) async fn roll_back(mut self) {
        if let Some(connection) = &self.connection
            && connection.batch_execute("ROLLBACK").await.is_ok()
        {
            drop(self.connection.take());
        }
    }

    /// The same for as long as an answer may take. Where none comes, the connection is given up.
    async fn send(&mut self, queue: Vec<Queued>, last: Option<Queued>) -> Result<Answer, Fault> {
        if let Ok(outcome) = tokio::time::timeout(ANSWER, self.try_to_send(queue, last)).await {
            return outcome;
        }
        drop(self.connection.take().map(Object::take));
        Err(Fault::NoAnswer)
    }

    /// Sends statements in one go and waits for all answers; those of the last one are the answer.
    async fn try_to_send(&self, queue: Vec<Queued>, last: Option<Queued>) -> Result<Answer, Fault> {
        let Some(connection) = &self.connection else { return Err(Fault::Unhealthy) };
        let mut statements: Vec<(Statement, Params, bool)> = Vec::with_capacity(queue.len() + 1);
        for queued in queue {
            let (statement, params) = match queued.rows {
                Rows::Any => (connection.prepare_cached(queued.sql).await?, queued.params),
                Rows::Exactly(rows) => {
                    let mut params = queued.params;
                    params.push(Box::new(rows));
                    let sql = expected::expecting(queued.sql, params.len());
                    (connection.prepare_cached(sql).await?, params)
                }
                Rows::OneOr(raises) => {
                    let sql = expected::expecting_one(queued.sql, raises);
                    (connection.prepare_cached(sql).await?, queued.params)
                }
            };
            statements.push((statement, params, false));
        }
        if let Some(last) = last {
            let statement = connection.prepare_cached(last.sql).await?;
            statements.push((statement, last.params, true));
        }
        let sent = statements.iter().map(|(statement, params, is_last)| async move {
            let params = as_refs(params);
            if *is_last && !statement.columns().is_empty() {
                let rows = connection.query(statement, &params).await?;
                Ok::<_, tokio_postgres::Error>(Answer { touched: 0, rows })
            } else {
                Ok(Answer { touched: connection.execute(statement, &params).await?, rows: Vec::new() })
            }
        });
        let mut answer = Answer::default();
        for outcome in join_all(sent).await {
            // The first failure is the cause of those after it.
            answer = outcome?;
        }
        Ok(answer)
    }
}

/// What a statement answered.
#[derive(Debug, Default)]
struct Answer {
    touched: u64,
    rows: Vec<Row>,
}

impl Queries for Transaction {
    async fn rows(&mut self, sql: &'static str, params: Params) -> Result<Vec<Row>, Fault> {
        let queue = std::mem::take(&mut self.queue);
        let last = Queued { sql, params, rows: Rows::Any };
        Ok(self.send(queue, Some(last)).await?.rows)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}
