//! Attachments in a bucket, their rows in the database.
//!
//! With `S3_ENDPOINT` the cases that every blob store must pass run on the S3 server there instead of on our own, in the
//! bucket `messaging-tests`, with the key of `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.

use bytes::Bytes;
use messaging_conformance::OpenedPort;
use messaging_conformance::cluster::Database;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::{BlobStore, Store as _};
use messaging_core::time::Timestamp;
use messaging_store::{Bucket, BucketUrl, PostgresStore};
use tokio::task::JoinSet;

use super::bucket_server::{BucketServer, Fault};
use super::connect;

fn bucket(server: &BucketServer, url: &str) -> Bucket {
    Bucket::new(BucketUrl::parse(url).unwrap(), server.variables()).unwrap()
}

/// Opens a database whose attachments go there.
async fn open_with(database: &Database, bucket: Option<Bucket>) -> PostgresStore {
    let mut options = database.options();
    options.bucket = bucket;
    PostgresStore::open(options).await.unwrap()
}

async fn open() -> Option<OpenedPort<dyn BlobStore>> {
    let database = Database::create().await?;
    if let Ok(endpoint) = std::env::var("S3_ENDPOINT") {
        let mut variables: Vec<_> = std::env::vars().collect();
        variables.extend(
            [("AWS_ENDPOINT_URL", endpoint), ("AWS_ALLOW_HTTP", "true".to_owned())]
                .map(|(name, value)| (name.to_owned(), value)),
        );
        let bucket = Bucket::new(BucketUrl::parse("s3://messaging-tests/of a test").unwrap(), variables).unwrap();
        bucket.check().await.unwrap();
        let store = open_with(&database, Some(bucket)).await;
        return Some(OpenedPort { port: store.blobs(), keep: Box::new((store, database)) });
    }
    let server = BucketServer::start().await;
    let store = open_with(&database, Some(bucket(&server, "s3://files/prod"))).await;
    Some(OpenedPort { port: store.blobs(), keep: Box::new((store, database, server)) })
}

messaging_conformance::blob_conformance_tests!(super::open);

/// A database with a bucket.
struct Opened {
    database: Database,
    server: BucketServer,
    store: PostgresStore,
}

impl Opened {
    async fn new() -> Option<Self> {
        let database = Database::create().await?;
        let server = BucketServer::start().await;
        let store = open_with(&database, Some(bucket(&server, "s3://files/prod"))).await;
        Some(Self { database, server, store })
    }

    async fn rows(&self) -> i64 {
        connect(&self.database).await.query_one("SELECT count(*) FROM blobs", &[]).await.unwrap().get(0)
    }
}

fn blob() -> MessageBlob {
    use messaging_conformance::sample::id;
    MessageBlob { workspace_id: id(), message_id: id(), id: id() }
}

const BYTES: Bytes = Bytes::from_static(b"%PDF");

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_in_the_bucket_alone_and_go_with_their_row() {
    let Some(Opened { database, server, store }) = Opened::new().await else { return };
    let (blobs, blob) = (store.blobs(), blob());
    blobs.put_blob(blob, BYTES).await.unwrap();
    assert_eq!(server.objects(), [format!("/files/prod/{}/{}", blob.workspace_id, blob.id)]);
    let client = connect(&database).await;
    let pieces: i64 = client.query_one("SELECT count(*) FROM blob_pieces", &[]).await.unwrap().get(0);
    assert_eq!(pieces, 0);
    blobs.keep_blobs(&[blob]).await.unwrap();
    blobs.remove_blobs(&[(blob.workspace_id, blob.id)]).await.unwrap();
    assert_eq!(server.objects(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_in_the_database_stays_there_and_can_be_read() {
    let Some(database) = Database::create().await else { return };
    let (old, new) = (blob(), blob());
    let store = open_with(&database, None).await;
    store.blobs().put_blob(old, BYTES).await.unwrap();
    store.close().await;
    let server = BucketServer::start().await;
    let store = open_with(&database, Some(bucket(&server, "s3://files"))).await;
    store.blobs().put_blob(new, BYTES).await.unwrap();
    for blob in [old, new] {
        assert_eq!(store.blobs().blob(blob.workspace_id, blob.id).await.unwrap(), Some(BYTES));
    }
    store.close().await;

    // Whoever does not know the bucket is told which, and removes nothing.
    for other in [None, Some(bucket(&server, "s3://files/other"))] {
        let store = open_with(&database, other).await;
        let blobs = store.blobs();
        assert_eq!(blobs.blob(old.workspace_id, old.id).await.unwrap(), Some(BYTES));
        let refusals = [
            blobs.blob(new.workspace_id, new.id).await.map(drop).unwrap_err(),
            blobs.remove_blobs(&[(new.workspace_id, new.id)]).await.unwrap_err(),
            blobs.discard_blob(new).await.unwrap_err(),
        ];
        for refusal in refusals {
            let StoreError::Failed(cause) = refusal else { panic!("{refusal:?}") };
            assert!(cause.to_string().contains("--blobs s3://files"), "{cause}");
        }
        store.close().await;
    }
    let store = open_with(&database, Some(bucket(&server, "s3://files"))).await;
    assert_eq!(store.blobs().blob(new.workspace_id, new.id).await.unwrap(), Some(BYTES));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_of_trouble_is_nobodys_business() {
    let Some(opened) = Opened::new().await else { return };
    let (blobs, blob) = (opened.store.blobs(), blob());
    let trouble = [Fault::Status(503), Fault::AnswerLost];
    opened.server.fail(trouble);
    blobs.put_blob(blob, BYTES).await.unwrap();
    assert_eq!(opened.server.work(), 0);
    opened.server.fail(trouble);
    assert_eq!(blobs.blob(blob.workspace_id, blob.id).await.unwrap(), Some(BYTES));
    opened.server.fail(trouble);
    blobs.discard_blob(blob).await.unwrap();
    assert_eq!((opened.server.work(), opened.server.objects().len(), opened.rows().await), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_stays_away_leaves_nothing_of_what_was_refused() {
    let Some(opened) = Opened::new().await else { return };
    let (blobs, blob) = (opened.store.blobs(), blob());
    // Four times for the object; that it is removed works.
    opened.server.fail([Fault::Status(500); 4]);
    let refusal = blobs.put_blob(blob, BYTES).await.unwrap_err();
    assert!(matches!(refusal, StoreError::Unavailable), "{refusal:?}");
    assert_eq!((opened.server.objects().len(), opened.rows().await), (0, 0));

    // Carried out, but never answered, and not to be removed either: the row says so, and is settled later.
    opened.server.fail([Fault::AnswerLost; 4]);
    opened.server.fail([Fault::Status(500); 4]);
    blobs.put_blob(blob, BYTES).await.unwrap_err();
    assert_eq!((opened.server.objects().len(), opened.rows().await), (1, 1));
    let far = Timestamp::from_millis(i64::MAX / 2);
    assert_eq!(blobs.pending_blobs(far, 10).await.unwrap(), [blob]);
    messaging_core::ports::settle_blobs(&opened.store, &*blobs, far, 10).await.unwrap();
    assert_eq!((opened.server.objects().len(), opened.rows().await), (0, 0));

    // A row is not removed before its object.
    blobs.put_blob(blob, BYTES).await.unwrap();
    blobs.keep_blobs(&[blob]).await.unwrap();
    opened.server.fail([Fault::Status(500); 4]);
    blobs.remove_blobs(&[(blob.workspace_id, blob.id)]).await.unwrap_err();
    assert_eq!((opened.server.objects().len(), opened.rows().await), (1, 1));
    blobs.remove_blobs(&[(blob.workspace_id, blob.id)]).await.unwrap();
    assert_eq!((opened.server.objects().len(), opened.rows().await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_than_were_written_are_not_handed_out() {
    let Some(opened) = Opened::new().await else { return };
    let (blobs, blob) = (opened.store.blobs(), blob());
    blobs.put_blob(blob, BYTES).await.unwrap();
    opened.server.fail([Fault::OtherBytes]);
    let refusal = blobs.blob(blob.workspace_id, blob.id).await.unwrap_err();
    assert!(matches!(refusal, StoreError::Failed(_)), "{refusal:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_tried_before_it_is_needed() {
    let server = BucketServer::start().await;
    let good = bucket(&server, "s3://files/prod");
    good.check().await.unwrap();
    assert_eq!(server.objects(), [""; 0]);
    let mut variables = server.variables();
    variables[0].1 = "AKIAOTHER".to_owned();
    let bad = Bucket::new(BucketUrl::parse("s3://files/prod").unwrap(), variables).unwrap();
    let refusal = bad.check().await.unwrap_err();
    assert_eq!(refusal.to_string(), "the bucket s3://files/prod cannot be written to");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_at_the_same_time_try_a_bucket_each_for_itself() {
    let server = BucketServer::start().await;
    let mut checks = JoinSet::new();
    for _ in 0..20 {
        let bucket = bucket(&server, "s3://files/prod");
        checks.spawn(async move { bucket.check().await });
    }
    for checked in checks.join_all().await {
        checked.unwrap();
    }
    assert_eq!(server.objects(), [""; 0]);
}
