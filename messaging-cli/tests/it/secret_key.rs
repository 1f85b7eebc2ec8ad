//! The real program and the key of its database.

use std::fs;
use std::path::Path;

use crate::support::{Server, directory, run};

/// Starts `serve` and expects that it refuses; answers what it says.
#[track_caller]
fn refused(data: &Path, more: &[&str]) -> String {
    let line = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    run(line.iter().chain(more)).expect(3).stderr
}

#[test]
fn a_server_starts_with_the_key_of_its_database_or_not_at_all() {
    let (data, elsewhere) = (directory(), directory());
    assert_eq!(Server::dev(data.path()).stop(), Some(0));
    let (key, moved) = (data.path().join("secret.key"), elsewhere.path().join("the.key"));
    fs::rename(&key, &moved).unwrap();

    // Gone.
    let said = refused(data.path(), &[]);
    assert!(said.contains("secret.key is missing") && said.contains("--secret-key-file"), "{said}");
    assert!(!key.exists(), "no new one is made");
    // Another one.
    fs::write(&key, [7; 32]).unwrap();
    let said = refused(data.path(), &[]);
    assert!(said.contains("does not fit the database") && said.contains("backup"), "{said}");
    // None.
    fs::write(&key, "short").unwrap();
    let said = refused(data.path(), &[]);
    assert!(said.contains("32 bytes"), "{said}");
    // Commands on the database neither.
    let data_path = data.path().to_str().unwrap();
    let create = ["admin", "create-user", "--email", "ann@example.com", "--data", data_path];
    run(create).expect(3);

    // The right one, elsewhere.
    let file = ["--secret-key-file", moved.to_str().unwrap()];
    run(create.iter().chain(&file)).expect(0);
    let server = Server::start("serve", data.path(), &file);
    assert_eq!(server.stop(), Some(0));
    // And back.
    fs::rename(&moved, &key).unwrap();
    assert_eq!(Server::start("serve", data.path(), &[]).stop(), Some(0));
}
