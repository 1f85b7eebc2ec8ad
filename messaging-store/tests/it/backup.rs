//! Backups, damaged ones among them, and databases that are copies.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use messaging_conformance::put;
use messaging_conformance::sample::{bare_message, id, insert, user};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::installation::fence::FenceState;
use messaging_core::domain::message::attachment::{MessageBlob, StoredFile};
use messaging_core::domain::message::content;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::ids::{BlobId, MessageId, WorkspaceId};
use messaging_core::ports::Store as _;
use messaging_core::ports::store::{Accounts as _, Installation as _};
use messaging_store::backup::{BackupError, BackupOptions, BackupReport, RestoreError, back_up, restore};
use messaging_store::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A directory with an installation.
struct InstallationFixture {
    root: TempDir,
}

impl InstallationFixture {
    fn new() -> Self {
        let fixture = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(fixture.data()).unwrap();
        fs::write(fixture.data().join("secret.key"), [7; 32]).unwrap();
        fixture
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    fn file(&self) -> PathBuf {
        self.root.path().join("backup.tar")
    }

    fn back_up(&self, overwrite: bool) -> Result<BackupReport, BackupError> {
        let (database, secret_key) = (self.data().join("messaging.db"), self.data().join("secret.key"));
        back_up(&BackupOptions { database, secret_key, file: self.file(), overwrite }, &mut |_| {})
    }

    fn restore(&self, name: &str) -> Result<PathBuf, RestoreError> {
        let data = self.root.path().join(name);
        restore(&self.file(), &data, &mut |_| {}).map(|_| data)
    }

    /// Names in the directory besides the data and the backup.
    fn others(&self) -> Vec<String> {
        let mut names = names(self.root.path());
        names.retain(|name| name != "data" && name != "backup.tar");
        names
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn open(data: &Path) -> SqliteStore {
    let options = SqliteOptions { epoch: Some(data.join("epoch")), ..SqliteOptions::new(data.join("messaging.db")) };
    SqliteStore::open(options).unwrap()
}

async fn is_fenced(data: &Path) -> bool {
    let store = open(data);
    let fence = store.fence().await.unwrap();
    assert!(fence.is_none_or(|fence| fence.state == FenceState::Held));
    store.close().await;
    fence.is_some()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Stores an attachment that its message names.
async fn attach(store: &SqliteStore, bytes: &'static [u8]) -> (WorkspaceId, BlobId) {
    let message = bare_message(id());
    let blob = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: id() };
    let blobs = store.blobs();
    blobs.put_blob(blob, bytes.into()).await.unwrap();
    put(store, [insert(&message), Write::KeepBlob(blob)]).await;
    blobs.keep_blobs(&[blob]).await.unwrap();
    (blob.workspace_id, blob.id)
}

/// Stores an attachment that its message names in its content, as an accepted one does. Returns the path of its file.
async fn accept(fixture: &InstallationFixture, store: &SqliteStore, bytes: &'static [u8]) -> PathBuf {
    let message = bare_message(id());
    let blob = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: id() };
    let file = StoredFile {
        filename: "a.txt".to_owned(),
        content_type: "text/plain".to_owned(),
        size: bytes.len() as u64,
        blob: blob.id,
        content_id: None,
    };
    let content = content::encode(None, MessageInput::new(Channel::Email, "ann@example.com"), vec![file], None, None);
    let before = files_below(&fixture.data().join("attachments"));
    store.blobs().put_blob(blob, bytes.into()).await.unwrap();
    put(store, [Write::InsertMessage(Box::new(message), content), Write::KeepBlob(blob)]).await;
    store.blobs().keep_blobs(&[blob]).await.unwrap();
    let after = files_below(&fixture.data().join("attachments"));
    after.into_iter().find(|path| !before.contains(path)).unwrap()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_lost_is_named_and_keeps_nothing_else_from_the_backup() {
    let fixture = InstallationFixture::new();
    let store = open(&fixture.data());
    accept(&fixture, &store, b"one").await;
    let lost = accept(&fixture, &store, b"two").await;
    assert_eq!(fixture.back_up(false).unwrap().missing, [] as [PathBuf; 0]);
    fs::remove_file(&lost).unwrap();
    let report = fixture.back_up(true).unwrap();
    assert_eq!(report.files, 1);
    assert_eq!(report.missing, [lost.strip_prefix(fixture.data()).unwrap()]);
    store.close().await;
    fixture.restore("restored").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_comes_back_and_is_fenced() {
    let fixture = InstallationFixture::new();
    let store = open(&fixture.data());
    let somebody = user();
    put(&store, [Write::put(somebody.clone(), Expect::Absent)]).await;
    let attached = attach(&store, b"one").await;
    let pending = MessageBlob { workspace_id: id(), message_id: id::<MessageId>(), id: id() };
    store.blobs().put_blob(pending, b"two".as_slice().into()).await.unwrap();
    let report = fixture.back_up(false).unwrap();
    assert_eq!((report.files, mode(&fixture.file())), (2, 0o600));
    assert_eq!(report.bytes, fs::metadata(fixture.file()).unwrap().len());
    assert_eq!(fixture.others(), [] as [&str; 0]);
    let beside: Vec<_> = names(&fixture.data()).into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(beside, [] as [&str; 0], "no link is left");
    // Later data is not in the backup, and the original continues.
    let later = user();
    put(&store, [Write::put(later.clone(), Expect::Absent)]).await;
    store.close().await;
    assert!(!is_fenced(&fixture.data()).await);

    let data = fixture.restore("restored").unwrap();
    assert_eq!(names(&data), ["attachments", "epoch", "messaging.db", "secret.key"]);
    for (name, expected) in [("", 0o700), ("attachments", 0o700), ("messaging.db", 0o600), ("secret.key", 0o600)] {
        assert_eq!(mode(&data.join(name)), expected, "{name}");
    }
    assert_eq!(fs::read(data.join("secret.key")).unwrap(), [7; 32]);
    let restored = open(&data);
    assert_eq!(restored.user(somebody.id).await.unwrap().map(|found| found.record), Some(somebody));
    assert_eq!(restored.user(later.id).await.unwrap().map(|found| found.record), None);
    for ((workspace, blob), bytes) in [(attached, "one"), ((pending.workspace_id, pending.id), "two")] {
        assert_eq!(restored.blobs().blob(workspace, blob).await.unwrap().as_deref(), Some(bytes.as_bytes()));
    }
    let fence = restored.fence().await.unwrap();
    assert!(fence.is_some());
    // A decision of the operator stays.
    put(&restored, [Write::PutFence(None, fence)]).await;
    restored.close().await;
    assert!(!is_fenced(&data).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_refused_and_leaves_nothing() {
    let fixture = InstallationFixture::new();
    let store = open(&fixture.data());
    attach(&store, b"attached").await;
    store.close().await;
    fixture.back_up(false).unwrap();
    let whole = fs::read(fixture.file()).unwrap();
    let refuse = |bytes: &[u8], what: &str| {
        fs::write(fixture.file(), bytes).unwrap();
        let refused = fixture.restore("restored");
        assert!(matches!(refused, Err(RestoreError::Damaged { .. })), "{what}: {refused:?}");
        assert_eq!(fixture.others(), [] as [&str; 0], "{what}");
    };
    let last = whole.len() - 1;
    for part in 0..40 {
        let at = part * last / 39;
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (part % 8);
        refuse(&flipped, &format!("a bit of byte {at}"));
    }
    for length in [0, 1, 511, 512, 513, whole.len() / 2, last - 1024, last] {
        refuse(&whole[..length], &format!("{length} of {} bytes", whole.len()));
    }
    refuse(&[&whole[..], &[0]].concat(), "one more byte");
    refuse(b"not a backup at all", "something else");
    // Also in an existing directory, which stays.
    fs::create_dir(fixture.root.path().join("empty")).unwrap();
    assert!(fixture.restore("empty").is_err());
    assert_eq!(names(&fixture.root.path().join("empty")), [] as [&str; 0]);
    fs::write(fixture.file(), &whole).unwrap();
    fixture.restore("empty").unwrap();
}

#[tokio::test]
async fn what_is_there_is_not_overwritten() {
    let fixture = InstallationFixture::new();
    open(&fixture.data()).close().await;
    fixture.back_up(false).unwrap();
    let before = fs::read(fixture.file()).unwrap();
    assert!(matches!(fixture.back_up(false), Err(BackupError::Exists(_))));
    assert_eq!(fs::read(fixture.file()).unwrap(), before);
    fixture.back_up(true).unwrap();
    assert!(matches!(fixture.restore("data"), Err(RestoreError::Occupied { .. })));
    for name in ["secret.key", "messaging.db-wal", "epoch", "attachments/x"] {
        let data = fixture.root.path().join("half");
        let path = data.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        assert!(matches!(fixture.restore("half"), Err(RestoreError::Occupied { .. })), "{name}");
        assert!(path.exists());
        fs::remove_dir_all(data).unwrap();
    }
    let nowhere = BackupOptions {
        database: fixture.root.path().join("nowhere.db"),
        secret_key: fixture.data().join("secret.key"),
        file: fixture.root.path().join("other.tar"),
        overwrite: false,
    };
    assert!(matches!(back_up(&nowhere, &mut |_| {}), Err(BackupError::NoDatabase(_))));
    assert_eq!(fixture.others(), [] as [&str; 0]);
}

#[tokio::test]
async fn what_a_kill_left_is_removed_and_the_restore_goes_through() {
    let fixture = InstallationFixture::new();
    open(&fixture.data()).close().await;
    fixture.back_up(false).unwrap();
    // Killed while it unpacked, and while it moved checked files to their place.
    let data = fixture.root.path().join("restored");
    for (directory, moved) in [(".restoring-00", &[][..]), (".restored", &["secret.key", "epoch"][..])] {
        fs::create_dir_all(data.join(directory).join("attachments")).unwrap();
        fs::write(data.join(directory).join("messaging.db"), "").unwrap();
        for name in moved {
            fs::write(data.join(name), "").unwrap();
        }
        fixture.restore("restored").unwrap();
        assert_eq!(names(&data), ["epoch", "messaging.db", "secret.key"]);
        fs::remove_dir_all(&data).unwrap();
    }
    // Killed while it copied.
    fs::create_dir(fixture.data().join(".backup-00")).unwrap();
    fs::write(fixture.root.path().join(".backup.tar.00.db.part"), "").unwrap();
    fixture.back_up(true).unwrap();
    assert_eq!(fixture.others(), [] as [&str; 0]);
    assert!(!fixture.data().join(".backup-00").exists());
}

/// Copies a database that no server works on.
fn copy(from: &Path, to: &Path, names: &[&str]) {
    fs::create_dir_all(to).unwrap();
    for name in names {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[tokio::test]
async fn a_copy_without_its_number_is_fenced_and_a_move_is_not() {
    let fixture = InstallationFixture::new();
    let at = |name: &str| fixture.root.path().join(name);
    assert!(!is_fenced(&fixture.data()).await);
    assert!(!is_fenced(&fixture.data()).await, "another start");
    copy(&fixture.data(), &at("moved"), &["messaging.db", "epoch"]);
    assert!(!is_fenced(&at("moved")).await);
    copy(&fixture.data(), &at("copied"), &["messaging.db"]);
    assert!(is_fenced(&at("copied")).await);
    assert!(is_fenced(&at("copied")).await, "until somebody ends it");

    // Restored in the place of the later one, after one restart and after several.
    copy(&fixture.data(), &at("old"), &["messaging.db"]);
    for restarts in [1, 3] {
        for _ in 0..restarts {
            assert!(!is_fenced(&fixture.data()).await);
        }
        copy(&fixture.data(), &at("back"), &["epoch"]);
        copy(&at("old"), &at("back"), &["messaging.db"]);
        assert!(is_fenced(&at("back")).await, "{restarts}");
        fs::remove_dir_all(at("back")).unwrap();
    }
    // Beside a file of an earlier state.
    copy(&fixture.data(), &at("late"), &["messaging.db"]);
    fs::write(at("late").join("epoch"), "1\n").unwrap();
    assert!(is_fenced(&at("late")).await);
    fs::write(at("moved").join("epoch"), "nonsense").unwrap();
    assert!(is_fenced(&at("moved")).await);
}

#[tokio::test]
async fn several_databases_in_one_directory_do_not_fence_one_another() {
    let fixture = InstallationFixture::new();
    let data = fixture.data();
    let is_fenced = async |name: &str| {
        let options = SqliteOptions { epoch: Some(data.join("epoch")), ..SqliteOptions::new(data.join(name)) };
        let store = SqliteStore::open(options).unwrap();
        let fence = store.fence().await.unwrap();
        store.close().await;
        fence.is_some()
    };
    for name in ["messaging.db", "other.db", "messaging.db", "other.db", "messaging.db"] {
        assert!(!is_fenced(name).await, "{name}");
    }
    // A copy in the same directory: the one that starts later is fenced.
    fs::copy(data.join("messaging.db"), data.join("copy.db")).unwrap();
    assert!(!is_fenced("messaging.db").await);
    assert!(is_fenced("copy.db").await);
    assert!(!is_fenced("other.db").await);
}

#[tokio::test]
async fn a_database_that_is_put_back_after_its_server_stopped_is_fenced() {
    let fixture = InstallationFixture::new();
    let store = open(&fixture.data());
    // The state while the server works.
    let connection = rusqlite::Connection::open(fixture.data().join("messaging.db")).unwrap();
    let aside = fixture.root.path().join("aside.db");
    connection.execute("VACUUM INTO ?1", [aside.to_str().unwrap()]).unwrap();
    drop(connection);
    store.close().await;
    fs::remove_file(fixture.data().join("messaging.db")).unwrap();
    fs::rename(&aside, fixture.data().join("messaging.db")).unwrap();
    assert!(is_fenced(&fixture.data()).await);
}

#[tokio::test]
async fn a_version_without_numbers_and_a_new_database_are_not_fenced() {
    let fixture = InstallationFixture::new();
    // As earlier versions wrote it.
    SqliteStore::open(SqliteOptions::new(fixture.data().join("messaging.db"))).unwrap().close().await;
    assert!(!is_fenced(&fixture.data()).await);
    assert!(!is_fenced(&fixture.data()).await);
    // A new database in the same directory has nothing to send twice.
    for entry in names(&fixture.data()).iter().filter(|name| name.starts_with("messaging.db")) {
        fs::remove_file(fixture.data().join(entry)).unwrap();
    }
    assert!(!is_fenced(&fixture.data()).await);
}

#[tokio::test]
async fn a_start_that_ends_between_its_writes_fences_nothing() {
    let fixture = InstallationFixture::new();
    let stored = |name: &str| {
        let connection = rusqlite::Connection::open(fixture.data().join("messaging.db")).unwrap();
        let sql = "SELECT value FROM installation WHERE name = ?1";
        connection.query_row(sql, [name], |row| row.get::<_, String>(0)).unwrap().parse::<u64>().unwrap()
    };
    for file_is_written in [false, true] {
        assert!(!is_fenced(&fixture.data()).await);
        let next = stored("epoch") + 1;
        let connection = rusqlite::Connection::open(fixture.data().join("messaging.db")).unwrap();
        connection.execute("INSERT INTO installation VALUES ('epoch_raised', ?1)", [next.to_string()]).unwrap();
        drop(connection);
        if file_is_written {
            let file = fs::read_to_string(fixture.data().join("epoch")).unwrap();
            let (_, name) = file.trim_end().split_once(' ').unwrap();
            fs::write(fixture.data().join("epoch"), format!("{next} {name}\n")).unwrap();
        }
        assert!(!is_fenced(&fixture.data()).await, "{file_is_written}");
        let file = fs::read_to_string(fixture.data().join("epoch")).unwrap();
        assert_eq!(file.split(' ').next().unwrap().parse::<u64>().unwrap(), stored("epoch"));
    }
}
