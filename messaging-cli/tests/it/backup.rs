//! Backups of a running server, servers on copies, and kills meanwhile.

mod campaigns;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use messaging_testing::{ScriptedHttpServer, ScriptedSmtpServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Ran, Server, directory, program, run, wait_for, wait_or_tell};

/// Clients that send requests at the same time.
const CLIENTS: usize = 3;

/// Recipients whom the mail server defers.
const PUT_OFF: usize = 12;

/// An installation that sends to a mail server and a webhook receiver of the test.
struct Site {
    _runtime: tokio::runtime::Runtime,
    sink: ScriptedSmtpServer,
    receiver: ScriptedHttpServer,
    place: TempDir,
    workspace: String,
    key: String,
    flags: Vec<String>,
}

impl Site {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (sink, receiver) =
            runtime.block_on(async { (ScriptedSmtpServer::start().await, ScriptedHttpServer::start().await) });
        for number in 0..PUT_OFF {
            sink.answer(&put_off(number), "451 4.3.0 later");
        }
        let exchanger = sink.address().to_string();
        let flags = ["--mx-override", &exchanger, "--message-retry", "1", "--allow-private-targets"];
        let flags = flags.map(ToOwned::to_owned).to_vec();
        let place = directory();
        let mut site =
            Self { _runtime: runtime, sink, receiver, place, workspace: String::new(), key: String::new(), flags };
        site.prepare();
        site
    }

    fn prepare(&mut self) {
        let server = self.start("dev", "data");
        let dev = server.dev_json();
        dev["workspace_id"].as_str().unwrap().clone_into(&mut self.workspace);
        let path = |rest: &str| format!("/v1/workspaces/{}/{rest}", self.workspace);
        let dev_key = dev["api_key"].as_str().unwrap();
        let channel = json!({"provider": "builtin", "config": {}});
        assert_eq!(server.request("PUT", &path("channels/email"), dev_key, &channel).0, 200);
        let hook = json!({"url": self.receiver.url("/hook"), "events": ["sent", "cancelled"]});
        assert_eq!(server.request("POST", &path("webhooks"), dev_key, &hook).0, 201);
        let words = ["admin", "create-key", "--workspace", &self.workspace, "--name", "load", "--scopes", "*"];
        let data = self.data("data");
        let limit = ["--rate-limit", "100000", "--json", "--data", data.to_str().unwrap()];
        let created = run(words.into_iter().chain(limit)).expect(0).json();
        created["key"].as_str().unwrap().clone_into(&mut self.key);
        assert_eq!(server.stop(), Some(0));
    }

    fn data(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn start(&self, command: &str, name: &str) -> Server {
        let flags: Vec<_> = self.flags.iter().map(String::as_str).collect();
        Server::start(command, &self.data(name), &flags)
    }

    /// A command on a data directory.
    fn command(&self, words: &[&str], name: &str) -> Ran {
        let data = self.data(name);
        run(words.iter().copied().chain(["--json", "--data", data.to_str().unwrap()]))
    }

    fn back_up(&self, name: &str) -> PathBuf {
        let file = self.place.path().join("backup.tar");
        self.command(&["backup", file.to_str().unwrap()], name).expect(0);
        file
    }

    fn restore(&self, file: &Path, name: &str) {
        self.command(&["restore", file.to_str().unwrap()], name).expect(0);
    }

    fn resume(&self, queued: &str, name: &str) -> Ran {
        self.command(&["admin", "resume", "--queued", queued], name)
    }

    /// Sends a message; `None` when no answer came.
    fn try_send(&self, server: &Server, to: &str) -> Option<String> {
        let attachment = json!({"filename": "a.txt", "content_type": "text/plain", "content_b64": "b25l"});
        let message = json!({"channel": "email", "to": to, "subject": "s", "text": to, "attachments": [attachment]});
        let (status, answer) = server.try_request("/v1/messages", &self.key, &[], &message)?;
        assert_eq!(status, 202, "{answer}");
        Some(answer["message_id"].as_str().unwrap().to_owned())
    }

    fn get(&self, server: &Server, path: &str) -> Value {
        let (status, answer) = server.request("GET", path, &self.key, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// All messages of the workspace.
    fn messages(&self, server: &Server) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut page = self.get(server, &format!("/v1/messages?limit=200{cursor}"));
            items.append(page["data"].as_array_mut().unwrap());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    fn waiting(&self, server: &Server) -> Vec<Value> {
        self.messages(server).into_iter().filter(is_waiting).collect()
    }

    /// The answer of `GET /system` to the user that `dev` created.
    fn system(&self, server: &Server) -> Value {
        let dev: Value = serde_json::from_slice(&fs::read(self.data("data").join("dev.json")).unwrap()).unwrap();
        let sign_in = json!({"email": dev["console_email"], "password": dev["console_password"]});
        let (status, session) = server.request("POST", "/v1/auth/login", "", &sign_in);
        assert_eq!(status, 200, "{session}");
        let (status, system) = server.request("GET", "/v1/system", session["token"].as_str().unwrap(), &Value::Null);
        assert_eq!(status, 200, "{system}");
        system
    }

    /// Number of mails begun at the mail server and of calls of the webhook so far. The checks of `/system` connect
    /// there too, and begin no mail.
    fn left(&self) -> (usize, usize) {
        let begun = self.sink.commands().iter().filter(|command| command.starts_with("MAIL")).count();
        (begun, self.receiver.requests().len())
    }

    /// Returns when the workers of a server have worked: they have read a file.
    fn let_it_work(&self, server: &Server) {
        let contacts = format!("/v1/workspaces/{}/contacts", self.workspace);
        let file = b"email\nann@example.com\n";
        let sum = ring::digest::digest(&ring::digest::SHA256, file);
        let sha256: String = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let body = json!({"filename": "a.csv", "size_bytes": file.len(), "sha256": sha256});
        let (status, import) = server.request("POST", &format!("{contacts}/import"), &self.key, &body);
        assert_eq!(status, 200, "{import}");
        let (status, answer) = server.upload(import["upload_url"].as_str().unwrap(), file).unwrap();
        assert_eq!(status, 202, "{answer}");
        let path = format!("{contacts}/imports/{}", import["import_id"].as_str().unwrap());
        wait_for(|| (self.get(server, &path)["status"] == "completed").then_some(()));
    }
}

fn put_off(number: usize) -> String {
    format!("later-{number}@b.test")
}

fn is_waiting(message: &Value) -> bool {
    ["queued", "sending", "deferred"].map(Value::from).contains(&message["status"])
}

/// Sends from several clients, some messages to recipients who are deferred, while `work` runs and until `enough` are
/// accepted. Returns the result of `work` and the number accepted.
fn under_load<T>(site: &Site, server: &Server, enough: usize, work: impl FnOnce() -> T) -> (T, usize) {
    let (next, stop) = (AtomicUsize::new(0), std::sync::atomic::AtomicBool::new(false));
    let accepted = Mutex::new(0);
    let done = thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let to = if number < PUT_OFF { put_off(number) } else { format!("user-{number}@a.test") };
                    if site.try_send(server, &to).is_some() {
                        *accepted.lock().unwrap() += 1;
                    }
                }
            });
        }
        wait_for(|| (*accepted.lock().unwrap() >= enough).then_some(()));
        let before = *accepted.lock().unwrap();
        let done = work();
        // Requests were accepted all the while.
        wait_for(|| (*accepted.lock().unwrap() >= before + enough).then_some(()));
        stop.store(true, Ordering::Relaxed);
        done
    });
    (done, accepted.into_inner().unwrap())
}

#[test]
fn a_copy_sends_nothing_until_told_and_with_cancel_nothing_from_before() {
    let site = Site::new();
    let server = site.start("serve", "data");
    let (file, accepted) = under_load(&site, &server, 60, || site.back_up("data"));
    wait_for(|| (site.waiting(&server).len() == PUT_OFF).then_some(()));
    assert_eq!(site.messages(&server).len(), accepted);
    assert_eq!(site.system(&server)["fenced"], Value::Null);
    server.kill();
    wait_for(|| (site.sink.open() == 0).then_some(()));
    let before = site.left();

    site.restore(&file, "restored");
    let server = site.start("serve", "restored");
    let waiting = site.waiting(&server);
    assert!(waiting.len() >= PUT_OFF, "{waiting:?}");
    let system = site.system(&server);
    assert_eq!((&system["fenced"]["reason"], &system["held"][0]["reason"]), (&json!("restored"), &json!("held")));
    assert!(system["held"][0]["count"].as_u64().unwrap() >= waiting.len() as u64, "{system}");
    // Requests are accepted, and their answers say why nothing is sent.
    let new = site.try_send(&server, "new@a.test").unwrap();
    let shown = site.get(&server, &format!("/v1/messages/{new}"));
    assert_eq!(shown["status"], "queued");
    for message in site.waiting(&server).iter().chain([&shown]) {
        assert_eq!(message["hold"], json!({"reason": "held", "until": null}));
    }
    site.let_it_work(&server);
    assert_eq!(site.left(), before, "nothing leaves a copy");

    // A fenced installation stays fenced after a restart.
    assert_eq!(server.stop(), Some(0));
    let server = site.start("serve", "restored");
    site.let_it_work(&server);
    assert_eq!(site.left(), before);

    for number in 0..PUT_OFF {
        site.sink.answer(&put_off(number), "250 2.1.5 ok");
    }
    let report = site.resume("cancel", "restored").expect(0).json();
    assert!(report["fenced_since"].is_string(), "{report}");
    let listed = site.messages(&server);
    assert_eq!(listed.iter().filter(|message| is_waiting(message)).count(), 0, "{listed:?}");
    let cancelled = listed.iter().filter(|message| message["status"] == "cancelled").count();
    assert_eq!(cancelled, waiting.len() + 1, "those of the copy, and the one that was accepted since");
    assert!(listed.iter().all(|message| message["hold"].is_null()));
    assert_eq!(site.system(&server)["fenced"], Value::Null);

    // From now on it sends, but only new messages.
    let later = site.try_send(&server, "later@a.test").unwrap();
    wait_or_tell(|| {
        let message = site.get(&server, &format!("/v1/messages/{later}"));
        if message["status"] == "delivered" { Ok(()) } else { Err(format!("{message}")) }
    });
    wait_for(|| (site.receiver.requests().len() > before.1).then_some(()));
    site.let_it_work(&server);
    let received = site.sink.messages();
    assert_eq!(received.last().unwrap().recipients, ["later@a.test"]);
    assert_eq!(site.left(), (before.0 + 1, before.1 + 1), "one connection, one event");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(site.resume("cancel", "restored").expect(0).json()["fenced_since"], Value::Null);
}

#[test]
fn a_copy_that_is_told_to_send_goes_on_with_everything() {
    let site = Site::new();
    let server = site.start("serve", "data");
    let (file, _) = under_load(&site, &server, 20, || site.back_up("data"));
    server.kill();
    wait_for(|| (site.sink.open() == 0).then_some(()));
    site.restore(&file, "restored");
    for number in 0..PUT_OFF {
        site.sink.answer(&put_off(number), "250 2.1.5 ok");
    }
    // Before any server has run on it.
    site.resume("send", "restored").expect(0);
    let server = site.start("serve", "restored");
    wait_for(|| site.waiting(&server).is_empty().then_some(()));
    let listed = site.messages(&server);
    assert!(listed.iter().all(|message| message["status"] == "delivered"), "{listed:?}");
    for number in 0..PUT_OFF {
        let arrived = site.sink.messages().iter().filter(|received| received.recipients == [put_off(number)]).count();
        assert_eq!(arrived, 1);
    }
    // The attachments are there: a message sent later has them as well.
    let content = String::from_utf8(site.sink.messages().last().unwrap().content.clone()).unwrap();
    assert!(content.contains("b25l"), "{content}");
    // A running server notices as well.
    assert_eq!(server.stop(), Some(0));
    fs::remove_file(site.data("restored").join("epoch")).unwrap();
    let server = site.start("serve", "restored");
    let held = site.try_send(&server, "held@a.test").unwrap();
    site.let_it_work(&server);
    assert_eq!(site.get(&server, &format!("/v1/messages/{held}"))["hold"]["reason"], "held");
    site.resume("send", "restored").expect(0);
    wait_for(|| (site.get(&server, &format!("/v1/messages/{held}"))["status"] == "delivered").then_some(()));
}

#[test]
fn a_database_without_its_number_is_fenced_and_a_moved_directory_is_not() {
    let site = Site::new();
    let copy = |name: &str, files: &[&str]| {
        fs::create_dir(site.data(name)).unwrap();
        for file in files {
            fs::copy(site.data("data").join(file), site.data(name).join(file)).unwrap();
        }
    };
    copy("moved", &["messaging.db", "secret.key", "epoch"]);
    copy("copied", &["messaging.db", "secret.key"]);
    for (name, fenced) in [("moved", false), ("copied", true)] {
        let server = site.start("serve", name);
        let system = site.system(&server);
        assert_eq!(system["fenced"].is_object(), fenced, "{name}: {system}");
        assert!(system["checks"].as_array().is_some_and(|checks| !checks.is_empty()), "{system}");
        assert!(system["disk"]["free_bytes"].as_u64().is_some_and(|free| free > 0), "{system}");
        // An API key, whatever its scopes, is not an operator.
        let (status, answer) = server.request("GET", "/v1/system", &site.key, &Value::Null);
        assert_eq!((status, &answer["error"]["code"]), (403, &json!("session_required")));
        let sent = site.try_send(&server, "ann@a.test").unwrap();
        if !fenced {
            wait_for(|| (site.get(&server, &format!("/v1/messages/{sent}"))["status"] == "delivered").then_some(()));
        }
    }
}

/// Starts a command and kills it after a while; returns true if it had ended before.
fn kill_after(words: &[&str], wait: Duration) -> bool {
    let mut child = program().args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(wait);
    let is_ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    child.wait().unwrap();
    is_ended
}

/// Kills after ever longer waits, until the command ends by itself.
fn killed_at_every_moment(mut kill: impl FnMut(Duration) -> bool) {
    let mut wait = Duration::ZERO;
    while !kill(wait) {
        wait += Duration::from_millis(4) + wait / 8;
        assert!(wait < Duration::from_mins(1));
    }
}

#[test]
fn a_backup_and_a_restore_are_complete_or_not_there_whenever_they_are_killed() {
    let site = Site::new();
    let server = site.start("serve", "data");
    under_load(&site, &server, 20, || {});
    let file = site.place.path().join("killed.tar");
    let (path, data) = (file.to_str().unwrap().to_owned(), site.data("data"));
    let restore = |name: &str| site.command(&["restore", &path], name);
    killed_at_every_moment(|wait| {
        let is_ended = kill_after(&["backup", &path, "--overwrite", "--data", data.to_str().unwrap()], wait);
        if file.exists() {
            restore("tried").expect(0);
            fs::remove_dir_all(site.data("tried")).unwrap();
        }
        is_ended
    });
    let names = |directory: &Path| {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.')).collect::<Vec<_>>()
    };
    assert_eq!(names(site.place.path()), [] as [&str; 0]);
    assert_eq!(names(&data), [] as [&str; 0]);
    assert!(site.try_send(&server, "still@a.test").is_some());
    server.kill();

    let restored = site.data("restored");
    killed_at_every_moment(|wait| {
        let is_ended = kill_after(&["restore", &path, "--data", restored.to_str().unwrap()], wait);
        if !is_ended && restored.join("messaging.db").exists() {
            // Killed after the last step that matters.
            fs::remove_dir_all(&restored).unwrap();
        }
        is_ended
    });
    let server = site.start("serve", "restored");
    assert!(site.system(&server)["fenced"].is_object());
    assert_eq!(names(&restored), [] as [&str; 0]);
}

#[test]
fn a_server_that_is_killed_while_it_starts_or_stops_is_not_fenced() {
    let site = Site::new();
    let data = site.data("data");
    let words = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    for millis in (0..120).step_by(6) {
        kill_after(&words, Duration::from_millis(millis));
    }
    let server = site.start("serve", "data");
    assert_eq!(site.system(&server)["fenced"], Value::Null);
}

#[test]
fn a_resume_that_is_killed_is_finished_by_the_next_server() {
    let site = Site::new();
    fs::remove_file(site.data("data").join("epoch")).unwrap();
    let server = site.start("serve", "data");
    under_load(&site, &server, 150, || {});
    let waiting = site.waiting(&server).len();
    assert!(waiting >= 300);
    server.kill();
    let data = site.data("data");
    let words = ["admin", "resume", "--queued", "cancel", "--data", data.to_str().unwrap()];
    // At any moment: before it began, in the middle, or at its end.
    for millis in [15, 40, 60, 80] {
        kill_after(&words, Duration::from_millis(millis));
    }
    let server = site.start("serve", "data");
    site.resume("cancel", "data").expect(0);
    let listed = site.messages(&server);
    assert!(listed.iter().all(|message| message["status"] == "cancelled"), "{listed:?}");
    site.let_it_work(&server);
    assert_eq!(site.left(), (0, 0));
}

#[test]
fn backups_of_every_night_keep_the_newest_and_can_be_read() {
    let site = Site::new();
    let nights = site.place.path().join("nights");
    fs::create_dir(&nights).unwrap();
    // The last file is one that a killed backup left.
    let old =
        ["messaging-2020-01-01T020000Z.tar", "messaging-2020-01-02T020000Z.tar", "messaging-2020-01-03T020000Z.tar"];
    for name in old.iter().chain(&["notes.txt", ".messaging-2020-01-04T020000Z.tar.0123456789abcdef.tar.part"]) {
        fs::write(nights.join(name), "x").unwrap();
    }
    let made = site.command(&["backup", "--dir", nights.to_str().unwrap(), "--keep", "2"], "data").expect(0).json();
    let mut names: Vec<_> =
        fs::read_dir(&nights).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let file = PathBuf::from(made["file"].as_str().unwrap());
    assert_eq!(names, [old[2], file.file_name().unwrap().to_str().unwrap(), "notes.txt"]);
    let read = run(["verify", file.to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!((&read["database_bytes"], &read["files"]), (&made["database_bytes"], &made["files"]));
    assert!(read["created_at"].as_str().unwrap().ends_with('Z'), "{read}");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let refused = run(["verify", file.to_str().unwrap()]).expect(1);
    assert!(refused.stderr.contains("no backup that can be used"), "{refused:?}");
    run(["verify", nights.join("none.tar").to_str().unwrap()]).expect(2);
}

#[test]
fn what_cannot_be_done_says_so_and_leaves_nothing() {
    let site = Site::new();
    let file = site.back_up("data");
    let path = file.to_str().unwrap();
    let refused = site.command(&["backup", path], "data").expect(1);
    assert_eq!(refused.json()["error"]["code"], "unsuccessful");
    assert!(refused.stderr.contains("--overwrite"), "{refused:?}");
    site.command(&["backup", path, "--overwrite"], "data").expect(0);
    let directory = site.place.path().to_str().unwrap();
    assert!(site.command(&["backup", directory, "--overwrite"], "data").expect(1).stderr.contains("--dir"));
    let nowhere = format!("{directory}/nowhere/file.tar");
    let refused = site.command(&["backup", &nowhere], "data").expect(1);
    assert!(refused.stderr.contains("there is no directory"), "{refused:?}");
    site.command(&["backup", path], "nowhere").expect(3);
    assert!(!site.data("nowhere").exists());
    site.command(&["restore", path], "data").expect(1);
    site.command(&["restore", "/nowhere.tar"], "new").expect(2);
    site.command(&["admin", "resume", "--queued", "both"], "data").expect(2);
    site.command(&["admin", "resume", "--queued", "send"], "nowhere").expect(3);
    assert!(!site.data("nowhere").exists());

    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    site.command(&["restore", path], "new").expect(1);
    assert!(!site.data("new").exists());
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();

    // A disk with room for a part of the backup.
    let kilobytes = bytes.len() / 1024;
    for share in [1, 2, 3, 4] {
        let limited = |words: &str, name: &str| {
            let line = format!(
                "trap '' XFSZ; ulimit -f {}; exec \"$0\" {words} --data '{}'",
                kilobytes * share / 5,
                site.data(name).display()
            );
            std::process::Command::new("bash")
                .args(["-c", &line, env!("CARGO_BIN_EXE_messaging")])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap()
                .code()
        };
        assert_eq!(limited(&format!("restore '{path}'"), "new"), Some(1));
        assert!(!site.data("new").exists());
        let other = site.place.path().join("other.tar");
        assert_eq!(limited(&format!("backup '{}'", other.display()), "data"), Some(1));
        let names: Vec<_> = fs::read_dir(site.place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }
    site.restore(&file, "new");
}
