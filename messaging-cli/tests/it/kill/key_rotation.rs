//! `key rotate` is killed in the middle: there are two keys that name each other, or the old one as it was.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::rounds;
use crate::support::{directory, program, run};

/// The line that rotates a key in a database, in this process.
fn rotate<'a>(data: &'a str, workspace: &'a str, id: &'a str) -> Vec<&'a str> {
    vec!["key", "rotate", id, "--overlap-hours", "48", "--workspace", workspace, "--data", data, "--json"]
}

fn admin(data: &Path, line: &[&str]) -> Value {
    run([&["admin"], line, &["--json", "--data", data.to_str().unwrap()]].concat()).expect(0).json()
}

/// Asserts that each replaced key and its successor refer to each other, and returns the one that was not replaced.
fn newest(keys: &Value) -> String {
    let keys = keys["data"].as_array().unwrap();
    let mut unreplaced = Vec::new();
    for key in keys {
        if key["replaced_by"].is_null() {
            assert_eq!(key["expires_at"], Value::Null, "{key}");
            unreplaced.push(key["id"].as_str().unwrap().to_owned());
            continue;
        }
        let next = keys.iter().find(|other| other["id"] == key["replaced_by"]);
        assert_eq!(next.unwrap_or_else(|| panic!("{key} names nobody"))["rotated_from"], key["id"]);
        assert!(key["expires_at"].is_string(), "{key}");
    }
    assert_eq!(unreplaced.len(), 1, "{keys:?}");
    unreplaced.pop().unwrap()
}

#[test]
fn a_rotation_of_an_api_key_is_whole_or_not_there() {
    let directory = directory();
    let data = directory.path();
    let path = data.to_str().unwrap();
    admin(data, &["create-user", "--email", "ann@example.com"]);
    let workspace = admin(data, &["create-workspace", "--name", "Acme", "--owner", "ann@example.com"]);
    let workspace = workspace["id"].as_str().unwrap();
    let key = ["create-key", "--workspace", workspace, "--name", "backend", "--scopes", "messages:send"];
    let first = admin(data, &key);
    let began = Instant::now();
    let second = run(rotate(path, workspace, first["id"].as_str().unwrap())).expect(0).json();
    let whole = began.elapsed();
    assert_eq!((&second["rotated_from"], &second["scopes"]), (&first["id"], &first["scopes"]));
    run(rotate(path, workspace, first["id"].as_str().unwrap())).expect(1);

    let keys = || admin(data, &["list-keys", "--workspace", workspace]);
    let rounds = u32::try_from(rounds()).unwrap();
    for round in 0..rounds {
        let id = newest(&keys());
        let mut rotating = program();
        let rotating = rotating.args(rotate(path, workspace, &id)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut rotating = rotating.spawn().unwrap();
        // A kill at some moment of it, each time a later one.
        thread::sleep(whole * (round + 1) / (rounds + 1));
        rotating.kill().unwrap();
        rotating.wait().unwrap();
        newest(&keys());
    }
    let id = newest(&keys());
    let last = run(rotate(path, workspace, &id)).expect(0).json();
    assert_eq!((&last["rotated_from"], newest(&keys())), (&id.into(), last["id"].as_str().unwrap().to_owned()));
}
