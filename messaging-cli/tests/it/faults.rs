//! A disk that fills up or fails, a power cut after it failed, and another program that locks the database: the
//! real program under load, with a mail server that counts what arrives.
//!
//! The suite keeps each fault for some seconds; a release is tested with `FAULT_SECONDS=60 cargo test -p messaging-cli
//! --test it faults::`.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use messaging_testing::ScriptedSmtpServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, allowed, directory, run, wait_for, wait_or_tell};

/// Clients that send requests at the same time.
const CLIENTS: usize = 4;

/// Seconds that a fault lasts, unless `FAULT_SECONDS` says otherwise.
const SECONDS: u64 = 4;

/// Time after a fault within which everything works again.
const RECOVERY: Duration = Duration::from_secs(10);

/// Failed syncs before the power is cut.
const FAILED_SYNCS: usize = 3;

fn fault_time() -> Duration {
    let seconds = std::env::var("FAULT_SECONDS").map_or(SECONDS, |text| text.parse().expect("a number of seconds"));
    Duration::from_secs(seconds)
}

/// A data directory, and a server on it that sends to a mail server of the test.
struct Bench {
    /// Kept because the mail server runs on it.
    _runtime: tokio::runtime::Runtime,
    sink: ScriptedSmtpServer,
    place: TempDir,
    data: PathBuf,
    /// Library that makes the disk fail on command; `None` on an ordinary disk.
    library: Option<PathBuf>,
    key: String,
    accepted: Mutex<HashSet<String>>,
}

impl Bench {
    /// On a disk that fails on command.
    fn new() -> Self {
        let place = directory();
        let data = place.path().join("data");
        let library = place.path().join("disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/disk.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
        assert!(compiler.status().expect("a C compiler, which SQLite needs as well").success());
        let bench = Self::at(place, data, Some(library));
        fs::create_dir_all(bench.image()).unwrap();
        bench.tell("fine");
        bench.prepared()
    }

    /// On a real disk of its own, below or beside `place`. The library keeps a second copy of the database, and would
    /// need a disk twice as large.
    fn on_real_disk(place: TempDir, data: PathBuf) -> Self {
        Self::at(place, data, None).prepared()
    }

    fn at(place: TempDir, data: PathBuf, library: Option<PathBuf>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let sink = runtime.block_on(ScriptedSmtpServer::start());
        Self { _runtime: runtime, sink, place, data, library, key: String::new(), accepted: Mutex::default() }
    }

    fn prepared(mut self) -> Self {
        self.key = self.prepare();
        self
    }

    /// Makes a workspace that sends directly; returns a key to it without a rate limit.
    fn prepare(&self) -> String {
        let server = self.start("dev", &[]);
        let dev = server.dev_json();
        let workspace = dev["workspace_id"].as_str().unwrap();
        let path = format!("/v1/workspaces/{workspace}/channels/email");
        let settings = json!({"provider": "builtin", "config": {}});
        let (status, answer) = server.request("PUT", &path, dev["api_key"].as_str().unwrap(), &settings);
        assert_eq!(status, 200, "{answer}");
        let words = ["admin", "create-key", "--workspace", workspace, "--name", "load", "--scopes", "*"];
        let limit = ["--rate-limit", "100000", "--json", "--data", self.data.to_str().unwrap()];
        let key = run(words.into_iter().chain(limit)).expect(0).json()["key"].as_str().unwrap().to_owned();
        assert_eq!(server.stop(), Some(0));
        key
    }

    fn start(&self, command: &str, more: &[&str]) -> Server {
        let exchanger = self.sink.address().to_string();
        let more: Vec<&str> =
            ["--mx-override", &exchanger, "--message-retry", "1"].into_iter().chain(more.iter().copied()).collect();
        let environment: Vec<(&str, &OsStr)> = self
            .library
            .iter()
            .flat_map(|library| [("LD_PRELOAD", library.as_os_str()), ("FAULTY_DISK", self.data.as_os_str())])
            .collect();
        Server::start_in(command, &self.data, &more, &environment)
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.data.clone().into_os_string();
        path.push(suffix);
        path.into()
    }

    /// Path of the database as a power cut would leave it.
    fn image(&self) -> PathBuf {
        self.beside(".image")
    }

    /// Tells the failing disk how to behave.
    fn tell(&self, word: &str) {
        let aside = self.place.path().join("word");
        fs::write(&aside, word).unwrap();
        // Replaced in one step, because the library may be reading it.
        fs::copy(&aside, self.beside(".new")).unwrap();
        fs::rename(self.beside(".new"), self.beside(".control")).unwrap();
    }

    fn is_told(&self, word: &str) -> bool {
        fs::read_to_string(self.beside(".control")).unwrap() == word
    }

    /// Sends messages from several threads while `meanwhile` runs. Every answer is 202 or 503.
    fn under_load<T>(&self, server: &Server, text: &str, meanwhile: impl FnOnce(&Load) -> T) -> T {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let (stop, load) = (AtomicBool::new(false), Load::default());
        thread::scope(|scope| {
            let _ending = Ending(&stop);
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let n = NEXT.fetch_add(1, Ordering::Relaxed);
                        let to = format!("user-{n}@d{}.test", n % 4);
                        let message = json!({"channel": "email", "to": to, "subject": "s", "text": text});
                        let began = Instant::now();
                        let answer = server.try_request("/v1/messages", &self.key, &[], &message);
                        load.slowest
                            .fetch_max(usize::try_from(began.elapsed().as_millis()).unwrap(), Ordering::Relaxed);
                        match answer {
                            Some((202, answer)) => {
                                let id = answer["message_id"].as_str().unwrap().to_owned();
                                self.accepted.lock().unwrap().insert(id);
                                load.accepted.fetch_add(1, Ordering::Relaxed);
                            }
                            Some((503, answer)) => {
                                assert_eq!(answer["error"]["code"], "unavailable", "{answer}");
                                load.refused.fetch_add(1, Ordering::Relaxed);
                            }
                            // The server was killed; without an answer there is no promise.
                            None => load.broken.store(true, Ordering::Relaxed),
                            other => {
                                load.wrong.lock().unwrap().push(format!("{other:?}"));
                            }
                        }
                        thread::sleep(Duration::from_millis(3));
                    }
                });
            }
            let answer = meanwhile(&load);
            stop.store(true, Ordering::Relaxed);
            let wrong = load.wrong.lock().unwrap();
            assert!(wrong.is_empty(), "{wrong:?}");
            answer
        })
    }

    /// Number of times that each message arrived, by its id.
    fn arrivals(&self) -> HashMap<String, usize> {
        let mut count = HashMap::new();
        for received in self.sink.messages() {
            let content = String::from_utf8_lossy(&received.content);
            let header =
                content.lines().find_map(|line| line.strip_prefix("Message-ID: <")).expect("every mail has one");
            *count.entry(header.split('@').next().unwrap().to_owned()).or_default() += 1;
        }
        count
    }

    /// Waits until every accepted message has arrived and its outcome is known. Returns the number of second copies.
    fn finish(&self, server: &Server) -> usize {
        let accepted = self.accepted.lock().unwrap();
        // One at a time: polling all of them would keep the server from delivering.
        for id in accepted.iter() {
            wait_or_tell(|| {
                let (status, message) = server.request("GET", &format!("/v1/messages/{id}"), &self.key, &Value::Null);
                assert_eq!(status, 200, "{id} was accepted and is lost: {message}");
                if message["status"] == "delivered" { Ok(()) } else { Err(format!("not delivered: {message}")) }
            });
        }
        let arrivals = self.arrivals();
        let lost: Vec<_> = accepted.iter().filter(|id| !arrivals.contains_key(*id)).collect();
        assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), accepted.len());
        arrivals.values().map(|count| count - 1).sum()
    }
}

/// Counts of the requests of a test by their outcome.
#[derive(Default)]
struct Load {
    accepted: AtomicUsize,
    refused: AtomicUsize,
    broken: AtomicBool,
    /// Longest time to an answer, in milliseconds.
    slowest: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl Load {
    /// Waits until `more` further requests were accepted; returns the time that took.
    fn accept(&self, more: usize) -> Duration {
        let (began, wanted) = (Instant::now(), self.accepted.load(Ordering::Relaxed) + more);
        wait_for(|| (self.accepted.load(Ordering::Relaxed) >= wanted).then_some(()));
        began.elapsed()
    }
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn health(server: &Server) -> (u16, Value) {
    server.request("GET", "/health", "", &Value::Null)
}

/// Begins a fault under load, ends it, and checks that nothing was lost or sent twice.
fn survive<G>(bench: &Bench, server: &Server, begin: impl FnOnce() -> G, end: impl FnOnce(G)) {
    bench.under_load(server, "text", |load| {
        load.accept(100);
        let fault = begin();
        wait_for(|| (health(server).0 == 503).then_some(()));
        assert_eq!(health(server).1, json!({"status": "unavailable"}));
        // Requests that were being answered when the fault began have their answers by now.
        thread::sleep(Duration::from_secs(1));
        let (accepted, refused) = (load.accepted.load(Ordering::Relaxed), load.refused.load(Ordering::Relaxed));
        thread::sleep(fault_time().saturating_sub(Duration::from_secs(1)));
        assert_eq!(load.accepted.load(Ordering::Relaxed), accepted, "nothing can be accepted");
        assert!(load.refused.load(Ordering::Relaxed) > refused);
        end(fault);
        let took = load.accept(1);
        assert!(took < allowed(RECOVERY), "{took:?}");
        wait_for(|| (health(server).0 == 200).then_some(()));
        load.accept(100);
        let slowest = load.slowest.load(Ordering::Relaxed);
        assert!(slowest < 5_000, "an answer took {slowest} ms");
        let refused = load.refused.load(Ordering::Relaxed);
        eprintln!("recovered in {took:?}; {refused} refused; slowest answer {slowest} ms");
    });
    let second = bench.finish(server);
    eprintln!("{} accepted, {second} second copies", bench.accepted.lock().unwrap().len());
    assert_eq!(second, 0);
}

#[test]
fn a_full_disk_loses_nothing_and_sends_nothing_twice() {
    let bench = Bench::new();
    let server = bench.start("serve", &[]);
    survive(&bench, &server, || bench.tell("full"), |()| bench.tell("fine"));
}

#[test]
fn failing_syncs_lose_nothing_and_send_nothing_twice() {
    let bench = Bench::new();
    let server = bench.start("serve", &[]);
    survive(&bench, &server, || bench.tell("sync"), |()| bench.tell("fine"));
}

#[test]
fn a_foreign_lock_loses_nothing_and_sends_nothing_twice() {
    let bench = Bench::new();
    let server = bench.start("serve", &[]);
    let lock = || {
        let foreign = rusqlite::Connection::open(bench.data.join("messaging.db")).unwrap();
        foreign.busy_timeout(Duration::from_mins(1)).unwrap();
        foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
        foreign
    };
    survive(&bench, &server, lock, |foreign| foreign.execute_batch("ROLLBACK").unwrap());
}

#[test]
fn a_power_cut_after_a_failed_sync_loses_nothing_that_was_accepted() {
    let bench = Bench::new();
    let server = bench.start("serve", &[]);
    bench.under_load(&server, "text", |load| {
        for _ in 0..FAILED_SYNCS {
            load.accept(100);
            bench.tell("sync-once");
            wait_for(|| bench.is_told("fine").then_some(()));
            let took = load.accept(100);
            assert!(took < allowed(RECOVERY), "{took:?}");
        }
        // The power is cut while every client writes.
        server.kill_in_place();
        wait_for(|| load.broken.load(Ordering::Relaxed).then_some(()));
    });
    drop(server);
    let database = bench.data.join("messaging.db");
    for name in ["messaging.db", "messaging.db-wal"] {
        fs::copy(bench.image().join(name), bench.data.join(name)).unwrap();
    }
    fs::remove_file(bench.data.join("messaging.db-shm")).unwrap();
    let look = rusqlite::Connection::open(&database).unwrap();
    let check: String = look.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    drop(look);
    let server = bench.start("serve", &[]);
    let second = bench.finish(&server);
    eprintln!("{} accepted, {second} second copies after a cut", bench.accepted.lock().unwrap().len());
}

/// A file system in memory, gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; `None` if this user may not.
    fn mount(at: &Path, mib: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Fills a disk of `mib` MiB with messages until requests are refused, and then makes room.
fn fill_up(mib: u32, settings: &[&str]) {
    let place = directory();
    let mount = place.path().join("disk");
    let Some(disk) = SmallDisk::mount(&mount, mib) else {
        eprintln!("skipped: this user may not mount a file system");
        return;
    };
    let ballast = mount.join("ballast");
    // Large, so that few messages fill the disk.
    let text = "x".repeat(64 << 10);
    fs::write(&ballast, vec![b'x'; (mib as usize / 3) << 20]).unwrap();
    let bench = Bench::on_real_disk(place, mount.join("data"));
    let server = bench.start("serve", settings);
    bench.under_load(&server, &text, |load| {
        wait_for(|| {
            assert!(!load.broken.load(Ordering::Relaxed), "the server is gone");
            (load.refused.load(Ordering::Relaxed) > 20).then_some(())
        });
        wait_for(|| (health(&server).0 == 503).then_some(()));
        let one = bench.accepted.lock().unwrap().iter().next().cloned().expect("some were accepted");
        let (status, answer) = server.request("GET", &format!("/v1/messages/{one}"), &bench.key, &Value::Null);
        assert_eq!(status, 200, "reading goes on: {answer}");
        thread::sleep(fault_time());
        fs::remove_file(&ballast).unwrap();
        let took = load.accept(1);
        assert!(took < allowed(RECOVERY), "{took:?}");
        eprintln!("{mib} MiB: recovered in {took:?}");
        load.accept(50);
    });
    let second = bench.finish(&server);
    eprintln!("{mib} MiB: {} accepted, {second} second copies", bench.accepted.lock().unwrap().len());
    assert_eq!(second, 0);
    drop(server);
    drop(disk);
}

#[test]
fn a_start_whose_number_finds_no_room_goes_on_and_fences_nothing() {
    let data = directory();
    assert_eq!(Server::dev(data.path()).stop(), Some(0));
    let before = fs::read(data.path().join("epoch")).unwrap();
    // The file `epoch` is written under this name first, here to a device that is always full.
    std::os::unix::fs::symlink("/dev/full", data.path().join("epoch.part")).unwrap();
    let server = Server::dev(data.path());
    assert_eq!(fs::read(data.path().join("epoch")).unwrap(), before);
    server.command(&["message", "send", "--to", "ann@example.com", "--subject", "s", "--text", "t"]).expect(0);
    server.kill();
    for _ in 0..2 {
        let server = Server::dev(data.path());
        let report = run(["doctor", "--json", "--data", data.path().to_str().unwrap()]).json();
        let fence = report["checks"].as_array().unwrap().iter().find(|check| check["id"] == "fence").unwrap();
        assert_eq!(fence["status"], "ok", "{fence}");
        assert_eq!(server.stop(), Some(0));
    }
    assert_ne!(fs::read(data.path().join("epoch")).unwrap(), before);
}

#[test]
fn a_request_that_a_full_disk_refuses_is_told_so() {
    let bench = Bench::new();
    let server = bench.start("serve", &[]);
    let message = json!({"channel": "email", "to": "ann@d1.test", "subject": "s", "text": "t"});
    let send = || server.request("POST", "/v1/messages", &bench.key, &message);
    assert_eq!(send().0, 202);
    bench.tell("full");
    wait_for(|| {
        let (status, refused) = send();
        assert!(status == 202 || refused["error"]["code"] == "unavailable", "{status} {refused}");
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        (status == 503 && message.contains("disk of the installation is full")).then_some(())
    });
    bench.tell("fine");
    wait_for(|| (send().0 == 202).then_some(()));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_file_that_cannot_be_used_is_503_and_named_in_the_log() {
    let place = directory();
    let (data, log) = (place.path().join("data"), place.path().join("log"));
    let server = Server::launch("dev", &data, &[], &[], fs::File::create(&log).unwrap().into());
    let dev = server.dev_json();
    let key = dev["api_key"].as_str().unwrap();
    // An obstacle for every user, root included: a file with the name of the directory.
    for name in ["attachments", "uploads"] {
        let _ = fs::remove_dir_all(data.join(name));
        fs::write(data.join(name), "").unwrap();
    }
    let attachment = json!([{"filename": "a.txt", "content_b64": "aGVsbG8=", "content_type": "text/plain"}]);
    let message = json!({"channel": "email", "from_email": dev["from_email"], "to": "ann@example.com", "subject": "s",
        "text": "t", "attachments": attachment});
    let (status, refused) = server.request("POST", "/v1/messages", key, &message);
    assert_eq!((status, &refused["error"]["code"]), (503, &json!("unavailable")), "{refused}");
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(told.contains("a file of the installation") && !told.contains("attachments"), "{told}");
    let file = place.path().join("people.csv");
    fs::write(&file, "email\nann@example.com\n").unwrap();
    let import = server.command(&["contact", "import", file.to_str().unwrap(), "--json"]).expect(1);
    assert!(import.stdout.contains("unavailable"), "{import:?}");
    for name in ["attachments", "uploads"] {
        wait_for(|| fs::read_to_string(&log).unwrap().contains(data.join(name).to_str().unwrap()).then_some(()));
        fs::remove_file(data.join(name)).unwrap();
    }
    assert_eq!(server.request("POST", "/v1/messages", key, &message).0, 202);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_small_disk_fills_up_to_its_reserve() {
    fill_up(64, &["--disk-reserve", "8000000"]);
}

#[test]
fn a_small_disk_fills_up_without_a_reserve() {
    fill_up(64, &["--disk-reserve", "0"]);
}

#[test]
fn a_larger_disk_fills_up_to_the_default_reserve() {
    if std::env::var_os("FAULT_SECONDS").is_none() {
        eprintln!("skipped: set FAULT_SECONDS to fill a disk of 400 MiB");
        return;
    }
    fill_up(400, &[]);
}
