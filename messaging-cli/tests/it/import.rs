//! `contact import`, by a server and without one; and an import that is killed again and again.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, directory, run, wait_for};

const TEXT: &str = "E-Mail;Name;phone\r\nann@example.com;Ann;+14155550123\r\nnobody;Bob;\r\nann@example.com;Anna;\r\n";

fn file(directory: &TempDir, text: &str) -> String {
    let path: PathBuf = directory.path().join("people.csv");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_file_is_imported_by_a_server() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let file = file(&files, TEXT);
    let refused = files.path().join("refused.csv");
    let refused = refused.to_str().unwrap();
    let mapping = ["--map", "E-Mail=email", "--map", "Name=attributes.name"];
    let words = ["contact", "import", &file, "--dedup-keys", "email", "--errors", refused];
    let ran = server.command(&[&words[..], &mapping, &["--json"]].concat()).expect(0);
    let import = ran.json();
    assert_eq!((&import["status"], &import["filename"]), (&json!("completed"), &json!("people.csv")));
    assert_eq!([&import["created"], &import["updated"], &import["failed"]], [1, 1, 1]);
    let error = json!({"row": 3, "column": "E-Mail", "code": "invalid_format", "message": "not an email address"});
    assert_eq!(import["errors"], json!([error]));
    let report = "row,column,code,message\r\n3,E-Mail,invalid_format,not an email address\r\n";
    assert_eq!(fs::read_to_string(refused).unwrap(), report);

    let ran = server.command(&[&words[..], &mapping].concat()).expect(0);
    assert_eq!(ran.stdout, "0 created, 2 updated, 1 refused\n");
    assert!(ran.stderr.contains("row 3, E-Mail: not an email address (invalid_format)"), "{}", ran.stderr);
    let id = import["import_id"].as_str().unwrap();
    assert_eq!(server.command(&["import", "errors", id]).expect(0).stdout, report);

    // Nothing in it is a contact.
    let ran = server.command(&["contact", "import", &file, "--map", "phone="]).expect(1);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("no column is an external_id"), "{ran:?}");
    let ran = server.command(&["contact", "import", &file, "--map", "phone=", "--json"]).expect(1);
    assert_eq!(ran.json()["status"], "failed");
    let ran = server.command(&["contact", "import", &file, "--map", "E-Mail=mail", "--json"]).expect(1);
    assert_eq!(ran.json()["error"]["details"]["errors"][0]["pointer"], "/mapping/E-Mail");
    server.command(&["contact", "import", "/does/not/exist.csv"]).expect(2);
    server.command(&["contact", "import", &file, "--map", "email"]).expect(2);
    server.command(&["contact", "import", &file, "--dedup-keys", "name"]).expect(2);
}

#[test]
fn a_file_is_imported_without_a_server_and_beside_one() {
    let (data, files) = (directory(), directory());
    let server = Server::dev(data.path());
    let path = data.path().to_str().unwrap();
    let file = file(&files, TEXT);
    let import = |expected: [u64; 3]| {
        let words = ["contact", "import", &file, "--map", "E-Mail=email", "--data", path, "--json"];
        let import = run(words).expect(0).json();
        assert_eq!(
            [&import["created"], &import["updated"], &import["failed"]].map(|count| count.as_u64().unwrap()),
            expected
        );
        assert_eq!(fs::read_dir(data.path().join("uploads")).unwrap().count(), 0, "the file is gone");
    };
    import([1, 1, 1]);
    assert_eq!(server.stop(), Some(0));
    import([0, 2, 1]);
    // The job that is left finds nothing to do.
    let server = Server::dev(data.path());
    import([0, 2, 1]);
    let listed = server.command(&["import", "list", "--json"]).expect(0).json();
    assert!(listed["data"].as_array().unwrap().iter().all(|import| import["status"] == "completed"));
}

/// Rows of the file that is imported while the server is killed.
const ROWS: u64 = 15_000;

/// Every tenth row is about the contact of the row ten above, its own or one like it.
fn rows() -> (String, u64) {
    let mut text = String::from("external_id,email,attributes.n\n");
    let mut again = 0;
    for n in 0..ROWS {
        let user = if n % 10 == 9 && n > 10 { n - 12 } else { n };
        again += u64::from(user != n);
        writeln!(text, "u-{user},user-{user}@example.com,{n}").unwrap();
    }
    (text, again)
}

#[test]
fn a_kill_in_the_middle_neither_skips_nor_repeats_a_row() {
    let data = directory();
    let mut server = Server::dev(data.path());
    let dev = server.dev_json();
    let (key, workspace) = (dev["api_key"].as_str().unwrap(), dev["workspace_id"].as_str().unwrap());
    let contacts = format!("/v1/workspaces/{workspace}/contacts");
    let (text, again) = rows();
    let sha256: String = digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let body = json!({"filename": "a.csv", "size_bytes": text.len(), "sha256": sha256});
    let (status, announced) = server.request("POST", &format!("{contacts}/import"), key, &body);
    assert_eq!(status, 200, "{announced}");
    let link = announced["upload_url"].as_str().unwrap().to_owned();
    let look = |server: &Server| {
        let path = format!("{contacts}/imports/{}", announced["import_id"].as_str().unwrap());
        server.request("GET", &path, key, &Value::Null).1
    };
    let done = |import: &Value| {
        ["created", "updated", "failed"].iter().map(|name| import[*name].as_u64().unwrap()).sum::<u64>()
    };

    // Once in the middle of the upload, which is then done anew.
    let half = std::thread::scope(|scope| {
        let (server, link) = (&server, &link);
        let sending = scope.spawn(|| server.upload(link, &text.as_bytes()[..text.len() / 2]));
        server.kill_in_place();
        sending.join().unwrap()
    });
    assert!(half.is_none_or(|(status, _)| status == 422));
    server = Server::dev(data.path());
    let (status, answer) = server.upload(&link, text.as_bytes()).unwrap();
    assert_eq!(status, 202, "{answer}");
    let mut kills = 0;
    let mut seen = 0;
    let import = loop {
        // Wait for some progress, and cut it off.
        let import = wait_for(|| {
            let import = look(&server);
            (done(&import) > seen || import["status"] != "processing").then_some(import)
        });
        if import["status"] != "processing" {
            break import;
        }
        seen = done(&import);
        if kills < 6 {
            server.kill();
            kills += 1;
            server = Server::dev(data.path());
        }
    };
    assert!(kills > 1, "the import was too fast to be killed");
    assert_eq!((&import["status"], &import["total_rows"]), (&json!("completed"), &json!(ROWS)));
    assert_eq!(import["created"], ROWS - again);
    assert_eq!([&import["updated"], &import["failed"]], [&json!(again), &json!(0)]);
    assert_eq!(server.upload(&link, text.as_bytes()).unwrap().0, 410);

    // Each contact is there once, with what the last row said.
    let mut found = 0;
    let mut cursor = String::new();
    loop {
        let (_, page) = server.request("GET", &format!("{contacts}?limit=200{cursor}"), key, &Value::Null);
        for contact in page["data"].as_array().unwrap() {
            let user: u64 = contact["external_id"].as_str().unwrap()[2..].parse().unwrap();
            assert_eq!(contact["email"], format!("user-{user}@example.com"));
            let later = user + 12;
            let last = if later % 10 == 9 && later > 10 && later < ROWS { later } else { user };
            assert_eq!(contact["attributes"]["n"], last.to_string());
            found += 1;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, ROWS - again);
    wait_for(|| (fs::read_dir(data.path().join("uploads")).unwrap().count() == 0).then_some(()));
}
