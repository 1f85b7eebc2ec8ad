//! Submission: a 250 is a promise like a 202, and a mail that is brought again because no reply came is one message.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Installation, load_until, rounds};

/// Accepted mails after which a round is cut off.
const ACCEPTED_A_ROUND: usize = 60;

#[test]
fn every_250_is_a_message_after_a_kill_and_every_repetition_is_the_same_one() {
    let installation =
        Installation::new(vec!["--submission-listen".to_owned(), "127.0.0.1:0".to_owned()], |_, _, _| {});
    let accepted: Mutex<HashMap<String, String>> = Mutex::new(HashMap::new());
    let offered: Mutex<HashSet<String>> = Mutex::new(HashSet::new());
    for round in 0..rounds() {
        let server = installation.serve();
        let wanted = accepted.lock().unwrap().len() + ACCEPTED_A_ROUND;
        load_until(
            || accepted.lock().unwrap().len() >= wanted,
            || server.kill_in_place(),
            |n| {
                let name = format!("{round}-{n}");
                offered.lock().unwrap().insert(name.clone());
                // The server may die at any moment: no reply is no promise.
                if let Some(id) = submit(installation.data.path(), &installation.key, &name) {
                    accepted.lock().unwrap().insert(name, id);
                }
            },
        );
    }
    let server = installation.serve();
    let (accepted, offered) = (accepted.into_inner().unwrap(), offered.into_inner().unwrap());
    for name in &offered {
        let id = submit(installation.data.path(), &installation.key, name).expect("the server runs");
        assert!(
            accepted.get(name).is_none_or(|before| *before == id),
            "{name} is {id} and was {:?}",
            accepted.get(name)
        );
    }
    let known: HashSet<_> =
        installation.all(&server, "/v1/messages").iter().map(|message| message["message_id"].to_string()).collect();
    assert!(accepted.values().all(|id| known.contains(&format!("\"{id}\""))), "a mail that was acknowledged is lost");
    assert_eq!(known.len(), offered.len(), "each mail is one message");
}

/// Submits a mail over a new connection; returns the id of its message, if the reply came.
fn submit(data: &Path, key: &str, name: &str) -> Option<String> {
    let address = fs::read_to_string(data.join("submission-listen")).ok()?;
    let stream = TcpStream::connect(address.trim()).ok()?;
    stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
    let mut stream = BufReader::new(stream);
    let login = format!("AUTH PLAIN {}\r\n", STANDARD.encode(format!("\0x\0{key}")));
    let mail = format!(
        "MAIL FROM:<a@sandbox.test>\r\nRCPT TO:<user-{name}@example.com>\r\nDATA\r\n|From: a@sandbox.test\r\n\
         To: user-{name}@example.com\r\nSubject: s\r\nMessage-ID: <{name}@client.test>\r\n\r\nnumber {name}\r\n.\r\n"
    );
    let (envelope, content) = mail.split_once('|').unwrap();
    let envelope: Vec<_> = envelope.split_inclusive('\n').collect();
    let commands = [&["", "EHLO client.test\r\n", &login][..], &envelope, &[content]].concat();
    let mut last = String::new();
    for command in commands {
        stream.get_mut().write_all(command.as_bytes()).ok()?;
        last = reply(&mut stream)?;
        if last.starts_with("421") {
            return None;
        }
        assert!(last.starts_with(['2', '3']), "{last}");
    }
    Some(last.split_whitespace().nth(2)?.to_owned())
}

fn reply(stream: &mut BufReader<TcpStream>) -> Option<String> {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        // A reply that was cut off does not count.
        if !line.ends_with("\r\n") {
            return None;
        }
        if line.get(3..4) != Some("-") {
            return Some(line);
        }
    }
}
