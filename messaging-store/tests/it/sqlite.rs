//! Behaviour of SQLite alone: files, locks, schemas, restarts, a full queue.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use messaging_conformance::sample::{
    at, bare_message, capture, claim, content, enqueue, finish, id, id_at, insert, job, message, monotonic, next_due,
    reply, user,
};
use messaging_conformance::{all_pages, commit, first, lanes, put, refuse_claim};
use messaging_core::changes::{Expect, JobWrite, NewJob, RedactMessage, Write};
use messaging_core::domain::message::MessageFilter;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, WorkspaceId};
use messaging_core::ports::settle_blobs;
use messaging_core::ports::store::jobs::Claim;
use messaging_core::ports::store::{
    Accounts as _, CommitError, Jobs as _, Messages as _, Priority, Replies as _, Sandbox as _, Store as _, StoreError,
    Topic,
};
use messaging_store::{OpenError, SqliteOptions, SqliteStore};
use rusqlite::Connection;

fn options(directory: &Path) -> SqliteOptions {
    SqliteOptions::new(directory.join("data").join("messaging.db"))
}

fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(options(directory)).unwrap()
}

fn beside(directory: &Path) -> SqliteOptions {
    SqliteOptions { exclusive: false, ..options(directory) }
}

fn raw(directory: &Path) -> Connection {
    Connection::open(options(directory).path).unwrap()
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let place = tempfile::tempdir().unwrap();
    drop(open(place.path()));
    raw(place.path())
        .execute(
            "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
             VALUES (9007, 'later', '2030-01-01T00:00:00Z', '1')",
            [],
        )
        .unwrap();
    for options in [options(place.path()), beside(place.path())] {
        let error = SqliteStore::open(options).unwrap_err();
        assert!(matches!(error, OpenError::Newer { found: 9007, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("schema 9007") && text.contains("install the newer program"), "{text}");
    }
}

/// Before the first release there were many migrations, which are one now.
#[test]
fn a_database_from_before_the_first_release_is_refused_and_left_alone() {
    let history = "CREATE TABLE users (id BLOB);
        CREATE TABLE refinery_schema_history (version INT4 PRIMARY KEY, name TEXT, applied_on TEXT, checksum TEXT);
        INSERT INTO refinery_schema_history VALUES (1, 'start', '2026-01-01T00:00:00Z', '3757305635776979695')";
    for later in ["", "; INSERT INTO refinery_schema_history VALUES (77, 'later', '2026-01-01T00:00:00Z', '1')"] {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("data")).unwrap();
        raw(place.path()).execute_batch(&format!("{history}{later}")).unwrap();
        for options in [options(place.path()), beside(place.path())] {
            let error = SqliteStore::open(options).unwrap_err();
            assert!(matches!(error, OpenError::BeforeFirstRelease), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("before 0.1.0") && text.contains("start with an empty database"), "{text}");
        }
        let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table'";
        assert_eq!(raw(place.path()).query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    }
}

#[test]
fn a_second_server_is_refused_until_the_first_is_gone() {
    let place = tempfile::tempdir().unwrap();
    let first = open(place.path());
    let error = SqliteStore::open(options(place.path())).unwrap_err();
    assert!(matches!(error, OpenError::InUse), "{error:?}");
    assert!(error.to_string().starts_with("another messaging server works on this database"), "{error}");
    drop(first);
    open(place.path());
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let options = options(place.path());
    std::fs::create_dir_all(options.path.parent().unwrap()).unwrap();
    std::fs::write(&options.path, "Dear diary, ".repeat(1_000)).unwrap();
    let error = SqliteStore::open(options.clone()).unwrap_err();
    assert!(matches!(error, OpenError::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("messaging restore"), "{error}");
    assert!(std::fs::read_to_string(&options.path).unwrap().starts_with("Dear diary"));
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    put(&store, [insert(&message(id()))]).await;
    store.blobs().put_blob(blob_of(id(), id()), Bytes::from_static(b"bytes")).await.unwrap();
    let mut unseen = vec![place.path().join("data")];
    let mut seen = 0;
    while let Some(path) = unseen.pop() {
        let metadata = std::fs::metadata(&path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o777, expected, "{}", path.display());
        if metadata.is_dir() {
            unseen.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    // Directory, database, log, index of the log, lock, attachments, their directory, one file.
    assert_eq!(seen, 8);
}

#[tokio::test]
async fn reopening_finds_everything() {
    let place = tempfile::tempdir().unwrap();
    let (user, message, blob): (_, _, BlobId) = (user(), message(id()), id());
    let large = capture(&message, vec![b'x'; 200_000]);
    let store = open(place.path());
    let file = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: blob };
    store.blobs().put_blob(file, Bytes::from_static(b"bytes")).await.unwrap();
    let writes = [
        Write::put(user.clone(), Expect::Absent),
        insert(&message),
        Write::KeepBlob(file),
        enqueue("lane", 0),
        enqueue("lane", 7_000),
        Write::Remember(Box::new(reply("key", 0, 100))),
        Write::PutCapture(Box::new(large.clone())),
    ];
    put(&store, writes).await;
    store.close().await;

    let store = open(place.path());
    assert_eq!(store.user(user.id).await.unwrap().unwrap().record, user);
    assert_eq!(store.message(message.workspace_id, message.id).await.unwrap().as_ref(), Some(&message));
    assert_eq!(store.blobs().blob(message.workspace_id, blob).await.unwrap(), Some(Bytes::from_static(b"bytes")));
    assert_eq!(store.capture(message.workspace_id, message.id).await.unwrap(), Some(large));
    assert_eq!(store.reply(&reply("key", 0, 0).key, at(0)).await.unwrap(), Some(reply("key", 0, 100)));
    assert_eq!(next_due(&store).await, Some(at(0)));
}

#[tokio::test]
async fn a_restart_ends_all_leases_and_holds() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    put(&store, [enqueue("leased", 0), enqueue("leased", 5_000), enqueue("held", 3), enqueue("later", 9_000)]).await;
    let holding = Claim { hold: vec![("held".into(), monotonic(50_000))], ..claim(4) };
    let claimed = store.claim(holding).await.unwrap();
    assert_eq!(claimed.len(), 1);
    drop(store);

    let store = open(place.path());
    assert_eq!(next_due(&store).await, Some(at(0)));
    refuse_claim(&store, finish(&claimed)).await;
    let again = store.claim(claim(4)).await.unwrap();
    assert_eq!(again.len(), 2);
    refuse_claim(&store, finish(&claimed)).await;
    put(&store, finish(&again)).await;
    assert_eq!(next_due(&store).await, Some(at(5_000)));
}

#[tokio::test]
async fn a_restart_finds_what_a_wrong_clock_dated() {
    const TEN_YEARS: i64 = 10 * 365 * 86_400_000;
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    let wrong = NewJob { id: id_at(TEN_YEARS), ..job("lane", TEN_YEARS) };
    put(&store, [Write::Job(JobWrite::Enqueue(wrong)), enqueue("lane", 700)]).await;
    drop(store);

    let store = open(place.path());
    assert_eq!(store.claim(claim(100)).await.unwrap().len(), 1);
    assert_eq!(next_due(&store).await, Some(at(700)));
}

/// A power cut leaves exactly what is on the disk at the moment a commit returns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_returned_commit_is_in_the_files() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    let workspace: WorkspaceId = id();
    for round in 0..5 {
        let message = bare_message(workspace);
        put(&store, [insert(&message), enqueue("lane", 0)]).await;
        let copy = tempfile::tempdir().unwrap();
        let (from, to) = (options(place.path()).path, options(copy.path()).path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        for suffix in ["", "-wal"] {
            std::fs::copy(with_suffix(&from, suffix), with_suffix(&to, suffix)).unwrap();
        }
        let survivor = open(copy.path());
        assert_eq!(survivor.message(workspace, message.id).await.unwrap().as_ref(), Some(&message));
        assert_eq!(survivor.claim(claim(0)).await.unwrap().len(), round + 1);
    }
}

/// Erased personal data does not remain in the log either, behind the place where it starts over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_erased_is_in_no_file_soon() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    let message = message(id());
    let workspace = message.workspace_id;
    let secret = "grete.hermann.was.here";
    let written = format!("{{\"subject\":\"{secret}\",\"text\":\"{}\"}}", "x".repeat(20_000));
    put(&store, [Write::InsertMessage(Box::new(message.clone()), content(&written))]).await;
    let files = ["", "-wal"].map(|suffix| with_suffix(&options(place.path()).path, suffix));
    let holds = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
    };
    assert!(files.iter().any(holds), "it was never there");

    let redaction = RedactMessage {
        workspace_id: workspace,
        message_id: message.id,
        revision: 1,
        status: message.status,
        updated_at: at(70),
        tags: Vec::new(),
        events: Vec::new(),
    };
    put(&store, [Write::RedactMessage(Box::new(redaction))]).await;
    let began = Instant::now();
    while files.iter().any(holds) {
        assert!(began.elapsed() < Duration::from_secs(20), "it stays in a file");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (left, content) = store.message_with_content(workspace, message.id).await.unwrap().unwrap();
    assert!(left.is_redacted() && content.is_none());
}

fn with_suffix(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_answers_unavailable_and_recovers() {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(SqliteOptions { queue_capacity: 4, ..options(place.path()) }).unwrap());
    // Another program's transaction keeps the writer waiting.
    let other = raw(place.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Vec::new();
    let mut refused = 0;
    // At most one batch is being written and one more is in the queue.
    for _ in 0..20 {
        let mut attempt = Box::pin({
            let store = Arc::clone(&store);
            async move { commit(&*store, [insert(&message(id()))]).await }
        });
        match poll_once(&mut attempt).await {
            Some(outcome) => {
                assert!(matches!(outcome, Err(CommitError::Store(StoreError::Unavailable))), "{outcome:?}");
                refused += 1;
            }
            None => waiting.push(attempt),
        }
    }
    assert!(refused >= 10, "{refused} of 20 were refused");
    other.execute_batch("COMMIT").unwrap();
    for attempt in waiting {
        attempt.await.unwrap();
    }
    put(&*store, [insert(&message(id()))]).await;
}

/// Polls a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn the_writer_survives_a_commit_that_the_database_refuses() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    raw(place.path())
        .execute_batch(
            "CREATE TRIGGER broken BEFORE INSERT ON users BEGIN SELECT json('no json'); END;
             CREATE TABLE kept (n INTEGER);",
        )
        .unwrap();
    let message = message(id());
    let outcome = commit(&store, [insert(&message), Write::put(user(), Expect::Absent)]).await;
    assert!(matches!(outcome, Err(CommitError::Store(StoreError::Failed(_)))), "{outcome:?}");
    assert_eq!(store.message(message.workspace_id, message.id).await.unwrap(), None);
    put(&store, [insert(&message)]).await;
}

#[tokio::test]
async fn the_command_line_reads_and_writes_beside_a_server() {
    let place = tempfile::tempdir().unwrap();
    let server = open(place.path());
    put(&server, [enqueue("lane", 5)]).await;
    let claimed = server.claim(claim(5)).await.unwrap();

    let visitor = SqliteStore::open(beside(place.path())).unwrap();
    let user = user();
    put(&visitor, [Write::put(user.clone(), Expect::Absent), enqueue("lane", 1), enqueue("new", 2)]).await;
    assert!(matches!(visitor.claim(claim(10)).await, Err(StoreError::Failed(_))));
    refuse_claim(&visitor, finish(&claimed)).await;
    visitor.close().await;

    assert_eq!(server.user(user.id).await.unwrap().unwrap().record, user);
    assert_eq!(next_due(&server).await, Some(at(1)));
    assert_eq!(server.claim(claim(5)).await.unwrap().len(), 2);
    put(&server, finish(&claimed)).await;
}

#[tokio::test]
async fn only_the_server_works_on_lanes() {
    let place = tempfile::tempdir().unwrap();
    let server = open(place.path());
    let visitor = SqliteStore::open(beside(place.path())).unwrap();
    lanes::a_lane_is_claimed_by_one_process(&server, &visitor).await;
}

#[tokio::test]
async fn a_server_hears_of_what_others_commit() {
    let place = tempfile::tempdir().unwrap();
    let server = open(place.path());
    let visitor = SqliteStore::open(beside(place.path())).unwrap();
    let mut news = server.news();
    let mut since = *news.borrow_and_update();
    // News caused by opening the stores is over once the server's own commits are the last.
    for (store, is_other) in [(&visitor, true), (&server, false), (&visitor, true)] {
        put(store, [Write::put(user(), Expect::Absent)]).await;
        let heard = async {
            loop {
                let now = *news.borrow_and_update();
                let told = now.since(&since);
                if told.contains(if is_other { Topic::Work } else { Topic::Credentials }) {
                    since = now;
                    return told;
                }
                news.changed().await.expect("the store is open");
            }
        };
        let told = tokio::time::timeout(Duration::from_mins(1), heard).await.expect("it hears");
        assert!(told.contains(Topic::Credentials));
    }
}

#[tokio::test]
async fn a_big_blob_comes_back_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let (workspace, blob): (WorkspaceId, BlobId) = (id(), id());
    let bytes = Bytes::from((0..26_000_000_u32).map(|n| n.to_le_bytes()[1]).collect::<Vec<u8>>());
    let store = open(place.path());
    store.blobs().put_blob(blob_of(workspace, blob), bytes.clone()).await.unwrap();
    assert!(std::fs::metadata(options(place.path()).path).unwrap().len() < 1_000_000);
    drop(store);
    let store = open(place.path());
    assert_eq!(store.blobs().blob(workspace, blob).await.unwrap(), Some(bytes));
    store.blobs().remove_blobs(&[(workspace, blob)]).await.unwrap();
    let attachments = place.path().join("data").join("attachments");
    let left: Vec<_> = std::fs::read_dir(&attachments).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [attachments.join("pending")]);
    assert_eq!(std::fs::read_dir(&left[0]).unwrap().count(), 0);
}

fn blob_of(workspace_id: WorkspaceId, blob: BlobId) -> MessageBlob {
    MessageBlob { workspace_id, message_id: id(), id: blob }
}

/// A kill between the commit and the move of the file leaves this: the sweep moves the file, and until then it can be
/// read.
#[tokio::test]
async fn a_file_that_a_kill_kept_from_its_place_is_read_and_put_there() {
    let place = tempfile::tempdir().unwrap();
    let message = bare_message(id());
    let blob = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: id_at(0) };
    let store = open(place.path());
    store.blobs().put_blob(blob, Bytes::from_static(b"bytes")).await.unwrap();
    let attachments = place.path().join("data").join("attachments");
    let pending = std::fs::read_dir(attachments.join("pending")).unwrap().next().unwrap().unwrap().path();
    let aside = place.path().join("aside");
    std::fs::hard_link(&pending, &aside).unwrap();
    put(&store, [insert(&message), Write::KeepBlob(blob)]).await;
    store.blobs().keep_blobs(&[blob]).await.unwrap();
    drop(store);
    let kept = std::fs::read_dir(&attachments).unwrap().map(|entry| entry.unwrap().path());
    std::fs::remove_dir_all(kept.into_iter().find(|path| !path.ends_with("pending")).unwrap()).unwrap();
    std::fs::rename(aside, pending).unwrap();

    let store = open(place.path());
    let read = async || store.blobs().blob(blob.workspace_id, blob.id).await.unwrap();
    assert_eq!(read().await, Some(Bytes::from_static(b"bytes")));
    assert_eq!(store.blobs().blobs_before(at(1), 10).await.unwrap(), []);
    assert_eq!(settle_blobs(&store, &*store.blobs(), at(1), 10).await.unwrap(), 1);
    assert_eq!(read().await, Some(Bytes::from_static(b"bytes")));
    assert_eq!(store.blobs().blobs_before(at(1), 10).await.unwrap(), [(blob.workspace_id, blob.id)]);
}

#[tokio::test]
async fn a_scan_that_finds_little_goes_on_in_the_next_slice() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    let workspace = id();
    let mut rare = bare_message(workspace);
    rare.tags = vec!["rare".to_owned()];
    put(&store, [insert(&rare)]).await;
    // More rows than one call reads.
    let common = (0..25_000).map(|_| Write::InsertMessage(Box::new(bare_message(workspace)), content("{}")));
    store.commit(common.collect(), Priority::Background).await.unwrap();
    let filter = MessageFilter { tag: Some("rare".to_owned()), ..MessageFilter::default() };
    let slice = store.messages(workspace, &filter, first(10)).await.unwrap();
    assert!(slice.items.is_empty() && slice.next.is_some());
    let found = all_pages(10, async |page| store.messages(workspace, &filter, page).await, async || ()).await;
    assert_eq!(found, [rare]);
}
