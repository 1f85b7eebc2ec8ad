//! Imports: a kill in the middle neither skips nor repeats a row.

use std::fmt::Write as _;
use std::fs;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{Installation, rounds};
use crate::support::{Server, wait_for};

/// Rows of the file for each kill.
const ROWS_A_ROUND: usize = 5_000;

/// Every tenth row is about the contact of the row ten above, its own or one like it.
fn file(rows: usize) -> (String, usize) {
    let mut text = String::from("external_id,email,attributes.n\n");
    let mut again = 0;
    for n in 0..rows {
        let user = if n % 10 == 9 && n > 10 { n - 12 } else { n };
        again += usize::from(user != n);
        writeln!(text, "u-{user},user-{user}@example.com,{n}").unwrap();
    }
    (text, again)
}

#[test]
fn a_kill_in_the_middle_neither_skips_nor_repeats_a_row() {
    let rounds = rounds();
    let rows = rounds * ROWS_A_ROUND;
    let installation = Installation::new(Vec::new(), |_, _, _| {});
    let (key, contacts) = (&installation.key, format!("/v1/workspaces/{}/contacts", installation.workspace));
    let mut server = installation.serve();
    let (text, again) = file(rows);
    let sha256: String = digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let body = json!({"filename": "a.csv", "size_bytes": text.len(), "sha256": sha256});
    let (status, announced) = server.request("POST", &format!("{contacts}/import"), key, &body);
    assert_eq!(status, 200, "{announced}");
    let link = announced["upload_url"].as_str().unwrap().to_owned();
    let path = format!("{contacts}/imports/{}", announced["import_id"].as_str().unwrap());
    let look = |server: &Server| installation.get(server, &path);
    let done = |import: &Value| {
        ["created", "updated", "failed"].iter().map(|name| import[*name].as_u64().unwrap()).sum::<u64>()
    };

    // Once in the middle of the upload, which is then repeated.
    let half = std::thread::scope(|scope| {
        let (server, link) = (&server, &link);
        let sending = scope.spawn(|| server.upload(link, &text.as_bytes()[..text.len() / 2]));
        server.kill_in_place();
        sending.join().unwrap()
    });
    assert!(half.is_none_or(|(status, _)| status == 422));
    drop(server);
    server = installation.serve();
    let (status, answer) = server.upload(&link, text.as_bytes()).unwrap();
    assert_eq!(status, 202, "{answer}");
    let (mut kills, mut seen) = (0, 0);
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
        if kills < rounds {
            server.kill();
            kills += 1;
            server = installation.serve();
        }
    };
    assert!(kills > rounds / 2, "the import was too fast to be killed");
    let count = |name: &str| usize::try_from(import[name].as_u64().unwrap()).unwrap();
    assert_eq!((&import["status"], count("total_rows")), (&json!("completed"), rows));
    assert_eq!([count("created"), count("updated"), count("failed")], [rows - again, again, 0]);
    assert_eq!(server.upload(&link, text.as_bytes()).unwrap().0, 410);

    // Each contact exists once, with the values of the last row.
    let found = installation.all(&server, &contacts);
    for contact in &found {
        let user: usize = contact["external_id"].as_str().unwrap()[2..].parse().unwrap();
        assert_eq!(contact["email"], format!("user-{user}@example.com"));
        let later = user + 12;
        let last = if later % 10 == 9 && later > 10 && later < rows { later } else { user };
        assert_eq!(contact["attributes"]["n"], last.to_string());
    }
    assert_eq!(found.len(), rows - again);
    let uploads = installation.data.path().join("uploads");
    wait_for(|| (fs::read_dir(&uploads).unwrap().count() == 0).then_some(()));
    eprintln!("import: {rows} rows, {kills} kills");
}
