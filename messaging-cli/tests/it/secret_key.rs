//! The real program and the key of its database.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use crate::support::{Server, directory, run};

/// Starts `serve`, which must refuse; returns its message.
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

#[test]
fn the_key_is_rotated_to_one_that_is_given_or_made() {
    let (data, elsewhere) = (directory(), directory());
    assert_eq!(Server::dev(data.path()).stop(), Some(0));
    let (key, given) = (data.path().join("secret.key"), elsewhere.path().join("new.key"));
    let old = fs::read(&key).unwrap();
    let path = data.path().to_str().unwrap();
    let rotate = ["admin", "rotate-secret-key", "--data", path, "--json"];
    let to_given = || run(rotate.iter().chain(&["--file", given.to_str().unwrap()]));

    // No key, and a file that is no key.
    to_given().expect(2);
    fs::write(&given, [7; 31]).unwrap();
    assert!(to_given().expect(2).stderr.contains("32 random bytes"));
    fs::write(&given, &old).unwrap();
    assert!(to_given().expect(2).stderr.contains("in use already"));
    assert_eq!(fs::read(&key).unwrap(), old);

    fs::write(&given, [7; 32]).unwrap();
    let first = to_given().expect(0).json();
    assert_eq!(fs::read(&key).unwrap(), [&[7; 32][..], &old].concat());
    assert_eq!(first["resealed"]["domains"], 1, "{first}");
    // While a server runs, to a key that is made.
    let server = Server::start("serve", data.path(), &[]);
    let second = run(rotate).expect(0).json();
    assert_ne!(first["key"], second["key"]);
    let ring = fs::read(&key).unwrap();
    assert_eq!((ring.len(), &ring[32..]), (96, &[&[7; 32][..], &old].concat()[..]));
    let doctor = run(["doctor", "--data", path, "--json"]).json();
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == "secret_key").unwrap();
    assert_eq!(check["status"], "ok", "{check}");
    assert_eq!(server.stop(), Some(0));
    // Without the newest key the database does not open; without the oldest it does.
    fs::write(&key, &ring[32..]).unwrap();
    assert!(refused(data.path(), &[]).contains("does not fit the database"));
    fs::write(&key, &ring[..32]).unwrap();
    assert_eq!(Server::start("serve", data.path(), &[]).stop(), Some(0));
}

/// A directory and everything in it.
fn everything(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(everything(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn commands_of_root_leave_nothing_that_the_server_cannot_use() {
    const OWNER: u32 = 12345;
    let (data, files) = (directory(), directory());
    assert_eq!(Server::dev(data.path()).stop(), Some(0));
    for path in everything(data.path()) {
        if chown(&path, Some(OWNER), Some(OWNER)).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
    }
    let path = data.path().to_str().unwrap();
    let (contacts, attached) = (files.path().join("contacts.csv"), files.path().join("large.bin"));
    fs::write(&contacts, "email\nann@example.com\n").unwrap();
    fs::write(&attached, vec![b'x'; 1 << 20]).unwrap();
    run(["admin", "rotate-secret-key", "--data", path]).expect(0);
    run(["contact", "import", contacts.to_str().unwrap(), "--data", path]).expect(0);
    let send = ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--data", path];
    run(send.iter().chain(&["--attach", attached.to_str().unwrap()])).expect(0);
    for path in everything(data.path()) {
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid()), (OWNER, OWNER), "{}", path.display());
    }
}
