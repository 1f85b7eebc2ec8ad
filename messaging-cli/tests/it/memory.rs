//! Memory: messages being sent at the same time need not all fit at once.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Server, directory, wait_for};

/// The most that may be resident at any time, in KiB.
const MOST_RESIDENT_KIB: u64 = 512 << 10;
/// Growth of resident memory by sending, in KiB: the promised 96 MiB, and slack for bodies that are being accepted
/// meanwhile, pages of the database and the allocator.
const MOST_GROWTH_KIB: u64 = (96 + 64) << 10;
const REQUESTS: usize = 32;
const FILE: usize = 15 << 20;

/// Sends a body and returns the whole response; opens a connection for each request.
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
    memory_kib(server, "VmHWM:")
}

fn memory_kib(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A mail server that accepts connections, answers up to the content, and then reads nothing.
fn stalled_mail_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            kept.push(stream.try_clone().unwrap());
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                stream.write_all(b"220 stalled.test\r\n").ok()?;
                while let Some(Ok(line)) = lines.next() {
                    let is_data = line == "DATA";
                    stream.write_all(if is_data { b"354 go on\r\n" } else { b"250 yes\r\n" }).ok()?;
                    if is_data {
                        thread::park();
                    }
                }
                Some(())
            });
        }
    });
    address
}

#[test]
fn large_messages_that_wait_for_a_slow_server_wait_on_disk() {
    const MESSAGES: usize = 80;
    const DOMAINS: usize = 8;
    let directory = directory();
    let peer = stalled_mail_server().to_string();
    let server = Server::start("dev", directory.path(), &["--mx-override", &peer]);
    let dev = server.dev_json();
    let key = dev["api_key"].as_str().unwrap();
    let path = format!("/v1/workspaces/{}/channels/email", dev["workspace_id"].as_str().unwrap());
    let (status, answer) = server.request("PUT", &path, key, &json!({"provider": "builtin", "config": {}}));
    assert_eq!(status, 200, "{answer}");
    let before = memory_kib(&server, "VmRSS:");
    // Twice 2 MiB, of a kind that grows in MIME.
    let part = "ä line of text that is as long as most are\r\n".repeat((2 << 20) / 48);
    for number in 0..MESSAGES {
        let message =
            json!({"channel": "email", "to": format!("ann@d{}.example.com", number % DOMAINS), "subject": "s",
            "text": part, "html": format!("<p>{part}</p>")})
            .to_string();
        let answer = post(&server, key, message.len(), message.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    }
    // None of these ends: work in progress stays so, and there is work for more than 0.8 GiB.
    thread::sleep(Duration::from_secs(5));
    let most = most_resident_kib(&server) - before;
    let growth = memory_kib(&server, "VmRSS:").saturating_sub(before);
    eprintln!("{growth} KiB more are resident while {MESSAGES} messages wait, {most} KiB at most");
    assert!(most < MOST_GROWTH_KIB, "{most} KiB more were resident than before, {growth} KiB in the end");
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
        // A request that waited too long for memory gets 503; no connection is cut.
        assert!(answer.starts_with("HTTP/1.1 202 ") || answer.starts_with("HTTP/1.1 503 "), "{answer}");
        accepted += usize::from(answer.starts_with("HTTP/1.1 202 "));
    }
    assert!(accepted > 0);
    wait_for(|| {
        // Deliveries get only idle processors, so the time for answers is not part of what they wait for.
        thread::sleep(Duration::from_millis(250));
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
