//! Queue commands of an operator, run against a server.

use serde_json::{Value, json};

use crate::support::{Ran, Server, directory, run, wait_for};

/// A development server, and an operator who is signed in.
struct Operator {
    server: Server,
    url: String,
    token: String,
}

impl Operator {
    fn of(server: Server) -> Self {
        let data = server.data.to_str().unwrap();
        let person = ["--email", "ann@example.com", "--password", "correct horse battery"];
        run([&["admin", "create-user", "--operator", "--data", data], &person[..]].concat()).expect(0);
        let body = json!({"email": "ann@example.com", "password": "correct horse battery"});
        let (status, session) = server.request("POST", "/v1/auth/login", "", &body);
        assert_eq!(status, 200, "{session}");
        let token = session["token"].as_str().unwrap().to_owned();
        Self { url: format!("http://{}/v1", server.address), server, token }
    }

    fn run(&self, words: &[&str]) -> Ran {
        run([words, &["--url", &self.url, "--api-key", &self.token]].concat())
    }

    /// Carries out an action on the queue; returns the number of messages affected.
    fn act(&self, action: &str, domain: &str) -> u64 {
        let ran = self.run(&["queue", action, "--domain", domain, "--json"]).expect(0);
        ran.json()["messages"].as_u64().unwrap()
    }

    fn queue(&self) -> Value {
        self.run(&["queue", "list", "--json"]).expect(0).json()["data"].clone()
    }

    /// Sends a message with the key of `dev`; returns its id.
    fn send(&self, to: &str) -> String {
        let line = ["message", "send", "--to", to, "--subject", "Hi", "--text", "Hi", "--quiet"];
        self.server.command(&line).expect(0).stdout.trim().to_owned()
    }

    fn message(&self, id: &str) -> Value {
        self.server.command(&["message", "get", id, "--json"]).expect(0).json()
    }

    fn wait_for_status(&self, id: &str, status: &str) {
        wait_for(|| (self.message(id)["status"] == status).then_some(()));
    }
}

#[test]
fn an_operator_holds_messages_back_tries_them_again_and_gives_them_up() {
    let directory = directory();
    let operator = Operator::of(Server::dev(directory.path()));
    assert_eq!(operator.act("suspend", "example.com"), 0);
    let held = operator.send("ben@example.com");
    let sent = operator.send("ben@example.net");
    operator.wait_for_status(&sent, "delivered");
    let told = operator.message(&held);
    assert_eq!((&told["status"], &told["hold"]["reason"]), (&json!("queued"), &json!("paused")));
    let row = &operator.queue()[0];
    let columns = ["domain", "channel", "queued", "deferred", "suspended"].map(|name| row[name].clone());
    assert_eq!(json!(columns), json!(["example.com", "email", 1, 0, true]));
    let table = operator.run(&["queue", "list"]).expect(0).stdout;
    assert!(table.contains("example.com"), "{table}");

    // The advised cure is a command that ends the hold.
    let cure = told["explanation"]["cure"]["text"].as_str().unwrap();
    let command = cure.split('`').nth(1).unwrap().strip_prefix("messaging ").unwrap();
    operator.run(&command.split(' ').collect::<Vec<_>>()).expect(0);
    operator.wait_for_status(&held, "delivered");

    let deferred = operator.send("deferred@simulator.invalid");
    operator.wait_for_status(&deferred, "deferred");
    let attempts = |id: &str| operator.message(id)["events"].as_array().unwrap().len();
    let before = attempts(&deferred);
    assert_eq!(operator.act("retry", "simulator.invalid"), 1);
    wait_for(|| (attempts(&deferred) > before).then_some(()));
    assert_eq!(operator.act("cancel", "simulator.invalid"), 1);
    operator.wait_for_status(&deferred, "cancelled");
}

#[test]
fn an_action_names_something_and_is_for_operators() {
    let directory = directory();
    let operator = Operator::of(Server::dev(directory.path()));
    for action in ["retry", "suspend", "resume", "cancel"] {
        let refused = operator.run(&["queue", action]).expect(1);
        assert!(refused.stderr.contains("/domain  required"), "{refused:?}");
        let refused = operator.server.command(&["queue", action, "--domain", "example.com"]).expect(1);
        assert!(refused.stderr.contains("session"), "{refused:?}");
    }
    operator.server.command(&["queue", "list"]).expect(1);
}
