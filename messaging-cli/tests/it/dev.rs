//! `dev`: from an empty directory to the first message.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::{Server, directory, run, wait_for};

#[test]
fn an_empty_directory_becomes_a_working_server() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let mut members: Vec<_> = dev.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["api_key", "base_url", "console_email", "console_password", "from_email", "workspace_id"]);
    assert_eq!(dev["base_url"], format!("http://{}/v1", server.address));
    assert_eq!(dev["console_email"], "admin@localhost");
    assert!(dev["from_email"].as_str().unwrap().ends_with("@sandbox.test"), "{dev}");
    let mode = directory.path().join("dev.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let key = dev["api_key"].as_str().unwrap();
    let message = json!({"channel": "email", "from_email": dev["from_email"], "to": "ann@example.com", "subject": "Hello", "text": "It works"});
    let (status, accepted) = server.request("POST", "/v1/messages", key, &message);
    assert_eq!((status, &accepted["status"]), (202, &json!("queued")), "{accepted}");
    let path = format!("/v1/messages/{}", accepted["message_id"].as_str().unwrap());
    wait_for(|| (server.request("GET", &path, key, &json!(null)).1["status"] == "delivered").then_some(()));
}

#[test]
fn the_printed_curl_sends_a_message() {
    let directory = directory();
    let mut server = Server::dev(directory.path());
    let printed = server.printed();
    let curl: String = printed.lines().skip_while(|line| !line.starts_with("curl ")).take(4).collect();
    let quoted: Vec<_> = curl.split('\'').skip(1).step_by(2).collect();
    let key = quoted[0].strip_prefix("Authorization: Bearer ").unwrap();
    assert_eq!(quoted[1], "Content-Type: application/json");
    assert!(curl.starts_with(&format!("curl http://{}/v1/messages ", server.address)), "{curl}");
    let (status, answer) = server.request("POST", "/v1/messages", key, &serde_json::from_str(quoted[2]).unwrap());
    assert_eq!(status, 202, "{answer}");
}

/// A reserve that no disk has room for.
const RESERVE: [&str; 2] = ["--disk-reserve", "9000000000000000000"];

#[test]
fn below_the_disk_reserve_it_starts_like_serve_and_takes_nothing_new() {
    let directory = directory();
    // A database that is new cannot be written at all.
    assert_eq!(Server::start("serve", directory.path(), &[]).stop(), Some(0));
    assert_eq!(Server::start("serve", directory.path(), &RESERVE).stop(), Some(0));
    // A database without anything to try out, and one of an earlier start.
    for _ in 0..2 {
        let server = Server::start("dev", directory.path(), &RESERVE);
        let dev = server.dev_json();
        let key = dev["api_key"].as_str().unwrap();
        let message = json!({"channel": "email", "from_email": dev["from_email"], "to": "ann@example.com", "subject": "Hello", "text": "It works"});
        let (status, refused) = server.request("POST", "/v1/messages", key, &message);
        assert_eq!((status, &refused["error"]["code"]), (503, &json!("unavailable")), "{refused}");
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn a_lost_file_is_made_anew() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let first = server.dev_json();
    server.kill();
    std::fs::remove_file(directory.path().join("dev.json")).unwrap();
    let server = Server::dev(directory.path());
    let second = server.dev_json();
    assert_eq!(first["workspace_id"], second["workspace_id"]);
    assert_ne!(first["api_key"], second["api_key"]);
    server.command(&["workspace", "list"]).expect(0);
    let password = second["console_password"].as_str().unwrap();
    server.command(&["auth", "login", "--email", "admin@localhost", "--password", password]).expect(0);
}

#[test]
fn a_later_start_keeps_key_and_workspace() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let first = server.dev_json();
    assert_eq!(server.stop(), Some(0));
    let server = Server::dev(directory.path());
    let second = server.dev_json();
    for member in ["api_key", "workspace_id", "console_email", "console_password", "from_email"] {
        assert_eq!(first[member], second[member], "{member}");
    }
    assert_eq!(second["base_url"], format!("http://{}/v1", server.address));
    server.command(&["workspace", "list"]).expect(0);
    server.kill();
    // A killed server leaves nothing that keeps the next one from starting.
    let server = Server::dev(directory.path());
    server.command(&["workspace", "list"]).expect(0);
}

#[test]
fn the_database_of_a_running_server_can_be_used_without_it() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let data = directory.path().to_str().unwrap();
    let ran = run(["workspace", "list", "--json", "--data", data]).expect(0);
    assert_eq!(ran.json()["data"][0]["id"], server.dev_json()["workspace_id"]);
    // The server works on jobs that commands left for it.
    let line =
        ["message", "send", "--to", "ann@example.com", "--subject", "Hi", "--text", "Hi", "--json", "--data", data];
    let id = run(line).expect(0).json()["message_id"].as_str().unwrap().to_owned();
    let ran = server.command(&["message", "watch", "--until-final", &id, "--json"]).expect(0);
    assert!(ran.stdout.contains("\"delivered\""), "{ran:?}");
    let ran = run(["message", "watch", "--until-final", &id, "--data", data]).expect(0);
    assert!(ran.stdout.contains("delivered"), "{ran:?}");
    server.kill();
    run(["message", "get", &id, "--data", data]).expect(0);
}

#[test]
fn dev_says_only_what_there_is() {
    let directory = directory();
    let mut server = Server::dev(directory.path());
    let printed = server.printed();
    for absent in ["console_password", "sign in as", "\nmessaging "] {
        assert!(!printed.contains(absent), "{absent:?}: {printed}");
    }
    assert!(printed.contains("nothing leaves this machine"), "{printed}");
    let program = env!("CARGO_BIN_EXE_messaging");
    assert!(printed.contains(&format!("{program} sandbox list")), "the program as it was called: {printed}");
    server.command(&["channel", "set", "email", "--provider", "builtin"]).expect(0);
    assert_eq!(server.stop(), Some(0));
    let mut server = Server::dev(directory.path());
    let printed = server.printed();
    assert!(!printed.contains("nothing leaves") && !printed.contains("sandbox list"), "{printed}");
    assert!(printed.contains("it goes out"), "{printed}");
}
