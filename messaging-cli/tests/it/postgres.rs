//! Messages of the program to beginners with PostgreSQL and several nodes.

#[path = "../../../messaging-store/tests/it/postgres/bucket_server.rs"]
#[allow(dead_code, reason = "the store's tests need more of it")]
mod bucket_server;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use messaging_conformance::cluster::Database;
use serde_json::{Value, json};

use self::bucket_server::BucketServer;
use crate::support::{Server, allowed, directory, program, run, wait_for};

/// A server that cannot be reached: the command lines are refused before anything connects.
const NOBODY: &str = "postgres://messaging@127.0.0.1:1/messaging";

#[test]
fn what_makes_no_sense_is_2_and_says_what_does() {
    let directory = directory();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let file = directory.path().join("backup.tar");
    let file = file.to_str().unwrap();
    let links = ["--public-url", "https://mail.example.org"];
    let on = |url: &'static str| ["--database", url];
    for (line, words) in [
        ([&["serve"], &on(NOBODY)[..]].concat(), &["--public-url"][..]),
        ([&["worker"], &on(NOBODY)[..]].concat(), &["--public-url"]),
        ([&["serve"], &on("postgres:///messaging")[..], &links].concat(), &["names no host"]),
        ([&["serve"], &on("postgres://db/messaging?sslmode=maybe")[..], &links].concat(), &["sslmode maybe"]),
        ([&["serve"], &on("mysql://db/messaging")[..], &links].concat(), &["postgres://"]),
        ([&["worker"], &on("postgres://db:port/messaging")[..], &links].concat(), &["postgres://USER"]),
        ([&["worker"][..], &links].concat(), &["postgres://", "messaging serve"]),
        ([&["serve", "--blobs", "s3://files"][..], &links].concat(), &["--blobs is for a PostgreSQL database"]),
        ([&["serve", "--blobs", "files"], &on(NOBODY)[..], &links].concat(), &["s3://BUCKET/PREFIX"]),
        ([&["backup", file], &on(NOBODY)[..]].concat(), &["pg_dump"]),
    ] {
        let ran = run(line.iter().copied().chain(["--data", data])).expect(2);
        for word in words {
            assert!(ran.stderr.contains(word), "{line:?}: {ran:?}");
        }
        assert_eq!(ran.stdout, "", "{line:?}");
    }
    assert!(!fs::exists(data).unwrap() && !fs::exists(file).unwrap(), "nothing was made");
}

#[test]
fn a_server_that_waits_for_its_database_stops_at_once() {
    let directory = directory();
    for (command, at) in [("serve", "--listen"), ("worker", "--metrics-listen")] {
        let mut child = program()
            .args([
                command,
                at,
                "127.0.0.1:0",
                "--database",
                NOBODY,
                "--public-url",
                "http://links.nodes.test",
                "--data",
            ])
            .arg(directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.contains("the database does not answer")), "{command}");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
        let asked = Instant::now();
        assert_eq!(wait_for(|| child.try_wait().unwrap()).code(), Some(0), "{command}");
        assert!(asked.elapsed() < allowed(Duration::from_secs(10)), "{command} took {:?}", asked.elapsed());
    }
}

/// Number of processes that have joined the installation and not left it.
fn terms(runtime: &tokio::runtime::Runtime, database: &Database) -> i64 {
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.query_one("SELECT count(*) FROM nodes", &[]).await.unwrap().get(0)
    })
}

#[test]
fn another_key_than_that_of_the_database_is_3() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runtime.block_on(Database::create()) else { return };
    let (first, second) = (directory(), directory());
    let more = ["--database", &database.url, "--public-url", "http://links.nodes.test"];
    let server = Server::start("serve", first.path(), &more);
    let (mine, other) = (first.path().join("secret.key"), second.path().join("secret.key"));
    for command in ["serve", "worker"] {
        let line = [command, "--listen", "127.0.0.1:0", "--data", second.path().to_str().unwrap()];
        // No key: the database has one already, so none is made.
        let said = run(line.iter().chain(&more)).expect(3).stderr;
        assert!(said.contains("secret.key is missing") && said.contains("--secret-key-file"), "{said}");
        assert!(!other.exists());
        // Another key.
        fs::write(&other, [7; 32]).unwrap();
        let said = run(line.iter().chain(&more)).expect(3).stderr;
        assert!(said.contains("does not fit the database") && !said.contains("panicked"), "{said}");
        fs::remove_file(&other).unwrap();
        // The refused process has left: nothing waits until it counts as dead.
        assert_eq!(terms(&runtime, &database), 1, "{command}");
    }
    // The key of the first.
    let second =
        Server::start("serve", second.path(), &[&more[..], &["--secret-key-file", mine.to_str().unwrap()]].concat());
    assert_eq!(second.stop(), Some(0));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_key_is_rotated_once_every_node_holds_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runtime.block_on(Database::create()) else { return };
    let (first, second, third) = (directory(), directory(), directory());
    let more = ["--database", &database.url, "--public-url", "http://links.nodes.test"];
    let node = |data: &tempfile::TempDir, name: &str| {
        Server::start("serve", data.path(), &[&more[..], &["--hostname", name]].concat())
    };
    let one = node(&first, "one.nodes.test");
    let key_of = |data: &tempfile::TempDir| data.path().join("secret.key");
    for other in [&second, &third] {
        fs::copy(key_of(&first), key_of(other)).unwrap();
    }
    let two = node(&second, "two.nodes.test");
    let data = first.path().to_str().unwrap();
    let rotate = ["admin", "rotate-secret-key", "--json", "--data", data, "--database", &database.url];

    // The other node has its own copy of the key file.
    let said = run(rotate).expect(1).stderr;
    assert!(
        said.contains("two.nodes.test") && !said.contains("one.nodes.test") && said.contains("copy the file"),
        "{said}"
    );
    let ring = fs::read(key_of(&first)).unwrap();
    assert_eq!(ring.len(), 64);
    fs::copy(key_of(&first), key_of(&second)).unwrap();
    let done = run(rotate).expect(0).json();
    assert_eq!((&done["resumed"], &done["keys_in_file"]), (&json!(true), &json!(2)), "{done}");
    assert_eq!(fs::read(key_of(&first)).unwrap(), ring, "no other key was made");

    // A node with only the old key is refused.
    let line = ["serve", "--listen", "127.0.0.1:0", "--data", third.path().to_str().unwrap()];
    let said = run(line.iter().chain(&more)).expect(3).stderr;
    assert!(said.contains("does not fit the database"), "{said}");
    fs::copy(key_of(&first), key_of(&third)).unwrap();
    assert_eq!(node(&third, "three.nodes.test").stop(), Some(0));
    assert_eq!((one.stop(), two.stop()), (Some(0), Some(0)));
}

#[test]
fn attachments_are_in_the_bucket_that_is_named() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runtime.block_on(Database::create()) else { return };
    let (bucket, data) = (runtime.block_on(BucketServer::start()), directory());
    let more = ["--database", &database.url, "--public-url", "http://links.nodes.test", "--blobs", "s3://files/prod"];
    let variables = bucket.variables();
    let environment: Vec<_> = variables.iter().map(|(name, value)| (&**name, OsStr::new(value))).collect();
    let server = Server::start_in("dev", data.path(), &more, &environment);
    let key = server.dev_json()["api_key"].as_str().unwrap().to_owned();
    let mail = json!({"channel": "email", "to": "delivered@simulator.invalid", "subject": "Invoice", "text": "Thanks",
        "attachments": [{"filename": "invoice.txt", "content_b64": "SW52b2ljZSAxNw=="}]});
    let (status, accepted) = server.request("POST", "/v1/messages", &key, &mail);
    assert_eq!(status, 202, "{accepted}");
    assert_eq!(bucket.objects().len(), 1);
    let message = format!("/v1/messages/{}", accepted["message_id"].as_str().unwrap());
    wait_for(|| (server.request("GET", &message, &key, &Value::Null).1["status"] == "delivered").then_some(()));

    // A bucket that is unavailable for a moment refuses, and loses nothing.
    bucket.fail([bucket_server::Fault::Status(500); 4]);
    let (status, refused) = server.request("POST", "/v1/messages", &key, &mail);
    assert_eq!((status, &refused["error"]["code"]), (503, &json!("unavailable")), "{refused}");
    assert_eq!(bucket.objects().len(), 1);
    assert_eq!(server.stop(), Some(0));

    // A server without access to the bucket does not start.
    let mut refused = program();
    refused.args(["dev", "--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()]).args(more);
    let refused = refused.envs(environment).env("AWS_ACCESS_KEY_ID", "AKIAOTHER").output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.status.code() == Some(3) && said.contains("the bucket s3://files/prod cannot be written to"),
        "{said}"
    );
}
