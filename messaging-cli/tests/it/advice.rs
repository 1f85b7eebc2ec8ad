//! Errors of the real program are told on one line, with advice.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;

use crate::support::{Ran, Server, directory, program, run};

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// Checks that the last line of standard error has all these words.
#[track_caller]
fn told(ran: &Ran, words: &[&str]) {
    let error = ran.stderr.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default();
    for word in words {
        assert!(error.contains(word), "{word}: {ran:?}");
    }
}

#[test]
fn a_port_in_use_names_the_flag_that_gives_another() {
    let data = directory();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let path = data.path().to_str().unwrap();
    for flag in ["--listen", "--smtp-listen", "--submission-listen", "--metrics-listen"] {
        let mut line = vec!["serve", "--data", path, flag, &address];
        if flag != "--listen" {
            line.extend(["--listen", "127.0.0.1:0"]);
        }
        told(&run(line).expect(3), &[&address, "another program has this port", flag]);
    }
    let foreign = run(["serve", "--data", path, "--listen", "192.0.2.1:0"]).expect(3);
    told(&foreign, &["192.0.2.1:0", "no such address", "--listen"]);
}

/// Runs a command line as a user who owns nothing; `None` if this user may not.
fn run_as_nobody(line: &[&str]) -> Option<Ran> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root becomes another user");
        return None;
    }
    let output = program().args(line).uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
}

#[test]
fn files_of_another_user_are_not_called_missing() {
    let place = directory();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let data = place.path().join("data");
    assert_eq!(Server::dev(&data).stop(), Some(0));
    let data = data.to_str().unwrap();
    let below = place.path().join("below/data");
    for (line, place) in [
        (vec!["admin", "list-workspaces", "--data", data], data),
        (vec!["serve", "--listen", "127.0.0.1:0", "--data", data], data),
        (vec!["message", "list", "--data", data, "--workspace", "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"], data),
        // A directory that does not exist yet.
        (vec!["serve", "--listen", "127.0.0.1:0", "--data", below.to_str().unwrap()], place.path().to_str().unwrap()),
    ] {
        let Some(ran) = run_as_nobody(&line) else { return };
        assert!(matches!(ran.code, Some(1 | 3)), "{ran:?}");
        told(&ran, &[&format!("{place} belongs to the user root"), "run this as that user", "Permission denied"]);
        assert!(!ran.stderr.contains("there is no database"), "{ran:?}");
    }
}

/// Mounts or unmounts; false if this user may not.
fn mount(words: &[&str]) -> bool {
    Command::new(words[0]).args(&words[1..]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn a_disk_that_takes_nothing_more_is_called_full_or_read_only() {
    let place = directory();
    let disk = place.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let at = disk.to_str().unwrap();
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", at]) {
        eprintln!("skipped: this user may not mount a file system");
        return;
    }
    let (first, data) = (place.path().join("first"), disk.join("data"));
    assert_eq!(Server::dev(&first).stop(), Some(0));
    fs::create_dir(&data).unwrap();
    for name in ["messaging.db", "secret.key", "epoch"] {
        fs::copy(first.join(name), data.join(name)).unwrap();
    }
    let data = data.to_str().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data];
    let list = ["admin", "list-users", "--data", data];
    let ballast = disk.join("ballast");
    // Writing ends with the error that the test waits for.
    let _ = fs::write(&ballast, vec![b'x'; 8 << 20]);
    let full = [run(serve), run(list)];
    fs::remove_file(&ballast).unwrap();
    let is_mounted = mount(&["mount", "-o", "remount,ro", at]);
    let read_only = run(serve);
    assert!(mount(&["umount", "-l", at]) && is_mounted);
    for (ran, word) in full.iter().map(|ran| (ran, "make room")).chain([(&read_only, "mounted read-only")]) {
        assert_eq!(ran.code, Some(3), "{ran:?}");
        told(ran, &[word]);
    }
}

#[test]
fn a_directory_that_is_not_ours_is_refused_and_stays_open() {
    let place = directory();
    let etc = place.path().join("etc");
    fs::create_dir(&etc).unwrap();
    fs::write(etc.join("passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    fs::set_permissions(&etc, Permissions::from_mode(0o755)).unwrap();
    let path = etc.to_str().unwrap();
    let new = place.path().join("new");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    told(&run([&serve[..], &["--data", path]].concat()).expect(3), &[path, "--data", "chmod 700"]);
    run([&serve[..], &["--data", new.to_str().unwrap(), "--database", path]].concat()).expect(3);
    assert_eq!(fs::metadata(&etc).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_dir(&etc).unwrap().count(), 1);
}

#[test]
fn a_server_that_is_not_reached_is_named() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{gone}/v1");
    told(&run(["health", "get", "--url", &url]).expect(3), &[&url, "MESSAGING_URL", "refused"]);
    let server_data = directory();
    let server = Server::start("serve", server_data.path(), &[]);
    let url = format!("https://{}/v1", server.address);
    let plain = format!("try http://{}/v1", server.address);
    told(&run(["health", "get", "--url", &url]).expect(3), &[&url, "without TLS", &plain]);
    // Answer of a TLS server to anything but TLS: an alert.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        stream.write_all(b"\x15\x03\x03\x00\x02\x02\x46").unwrap();
    });
    let url = format!("http://{address}/v1");
    told(&run(["health", "get", "--url", &url]).expect(3), &[&url, &format!("try https://{address}/v1")]);
    answering.join().unwrap();
    told(&run(["health", "get", "--url", "localhost:8080"]).expect(2), &["localhost:8080", "http://"]);
}

#[test]
fn a_wrong_database_url_says_how_one_looks() {
    for url in ["mysql://db/x", "sqlite:/var/lib/x.db", "postgres:/x", "http://db"] {
        told(&run(["serve", "--database", url]).expect(2), &["--database", "sqlite://PATH", "postgres://USER@HOST"]);
    }
}

#[test]
fn a_trial_is_warned_of_nothing_that_it_does_not_need() {
    let place = directory();
    let (data, log) = (place.path().join("data"), place.path().join("log"));
    let file = || fs::File::create(&log).unwrap().into();
    let server = Server::launch("dev", &data, &["--hostname", "vm"], &[], file());
    assert_eq!(server.stop(), Some(0));
    assert_eq!(fs::read_to_string(&log).unwrap(), "", "at the level `warn`");
    // A server that is to send mail is warned.
    assert_eq!(Server::launch("serve", &data, &["--hostname", "vm"], &[], file()).stop(), Some(0));
    assert!(fs::read_to_string(&log).unwrap().contains("--hostname such as mx.example.org"));
}
