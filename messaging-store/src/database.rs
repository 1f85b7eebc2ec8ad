//! The interface of tables to a database: executing statements and answering queries.

pub(crate) mod open_commit;
pub(crate) mod scan;

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, RemovedRows, Slice, StoreError};
use messaging_core::time::Timestamp;

use crate::fault::Fault;
use crate::pages;
use crate::row::Row;
use crate::sql::{Params, Sql};

/// A store whose tables are in a database that speaks SQL.
///
/// The tables, with their reads and writes, are described once in `tables` for both databases; a database executes
/// them.
#[derive(Debug)]
pub struct SqlStore<D>(pub(crate) D);

impl<D> Deref for SqlStore<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

/// Takes the statements of a commit. SQLite executes each at once, PostgreSQL together before the commit ends; on both,
/// a statement that touches other rows than it should makes the commit a conflict.
pub(crate) trait Statements {
    /// Executes a statement that may touch any number of rows.
    fn run(&mut self, sql: Sql, params: Params) -> Result<(), Fault>;

    /// Executes a statement that must touch one row. It has no `RETURNING`.
    fn run_one(&mut self, sql: Sql, params: Params) -> Result<(), Fault>;

    /// Executes a query of one number, which must be `number`; another is a conflict.
    fn expect(&mut self, number: i64, sql: Sql, params: Params) -> Result<(), Fault>;

    /// Executes a statement that adds a row. PostgreSQL's takes columns as arrays, and adds the rows of several writes
    /// and commits at once; it may run before statements that were queued earlier, if each of those is about one row by
    /// its key.
    fn gather(&mut self, sql: Sql, row: Params) -> Result<(), Fault>;

    /// Like [`Self::gather`], for a statement that must touch the row. It has no `RETURNING`.
    fn gather_one(&mut self, sql: Sql, row: Params) -> Result<(), Fault>;

    /// Executes a statement that removes a row by its key, if it exists; the key is all of its parameters. `many` is
    /// PostgreSQL's for the rows of several commits, which takes columns as arrays.
    fn remove(&mut self, one: Sql, many: &'static str, key: Params) -> Result<(), Fault>;

    /// Executes a statement that changes a row by its key, the first `key` of its parameters, and must touch it. `many`
    /// is PostgreSQL's for the rows of several commits, which takes columns as arrays; it may miss a row that changes
    /// at the same moment. Neither has a `RETURNING`.
    fn change_one(&mut self, one: Sql, many: &'static str, key: usize, row: Params) -> Result<(), Fault>;
}

/// Function that makes a value of type `T` from a row of the database.
pub(crate) type Read<T> = Box<dyn Fn(&dyn Row) -> Result<T, Fault> + Send + Sync>;

/// A query, and the function that reads its rows.
pub(crate) struct Query<T> {
    pub(crate) sql: Sql,
    pub(crate) params: Params,
    pub(crate) read: Read<T>,
    /// True if it finds a few rows by their keys: SQLite answers it on the calling thread, if a connection is free.
    pub(crate) is_point: bool,
    /// True if it reads many rows: on SQLite a thread of its own answers it, one such query at a time.
    pub(crate) is_scan: bool,
    /// True if many callers ask the same at the same time, such as for the settings of a workspace: PostgreSQL is
    /// queried once for all.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "PostgreSQL alone reads it"))]
    pub(crate) is_shared: bool,
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl<T> Query<T> {
    pub(crate) fn new(
        sql: Sql,
        params: Params,
        read: impl Fn(&dyn Row) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Self {
        Self { sql, params, read: Box::new(read), is_point: false, is_scan: false, is_shared: false }
    }

    /// Marks a query that finds a few rows by their keys.
    pub(crate) fn point(self) -> Self {
        Self { is_point: true, ..self }
    }

    /// Marks a query that reads many rows.
    pub(crate) fn scan(self) -> Self {
        Self { is_scan: true, ..self }
    }

    /// Marks a query that many callers make at the same time, so that they may share one answer.
    pub(crate) fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }
}

/// Outcome of a future of code that serves both databases and waits on PostgreSQL alone: SQLite answers at once.
pub(crate) fn at_once<T>(future: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(Fault::Panicked),
    }
}

/// Rows of a table that are removed at an age. PostgreSQL has an index by time for them; SQLite keeps them in the order
/// of insertion, which is searched a window at a time: an index would cost each row more than this search.
#[derive(Debug)]
pub(crate) struct Aged {
    pub(crate) table: &'static str,
    /// Number of rows that SQLite reads in one call.
    pub(crate) window: usize,
    /// Number of rows that it removes in one transaction.
    pub(crate) slice: usize,
    /// SQLite: the numbers of rows after `?1`, at most `?2`, and whether each is old at the moment `?3`.
    pub(crate) find: &'static str,
    /// SQLite: removes the row `$1` if it is old at the moment `$2`. PostgreSQL: removes rows that are old at the moment
    /// `$1`, at most `$2`.
    pub(crate) delete: Sql,
}

/// A database.
pub(crate) trait Database: Send + Sync + 'static {
    /// Returns the first row of a query, if there is one.
    fn one<T: Send + 'static>(&self, query: Query<T>) -> impl Future<Output = Result<Option<T>, StoreError>> + Send;

    /// Returns all rows of a query.
    fn many<T: Send + 'static>(&self, query: Query<T>) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

    /// Returns the rows of a query for each of several keys, whose values follow the parameters that all share. SQLite
    /// looks each of them up, at one moment; PostgreSQL's query takes the columns of the keys as arrays.
    fn gathered<T: Send + 'static>(
        &self,
        query: Query<T>,
        keys: Vec<Params>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

    /// Like `gathered`, for a query with no parameters but its keys, which many callers make with different keys at the
    /// same time. PostgreSQL is queried once for all of them, by a statement whose last column is the number of a row's
    /// key, from 1.
    fn by_keys<T: Send + 'static>(
        &self,
        query: Query<T>,
        keys: Vec<Params>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send {
        self.gathered(query, keys)
    }

    /// Executes a maintenance statement in a transaction of its own; returns the number of rows it touched. A power cut
    /// may undo it: rows that come back are swept again.
    fn sweep(&self, sql: Sql, params: Params) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Removes at most `limit` rows that are old at a moment; returns the number removed. A power cut may bring some
    /// back.
    fn sweep_aged(
        &self,
        aged: &'static Aged,
        moment: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Removes a page of rows of a workspace that is being removed, see [`Accounts::remove_rows_of`].
    ///
    /// [`Accounts::remove_rows_of`]: messaging_core::ports::store::Accounts::remove_rows_of
    fn remove_rows(
        &self,
        workspace: WorkspaceId,
        step: usize,
        limit: usize,
    ) -> impl Future<Output = Result<Option<RemovedRows>, StoreError>> + Send;

    /// Returns a page of a query that answers one row more than its limit, with the key after which the rest begins.
    fn page<T: Send + 'static>(
        &self,
        query: Query<T>,
        page: PageRequest,
        key: impl Fn(&T) -> [u8; 16] + Send,
    ) -> impl Future<Output = Result<Slice<T>, StoreError>> + Send {
        async move { Ok(pages::slice(self.many(query).await?, page.limit, key)) }
    }
}
