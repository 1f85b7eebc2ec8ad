//! `message resend`.

use serde_json::Value;

use crate::support::{Ran, Server, directory};

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
    // What the simulator refuses for now, and for good.
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
    // The same once more sends nothing twice.
    let repeated = shop.run(&["message", "resend", &bounced, "--quiet"]).expect(0);
    assert_eq!(repeated.stdout.trim(), new);
    assert!(repeated.stderr.contains("1 had been sent again before"), "{repeated:?}");
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
