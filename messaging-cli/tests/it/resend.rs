//! `message resend`.

use serde_json::Value;

use crate::support::{Ran, Server, directory, wait_for};

struct Shop {
    _directory: tempfile::TempDir,
    server: Server,
}

impl Shop {
    fn open() -> Self {
        let directory = directory();
        Self { server: Server::dev(directory.path()), _directory: directory }
    }

    fn run(&self, line: &[&str]) -> Ran {
        self.server.command(line)
    }

    /// Sends a message and waits for its end, if it has one.
    fn send(&self, more: &[&str]) -> String {
        let line = [&["message", "send", "--subject", "Order 17", "--text", "Thanks", "--json"], more].concat();
        let id = self.run(&line).expect(0).json()["message_id"].as_str().unwrap().to_owned();
        if !more.contains(&"--send-at") {
            self.run(&["message", "watch", "--until-final", &id]);
        }
        id
    }

    fn get(&self, id: &str) -> Value {
        self.run(&["message", "get", id, "--json"]).expect(0).json()
    }
}

#[test]
fn what_failed_is_sent_again_once_as_a_new_message() {
    let shop = Shop::open();
    // A message that the simulator bounces, and one that it delivers.
    let bounced =
        shop.send(&["--to", "softbounce@simulator.invalid", "--metadata", r#"{"order": 17}"#, "--tag", "order"]);
    shop.send(&["--to", "ann@example.com"]);
    let line = ["message", "resend", "--status", "failed,bounced", "--since", "1h"];
    let again = shop.run(&[&line[..], &["--json"]].concat()).expect(0).json();
    let rows = again["data"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{again}");
    assert_eq!(rows[0]["resend_of"], bounced.as_str());
    let new = rows[0]["message_id"].as_str().unwrap().to_owned();
    let shown = shop.get(&new);
    assert_eq!(shown["metadata"], serde_json::json!({"order": 17, "resend_of": bounced}));
    assert_eq!(
        (&shown["subject"], &shown["tags"][0], &shown["to"]),
        (&Value::from("Order 17"), &Value::from("order"), &Value::from("softbounce@simulator.invalid"),)
    );
    // The same command again sends nothing twice: once the copy has ended, only the copy is sent again.
    shop.run(&["message", "watch", "--until-final", &new]);
    let repeated = shop.run(&[&line[..], &["--json"]].concat()).expect(0);
    let rows = repeated.json()["data"].as_array().unwrap().clone();
    assert_eq!((&rows[0]["resend_of"], &rows[0]["status"]), (&Value::from(bounced.as_str()), &Value::from("skipped")));
    assert_eq!((&rows[1]["resend_of"], &rows[1]["status"]), (&Value::from(new.as_str()), &Value::from("queued")));
    assert!(repeated.stderr.contains("1 skipped"), "{repeated:?}");
    // Named by its id it is refused, unless that is insisted upon.
    let refused = shop.run(&["message", "resend", &bounced]).expect(1);
    assert!(refused.stderr.contains(&new) && refused.stderr.contains("--again"), "{refused:?}");
    let insisted = shop.run(&["message", "resend", &bounced, "--again", "--quiet"]).expect(0).stdout;
    assert_ne!(insisted.trim(), new);
    assert_eq!(shop.get(insisted.trim())["metadata"]["resend_of"], bounced.as_str());
    shop.run(&[&line[..], &["--again"]].concat()).expect(2);
}

#[test]
fn a_chain_of_fallbacks_that_arrived_is_not_sent_again() {
    let shop = Shop::open();
    let chain = |to: &str| {
        let fallback = format!(r#"[{{"channel":"email","to":"{to}","text":"Thanks"}}]"#);
        shop.send(&["--to", "softbounce@simulator.invalid", "--fallback", &fallback])
    };
    let ended = |first: &str| {
        wait_for(|| {
            let all = shop.run(&["message", "list", "--json"]).expect(0).json();
            let of_first = |row: &&Value| row["fallback_of"] == first;
            let row = all["data"].as_array().unwrap().iter().find(of_first)?.clone();
            let is_final = !matches!(row["status"].as_str().unwrap(), "queued" | "sending" | "deferred");
            is_final.then(|| row["message_id"].as_str().unwrap().to_owned())
        })
    };
    let (arrived, lost) = (chain("ann@example.com"), chain("bounce@simulator.invalid"));
    let (_, lost_fallback) = (ended(&arrived), ended(&lost));
    let ran = shop.run(&["message", "resend", "--status", "failed,bounced", "--since", "1h", "--json"]).expect(1);
    let answer = ran.json();
    let row = |id: &str| answer["data"].as_array().unwrap().iter().find(|row| row["resend_of"] == id).unwrap().clone();
    assert_eq!((&row(&arrived)["status"], &row(&lost)["status"]), (&Value::from("skipped"), &Value::from("queued")));
    assert_eq!(row(&lost_fallback)["status"], "refused");
    assert!(row(&lost_fallback)["reason"].as_str().unwrap().contains(&lost), "{answer}");
}

#[test]
fn what_is_not_sent_again_is_named() {
    let shop = Shop::open();
    let waiting = shop.send(&["--to", "ann@example.com", "--send-at", "+2h"]);
    let file = shop.server.data.join("a.txt");
    std::fs::write(&file, "text").unwrap();
    let attached = shop.send(&["--to", "ann@example.com", "--attach", file.to_str().unwrap()]);
    let good = shop.send(&["--to", "ben@example.com"]);
    let nobody = "msg_00000000000000000000000000";
    let ran = shop.run(&["message", "resend", &waiting, &attached, nobody, &good]).expect(1);
    for (id, why) in [(waiting.as_str(), "queued"), (&attached, "attachments"), (nobody, "no such message")] {
        assert!(ran.stderr.lines().any(|line| line.contains(id) && line.contains(why)), "{id}: {ran:?}");
    }
    assert!(ran.stderr.contains("3 of 4 messages were not sent again") && ran.stdout.contains(&good), "{ran:?}");
    let all = shop.run(&["message", "list", "--json"]).expect(0).json();
    assert_eq!(all["data"].as_array().unwrap().len(), 4);
    shop.run(&["message", "resend"]).expect(2);
    shop.run(&["message", "resend", "--status", "failed"]).expect(2);
    shop.run(&["message", "resend", &good, "--status", "failed", "--since", "1h"]).expect(2);
}
