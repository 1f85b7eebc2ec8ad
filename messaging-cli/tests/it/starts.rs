//! Starts of the real program: output, refusals, and notifications of the service manager.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Server, directory, run, wait_for};

/// A copy of a data directory whose server has stopped, without the file by which copies are recognized.
fn copy_of(data: &Path, to: &Path) {
    fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for name in ["messaging.db", "secret.key"] {
        fs::copy(data.join(name), to.join(name)).unwrap();
    }
}

/// Result of a check that `doctor` makes on a data directory, by the check's id.
fn check(data: &Path, id: &str, more: &[&str]) -> Value {
    let line = ["doctor", "--json", "--data", data.to_str().unwrap()];
    let report = run(line.iter().chain(more)).json();
    let found = report["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).cloned();
    found.unwrap_or_else(|| panic!("no check {id}: {report:#}"))
}

#[test]
fn a_server_on_a_copy_says_so_first_with_its_cure() {
    let place = directory();
    let (data, copy) = (place.path().join("data"), place.path().join("copy"));
    assert_eq!(Server::dev(&data).stop(), Some(0));
    assert_eq!(check(&data, "fence", &[])["status"], "ok");
    copy_of(&data, &copy);
    let (config, log) = (place.path().join("config.toml"), place.path().join("log"));
    fs::write(&config, "").unwrap();
    // The start that finds out, and a later one.
    for _ in 0..2 {
        let server = Server::configured(&copy, &config, &log);
        let told = wait_for(|| fs::read_to_string(&log).ok().filter(|told| told.contains("starting")));
        let first = told.lines().next().unwrap();
        for words in ["WARN", "the database is a copy", "messaging admin resume --queued cancel"] {
            assert!(first.contains(words), "{words}: {told}");
        }
        assert!(told.lines().any(|line| line.contains("starting") && line.contains("fenced_since")), "{told}");
        assert_eq!(server.stop(), Some(0));
    }
    let fence = check(&copy, "fence", &[]);
    assert_eq!(fence["status"], "fault");
    assert!(fence["cure"].as_str().unwrap().contains("admin resume"), "{fence}");
    let mut dev = Server::dev(&copy);
    let printed = dev.printed();
    let (first, second) = printed.split_once('\n').unwrap();
    assert!(first.starts_with("Fenced: nothing is sent: the database is a copy"), "{printed}");
    assert!(second.starts_with("Cure: ") && second.contains("messaging admin resume --queued"), "{printed}");
    run(["admin", "resume", "--queued", "send", "--data", copy.to_str().unwrap()]).expect(0);
    assert_eq!(dev.stop(), Some(0));
    assert_eq!(check(&copy, "fence", &[])["status"], "ok");
    assert!(!Server::dev(&copy).printed().contains("Fenced"));
}

#[test]
fn two_databases_in_one_directory_do_not_fence_one_another() {
    let data = directory();
    let other = data.path().join("other.db");
    let on_other = ["--database", other.to_str().unwrap()];
    for more in [&[][..], &on_other, &[], &on_other] {
        assert_eq!(Server::start("serve", data.path(), more).stop(), Some(0));
        assert_eq!(check(data.path(), "fence", more)["status"], "ok");
    }
}

#[test]
fn a_server_that_is_to_have_a_database_begins_none() {
    let place = directory();
    let data = place.path().join("data");
    let line = ["serve", "--require-database", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let refused = run(line).expect(2);
    for words in ["there is no database", "messaging restore", "--require-database"] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
    assert!(!data.exists(), "nothing was made");
    assert_eq!(Server::start("serve", &data, &[]).stop(), Some(0));
    let server = Server::start_in("serve", &data, &[], &[("MESSAGING_REQUIRE_DATABASE", OsStr::new("true"))]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_service_manager_is_told_of_every_state() {
    let place = directory();
    let socket = place.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let heard = || {
        let mut bytes = [0; 200];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let server = Server::start_in("serve", &place.path().join("data"), &[], &[("NOTIFY_SOCKET", socket.as_os_str())]);
    assert_eq!(heard(), "READY=1");
    server.reload();
    let reloading = heard();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(heard(), "READY=1");
    server.ask_to_stop();
    assert_eq!(heard(), "STOPPING=1");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn doctor_looks_at_the_settings_of_the_server_that_runs() {
    let data = directory();
    // A new database cannot be written below the reserve.
    assert_eq!(Server::start("serve", data.path(), &[]).stop(), Some(0));
    let settings = ["--hostname", "mx.service.test", "--disk-reserve", "9000000000000000000"];
    let server = Server::start("serve", data.path(), &settings);
    let path = data.path().to_str().unwrap();
    let ran = run(["doctor", "--json", "--data", path, "--hostname", "other.test"]);
    assert!(ran.stderr.contains("a server runs on") && ran.stderr.contains("not the --hostname"), "{ran:?}");
    assert_eq!(check(data.path(), "name", &["--hostname", "other.test"])["subject"], "mx.service.test");
    assert_eq!(check(data.path(), "disk", &[])["status"], "fault");
    let shown = run(["doctor", "--data", path]);
    assert!(shown.stdout.contains("mx.service.test") && !shown.stderr.contains("not the"), "{shown:?}");
    server.kill();
    // Files left by the server do not make it look as if it was running.
    assert!(data.path().join("settings.json").exists());
    assert_eq!(check(data.path(), "name", &["--hostname", "other.test"])["subject"], "other.test");
    assert_eq!(check(data.path(), "disk", &[])["status"], "ok");
    assert_eq!(Server::start("serve", data.path(), &[]).stop(), Some(0));
    assert!(!data.path().join("settings.json").exists());
}
