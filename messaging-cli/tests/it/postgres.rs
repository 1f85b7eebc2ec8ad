//! What a newcomer to PostgreSQL and several nodes is told.

use std::fs;

use messaging_store::conformance::cluster::Database;

use crate::support::{Server, directory, run};

/// A server that nobody reaches: what is refused is refused before anybody asks it.
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
fn another_key_than_that_of_the_database_is_3() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runtime.block_on(Database::create()) else { return };
    let (first, second) = (directory(), directory());
    let more = ["--database", &database.url, "--public-url", "http://links.nodes.test"];
    let server = Server::start("serve", first.path(), &more);
    let (mine, other) = (first.path().join("secret.key"), second.path().join("secret.key"));
    for command in ["serve", "worker"] {
        let line = [command, "--listen", "127.0.0.1:0", "--data", second.path().to_str().unwrap()];
        // None: the database has one already, so that none is made.
        let said = run(line.iter().chain(&more)).expect(3).stderr;
        assert!(said.contains("secret.key is missing") && said.contains("--secret-key-file"), "{said}");
        assert!(!other.exists());
        // Another one.
        fs::write(&other, [7; 32]).unwrap();
        let said = run(line.iter().chain(&more)).expect(3).stderr;
        assert!(said.contains("does not fit the database") && !said.contains("panicked"), "{said}");
        fs::remove_file(&other).unwrap();
    }
    // That of the first.
    let second =
        Server::start("serve", second.path(), &[&more[..], &["--secret-key-file", mine.to_str().unwrap()]].concat());
    assert_eq!(second.stop(), Some(0));
    assert_eq!(server.stop(), Some(0));
}
