//! The program: its files, its exit codes, its end.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::request_text;
use crate::wire::Wire;

fn program(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_messaging-server"));
    command.env_clear().args(["--listen", "127.0.0.1:0", "--log-format", "json", "--data"]).arg(data);
    command
}

/// Starts the program and waits until it listens.
fn start(data: &Path) -> (Child, std::net::SocketAddr) {
    start_until(&mut program(data), "\"listening\"")
}

/// Starts a program and waits until it says where it listens, with these words.
fn start_until(program: &mut Command, words: &str) -> (Child, std::net::SocketAddr) {
    let mut child = program.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find(|line| line.as_ref().unwrap().contains(words)).unwrap().unwrap();
    // Lines that are not read would block the writer.
    std::thread::spawn(move || lines.for_each(drop));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = line["address"].as_str().unwrap().parse().unwrap();
    (child, address)
}

fn stop(mut child: Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap().code()
}

/// Asserts that only the owner can use the directory and everything in it.
#[track_caller]
fn assert_closed(path: &Path) {
    let metadata = std::fs::metadata(path).unwrap();
    let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(metadata.permissions().mode() & 0o777, expected, "{}", path.display());
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            assert_closed(&entry.unwrap().path());
        }
    }
}

#[test]
fn a_data_directory_that_others_may_use_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let open = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    for _ in 0..2 {
        open(&data, 0o755);
        let plain = program(&data);
        // Without a mask every file gets the mode that it is made with.
        let mut command = Command::new("/bin/sh");
        command.env_clear().args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
        let (child, _) = start_until(&mut command, "\"listening\"");
        // The file tells others where to call once everything is ready.
        while !data.join("listen").exists() {
            std::thread::yield_now();
        }
        assert_closed(&data);
        assert_eq!(stop(child, Signal::TERM), Some(0));
        for file in ["messaging.db", "secret.key", "messaging.db.lock"] {
            open(&data.join(file), 0o644);
        }
    }
}

#[tokio::test]
async fn it_keeps_its_files_private_tells_where_it_listens_and_stops_when_told() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    for signal in [Signal::TERM, Signal::INT] {
        let (child, address) = start(&data);
        assert_eq!(std::fs::read_to_string(data.join("listen")).unwrap(), format!("{address}\n"));
        assert_closed(&data);
        let mut wire = Wire::connect(address).await;
        wire.send(request_text("GET", "/health", &[], None)).await;
        assert_eq!(wire.response().await.unwrap().status, 200);
        assert_eq!(stop(child, signal), Some(0));
        assert!(!data.join("listen").exists());
    }
}

#[test]
fn returned_mail_has_an_address_of_its_own() {
    use std::io::Write as _;

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut program = program(&data);
    program.args(["--smtp-listen", "127.0.0.1:0", "--hostname", "mail.example.org"]);
    let (child, address) = start_until(&mut program, "\"listening for returned mail\"");
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.write_all(b"EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<bounce+0@bounce.example.org>\r\n").unwrap();
    let mut lines = BufReader::new(client).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "220 mail.example.org ESMTP for returned mail");
    assert!(lines.any(|line| line == "550 5.1.1 no such address"));
    // The server runs, so the file is there.
    assert_eq!(std::fs::read_to_string(data.join("smtp-listen")).unwrap(), format!("{address}\n"));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap(), "421 4.3.2 mail.example.org is stopping");
    assert_eq!(lines.next(), None);
    let mut child = child;
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!data.join("smtp-listen").exists());
}

#[test]
fn submitted_mail_has_an_address_of_its_own() {
    use std::io::Write as _;

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut program = program(&data);
    program.args(["--submission-listen", "127.0.0.1:0", "--hostname", "mail.example.org"]);
    let (mut child, address) = start_until(&mut program, "\"listening for submitted mail\"");
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.write_all(b"EHLO x\r\nMAIL FROM:<a@example.org>\r\n").unwrap();
    let mut lines = BufReader::new(client).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "220 mail.example.org ESMTP for submission");
    assert!(lines.any(|line| line == "530 5.7.0 sign in with AUTH first"));
    assert_eq!(std::fs::read_to_string(data.join("submission-listen")).unwrap(), format!("{address}\n"));
    assert_closed(&data);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap(), "421 4.3.2 mail.example.org is stopping");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!data.join("submission-listen").exists());
}

#[test]
fn the_address_of_the_metrics_page_is_written_down() {
    use std::io::{Read as _, Write as _};

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut program = program(&data);
    program.args(["--metrics-listen", "127.0.0.1:0"]);
    let (mut child, api) = start_until(&mut program, "\"listening\"");
    let get = |address: std::net::SocketAddr, path: &str| {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        write!(client, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    };
    // The file exists once the server answers.
    assert!(get(api, "/health").starts_with("HTTP/1.1 200"));
    let written = std::fs::read_to_string(data.join("metrics-listen")).unwrap();
    let address: std::net::SocketAddr = written.trim_end().parse().unwrap();
    assert_ne!(address, api);
    let page = get(address, "/metrics");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("messaging_"), "{page}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!data.join("metrics-listen").exists());
}

#[test]
fn what_cannot_work_is_said_and_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (first, address) = start(&data);
    let config = directory.path().join("settings.toml");
    std::fs::write(&config, "log = \"info\"\nlistne = \"x\"\n").unwrap();
    let other = directory.path().join("other");
    for (arguments, code, words) in [
        (vec!["--no-such-flag"], 2, "--no-such-flag"),
        (vec!["--config", config.to_str().unwrap()], 2, "line 2, column 1"),
        (vec!["--database", "postgres://localhost/x"], 2, "needs --public-url"),
        (vec!["--log", "a=b=c"], 2, "log filter"),
        (vec![], 3, "another messaging server works on this database"),
        (vec!["--data", other.to_str().unwrap(), "--listen", &address.to_string()], 3, "failed to listen"),
        (vec!["--smtp-listen", &address.to_string()], 3, "failed to listen"),
        (vec!["--smtp-listen", "localhost"], 2, "--smtp-listen"),
        (vec!["--tls-cert", "cert.pem"], 2, "--tls-key"),
        (vec!["--submission-listen", "0.0.0.0:0"], 2, "needs --tls-cert"),
        (vec!["--postmaster", "root"], 2, "--postmaster"),
        (vec!["--tls-cert", "/no/such.pem", "--tls-key", "/no/such.pem"], 3, "failed to read /no/such.pem"),
    ] {
        let mut command = program(&data);
        if arguments.contains(&"--data") {
            command = Command::new(env!("CARGO_BIN_EXE_messaging-server"));
        }
        let output = command.args(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert_eq!(stop(first, Signal::TERM), Some(0));
}
