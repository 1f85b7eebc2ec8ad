//! Signals to the server, and the settings in force: the real program.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{Server, directory, run, run_in, wait_for};

#[test]
fn a_second_signal_ends_the_server_in_the_middle_of_a_request() {
    let data = directory();
    let server = Server::dev(data.path());
    let mut request = TcpStream::connect(server.address).unwrap();
    write!(request, "POST /v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{{").unwrap();
    server.ask_to_stop();
    // It accepts no new connections, and waits for the rest of the request.
    wait_for(|| TcpStream::connect_timeout(&server.address, Duration::from_secs(5)).is_err().then_some(()));
    server.ask_to_stop();
    assert_eq!(server.ended(), Some(128 + 15));
    // Everything on disk is there, and the installation is not fenced.
    let again = Server::dev(data.path());
    again.command(&["message", "send", "--to", "ann@example.com", "--subject", "s", "--text", "t"]).expect(0);
    assert_eq!(again.stop(), Some(0));
}

#[test]
fn a_hangup_has_the_settings_read_again() {
    let data = directory();
    let (config, log) = (data.path().join("messaging.toml"), data.path().join("log"));
    let write = |text: &str| fs::write(&config, text).unwrap();
    let says = |words: &str| wait_for(|| fs::read_to_string(&log).unwrap().contains(words).then_some(()));
    write("log = \"warn\"\nhostname = \"mx.example.org\"");
    let server = Server::configured(data.path(), &config, &log);
    write("log = \"debug\"\nhostname = \"other.example.org\"");
    server.reload();
    says("some need a restart");
    says("--hostname");
    // Requests are logged at debug.
    wait_for(|| {
        server.text("/health");
        fs::read_to_string(&log).unwrap().contains("/health").then_some(())
    });
    for broken in ["no = such", "listen = 7", "log = \"a=b=c\""] {
        let before = fs::read_to_string(&log).unwrap().len();
        write(broken);
        server.reload();
        wait_for(|| fs::read_to_string(&log).unwrap()[before..].contains("ERROR").then_some(()));
        assert!(server.text("/health").starts_with("HTTP/1.1 200"));
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_check_of_the_settings_says_where_each_is_from_and_hides_secrets() {
    let data = directory();
    let config = data.path().join("messaging.toml");
    let sources = "source = [\"203.0.113.7=m1.example.org\", \"203.0.113.8\"]\ntrusted_proxy = [\"10.0.0.0/8\"]\n";
    let lists = "message_retry = [60, 300]\nlog_format = \"json\"\n";
    let settings = format!("hostname = \"mx.example.org\"\nlisten = \"127.0.0.1:1\"\n{lists}{sources}");
    fs::write(&config, settings).unwrap();
    let line = ["config", "check", "--json", "--config", config.to_str().unwrap(), "--listen", "127.0.0.1:2"];
    let environment = [("MESSAGING_DATABASE", "postgres://me:s3cret@db/messaging".as_ref())];
    let ran = run_in(line, &environment, "").expect(0);
    let settings = &ran.json()["settings"];
    let of = |name: &str| format!("{} {}", settings[name]["value"], settings[name]["from"]);
    assert_eq!(of("listen"), r#""127.0.0.1:2" "flag""#);
    assert_eq!(of("hostname"), r#""mx.example.org" "file""#);
    assert_eq!(of("message_retry"), r#"[60,300] "file""#);
    assert_eq!(of("source"), r#"["203.0.113.7=m1.example.org","203.0.113.8"] "file""#);
    assert_eq!(of("trusted_proxy"), r#"["10.0.0.0/8"] "file""#);
    assert_eq!(of("log_format"), r#""json" "file""#);
    assert_eq!(of("message_expiry"), r#""259200, three days" "default""#);
    assert_eq!(settings["database"]["from"], "environment");
    assert!(!ran.stdout.contains("s3cret"), "{ran:?}");
    let shown = run(["config", "check", "--config", config.to_str().unwrap()]).expect(0).stdout;
    let shown: Vec<_> = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        r#"source ["203.0.113.7=m1.example.org","203.0.113.8"] file"#,
        "hostname mx.example.org file",
        "message_retry [60,300] file",
    ] {
        assert!(shown.iter().any(|shown| shown == line), "{line}: {shown:?}");
    }
    fs::write(&config, "hostname = \"mx.example.org\"\nhostnam = \"x\"").unwrap();
    let refused = run(["config", "check", "--config", config.to_str().unwrap()]).expect(2);
    assert!(refused.stderr.contains("hostnam") && refused.stderr.contains("line 2"), "{refused:?}");
}
