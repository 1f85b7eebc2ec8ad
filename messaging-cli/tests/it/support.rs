//! Running the real program.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;
use tempfile::TempDir;

/// Longest time that any step takes unless something is broken.
const DEADLINE: Duration = Duration::from_mins(4);

/// The time allowed here for a promised time: `TEST_BUSY` times as much on a machine that does other work beside the
/// test.
pub(crate) fn allowed(promised: Duration) -> Duration {
    promised * std::env::var("TEST_BUSY").map_or(1, |factor| factor.parse().expect("TEST_BUSY is a whole number"))
}

/// The program, without the settings of the user who runs the tests.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_messaging"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MESSAGING_") {
            command.env_remove(name);
        }
    }
    // Without saved profiles of that user either.
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// Runs a command line with additional environment variables and standard input.
pub(crate) fn run_in<S: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    environment: &[(&str, &OsStr)],
    input: &str,
) -> Ran {
    Ran::of(program().args(arguments).envs(environment.iter().copied()), input)
}

/// Runs a command line to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    Ran::of(program().args(arguments), "")
}

/// Runs a command line with standard input.
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Ran {
    Ran::of(program().args(arguments), input)
}

/// The result of a command line: its exit code and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Runs a program to its end; fails if it does not end in time.
    #[track_caller]
    fn of(command: &mut Command, input: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that does not read its input may have closed it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let (stdout, stderr) = (read_all(child.stdout.take().unwrap()), read_all(child.stderr.take().unwrap()));
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if started.elapsed() > DEADLINE {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::sleep(Duration::from_millis(2));
        };
        let ran = Self {
            code: status.and_then(|status| status.code()),
            stdout: stdout.join().unwrap(),
            stderr: stderr.join().unwrap(),
        };
        assert!(status.is_some(), "did not end within {DEADLINE:?}: {ran:#?}");
        ran
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Standard output, which must be one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) data: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts `messaging dev` on a data directory and a free port.
    pub(crate) fn dev(data: &Path) -> Self {
        Self::start("dev", data, &[])
    }

    /// Starts `messaging serve`, `dev` or `worker` and waits until it takes connections.
    pub(crate) fn start(command: &str, data: &Path, more: &[&str]) -> Self {
        Self::start_in(command, data, more, &[])
    }

    /// Like `start`, with additional environment variables.
    pub(crate) fn start_in(command: &str, data: &Path, more: &[&str], environment: &[(&str, &OsStr)]) -> Self {
        Self::launch(command, data, more, environment, Stdio::inherit())
    }

    /// Starts the server with a log of all levels in a file, and a collector for spans.
    pub(crate) fn traced(command: &str, data: &Path, more: &[&str], log: &Path, collector: &str) -> Self {
        let levels: [(&str, &OsStr); 3] = [
            ("MESSAGING_LOG", "trace".as_ref()),
            ("MESSAGING_LOG_FORMAT", "json".as_ref()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.as_ref()),
        ];
        Self::launch(command, data, more, &levels, fs::File::create(log).unwrap().into())
    }

    /// Starts `messaging serve` with a settings file, and a log in another file.
    pub(crate) fn configured(data: &Path, config: &Path, log: &Path) -> Self {
        let log = fs::File::create(log).unwrap().into();
        Self::launch("serve", data, &["--config", config.to_str().unwrap()], &[], log)
    }

    /// Starts the server with standard error redirected.
    pub(crate) fn launch(
        command: &str,
        data: &Path,
        more: &[&str],
        environment: &[(&str, &OsStr)],
        log: Stdio,
    ) -> Self {
        // A worker listens at the address of its metrics only.
        let listen = data.join(if command == "worker" { "metrics-listen" } else { "listen" });
        let at = if command == "worker" { "--metrics-listen" } else { "--listen" };
        // Removes the file of an earlier run.
        let _ = fs::remove_file(&listen);
        let mut child = program()
            .args([command, at, "127.0.0.1:0", "--data"])
            .arg(data)
            .args(more)
            .envs((!more.contains(&"--config")).then_some(("MESSAGING_LOG", "warn")))
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let address = wait_for(|| {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the server ended with {status}");
            }
            let address = fs::read_to_string(&listen).ok()?.trim().parse::<SocketAddr>().ok()?;
            TcpStream::connect(address).ok()?;
            // `dev` writes more to a file that an earlier run may have left.
            let is_told =
                || fs::read_to_string(data.join("dev.json")).is_ok_and(|text| text.contains(&address.to_string()));
            (command != "dev" || is_told()).then_some(address)
        });
        Self { child, data: data.to_owned(), address }
    }

    /// The output of the server when it was ready. Can be called once.
    pub(crate) fn printed(&mut self) -> String {
        let mut bytes = [0; 16 << 10];
        // It is printed in one piece.
        let length = self.child.stdout.take().unwrap().read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// The file that `dev` writes for other programs.
    pub(crate) fn dev_json(&self) -> Value {
        // Written once the server listens, so that it can name the address.
        wait_for(|| serde_json::from_slice(&fs::read(self.data.join("dev.json")).ok()?).ok())
    }

    /// The id of the server's process.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to stop and waits; returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.ask_to_stop();
        wait_for(|| self.child.try_wait().unwrap()).code()
    }

    /// Asks the server to stop.
    pub(crate) fn ask_to_stop(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Makes the server read its settings again.
    pub(crate) fn reload(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    /// Waits until the server ends by itself; returns its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        wait_for(|| self.child.try_wait().unwrap()).code()
    }

    /// Kills the server, as a power failure would end it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills the server while other threads still use it.
    pub(crate) fn kill_in_place(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// Suspends the server: its connections stay open, and nothing happens until it is resumed or killed.
    pub(crate) fn freeze(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Resumes a suspended server.
    #[cfg(feature = "postgres")]
    pub(crate) fn thaw(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a request and returns status and body.
    pub(crate) fn request(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        self.exchange(method, path, key, &[], body).expect("the server answers")
    }

    /// Posts a request; `None` if no whole answer came.
    pub(crate) fn try_request(
        &self,
        path: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Option<(u16, Value)> {
        self.exchange("POST", path, key, headers, body)
    }

    /// Sends a request by any method; `None` if no whole answer came.
    pub(crate) fn try_any(&self, method: &str, path: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
        self.exchange(method, path, key, &[], body)
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Option<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, key, headers, body.as_bytes())
    }

    /// Uploads a file to a link; `None` if no whole answer came.
    pub(crate) fn upload(&self, link: &str, file: &[u8]) -> Option<(u16, Value)> {
        // The server may have another port by now.
        let at = link.find("/uploads/").expect("the link of an upload");
        self.send("PUT", &link[at..], "", &[], file)
    }

    fn send(&self, method: &str, path: &str, key: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<(u16, Value)> {
        let authorization = format!("Bearer {key}");
        let headers: Vec<_> = [("Authorization", authorization.as_str())].iter().chain(headers).copied().collect();
        exchange(self.address, method, path, &headers, body)
    }

    /// Posts the form of a page; returns the status, or `None` if no answer came.
    pub(crate) fn press(&self, path: &str, form: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(DEADLINE)).ok()?;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{form}",
            self.address,
            form.len()
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }

    /// Gets a page; returns head and body of the answer.
    pub(crate) fn text(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Runs an API command against the server.
    pub(crate) fn command(&self, arguments: &[&str]) -> Ran {
        let dev = self.dev_json();
        let mut command = program();
        command.env("MESSAGING_URL", dev["base_url"].as_str().unwrap());
        command.env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap());
        Ran::of(command.args(arguments), "")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Posts to a server on this machine; returns the status, or `None` if no answer came.
pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Option<u16> {
    exchange(address, "POST", path, &[], body.to_string().as_bytes()).map(|(status, _)| status)
}

fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<(u16, Value)> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             {headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .ok()?;
    stream.write_all(body).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

fn read_all(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Calls `look` repeatedly until it returns a value; fails after the deadline.
#[track_caller]
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    wait_or_tell(|| look().ok_or_else(|| "nothing came".to_owned()))
}

/// Like `wait_for`, with an error of `look` that says what is missing.
#[track_caller]
pub(crate) fn wait_or_tell<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(missing) => assert!(started.elapsed() < DEADLINE, "after {DEADLINE:?}: {missing}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// An empty directory that no other user may read, removed when dropped.
pub(crate) fn directory() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
}

/// Runs the shell blocks of a page of the documentation against a server of `messaging dev`; returns standard output
/// and standard error of the commands.
#[track_caller]
pub(crate) fn run_page(server: &Server, work: &Path, page: &str) -> (String, String) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    run_script(server, work, &blocks.collect::<Vec<_>>().join("\n"))
}

/// Like `run_page`, with commands of the test.
#[track_caller]
pub(crate) fn run_script(server: &Server, work: &Path, script: &str) -> (String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_messaging"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let dev = server.dev_json();
    let ran = Command::new("bash")
        .args(["-eu", "-c", script])
        .current_dir(work)
        .env("PATH", path)
        .env("MESSAGING_URL", dev["base_url"].as_str().unwrap())
        .env("MESSAGING_API_KEY", dev["api_key"].as_str().unwrap())
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (told, said) = (told(&ran.stdout), told(&ran.stderr));
    assert!(ran.status.success(), "{told}\n{said}");
    (told, said)
}
