//! Actions that cannot be undone are confirmed on a terminal, and only there.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{Server, directory, program, wait_for};

/// Runs a command on a terminal and types `answer` at the question; returns the exit code and the output.
fn on_a_terminal(server: &Server, line: &[&str], answer: &str) -> (Option<i32>, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = || -> OwnedFd { std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap().into() };
    let dev = server.dev_json();
    let mut child = program()
        .args(line)
        .env("MESSAGING_URL", dev["base_url"].as_str().unwrap())
        .env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap())
        .stdin(Stdio::from(theirs()))
        .stdout(Stdio::null())
        .stderr(Stdio::from(theirs()))
        .spawn()
        .unwrap();
    let mut ours = std::fs::File::from(ours);
    let mut reader = ours.try_clone().unwrap();
    let answer = answer.to_owned();
    let shown = thread::spawn(move || {
        let (mut shown, mut is_answered) = (String::new(), false);
        let mut bytes = [0; 1024];
        // The terminal is gone when the program has ended.
        while let Ok(read) = reader.read(&mut bytes) {
            if read == 0 {
                break;
            }
            shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
            if !is_answered && shown.contains("[y/N]") {
                is_answered = true;
                ours.write_all(answer.as_bytes()).unwrap();
            }
        }
        shown
    });
    let code = wait_for(|| child.try_wait().unwrap()).code();
    (code, shown.join().unwrap())
}

#[test]
fn erasing_is_confirmed_on_a_terminal_and_not_in_a_script() {
    let directory = directory();
    let server = Server::dev(directory.path());
    let contact = |email: &str| {
        let made = server.command(&["contact", "upsert", "--email", email, "--json"]).expect(0).json();
        made["id"].as_str().unwrap().to_owned()
    };
    let id = contact("ann@example.com");
    let delete = ["contact", "delete", &id];
    let (code, shown) = on_a_terminal(&server, &delete, "n\n");
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains(&id) && shown.contains("Erase"), "{shown}");
    server.command(&["contact", "get", &id]).expect(0);
    let (code, shown) = on_a_terminal(&server, &delete, "y\n");
    assert_eq!(code, Some(0), "{shown}");
    server.command(&["contact", "get", &id]).expect(1);

    let id = contact("ben@example.com");
    let (code, shown) = on_a_terminal(&server, &["contact", "delete", &id, "--yes"], "");
    assert!(code == Some(0) && !shown.contains("[y/N]"), "{shown}");
    let id = contact("eva@example.com");
    server.command(&["contact", "delete", &id]).expect(0);
}
