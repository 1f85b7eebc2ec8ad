//! Memory: what is sent at once does not have to fit at once.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Server, directory, wait_for};

/// The most that may be resident at any time, in KiB.
const MOST_RESIDENT_KIB: u64 = 512 << 10;
const REQUESTS: usize = 32;
const FILE: usize = 15 << 20;

/// Sends a body and answers the whole response; a connection per request.
fn post(server: &Server, key: &str, length: usize, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    // A refused body is not read, so that writing it may fail.
    let _ = stream.write_all(body);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn most_resident_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn large_attachments_at_once_stay_within_bounds_and_arrive() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let key = dev["api_key"].as_str().unwrap();
    let content = STANDARD.encode((0..FILE).map(|n| u8::try_from(n * 31 % 251).unwrap()).collect::<Vec<_>>());
    let message = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t",
        "attachments": [{"filename": "large.bin", "content_b64": content}]})
    .to_string();

    let answers: Vec<_> = thread::scope(|scope| {
        let requests: Vec<_> =
            (0..REQUESTS).map(|_| scope.spawn(|| post(&server, key, message.len(), message.as_bytes()))).collect();
        requests.into_iter().map(|request| request.join().unwrap()).collect()
    });
    let mut accepted = 0;
    for answer in answers {
        // Who waited too long for memory is told to come back; nobody is cut off.
        assert!(answer.starts_with("HTTP/1.1 202 ") || answer.starts_with("HTTP/1.1 503 "), "{answer}");
        accepted += usize::from(answer.starts_with("HTTP/1.1 202 "));
    }
    assert!(accepted > 0);
    wait_for(|| {
        let (_, page) = server.request("GET", "/v1/messages?limit=200", key, &Value::Null);
        let messages = page["data"].as_array()?;
        messages.iter().all(|message| message["status"] == "delivered").then_some(())
    });
    let most = most_resident_kib(&server);
    assert!(most < MOST_RESIDENT_KIB, "{most} KiB were resident");
}

#[test]
fn a_body_that_is_announced_too_long_is_refused_unread() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let dev = server.dev_json();
    let answer = post(&server, dev["api_key"].as_str().unwrap(), (25 << 20) + 1, b"");
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}
