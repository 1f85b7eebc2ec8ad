//! Reads of rows by their keys: one statement for all callers at the same time.
//!
//! A hundred messages that are sent together need a hundred rows of one table. While a statement is under way, further
//! callers with other keys gather, and the next statement reads the rows of all. No caller waits for others to come,
//! except for tasks that are ready to run already. As with [`shared_reads`](super::shared_reads), a statement is sent
//! after its rows were requested, so it sees everything that was committed before the request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::ports::store::StoreError;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::column;
use super::fault::Fault;
use super::shared_reads::copy_of;
use crate::sql::{Params, Value};

/// Maximum number of keys in one statement, unless one caller has more.
const MOST: usize = 128;

/// Number of waiting callers that justifies another statement beside those under way.
const ENOUGH: usize = 16;

/// Maximum number of statements of one text under way.
const LANES: usize = 4;

/// Number of attempts of a caller whose sending task has ended.
const TRIES: usize = 3;

/// Connections to the database over which statements are sent.
pub(super) trait Source: Clone + Send + Sync + 'static {
    /// A connection, taken before its statement is put together.
    type Connection: Send;
    /// A row of an answer.
    type Row: Send + 'static;

    /// Runtime of the sending tasks. It must continue to run tasks while one of its threads is blocked.
    fn runtime(&self) -> &Handle;

    /// Waits for a connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Fault>> + Send;

    /// Runs a statement whose parameters are lists, one for each column of the keys. Each row comes with the number of
    /// its key, from 1.
    fn ask(
        &self,
        connection: Self::Connection,
        sql: &'static str,
        keys: Params,
    ) -> impl Future<Output = Result<Vec<(usize, Self::Row)>, Fault>> + Send;
}

/// Requests that were not sent yet, by the text of their statement.
#[derive(Debug)]
pub(super) struct GatheredReads<R>(Mutex<HashMap<&'static str, Asked<R>>>);

#[derive(Debug)]
struct Asked<R> {
    waiting: VecDeque<Ask<R>>,
    /// Number of tasks that send.
    senders: usize,
}

/// Keys, and the caller who waits for their rows.
#[derive(Debug)]
struct Ask<R> {
    keys: Vec<Params>,
    reply: oneshot::Sender<Result<Vec<R>, StoreError>>,
}

impl<R> Default for GatheredReads<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<R: Send + 'static> GatheredReads<R> {
    /// Returns the rows that a statement finds for some keys.
    pub(super) async fn rows<S: Source<Row = R>>(
        self: &Arc<Self>,
        source: &S,
        sql: &'static str,
        keys: Vec<Params>,
    ) -> Result<Vec<R>, StoreError> {
        for _ in 0..TRIES {
            let (reply, answer) = oneshot::channel();
            if self.put(sql, Ask { keys: keys.clone(), reply }) {
                let sender = Sender { reads: Arc::clone(self), sql, is_counted: true };
                let source = source.clone();
                // A task of its own, so that no answer depends on a caller that goes away.
                source.runtime().clone().spawn(async move { sender.send_all(&source).await });
            }
            if let Ok(answer) = answer.await {
                return answer;
            }
            // The sending task has ended with its runtime.
            tokio::task::yield_now().await;
        }
        Err(StoreError::Unavailable)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Asked<R>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request; returns true if another task is needed to send it.
    fn put(&self, sql: &'static str, ask: Ask<R>) -> bool {
        let mut all = self.lock();
        let asked = all.entry(sql).or_insert_with(|| Asked { waiting: VecDeque::new(), senders: 0 });
        asked.waiting.push_back(ask);
        let needs_sender = asked.senders < LANES && asked.waiting.len() > ENOUGH * asked.senders;
        asked.senders += usize::from(needs_sender);
        needs_sender
    }
}

/// A task that sends the requests for one statement. If dropped before its end, callers without a sender ask anew.
struct Sender<R: Send + 'static> {
    reads: Arc<GatheredReads<R>>,
    sql: &'static str,
    /// True while it counts as one of the sending tasks.
    is_counted: bool,
}

impl<R: Send + 'static> Sender<R> {
    async fn send_all<S: Source<Row = R>>(mut self, source: &S) {
        // Tasks that are ready to run and ask for rows do so first.
        tokio::task::yield_now().await;
        while self.has_more() {
            match source.connect().await {
                Ok(connection) => {
                    let asks = self.take();
                    let answers =
                        if asks.is_empty() { Ok(Vec::new()) } else { self.ask(source, connection, &asks).await };
                    distribute(asks, answers.map_err(StoreError::from));
                }
                Err(fault) => distribute(self.take(), Err(StoreError::from(fault))),
            }
        }
    }

    async fn ask<S: Source<Row = R>>(
        &self,
        source: &S,
        connection: S::Connection,
        asks: &[Ask<R>],
    ) -> Result<Vec<(usize, R)>, Fault> {
        let mut columns = Vec::new();
        for key in asks.iter().flat_map(|ask| &ask.keys) {
            column::add(&mut columns, key.clone());
        }
        source.ask(connection, self.sql, columns.into_iter().map(Value::List).collect()).await
    }

    /// Returns true if a caller waits. If none does, the task no longer counts as a sender.
    fn has_more(&mut self) -> bool {
        let mut all = self.reads.lock();
        let has_more = all.get(self.sql).is_some_and(|asked| !asked.waiting.is_empty());
        if !has_more && std::mem::take(&mut self.is_counted) {
            leave(&mut all, self.sql);
        }
        has_more
    }

    /// Takes the first waiting caller, and as many more as one statement serves. Callers that went away are left out.
    fn take(&self) -> Vec<Ask<R>> {
        let mut all = self.reads.lock();
        let Some(asked) = all.get_mut(self.sql) else { return Vec::new() };
        let (mut taken, mut keys) = (Vec::new(), 0);
        while let Some(ask) = asked.waiting.pop_front() {
            if ask.reply.is_closed() {
                continue;
            }
            keys += ask.keys.len();
            if keys > MOST && !taken.is_empty() {
                asked.waiting.push_front(ask);
                break;
            }
            taken.push(ask);
        }
        taken
    }
}

impl<R: Send + 'static> Drop for Sender<R> {
    fn drop(&mut self) {
        if self.is_counted {
            leave(&mut self.reads.lock(), self.sql);
        }
    }
}

/// Stops counting a sending task. After the last one, waiting callers have no sender, so they ask anew.
fn leave<R>(all: &mut HashMap<&'static str, Asked<R>>, sql: &'static str) {
    let Some(asked) = all.get_mut(sql) else { return };
    asked.senders -= 1;
    if asked.senders == 0 {
        all.remove(sql);
    }
}

/// Sends each caller the rows of its keys.
fn distribute<R>(asks: Vec<Ask<R>>, answers: Result<Vec<(usize, R)>, StoreError>) {
    let rows = match answers {
        Ok(rows) => rows,
        Err(error) => {
            for ask in asks {
                // The caller may have gone away.
                let _ = ask.reply.send(Err(copy_of(&error)));
            }
            return;
        }
    };
    let mut places = Vec::new();
    let mut answers: Vec<Vec<R>> = Vec::with_capacity(asks.len());
    for (place, ask) in asks.iter().enumerate() {
        places.extend(std::iter::repeat_n(place, ask.keys.len()));
        answers.push(Vec::new());
    }
    for (number, row) in rows {
        let place = number.checked_sub(1).and_then(|key| places.get(key));
        if let Some(answer) = place.and_then(|place| answers.get_mut(*place)) {
            answer.push(row);
        }
    }
    for (ask, answer) in asks.into_iter().zip(answers) {
        let _ = ask.reply.send(Ok(answer));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::sql::params;

    const SQL: &str = "SELECT $1";

    /// Source that answers each key with two rows that equal it. Each connection takes a permit.
    #[derive(Clone)]
    struct Echo {
        runtime: Handle,
        permits: Arc<Semaphore>,
        statements: Arc<AtomicUsize>,
        fails: bool,
    }

    impl Echo {
        fn new(permits: usize) -> Self {
            let permits = Arc::new(Semaphore::new(permits));
            Self { runtime: Handle::current(), permits, statements: Arc::default(), fails: false }
        }
    }

    impl Source for Echo {
        type Connection = ();
        type Row = Value;

        fn runtime(&self) -> &Handle {
            &self.runtime
        }

        async fn connect(&self) -> Result<(), Fault> {
            self.permits.acquire().await.unwrap().forget();
            Ok(())
        }

        async fn ask(&self, (): (), _: &'static str, keys: Params) -> Result<Vec<(usize, Value)>, Fault> {
            self.statements.fetch_add(1, Ordering::Relaxed);
            if self.fails {
                return Err(Fault::Malformed("no number"));
            }
            let Some(Value::List(column)) = keys.into_iter().next() else { return Ok(Vec::new()) };
            Ok(column.into_iter().enumerate().flat_map(|(at, key)| [(at + 1, key.clone()), (at + 1, key)]).collect())
        }
    }

    #[tokio::test]
    async fn who_asks_at_the_same_time_is_answered_by_one_statement() {
        let (reads, source) = (Arc::new(GatheredReads::default()), Echo::new(9));
        let ask = |n: i64| reads.rows(&source, SQL, vec![params![n], params![-n]]);
        let answers = join_all((1..=8).map(ask)).await;
        for (n, answer) in (1..).zip(answers) {
            assert_eq!(answer.unwrap(), params![n, n, -n, -n]);
        }
        assert_eq!(source.statements.load(Ordering::Relaxed), 1);
        assert_eq!(ask(9).await.unwrap(), params![9, 9, -9, -9]);
        assert_eq!(source.statements.load(Ordering::Relaxed), 2);
        assert!(reads.lock().is_empty());
    }

    #[tokio::test]
    async fn a_statement_asks_for_so_many_keys_and_no_more() {
        let (reads, source) = (Arc::new(GatheredReads::default()), Echo::new(99));
        let answers = join_all((0..300_i64).map(|n| reads.rows(&source, SQL, vec![params![n]]))).await;
        assert!(answers.into_iter().all(|answer| answer.is_ok_and(|rows| rows.len() == 2)));
        assert_eq!(source.statements.load(Ordering::Relaxed), 3);
        let many = (0..300_i64).map(|n| params![n]).collect();
        assert_eq!(reads.rows(&source, SQL, many).await.unwrap().len(), 600);
        assert_eq!(source.statements.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn who_goes_away_is_not_asked_for_and_takes_nobody_along() {
        let (reads, source) = (Arc::new(GatheredReads::default()), Echo::new(0));
        let mut gone = Box::pin(reads.rows(&source, SQL, vec![params![1_i64]]));
        assert!(futures_util::poll!(&mut gone).is_pending());
        let mut stays = Box::pin(reads.rows(&source, SQL, vec![params![2_i64]]));
        assert!(futures_util::poll!(&mut stays).is_pending());
        drop(gone);
        source.permits.add_permits(1);
        assert_eq!(stays.await.unwrap(), params![2_i64, 2_i64]);
    }

    #[tokio::test]
    async fn a_failure_is_everybodys() {
        let (reads, source) = (Arc::new(GatheredReads::default()), Echo { fails: true, ..Echo::new(9) });
        let answers = join_all((0..3_i64).map(|n| reads.rows(&source, SQL, vec![params![n]]))).await;
        assert!(answers.into_iter().all(|answer| matches!(answer, Err(StoreError::Failed(_)))));
        assert!(reads.lock().is_empty());
    }
}
