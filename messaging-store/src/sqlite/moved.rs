//! The source of a move from SQLite to PostgreSQL: reading its rows and files, and fencing it at the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::{BlobId, Id, ImportId, MessageId, WorkspaceId};
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_core::ports::store::Store as _;
use messaging_core::ports::uploads::UploadFile;
use messaging_core::time::Timestamp;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::mpsc::Sender;

use super::SqliteStore;
use super::blob_files::BlobFiles;
use super::fault::Fault;
use super::installation_values::{FENCE, LATEST, get, remove, set};
use super::open::SqliteOptions;
use super::upload_files::UploadFiles;
use crate::files::{UNFINISHED, beside, names};
use crate::moving::error::MoveError;
use crate::moving::tables::{Rows, SourceRow, Table};
use crate::open_error::failed;
use crate::postgres::moved::{PIECE, place_of};

/// Largest number of rows in a slice that is given to the target.
const ROWS: usize = 512;

/// Bytes of values from which a slice gets no further row.
const BYTES: usize = 1 << 20;

/// Longest wait for the lock of another program that writes to the database.
const PATIENCE: Duration = Duration::from_secs(5);

/// Latest time that an id can begin with: ids have 48 bits for milliseconds.
const LAST_TIME: Timestamp = Timestamp::from_millis((1 << 48) - 1);

/// The database that is moved: locked against servers, and read in one snapshot.
pub(crate) struct Source {
    /// Open store, which holds the lock that lets no server work on the database.
    store: SqliteStore,
    /// Connection with the read transaction of the snapshot.
    connection: Mutex<Connection>,
    /// `PRAGMA data_version` in the snapshot; another value later means that another connection has committed.
    version: i64,
    blobs: BlobFiles,
    uploads: PathBuf,
}

/// Largest numbers that the source has given, after which the target goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counters {
    /// The largest number of a contact within its workspace, without the workspace's own bits.
    pub contact: i64,
    /// The largest number of a note for automations.
    pub note: i64,
    /// Time, in milliseconds, close to the latest at which a job was dated; see `dating.rs`.
    pub latest: i64,
}

/// Path of a blob, and the message that it is pending for; `None` if it is kept.
type BlobFile = (PathBuf, Option<MessageId>);

/// Key of an uploaded file: its import, workspace and blob.
type UploadKey = (ImportId, WorkspaceId, BlobId);

/// Path of an uploaded file, and true if its import has kept it.
type UploadedFile = (PathBuf, bool);

impl Source {
    /// Opens the database with the lock of a server, and begins the snapshot.
    pub(crate) fn open(options: SqliteOptions) -> Result<Self, MoveError> {
        let path = options.path.clone();
        if !path.is_file() {
            return Err(MoveError::NoDatabase(path));
        }
        let blobs = BlobFiles::new(options.blobs.clone().unwrap_or_else(|| beside(&path, "attachments")));
        let uploads = options.uploads.clone().unwrap_or_else(|| beside(&path, "uploads"));
        let store = SqliteStore::open(SqliteOptions { exclusive: true, ..options }).map_err(MoveError::Source)?;
        let begun = begin(&path, &blobs).map_err(failed("read the database")).map_err(MoveError::Source);
        let (connection, version) = begun?;
        Ok(Self { store, connection: Mutex::new(connection), version, blobs, uploads })
    }

    /// Closes the store and so lets other programs work on the database.
    pub(crate) async fn close(&self) {
        self.store.close().await;
    }

    /// Reads the rows of a table and sends them to `give`, a slice at a time, until there are no more or the receiver
    /// is gone. Blocks while the channel is full.
    pub(crate) fn read(&self, table: &Table, give: &Sender<Vec<SourceRow>>) -> Result<(), MoveError> {
        let reading = MoveError::reading(format!("read what becomes the table {}", table.name));
        let mut slices = Slices { give, slice: Vec::new(), bytes: 0 };
        match table.rows {
            Rows::Same | Rows::Select(_) => self.each_row(table, &mut slices),
            Rows::Blobs => self.each_blob(&mut slices),
            Rows::BlobPieces => self.each_blob_piece(&mut slices),
            Rows::Uploads => self.each_upload(&mut slices),
            Rows::UploadPieces => self.each_upload_piece(&mut slices),
        }
        .map_err(reading)?;
        slices.end();
        Ok(())
    }

    /// Sends the rows that the query of a table finds.
    fn each_row(&self, table: &Table, slices: &mut Slices<'_>) -> Result<(), Fault> {
        let connection = self.connection();
        let sql = table.select().unwrap_or_default();
        let mut statement = connection.prepare(&sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let row = (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<SourceRow>>()?;
            if !slices.add(row) {
                break;
            }
        }
        Ok(())
    }

    /// Files of the attachments. Those that are pending, because no commit has kept them, have their message with them.
    fn blob_paths(&self) -> std::io::Result<BTreeMap<(BlobId, WorkspaceId), BlobFile>> {
        let mut found = BTreeMap::new();
        for blob in self.blobs.pending()? {
            let path = self.blobs.pending_path(blob);
            found.insert((blob.id, blob.workspace_id), (path, Some(blob.message_id)));
        }
        for (workspace, id) in self.blobs.list_before(LAST_TIME, usize::MAX)? {
            let path = self.blobs.blob_path(workspace, id);
            if path.is_file() {
                found.insert((id, workspace), (path, None));
            }
        }
        // A file of which only the beginning was written is listed, but it has another name, so nothing is at its path.
        found.retain(|_, (path, _)| path.is_file());
        Ok(found)
    }

    /// Sends a row for each attachment: id, workspace, message (zeros if kept), whether it is pending, size in bytes.
    fn each_blob(&self, slices: &mut Slices<'_>) -> Result<(), Fault> {
        for ((id, workspace), (path, message)) in self.blob_paths()? {
            let is_pending = message.is_some();
            let message = message.map_or([0; 16], Id::to_bytes);
            let row = vec![bytes(id), bytes(workspace), Value::Blob(message.into()), is_pending.into(), size(&path)?];
            if !slices.add(row) {
                break;
            }
        }
        Ok(())
    }

    /// Sends the bytes of the attachments in rows: id, workspace, offset of the piece, its bytes.
    fn each_blob_piece(&self, slices: &mut Slices<'_>) -> Result<(), Fault> {
        for ((id, workspace), (path, _)) in self.blob_paths()? {
            if !each_piece(&path, &mut |at, piece| slices.add(vec![bytes(id), bytes(workspace), at, piece]))? {
                break;
            }
        }
        Ok(())
    }

    /// Files that were uploaded for imports, those included of which only a part has arrived.
    fn upload_paths(&self) -> std::io::Result<BTreeMap<UploadKey, UploadedFile>> {
        let files = UploadFiles::new(self.uploads.clone());
        let mut found = BTreeMap::new();
        for name in names(&self.uploads)? {
            let whole = name.strip_suffix(UNFINISHED).unwrap_or(&name);
            let Some((import_id, workspace_id, upload_id)) = parse_upload(whole) else { continue };
            let kept = files.path(UploadFile { import_id, workspace_id, upload_id });
            let (is_kept, path) = (kept.is_file(), self.uploads.join(&name));
            found.insert((import_id, workspace_id, upload_id), (if is_kept { kept } else { path }, is_kept));
        }
        Ok(found)
    }

    /// Sends a row for each uploaded file: import, workspace, id, whether it is kept, size in bytes.
    fn each_upload(&self, slices: &mut Slices<'_>) -> Result<(), Fault> {
        for ((import, workspace, id), (path, is_kept)) in self.upload_paths()? {
            if !slices.add(vec![bytes(import), bytes(workspace), bytes(id), is_kept.into(), size(&path)?]) {
                break;
            }
        }
        Ok(())
    }

    /// Sends the bytes of the uploaded files in rows: import, workspace, id, offset of the piece, its bytes.
    fn each_upload_piece(&self, slices: &mut Slices<'_>) -> Result<(), Fault> {
        for ((import, workspace, id), (path, _)) in self.upload_paths()? {
            let mut add = |at, piece| slices.add(vec![bytes(import), bytes(workspace), bytes(id), at, piece]);
            if !each_piece(&path, &mut add)? {
                break;
            }
        }
        Ok(())
    }

    /// The largest numbers that the source has given.
    pub(crate) fn counters(&self) -> Result<Counters, MoveError> {
        self.read_counters().map_err(MoveError::reading("read the numbers that go on"))
    }

    fn read_counters(&self) -> Result<Counters, Fault> {
        const CONTACT: &str = "SELECT max(
            (SELECT ifnull(max(newest), 0) FROM workspace_numbers),
            (SELECT ifnull(max(n & 0xFFFFFFFFFF), 0) FROM contacts),
            (SELECT ifnull(max(n & 0xFFFFFFFFFF), 0) FROM deleted_contacts))";
        const NOTE: &str = "SELECT max(
            (SELECT ifnull(max(n), 0) FROM automation_note_number), (SELECT ifnull(max(n), 0) FROM automation_notes))";
        let connection = self.connection();
        let contact = connection.query_row(CONTACT, [], |row| row.get(0))?;
        let note = connection.query_row(NOTE, [], |row| row.get(0))?;
        let latest = get(&connection, LATEST)?.and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Counters { contact, note, latest })
    }

    /// Fences the database, so that nothing is sent from it any more. Answers the fence that it had before. Fails with
    /// [`MoveError::SourceChanged`], and changes nothing, if another connection has written since the snapshot.
    pub(crate) fn fence(&self) -> Result<Option<Fence>, MoveError> {
        let connection = self.connection();
        let fenced = self.fence_over(&connection);
        if !matches!(fenced, Ok(Some(_))) && !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").map_err(MoveError::reading("leave the source as it was"))?;
        }
        fenced.map_err(MoveError::reading("fence the source"))?.ok_or(MoveError::SourceChanged)
    }

    /// Ends the snapshot and fences the database in a transaction of its own. Answers the fence before; the outer
    /// option is `None`, and the transaction still open, if another connection has written since the snapshot.
    #[allow(clippy::option_option, reason = "whether there is an answer, and whether there was a fence")]
    fn fence_over(&self, connection: &Connection) -> Result<Option<Option<Fence>>, Fault> {
        connection.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
        if data_version(connection)? != self.version {
            return Ok(None);
        }
        let before = get(connection, FENCE)?.map(|text| Fence::parse(&text));
        if before.is_none() {
            set(connection, FENCE, &Fence::held(SystemClock.now()).to_text())?;
        }
        connection.execute_batch("COMMIT")?;
        Ok(Some(before))
    }

    /// Removes the fence that [`fence`](Self::fence) set, unless `before` says that the database had one already.
    pub(crate) fn put_back(&self, before: Option<Fence>) -> Result<(), MoveError> {
        if before.is_some() {
            return Ok(());
        }
        remove(&self.connection(), FENCE).map_err(MoveError::reading("take the fence of the source away"))
    }

    fn connection(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows on their way to the target, gathered in slices.
struct Slices<'a> {
    give: &'a Sender<Vec<SourceRow>>,
    slice: Vec<SourceRow>,
    bytes: usize,
}

impl Slices<'_> {
    /// Adds a row, and sends the slice if it is full. Answers false if the receiver is gone.
    fn add(&mut self, row: SourceRow) -> bool {
        self.bytes += row.iter().map(length).sum::<usize>();
        self.slice.push(row);
        if self.slice.len() < ROWS && self.bytes < BYTES {
            return true;
        }
        self.bytes = 0;
        self.give.blocking_send(std::mem::take(&mut self.slice)).is_ok()
    }

    /// Sends the last slice. That the receiver is gone is no error here, because it reports its own.
    fn end(self) {
        if !self.slice.is_empty() {
            let _ = self.give.blocking_send(self.slice);
        }
    }
}

/// Approximate size of a value in bytes.
fn length(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 8,
    }
}

/// The 16 bytes of an id.
fn bytes(id: impl Id) -> Value {
    Value::Blob(id.to_bytes().into())
}

/// Length of a file in bytes.
fn size(path: &Path) -> std::io::Result<Value> {
    Ok(Value::Integer(i64::try_from(path.metadata()?.len()).unwrap_or(i64::MAX)))
}

/// Reads a file in pieces of [`PIECE`] bytes and calls `add` with the offset and bytes of each. Answers false if `add`
/// did, which ends the reading.
fn each_piece(path: &Path, add: &mut dyn FnMut(Value, Value) -> bool) -> std::io::Result<bool> {
    let (mut file, mut at) = (File::open(path)?, 0_i64);
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        file.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
        if piece.is_empty() {
            return Ok(true);
        }
        let length = i64::try_from(piece.len()).unwrap_or(i64::MAX);
        if !add(Value::Integer(at), Value::Blob(piece)) {
            return Ok(false);
        }
        at += length;
    }
}

/// The ids in the name of an uploaded file, `IMPORT.WORKSPACE.UPLOAD`; `None` if it has another form.
fn parse_upload(name: &str) -> Option<(ImportId, WorkspaceId, BlobId)> {
    let mut parts = name.split('.');
    let ids = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(ids)
}

/// A number of SQLite that changes when another connection commits.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

/// Opens a connection, defines the functions that the queries of tables call, and begins a snapshot. Answers the
/// connection and its `data_version`.
fn begin(path: &Path, blobs: &BlobFiles) -> rusqlite::Result<(Connection, i64)> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    define_functions(&connection, blobs)?;
    connection.execute_batch("BEGIN")?;
    // The transaction gets its snapshot by its first read.
    connection.query_row("SELECT 1 FROM installation", [], |_| Ok(())).optional()?;
    let version = data_version(&connection)?;
    Ok((connection, version))
}

/// Defines the SQL functions that the queries of [`tables`](crate::moving::tables) call: `place_of_lane` and `is_bulk`
/// of a lane, `sha256` of a text, and `source_in_file` and `has_file` of a captured message whose source is in a file.
fn define_functions(connection: &Connection, blobs: &BlobFiles) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    let text = |call: &Context<'_>| Ok::<_, rusqlite::Error>(call.get_raw(0).as_str()?.to_owned());
    let lane = move |call: &Context<'_>| Ok::<_, rusqlite::Error>(Lane::parse(&text(call)?));
    connection.create_scalar_function("place_of_lane", 1, flags, move |call| Ok(place_of(&lane(call)?)))?;
    connection.create_scalar_function("is_bulk", 1, flags, move |call| Ok(lane(call)?.class() == JobClass::Bulk))?;
    connection
        .create_scalar_function("sha256", 1, flags, move |call| Ok(Digest::of(&text(call)?).as_bytes().to_vec()))?;
    let files = blobs.clone();
    let source = move |call: &Context<'_>| {
        let id = |column| call.get::<[u8; 16]>(column);
        let (workspace, message) = (WorkspaceId::from_bytes(id(0)?), MessageId::from_bytes(id(1)?));
        files.read_capture(workspace, message).map_err(user)
    };
    let read = source.clone();
    connection
        .create_scalar_function("source_in_file", 2, flags, move |call| Ok(read(call)?.map(|bytes| bytes.to_vec())))?;
    connection.create_scalar_function("has_file", 2, flags, move |call| Ok(source(call)?.is_some()))
}

/// An error of a function that SQL calls.
fn user(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(error.into())
}
