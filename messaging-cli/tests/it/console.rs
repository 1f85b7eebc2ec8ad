//! The console: its files, and the link that `dev` prints.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Server, directory, run};

/// The ticket in the output of `dev`.
fn ticket(printed: &str) -> &str {
    let (_, rest) = printed.split_once("/console#ticket=").unwrap_or_else(|| panic!("no link: {printed}"));
    rest.split_whitespace().next().unwrap()
}

#[test]
fn the_printed_link_signs_in_once() {
    let directory = directory();
    let log = directory.path().join("server.log");
    let mut server = Server::traced("dev", directory.path(), &[], &log, "");
    let printed = server.printed();
    assert!(printed.contains(&format!("\nhttp://{}/console#ticket=mt_", server.address)), "{printed}");
    assert_eq!(printed.matches("ticket=").count(), 1);
    let ticket = ticket(&printed).to_owned();
    let redeem = || server.request("POST", "/v1/auth/redeem", "", &json!({"ticket": ticket}));
    let (status, session) = redeem();
    assert_eq!((status, &session["user"]["email"]), (200, &json!("admin@localhost")), "{session}");
    let (status, again) = redeem();
    assert_eq!((status, &again["error"]["code"]), (410, &json!("link_expired")));
    assert_eq!(server.request("GET", "/v1/auth/me", session["token"].as_str().unwrap(), &Value::Null).0, 200);
    assert!(!server.dev_json().to_string().contains(&ticket));
    assert_eq!(server.stop(), Some(0));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("listening") && !log.contains(&ticket));
}

#[test]
fn the_link_names_an_address_that_a_browser_reaches() {
    let directory = directory();
    let mut server = Server::start("dev", directory.path(), &["--public-url", "https://mail.example.org/m"]);
    assert!(server.printed().contains("\nhttps://mail.example.org/m/console#ticket=mt_"));
}

#[test]
fn without_a_console_there_is_no_link() {
    let directory = directory();
    let mut server = Server::start("dev", directory.path(), &["--no-console"]);
    let printed = server.printed();
    assert!(!printed.contains("ticket") && !printed.contains("/console"), "{printed}");
    let (status, answer) = server.request("GET", "/console/", "", &Value::Null);
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("route_not_found")));
}

#[test]
fn exported_files_are_served_as_they_are_changed() {
    let (files, data) = (directory(), directory());
    let console = files.path().join("console");
    let console = console.to_str().unwrap();
    let ran = run(["console", "export", console]).expect(0);
    assert!(ran.stdout.contains(&format!("messaging dev --console-dir {console}")), "{ran:?}");
    let index = files.path().join("console/index.html");
    let text = fs::read_to_string(&index).unwrap();
    assert!(text.contains("__SET__/app.js"), "{text}");
    assert!(files.path().join("console/operations.js").exists());

    let refused = run(["console", "export", console]).expect(2);
    assert!(refused.stderr.contains("is not empty"), "{refused:?}");

    let server = Server::start("dev", data.path(), &["--console-dir", console]);
    fs::write(&index, text.replace("<title>", "<title>Changed ")).unwrap();
    let page = server.text("/console/");
    assert!(page.contains("<title>Changed ") && page.contains("content-security-policy: "), "{page}");
}

#[test]
fn an_export_tells_programs_what_it_wrote() {
    let files = directory();
    let ran = run(["console", "export", files.path().to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!(ran["directory"], files.path().to_str().unwrap());
    assert!(ran["files"].as_u64().unwrap() >= 6, "{ran}");
}

#[test]
fn a_directory_without_a_page_is_refused_at_the_start() {
    let (files, data) = (directory(), directory());
    let directory = files.path().to_str().unwrap();
    let line = ["dev", "--console-dir", directory, "--data", data.path().to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let ran = run(line).expect(2);
    assert!(ran.stderr.contains(directory) && ran.stderr.contains("index.html"), "{ran:?}");
    assert!(!data.path().join("messaging.db").exists(), "nothing is begun");
    let ran = run([&line[..], &["--no-console"]].concat()).expect(2);
    assert!(ran.stderr.contains("--console-dir and --no-console"), "{ran:?}");
}
