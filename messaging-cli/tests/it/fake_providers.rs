//! `dev --fake-providers`: every channel without an account.

use std::fs;
use std::path::Path;

use messaging_testing::fakes::CASES;
use serde_json::{Value, json};

use crate::support::{Server, directory, post, run, run_page, run_script, wait_for, wait_or_tell};

const PAGE: &str = "channels/trying.md";

/// Channel, recipient and status of the workspace's messages, the oldest first: `sms +9990000001 delivered`.
fn fates(server: &Server) -> Vec<String> {
    let page = server.command(&["message", "list", "--limit", "200", "--json"]).expect(0).json();
    let word = |message: &Value, name: &str| message[name].as_str().unwrap_or_default().to_owned();
    let fate = |message: &Value| ["channel", "to", "status"].map(|name| word(message, name)).join(" ");
    page["data"].as_array().unwrap().iter().rev().map(fate).collect()
}

/// Waits until these are the statuses of the messages.
#[track_caller]
fn wait_for_fates(server: &Server, expected: &[&str]) {
    wait_or_tell(|| {
        let found = fates(server);
        if found == expected { Ok(()) } else { Err(format!("{found:#?} instead of {expected:#?}")) }
    });
}

/// The settings of a channel's provider that the server wrote to `fake-providers.json` for other programs.
fn told(server: &Server, channel: &str) -> Value {
    let told = fs::read(server.data.join("fake-providers.json")).unwrap();
    let told: Vec<Value> = serde_json::from_slice(&told).unwrap();
    told.into_iter().find(|one| one["channel"] == channel).unwrap()
}

/// Sends a text message through the provider of the channel; returns its events, once `last` is the last of them.
fn send(server: &Server, channel: &str, to: &str, last: &str) -> Vec<String> {
    let message = ["message", "send", "--channel", channel, "--to", to, "--text", "Hello", "--json"];
    let id = server.command(&message).expect(0).json()["message_id"].as_str().unwrap().to_owned();
    wait_or_tell(|| {
        let message = server.command(&["message", "get", &id, "--json"]).expect(0).json();
        let events = message["events"].as_array().unwrap().iter();
        let kinds: Vec<_> = events.map(|event| event["kind"].as_str().unwrap().to_owned()).collect();
        if kinds.last().is_some_and(|kind| kind == last) {
            Ok(kinds)
        } else {
            Err(format!("{channel} {to}: {message}"))
        }
    })
}

/// The suppressed addresses: `sms +9990000001 unsubscribe`.
fn suppressed(server: &Server) -> Vec<String> {
    let page = server.command(&["suppression", "list", "--json"]).expect(0).json();
    let word = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let line = |record: &Value| ["channel", "address", "reason"].map(|name| word(record, name)).join(" ");
    page["data"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn the_page_about_trying_sends_on_every_channel_word_for_word() {
    let (data, work) = (directory(), directory());
    let server = Server::start("dev", data.path(), &["--fake-providers"]);
    run_page(&server, work.path(), PAGE);
    wait_for_fates(
        &server,
        &[
            "email ann@example.com delivered",
            "sms +9990000001 delivered",
            "push somebody-01 delivered",
            "telegram 9990000001 delivered",
            "whatsapp +9990000001 delivered",
            "viber +9990000001 delivered",
            "sms +9990000002 bounced",
            "sms +9990000002 suppressed",
        ],
    );
    assert_eq!(suppressed(&server), ["sms +9990000002 bounce"]);
    assert_eq!(send(&server, "whatsapp", "+9990000007", "open"), ["queued", "sent", "delivered", "open"]);
}

#[test]
fn the_commands_that_are_printed_reach_every_provider() {
    let (data, work) = (directory(), directory());
    let mut server = Server::start("dev", data.path(), &["--fake-providers"]);
    let printed = server.printed();
    let commands: Vec<_> = printed.lines().filter(|line| line.starts_with("messaging message send ")).collect();
    assert_eq!(commands.len(), 7, "{printed}");
    run_script(&server, work.path(), &commands.join("\n"));
    let device = told(&server, "push")["recipients"].clone();
    let fate = |number: usize| format!("push {} delivered", device[number].as_str().unwrap());
    wait_for_fates(
        &server,
        &[
            "sms +9990000001 delivered",
            &fate(0),
            &fate(1),
            &fate(2),
            "telegram 9990000001 delivered",
            "whatsapp +9990000001 delivered",
            "viber +9990000001 delivered",
        ],
    );
    for (channel, word) in [("telegram", "/stop"), ("whatsapp", "STOP")] {
        let curl = printed
            .lines()
            .find(|line| line.starts_with(&format!("curl {} ", told(&server, channel)["inbound"].as_str().unwrap())));
        let body = curl.and_then(|curl| curl.split('\'').nth(1)).unwrap_or_else(|| panic!("{channel}: {printed}"));
        let to = told(&server, channel)["recipients"][0].clone();
        assert_eq!(serde_json::from_str::<Value>(body).unwrap(), json!({"from": to, "text": word}));
    }
}

/// Sends a message from a user through a channel's provider, once the provider knows where to call.
#[track_caller]
fn write(server: &Server, channel: &str, from: &str, text: &str) {
    let told = told(server, channel);
    let url = told["inbound"].as_str().unwrap_or_else(|| panic!("nobody can write: {told}"));
    let (address, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
    let body = json!({"from": from, "text": text});
    wait_for(|| (post(address.parse().unwrap(), &format!("/{path}"), &body)? == 200).then_some(()));
}

#[test]
fn each_start_sets_the_channels_anew_with_the_providers_that_are_chosen() {
    let data = directory();
    let mut ports = Vec::new();
    for (choice, sms, viber) in [
        ("--fake-providers=sms=twilio,viber=bot,push=apns", "twilio", "bot"),
        ("--fake-providers=sms=vonage", "vonage", "http"),
        ("--fake-providers=sms=smpp,push=webpush", "smpp", "http"),
    ] {
        // Providers outside would call by HTTPS, through a proxy; the fake providers have no such way.
        let server = Server::start("dev", data.path(), &[choice, "--public-url", "https://mail.example.org/m"]);
        let (at_sms, at_viber) = (told(&server, "sms"), told(&server, "viber"));
        assert_eq!((&at_sms["provider"], &at_viber["provider"]), (&json!(sms), &json!(viber)));
        ports.push(at_sms["url"].clone());
        assert_eq!(send(&server, "sms", "+9990000001", "delivered"), ["queued", "sent", "delivered"], "{sms}");
        let somebody = at_viber["recipients"][0].as_str().unwrap();
        assert_eq!(send(&server, "viber", somebody, "delivered"), ["queued", "sent", "delivered"], "{viber}");
        for device in told(&server, "push")["recipients"].as_array().unwrap() {
            assert_eq!(send(&server, "push", device.as_str().unwrap(), "delivered"), ["queued", "sent", "delivered"]);
        }
        assert_eq!(server.stop(), Some(0));
        assert!(!data.path().join("fake-providers.json").exists(), "it would mislead");
    }
    ports.dedup();
    assert_eq!(ports.len(), 3);
}

#[test]
fn what_recipients_write_comes_back_through_their_providers() {
    let data = directory();
    let server = Server::start("dev", data.path(), &["--fake-providers=sms=twilio,viber=bot"]);
    assert_eq!(told(&server, "push")["inbound"], Value::Null);
    let (number, chat) = ("+9990000001", "9990000001");
    for (channel, from, stop, start) in
        [("telegram", chat, "/stop", "/start"), ("sms", number, "STOP", "START"), ("whatsapp", number, "STOP", "START")]
    {
        write(&server, channel, from, stop);
        assert_eq!(suppressed(&server), [format!("{channel} {from} unsubscribe")]);
        write(&server, channel, from, start);
        assert_eq!(suppressed(&server), Vec::<String>::new(), "{channel}");
    }
    // Viber has events for bounces; a user who writes can be reached.
    send(&server, "viber", "somebody-02", "bounce");
    assert_eq!(suppressed(&server), ["viber somebody-02 bounce"]);
    write(&server, "viber", "somebody-02", "Hello");
    assert_eq!(suppressed(&server), Vec::<String>::new());
}

#[test]
fn a_provider_that_nobody_plays_is_refused() {
    let data = directory();
    for (choice, said) in [("sms=pigeon", "http, twilio, vonage, smpp"), ("email=smtp", "email")] {
        let line = ["dev", "--data", data.path().to_str().unwrap(), &format!("--fake-providers={choice}")];
        let ran = run(line).expect(2);
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
    assert!(!data.path().join("messaging.db").exists());
}

#[test]
fn the_page_about_trying_has_every_case_of_the_fakes() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(PAGE);
    let page = fs::read_to_string(page).unwrap();
    let listed: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .flat_map(|(numbers, _)| numbers.split(", "))
        .filter_map(|number| number.parse::<u8>().ok())
        .collect();
    let known: Vec<_> = CASES.iter().map(|(number, _)| *number).collect();
    assert_eq!(listed, known);
}
