//! The file of an import: its upload, and faults of the file as a whole.

use messaging_core::changes::{Changes, JobWrite, Write};
use messaging_core::ports::store::Priority;
use messaging_engine::jobs::JobData as _;
use messaging_engine::jobs::imports::ExpireImport;

use super::*;

#[track_caller]
fn refused(outcome: Result<Value, Error>) -> &'static str {
    outcome.expect_err("a refusal").code()
}

#[tokio::test]
async fn a_link_takes_the_announced_file_once() {
    let fixture = ImportFixture::new().await;
    let app = &fixture.bed.app;
    let text = b"email\na@example.com\n";
    let announced = fixture.announce(text, json!({})).await.body;
    for bad in ["", "nobody", &token(&announced)[1..], "AAAA"] {
        assert_eq!(refused(send(app, bad, text).await), "not_found", "{bad}");
    }
    let elsewhere = announced["import_id"].as_str().unwrap().replace("imp_", "imp_0");
    assert_eq!(refused(send(app, &elsewhere, text).await), "not_found");
    assert_eq!(refused(upload(app, &announced, b"email\na@example.com\nb").await), "payload_too_large");
    let uploading = app.receive_upload(&token(&announced), None).await.unwrap();
    assert_eq!(uploading.expect(text.len() as u64 + 1).unwrap_err().code(), "payload_too_large");
    assert!(uploading.expect(text.len() as u64).is_ok());
    drop(uploading);
    assert_eq!(refused(upload(app, &announced, b"email\na@example.com").await), "size_mismatch");
    assert_eq!(refused(upload(app, &announced, b"").await), "size_mismatch");
    assert_eq!(refused(upload(app, &announced, b"email\nb@example.com\n").await), "checksum_mismatch");
    assert_eq!(fixture.look(&announced).await["status"], "awaiting_upload", "the link still works");

    assert_eq!(upload(app, &announced, text).await.unwrap()["status"], "processing");
    assert_eq!(refused(upload(app, &announced, text).await), "link_expired");
    app.run_until_idle().await.unwrap();
    assert_eq!(refused(upload(app, &announced, text).await), "link_expired");
    assert_eq!(fixture.look(&announced).await["created"], 1);
}

/// As when the clock was ahead for the moment in which the job was claimed.
#[tokio::test]
async fn a_job_that_comes_before_its_time_leaves_a_link_as_it_is() {
    let fixture = ImportFixture::new().await;
    let text = format!("email\n{}", "a@example.com\n".repeat(20_000)).into_bytes();
    let announced = fixture.announce(&text, json!({})).await.body;
    let (app, store) = (&fixture.bed.app, &fixture.bed.store);
    let id = announced["import_id"].as_str().unwrap().parse().unwrap();
    let import = store.import(fixture.workspace, id).await.unwrap().unwrap().record;
    let early = ExpireImport::of(&import).enqueue(app.new_id(app.now()), app.now());
    store.commit(Changes::from_iter([Write::Job(JobWrite::Enqueue(early))]), Priority::Foreground).await.unwrap();
    let mut uploading = app.receive_upload(&token(&announced), None).await.unwrap();
    // Long enough to be on the disk already.
    uploading.add(&text[..270_000]).await.unwrap();
    app.run_until_idle().await.unwrap();
    uploading.add(&text[270_000..]).await.unwrap();
    uploading.finish().await.unwrap();
    app.run_until_idle().await.unwrap();
    assert_eq!(fixture.look(&announced).await["status"], "completed");
    assert_eq!(store.job_count().await.unwrap(), 2, "both wait for the hour to be over");
    fixture.bed.clock.advance(HOUR);
    app.run_until_idle().await.unwrap();
    assert_eq!(store.job_count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_link_works_for_an_hour() {
    let fixture = ImportFixture::new().await;
    let text = b"email\na@example.com\n";
    let (late, in_time) = (fixture.announce(text, json!({})).await.body, fixture.announce(text, json!({})).await.body);
    fixture.bed.clock.advance(HOUR - Duration::from_millis(1));
    assert_eq!(fixture.look(&late).await["status"], "awaiting_upload");
    let mut slow = fixture.bed.app.receive_upload(&token(&late), None).await.unwrap();
    // Long enough to be on the disk already.
    slow.add(&text[..5]).await.unwrap();
    upload(&fixture.bed.app, &in_time, text).await.unwrap();

    fixture.bed.clock.advance(Duration::from_millis(1));
    let seen = fixture.look(&late).await.body;
    assert_eq!((&seen["status"], &seen["finished_at"]), (&json!("expired"), &json!("2026-01-31T10:15:00.000Z")));
    assert_eq!((&seen["upload_url"], &seen["failure_reason"]), (&Value::Null, &Value::Null));
    slow.add(&text[5..]).await.unwrap();
    assert_eq!(slow.finish().await.unwrap_err().code(), "link_expired");
    assert_eq!(refused(upload(&fixture.bed.app, &in_time, text).await), "link_expired");
    fixture.bed.app.run_until_idle().await.unwrap();
    assert_eq!(fixture.look(&late).await.body, seen, "noted as it was seen");
    assert_eq!(fixture.look(&in_time).await["status"], "completed");
    assert_eq!(fixture.files(), [""; 0]);
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let fixture = ImportFixture::new().await;
    let text = [b"email\n".to_vec(), b"a@example.com\n".repeat(40_000)].concat();
    let announced = fixture.announce(&text, json!({})).await.body;
    let mut uploading = fixture.bed.app.receive_upload(&token(&announced), None).await.unwrap();
    uploading.add(&text[..300_000]).await.unwrap();
    assert_eq!(fixture.files().len(), 1);
    drop(uploading);
    while !fixture.files().is_empty() {
        tokio::task::yield_now().await;
    }
    // The link is free again. A file that a crash leaves is removed when the link expires.
    let mut uploading = fixture.bed.app.receive_upload(&token(&announced), None).await.unwrap();
    uploading.add(&text[..300_000]).await.unwrap();
    std::mem::forget(uploading);
    assert_eq!(fixture.files().len(), 1);
    fixture.bed.clock.advance(HOUR);
    fixture.bed.app.run_until_idle().await.unwrap();
    assert_eq!(fixture.files(), [""; 0]);
    assert_eq!(fixture.look(&announced).await["status"], "expired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_who_send_at_once_one_counts() {
    let fixture = ImportFixture::new().await;
    let text: Vec<u8> = [b"email\n".to_vec()]
        .into_iter()
        .chain((0..30_000).map(|n| format!("user-{n:08}@example.com\n").into_bytes()))
        .flatten()
        .collect();
    for _ in 0..3 {
        let announced = fixture.announce(&text, json!({})).await.body;
        let send = || {
            let (app, announced, text) = (fixture.bed.app.clone(), announced.clone(), text.clone());
            tokio::spawn(async move { upload(&app, &announced, &text).await })
        };
        let senders: Vec<_> = (0..4).map(|_| send()).collect();
        let mut accepted = 0;
        for sender in senders {
            match sender.await.unwrap() {
                Ok(import) => {
                    assert_eq!(import["status"], "processing");
                    accepted += 1;
                }
                // `invalid_state` during the other upload, `link_expired` after it.
                Err(error) => assert!(["invalid_state", "link_expired"].contains(&error.code()), "{error}"),
            }
        }
        assert_eq!(accepted, 1);
        fixture.bed.app.run_until_idle().await.unwrap();
        let import = fixture.look(&announced).await;
        assert_eq!((&import["status"], &import["total_rows"]), (&json!("completed"), &json!(30_000)));
        assert_eq!(import["failed"], 0);
    }
    // The losers' files go in the background.
    while !fixture.files().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_changes_nothing() {
    let fixture = ImportFixture::new().await;
    let many = || {
        let rows = (0..1_000_001).flat_map(|n: u32| format!("{n}\n").into_bytes());
        b"external_id\n".iter().copied().chain(rows).collect::<Vec<u8>>()
    };
    let open = [b"email,external_id\na@example.com,1\nb@example.com,\"".to_vec(), vec![b'x'; (1 << 20) + 9]].concat();
    for (text, words) in [
        (b"\xFF\xFEe\0m\0a\0i\0l\0".to_vec(), "not UTF-8"),
        (b"email\na@example.com\nb\xFFc@example.com\n".to_vec(), "not UTF-8"),
        (b"\n\n".to_vec(), "no header"),
        (b"\xEF\xBB\xBF".to_vec(), "no header"),
        (b"first,last\nAnn,Doe\n".to_vec(), "no column"),
        (b"tags,locale\nvip,en\n".to_vec(), "no column"),
        (many(), "more than 1000000 rows"),
        (open, "row 3 is longer"),
        (vec![b'"'; (1 << 20) + 9], "row 1 is longer"),
    ] {
        let import = fixture.import(&text, json!({})).await;
        assert_eq!(import["status"], "failed", "{words}");
        let reason = import["failure_reason"].as_str().unwrap();
        assert!(reason.contains(words), "{reason}");
        assert_eq!(import["finished_at"], "2026-01-31T09:15:00.000Z");
        assert_eq!((&import["created"], &import["failed"]), (&json!(0), &json!(0)));
        assert_eq!(fixture.files(), [""; 0]);
    }
    assert_eq!(fixture.all().await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_file_that_got_lost_is_a_failure() {
    let fixture = ImportFixture::new().await;
    let text = b"email\na@example.com\n";
    let announced = fixture.announce(text, json!({})).await.body;
    upload(&fixture.bed.app, &announced, text).await.unwrap();
    let [name] = &fixture.files()[..] else { panic!("{:?}", fixture.files()) };
    std::fs::remove_file(fixture.bed.directory.path().join("uploads").join(name)).unwrap();
    fixture.bed.app.run_until_idle().await.unwrap();
    let import = fixture.look(&announced).await;
    assert_eq!(import["status"], "failed");
    assert!(import["failure_reason"].as_str().unwrap().contains("gone"));
}

#[tokio::test]
async fn a_file_of_a_header_alone_is_done_at_once() {
    let fixture = ImportFixture::new().await;
    for text in [&b"email"[..], b"email\n", b"email;phone\r\n\r\n"] {
        let import = fixture.import(text, json!({})).await;
        assert_eq!((&import["status"], &import["total_rows"]), (&json!("completed"), &json!(0)));
    }
    let most: Vec<u8> =
        b"external_id\n".iter().copied().chain((0..3).flat_map(|n: u32| format!("{n}\n").into_bytes())).collect();
    assert_eq!(fixture.import(&most, json!({})).await["total_rows"], 3);
}
