//! The commands of README and of the page about backups, extracted and run in their order, unchanged except for
//! addresses, ports and ids.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use messaging_testing::{ScriptedSmtpServer, TestDns};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{directory, program, wait_for, wait_or_tell};

/// Prefixes that README writes with an ellipsis, because each reader gets another value.
const PLACES: [&str; 5] = ["mk_live_", "wsp_", "dom_", "msg_", "seg_"];

/// The commands of README: its indented lines, those that end with a backslash joined with the next. Not those that
/// build and test the program itself.
fn commands() -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let mut commands: Vec<String> = Vec::new();
    let (mut is_fenced, mut goes_on) = (false, false);
    for line in readme.lines() {
        is_fenced ^= line.starts_with("```");
        let Some(text) = line.strip_prefix("    ").filter(|_| !is_fenced) else { continue };
        let (text, more) = match text.strip_suffix('\\') {
            Some(text) => (text, true),
            None => (text, false),
        };
        match commands.last_mut() {
            Some(last) if goes_on => last.push_str(text),
            _ => commands.push(text.to_owned()),
        }
        goes_on = more;
    }
    commands.retain(|command| !command.starts_with("cargo test") && !command.starts_with("SEED="));
    commands
}

/// A reader who types the commands of README.
struct Reader {
    work: PathBuf,
    environment: HashMap<String, String>,
    /// Value printed last for each ellipsis.
    seen: HashMap<&'static str, String>,
    /// The servers that run, by their data directory.
    servers: HashMap<PathBuf, Child>,
    /// Base URL of the server that was started last.
    base: String,
    /// Settings that keep mail and DNS queries on this machine.
    settings: Vec<String>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        for server in self.servers.values_mut() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Reader {
    fn new(work: PathBuf, settings: Vec<String>) -> Self {
        Self {
            work,
            environment: HashMap::new(),
            seen: HashMap::new(),
            servers: HashMap::new(),
            base: "http://127.0.0.1:8080".to_owned(),
            settings,
        }
    }

    /// The command with this reader's addresses and ids filled in.
    fn filled(&self, command: &str) -> String {
        let mut filled = command.replace("http://127.0.0.1:8080", &self.base);
        filled = filled.replace("/var/lib/messaging", self.work.join("var").to_str().unwrap());
        for place in PLACES {
            if filled.contains(&format!("{place}…")) {
                let seen = self.seen.get(place).unwrap_or_else(|| panic!("nothing printed a {place}: {command}"));
                filled = filled.replace(&format!("{place}…"), seen);
            }
        }
        assert!(!filled.contains('…'), "{command}");
        filled
    }

    /// Remembers the ids and keys in the output of a command.
    fn note(&mut self, printed: &str) {
        let is_part = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
        for word in printed.split(|character| !is_part(character)) {
            if let Some(place) = PLACES.iter().find(|place| word.len() >= 30 && word.starts_with(**place)) {
                self.seen.insert(place, word.to_owned());
            }
        }
    }

    fn type_in(&mut self, command: &str) {
        let filled = self.filled(command);
        let plain = filled.split(" #").next().unwrap().trim();
        let words: Vec<&str> = plain.split_whitespace().collect();
        // The words after the name of the program.
        let ours = words.iter().position(|word| *word == "--" || *word == "messaging").map(|at| {
            let at = if words[0] == "cargo" { words.iter().position(|word| *word == "--").unwrap() } else { at };
            &words[at + 1..]
        });
        match ours {
            _ if words[0] == "export" => {
                let pairs = words[1..].iter().map(|pair| pair.split_once('=').unwrap());
                self.environment.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            Some(["serve" | "dev", ..]) => self.serve(ours.unwrap()),
            Some(["webhook", "listen", ..] | ["message", "watch"]) => self.listen(ours.unwrap()),
            _ => self.run(command, &filled),
        }
    }

    /// Starts a server, in place of one on the same directory.
    fn serve(&mut self, words: &[&str]) {
        let data = words.iter().position(|word| *word == "--data").map_or("messaging-data", |at| words[at + 1]);
        let data = self.work.join(data);
        if let Some(mut earlier) = self.servers.remove(&data) {
            kill_process(Pid::from_child(&earlier), Signal::TERM).unwrap();
            assert_eq!(wait_for(|| earlier.try_wait().unwrap()).code(), Some(0));
        }
        let listen = data.join("listen");
        let _ = fs::remove_file(&listen);
        // Nobody resolves the public name here, and the port differs each time: links lead to the listening address.
        let is_public = |at: usize| words[at] == "--public-url" || at > 0 && words[at - 1] == "--public-url";
        let words = words.iter().enumerate().filter(|(at, _)| !is_public(*at));
        let words = words.map(|(_, word)| word.replace("0.0.0.0:25", "127.0.0.1:0"));
        let mut server = program()
            .args(words)
            .args(["--listen", "127.0.0.1:0"])
            .args(&self.settings)
            .current_dir(&self.work)
            .env("MESSAGING_LOG", "warn")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let address = wait_for(|| {
            assert!(server.try_wait().unwrap().is_none(), "the server has ended");
            let address = fs::read_to_string(&listen).ok()?.trim().to_owned();
            TcpStream::connect(&address).ok()?;
            Some(address)
        });
        self.base = format!("http://{address}");
        self.servers.insert(data.clone(), server);
        let dev = || -> Option<Value> { serde_json::from_slice(&fs::read(data.join("dev.json")).ok()?).ok() };
        if self.seen.is_empty() {
            let dev = wait_for(|| dev().filter(|dev| dev["base_url"].as_str().unwrap().starts_with(&self.base)));
            self.seen.insert("mk_live_", dev["api_key"].as_str().unwrap().to_owned());
        }
    }

    /// Runs a command until it says that Ctrl-C ends it, and interrupts it.
    fn listen(&self, words: &[&str]) {
        let mut child = self.command(env!("CARGO_BIN_EXE_messaging")).args(words).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("Ctrl-C ends it"), "{words:?}: {said}");
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(wait_for(|| child.try_wait().unwrap()).code(), Some(0), "{words:?}");
    }

    /// Runs a command in a shell; fails if the command fails.
    fn run(&mut self, command: &str, filled: &str) {
        const SHELL: &str = "cargo() { while [ \"$1\" != -- ]; do shift; done; shift; messaging \"$@\"; }
            curl() { command curl --silent --show-error --fail-with-body \"$@\"; }\n";
        let ran = self.command("bash").args(["-euc", &format!("{SHELL}{filled}")]).output().unwrap();
        let printed = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(0), "{command}\n{filled}\n{printed}");
        self.note(&printed);
    }

    fn command(&self, name: &str) -> Command {
        let program_directory = Path::new(env!("CARGO_BIN_EXE_messaging")).parent().unwrap();
        let path = format!("{}:{}", program_directory.display(), std::env::var("PATH").unwrap());
        // Without the settings of the user who runs the tests.
        let mut command = Command::new(name);
        for (variable, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MESSAGING_")) {
            command.env_remove(variable);
        }
        command
            .current_dir(&self.work)
            .env("PATH", path)
            .env("XDG_CONFIG_HOME", self.work.join("config"))
            .envs(&self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Publishes the records of the domain, as a reader does before the check.
    fn publish(&self, dns: &TestDns) {
        let id = &self.seen["dom_"];
        let ran = self.command("messaging").args(["domain", "records", id, "--json"]).output().unwrap();
        let page: Value = serde_json::from_slice(&ran.stdout).unwrap();
        for record in page["data"].as_array().unwrap() {
            let text = |name: &str| record[name].as_str().unwrap();
            let (host, value) = (text("host"), text("value"));
            match text("type") {
                "TXT" => dns.txt(host, &[value]),
                "CNAME" => dns.cname(host, value),
                "MX" => dns.mx(host, &[(10, value.rsplit(' ').next().unwrap())]),
                other => panic!("a record of type {other}"),
            }
        }
    }
}

#[test]
fn the_commands_of_the_backup_page_work_in_one_directory() {
    let directory = directory();
    let mut reader = Reader::new(directory.path().to_owned(), Vec::new());
    reader.type_in("messaging dev");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backup.md");
    let page = fs::read_to_string(page).unwrap();
    let commands: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        reader.type_in(command);
    }
    // The copy is now a server of its own, which may send.
    let sends = reader.command("messaging").args(["system", "get", "--json", "--data", "restored"]).output().unwrap();
    let system: Value = serde_json::from_slice(&sends.stdout).unwrap();
    let fence = system["checks"].as_array().unwrap().iter().find(|check| check["id"] == "fence");
    assert_eq!(fence.unwrap()["found"], "not fenced", "{system}");
    assert_eq!(reader.servers.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_readme_work_word_for_word() {
    let dns = TestDns::start().await;
    let peer = ScriptedSmtpServer::start().await;
    dns.addresses("mail.example.com", &[IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    dns.txt("mail.example.com", &["v=spf1 a -all"]);
    let directory = directory();
    let work = directory.path().to_owned();
    let put = |name: &str, text: &str| {
        let path = work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("people.csv", "email,tags\nann@example.com,customer\nben@example.com,\n");
    put("emails/welcome/template.toml", "name = \"welcome\"\nchannel = \"email\"\nsubject = \"Hello {{ name }}\"\n");
    put("emails/welcome/template.html", "<p>Hello {{ name }}</p>");
    put("vars.json", "{\"name\": \"Ann\"}");
    put("report.pdf", "%PDF-1.7 not much");
    put("hello.html", "<p>Hello</p>");
    let settings = ["--dns", &dns.addr().to_string(), "--mx-override", &peer.address().to_string()].map(str::to_owned);
    let mut reader = Reader::new(work, settings.to_vec());
    let commands = commands();
    assert!(commands.len() > 25, "{commands:?}");
    for command in &commands {
        if command.starts_with("messaging domain verify") {
            reader.publish(&dns);
        }
        if command.contains(" sandbox get ") {
            // A reader takes longer to copy the id than a message takes to reach the sandbox.
            reader.run(command, &reader.filled("messaging message watch --until-final msg_… --data messaging-data"));
        }
        reader.type_in(command);
    }
    // The mail really arrived, signed.
    let received = wait_or_tell(|| {
        let received = peer.messages();
        if received.len() >= 3 { Ok(received) } else { Err(format!("{} mails arrived", received.len())) }
    });
    assert!(received.iter().all(|mail| String::from_utf8_lossy(&mail.content).contains("DKIM-Signature")));
}
