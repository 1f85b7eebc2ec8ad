//! The target of a move.

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod};
use futures_util::{StreamExt as _, pin_mut};
use tokio::sync::mpsc::Receiver;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

pub(crate) use super::pieces::PIECE;
pub(crate) use super::places::place_of;
use super::url::PostgresUrl;
use super::{events, schema, tls};
use crate::moving::digest::{Digested, Received, Sent};
use crate::moving::error::MoveError;
use crate::moving::report::MovedBlobs;
use crate::moving::tables::{NUMBERED, SourceRow, TABLES, Table};
use crate::open_error::{OpenError, failed};
use crate::sqlite::moved::Counters;

/// Milliseconds without a heartbeat after which a process is over.
const OVER: i64 = 30_000;

/// Settings of the transaction: it takes long, and waits for no other.
const SETTINGS: &str =
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '5s'";

/// A database that receives everything in one transaction.
pub(crate) struct Target {
    client: Client,
}

/// Outcome of the commit that ends a move.
pub(crate) enum Committed {
    /// Everything is committed.
    Yes,
    /// Nothing is committed.
    No(MoveError),
    /// The connection ended and there is no other.
    Unknown(tokio_postgres::Error),
}

impl Target {
    /// Connects, and brings the schema up to date.
    pub(crate) async fn open(url: &PostgresUrl) -> Result<Self, MoveError> {
        Ok(Self { client: connect(url).await.map_err(MoveError::Target)? })
    }

    /// Begins the transaction. Until it ends no process may join; there may be no process and no row.
    pub(crate) async fn begin(&self) -> Result<(), MoveError> {
        const SEEN: &str = "SELECT name FROM nodes WHERE seen_at > now_ms() - $1 ORDER BY term LIMIT 1";
        // Ended processes may have left their rows.
        const FORGET: &str = "DELETE FROM writers; DELETE FROM nodes; UPDATE places SET term = NULL";
        let writing = || MoveError::writing("begin to move");
        self.client.batch_execute(SETTINGS).await.map_err(writing())?;
        self.client
            .batch_execute("BEGIN; LOCK TABLE nodes, writers IN ACCESS EXCLUSIVE MODE")
            .await
            .map_err(writing())?;
        if let Some(row) = self.client.query_opt(SEEN, &[&OVER]).await.map_err(writing())? {
            return Err(MoveError::TargetInUse(row.get(0)));
        }
        if let Some(table) = first_with_rows(&self.client).await.map_err(writing())? {
            return Err(MoveError::NotEmpty(table));
        }
        self.client.batch_execute(FORGET).await.map_err(writing())
    }

    /// Adds rows to a table.
    pub(crate) async fn copy(
        &self,
        table: &'static Table,
        mut rows: Receiver<Vec<SourceRow>>,
    ) -> Result<Digested, MoveError> {
        let writing = || MoveError::writing(format!("fill the table {}", table.name));
        let Table { name, columns, .. } = table;
        let described = self.client.prepare(&format!("SELECT {columns} FROM {name}")).await.map_err(writing())?;
        let (names, types): (Vec<&str>, Vec<Type>) =
            described.columns().iter().map(|column| (column.name(), column.type_().clone())).unzip();
        let sink = self
            .client
            .copy_in(&format!("COPY {name} ({columns}) FROM STDIN (FORMAT binary)"))
            .await
            .map_err(writing())?;
        let writer = BinaryCopyInWriter::new(sink, &types);
        pin_mut!(writer);
        let mut digested = Digested::default();
        while let Some(slice) = rows.recv().await {
            for row in slice {
                let sent = row
                    .into_iter()
                    .zip(&types)
                    .zip(&names)
                    .map(|((value, kind), column)| {
                        Sent::of(value, kind).map_err(|problem| MoveError::Unfit {
                            table: name,
                            column: (*column).to_owned(),
                            problem,
                        })
                    })
                    .collect::<Result<Vec<Sent>, MoveError>>()?;
                digested.add(sent.iter().map(|one| one.0.as_deref()));
                let values = sent.iter().map(|one| one as &(dyn ToSql + Sync));
                writer.as_mut().write_raw(values).await.map_err(writing())?;
            }
        }
        writer.finish().await.map_err(writing())?;
        Ok(digested)
    }

    /// Counts the rows of a table of the target, with a digest of their content.
    pub(crate) async fn digested(&self, table: &Table) -> Result<Digested, MoveError> {
        let reading = || MoveError::writing(format!("read the table {} back", table.name));
        let sql = format!("SELECT {} FROM {}", table.columns, table.name);
        let rows = self.client.query_raw(&sql, std::iter::empty::<&str>()).await.map_err(reading())?;
        pin_mut!(rows);
        let mut digested = Digested::default();
        while let Some(row) = rows.next().await {
            let row = row.map_err(reading())?;
            let columns: Vec<Option<Received<'_>>> =
                (0..row.len()).map(|column| row.try_get(column)).collect::<Result<_, _>>().map_err(reading())?;
            digested.add(columns.iter().map(|column| column.as_ref().map(|received| received.0)));
        }
        Ok(digested)
    }

    /// Sets the sequences to continue after the numbers in use.
    pub(crate) async fn go_on_from(&self, counters: Counters) -> Result<(), MoveError> {
        const PLACES: &str = "UPDATE places SET latest = greatest($1,
            coalesce((SELECT max(dated_at) FROM jobs WHERE jobs.place = places.place), 0))";
        let writing = || MoveError::writing("set the sequences");
        for (table, column) in NUMBERED {
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), coalesce(max({column}), 0) + 1, false)
                 FROM {table}"
            );
            self.client.batch_execute(&sql).await.map_err(writing())?;
        }
        for (sequence, last) in [("contact_numbers", counters.contact), ("automation_note_numbers", counters.note)] {
            let sql = format!("SELECT setval('{sequence}', {}, false)", last.max(0) + 1);
            self.client.batch_execute(&sql).await.map_err(writing())?;
        }
        self.client.execute(PLACES, &[&counters.latest]).await.map(drop).map_err(writing())
    }

    /// Returns the number of attachments, and of their bytes.
    pub(crate) async fn blobs(&self) -> Result<MovedBlobs, MoveError> {
        let sql = "SELECT count(*), coalesce(sum(size), 0)::bigint FROM blobs";
        let row = self.client.query_one(sql, &[]).await.map_err(MoveError::writing("count the attachments"))?;
        let number = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
        Ok(MovedBlobs { count: number(0), bytes: number(1) })
    }

    /// Commits. If the connection ends meanwhile, another one finds out the outcome.
    pub(crate) async fn commit(&self, url: &PostgresUrl) -> Committed {
        let error = match self.client.batch_execute("COMMIT").await {
            Ok(()) => {
                // Without statistics the first queries would be planned for empty tables.
                if let Err(error) = self.client.batch_execute("ANALYZE").await {
                    tracing::warn!(%error, "the tables could not be analyzed");
                }
                return Committed::Yes;
            }
            Err(error) => error,
        };
        if error.as_db_error().is_some() {
            return Committed::No(MoveError::writing("commit")(error));
        }
        let Ok(client) = connect(url).await else { return Committed::Unknown(error) };
        // The backend of the ended connection may still be committing, and holds its locks until then.
        let waited =
            client.batch_execute("SET lock_timeout = '30s'; BEGIN; LOCK TABLE nodes IN ACCESS SHARE MODE; COMMIT");
        if waited.await.is_err() {
            return Committed::Unknown(error);
        }
        match first_with_rows(&client).await {
            Ok(Some(_)) => Committed::Yes,
            Ok(None) => Committed::No(MoveError::writing("commit")(error)),
            Err(_) => Committed::Unknown(error),
        }
    }
}

/// Returns the first of the tables that has a row.
async fn first_with_rows(client: &Client) -> Result<Option<&'static str>, tokio_postgres::Error> {
    let asked = TABLES.iter().map(|table| format!("(SELECT EXISTS (SELECT 1 FROM {}))", table.name));
    let sql = format!("SELECT ARRAY[{}]", asked.collect::<Vec<_>>().join(", "));
    let found: Vec<bool> = client.query_one(&sql, &[]).await?.get(0);
    Ok(TABLES.iter().zip(found).find(|(_, has_rows)| *has_rows).map(|(table, _)| table.name))
}

async fn connect(url: &PostgresUrl) -> Result<Client, OpenError> {
    let mut config = url.config().clone();
    config.application_name("messaging admin move");
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let pool = Pool::builder(Manager::from_config(config, tls::connector(url)?, recycling))
        .max_size(1)
        .runtime(deadpool_postgres::Runtime::Tokio1)
        .build()
        .map_err(failed("prepare the connection to the database"))?;
    schema::bring_up_to_date(&pool, true).await?;
    let client = pool.get().await.map_err(failed("connect to the database"))?;
    events::begin_era(&client).await.map_err(failed("begin an era of the log"))?;
    Ok(client)
}
