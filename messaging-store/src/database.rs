//! What tables need of a database: carrying out statements, and answering queries.

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
/// What tables hold and how it is read and written is described once, for both databases, in `tables`; a database is
/// what carries it out.
#[derive(Debug)]
pub struct SqlStore<D>(pub(crate) D);

impl<D> Deref for SqlStore<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

/// Takes the statements of a commit. SQLite carries out each at once, PostgreSQL together before the commit ends; one that
/// touches other rows than it should makes the commit a conflict either way.
pub(crate) trait Statements {
    /// A statement that may touch any number of rows.
    fn run(&mut self, sql: Sql, params: Params) -> Result<(), Fault>;

    /// A statement that must touch one row. It has no `RETURNING`.
    fn run_one(&mut self, sql: Sql, params: Params) -> Result<(), Fault>;

    /// A query of one number, which must be this; another one is a conflict.
    fn expect(&mut self, number: i64, sql: Sql, params: Params) -> Result<(), Fault>;

    /// A statement that adds a row. PostgreSQL's takes columns as arrays, and adds the rows of several writes and commits
    /// at once; it may run before others that were queued earlier, if each of those is about one row by its key.
    fn gather(&mut self, sql: Sql, row: Params) -> Result<(), Fault>;

    /// Like [`Self::gather`], for a statement that must touch the row. It has no `RETURNING`.
    fn gather_one(&mut self, sql: Sql, row: Params) -> Result<(), Fault>;

    /// A statement that removes a row, if it is there, by its key, which is all of its parameters. `many` is PostgreSQL's for
    /// the rows of several commits, which takes columns as arrays.
    fn remove(&mut self, one: Sql, many: &'static str, key: Params) -> Result<(), Fault>;

    /// A statement that changes a row by its key, the first `key` of its parameters, and must touch it. `many` is
    /// PostgreSQL's for the rows of several commits, which takes columns as arrays; it may miss a row that changes at the same
    /// moment. Neither has a `RETURNING`.
    fn change_one(&mut self, one: Sql, many: &'static str, key: usize, row: Params) -> Result<(), Fault>;
}

/// Function that makes a value of type `T` from a row of the database.
pub(crate) type Read<T> = Box<dyn Fn(&dyn Row) -> Result<T, Fault> + Send + Sync>;

/// A query and how its rows are read.
pub(crate) struct Query<T> {
    pub(crate) sql: Sql,
    pub(crate) params: Params,
    pub(crate) read: Read<T>,
    /// It finds a few rows by their keys: SQLite answers it on the thread that asks, if a connection is free.
    pub(crate) is_point: bool,
    /// It looks at many rows: on SQLite a thread of its own answers it, one such query at a time.
    pub(crate) is_scan: bool,
    /// Many ask the same at the same time, such as for the settings of a workspace: PostgreSQL is asked once for all.
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

/// The outcome of what is written for both databases and waits on PostgreSQL alone: answers of SQLite are there at once.
pub(crate) fn at_once<T>(future: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(Fault::Panicked),
    }
}

/// Rows of a table that are let go at an age. PostgreSQL has an index by time for them; SQLite has the order in which they
/// came, which is looked through a window at a time: an index would cost each of them more than this look.
#[derive(Debug)]
pub(crate) struct Aged {
    pub(crate) table: &'static str,
    /// How many rows SQLite looks at in one call.
    pub(crate) window: usize,
    /// How many of them it removes in one transaction.
    pub(crate) slice: usize,
    /// SQLite: the numbers of rows after `?1`, at most `?2`, and whether each is old at the moment `?3`.
    pub(crate) find: &'static str,
    /// SQLite: removes the row `$1` if it is old at the moment `$2`. PostgreSQL: removes rows that are old at the moment
    /// `$1`, at most `$2`.
    pub(crate) delete: Sql,
}

/// A database.
pub(crate) trait Database: Send + Sync + 'static {
    /// The first row of a query, if there is one.
    fn one<T: Send + 'static>(&self, query: Query<T>) -> impl Future<Output = Result<Option<T>, StoreError>> + Send;

    /// All rows of a query.
    fn many<T: Send + 'static>(&self, query: Query<T>) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

    /// The rows of a query for each of several keys, whose values follow the parameters that all share. SQLite looks each of
    /// them up, at one moment; PostgreSQL's query takes the columns of the keys as arrays.
    fn gathered<T: Send + 'static>(
        &self,
        query: Query<T>,
        keys: Vec<Params>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

    /// The same for a query without other parameters than its keys, which many callers ask for different keys at the same
    /// time. PostgreSQL is asked once for all of them, by a statement whose last column is the number of a row's key, from 1.
    fn by_keys<T: Send + 'static>(
        &self,
        query: Query<T>,
        keys: Vec<Params>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send {
        self.gathered(query, keys)
    }

    /// Carries out a statement of upkeep in a transaction of its own; answers how many rows it touched. A power cut may
    /// undo it: what comes back is swept again.
    fn sweep(&self, sql: Sql, params: Params) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Removes at most `limit` rows that are old at a moment; answers how many went. A power cut may bring some back.
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

    /// A page of a query that answers one row more than its limit, with the key after which the rest begins.
    fn page<T: Send + 'static>(
        &self,
        query: Query<T>,
        page: PageRequest,
        key: impl Fn(&T) -> [u8; 16] + Send,
    ) -> impl Future<Output = Result<Slice<T>, StoreError>> + Send {
        async move { Ok(pages::slice(self.many(query).await?, page.limit, key)) }
    }
}
