//! Running prepared queries.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::ClientWrapper;
use futures_util::future::try_join_all;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::fault::Fault;
use crate::sql::Value;

pub(super) use crate::sql::{Params, params};

/// The parameters as the library takes them.
pub(super) fn as_refs(params: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

/// Statements as they are prepared on a connection. Those that are not are in one go.
pub(super) async fn prepared(
    connection: &ClientWrapper,
    all: impl Iterator<Item = &'static str>,
) -> Result<HashMap<&'static str, Statement>, Error> {
    let wanted: HashSet<&'static str> = all.collect();
    let each = wanted.into_iter().map(|sql| async move {
        let statement = connection.prepare_cached(sql).await?;
        Ok::<_, Error>((sql, statement))
    });
    Ok(try_join_all(each).await?.into_iter().collect())
}

/// Something that answers queries: an open transaction, a snapshot, or the connections for reads.
pub(super) trait Queries: Send {
    /// The rows of a query, which is prepared once on each connection.
    fn rows(&mut self, sql: &'static str, params: Params) -> impl Future<Output = Result<Vec<Row>, Fault>> + Send;
}

/// The first row, if there is one.
pub(super) async fn one<T>(
    on: &mut impl Queries,
    sql: &'static str,
    params: Params,
    read: impl FnOnce(&Row) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    on.rows(sql, params).await?.first().map(read).transpose()
}

/// All rows.
pub(super) async fn many<T>(
    on: &mut impl Queries,
    sql: &'static str,
    params: Params,
    read: impl Fn(&Row) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    on.rows(sql, params).await?.iter().map(read).collect()
}
