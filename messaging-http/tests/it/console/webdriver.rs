//! A browser for tests: a client of the `WebDriver` protocol (W3C), which is JSON over HTTP, and of chromedriver's
//! additions to it.
//!
//! One chromedriver serves the tests of a process, and each test has a separate browser, which ends with the test. The
//! driver ends with the process: a shell waits for the end of a pipe that only this process holds, and then ends its
//! group. Over all processes at most [`BROWSERS`] tests have a browser at the same time.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::elsewhere::Elsewhere;

/// Number of browsers at a time.
const BROWSERS: usize = 2;

/// Time limit of a command to a browser.
const DEADLINE: Duration = Duration::from_mins(1);

/// Largest answer that is read, in bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// The protocol's name for a reference to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The programs, of Debian's packages `chromium` and `chromium-driver`.
const PROGRAMS: [&str; 2] = ["chromium", "chromedriver"];

/// The driver of this process; `None` if there is no browser.
static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

/// A running chromedriver.
struct Driver {
    address: SocketAddr,
    /// Its standard input is the pipe.
    _watchdog: Child,
    /// Kept open, so that the driver can write.
    _output: BufReader<ChildStdout>,
}

impl Driver {
    fn start() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |program: &&str| std::env::split_paths(&path).any(|place| place.join(program).is_file());
        if let Some(missing) = PROGRAMS.into_iter().find(|program| !is_there(program)) {
            assert!(std::env::var_os("REQUIRE_BROWSER").is_none(), "there is no {missing} on this machine");
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: there is no {missing} on this machine, so no browser to test with"
            );
            return None;
        }
        let directory = std::env::temp_dir().join(format!("messaging-browser-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        // Browsers that were not closed are in the group of the shell, which itself survives to clean up.
        let watchdog = "finish() { trap '' TERM; kill 0; wait; sleep 1; rm -rf \"$TMPDIR\"; exit; }; \
                        trap finish TERM INT HUP; chromedriver --port=0 & exec >&-; read -r _; finish";
        let mut child = Command::new("sh")
            .args(["-c", watchdog])
            .env("TMPDIR", &directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("successfully on port ") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "chromedriver ended without naming its port");
        }
        let port = line.trim_end_matches(['.', '\n']).rsplit(' ').next().unwrap().parse::<u16>().expect("a port");
        Some(Self { address: (Ipv4Addr::LOCALHOST, port).into(), _watchdog: child, _output: output })
    }
}

/// Waits until this test may have a browser; it may until the file is dropped.
async fn turn() -> File {
    let places = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let open = |number: usize| File::create(places.join(format!("browser-{number}"))).unwrap();
    for number in 0..BROWSERS {
        let file = open(number);
        if file.try_lock().is_ok() {
            return file;
        }
    }
    let file = open(std::process::id() as usize % BROWSERS);
    tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await.unwrap().unwrap()
}

/// A headless browser with a new profile.
pub(crate) struct Browser {
    address: SocketAddr,
    session: String,
    elsewhere: Elsewhere,
    _turn: File,
}

impl Browser {
    /// Starts a browser; `None` if there is none, which is noted on standard error.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with("", json!({})).await
    }

    /// A browser with JavaScript turned off.
    pub(crate) async fn without_scripts() -> Option<Self> {
        Self::start_with("", json!({"profile.managed_default_content_settings.javascript": 2})).await
    }

    /// Starts a browser in which `http://localhost` leads to a server: a site with a name and without a port.
    pub(crate) async fn start_for(server: SocketAddr) -> Option<Self> {
        Self::start_with(&format!("MAP localhost {server}, "), json!({})).await
    }

    /// Starts a browser with these rules for host names, which precede the usual ones, and with these preferences.
    async fn start_with(rules: &str, preferences: Value) -> Option<Self> {
        let address = DRIVER.get_or_init(Driver::start).as_ref()?.address;
        let turn = turn().await;
        let elsewhere = Elsewhere::start().await;
        // Host names of the tests lead to `Elsewhere`, which notes them. All others lead nowhere: the browser's own
        // requests to its maker do not matter to a test, and the console's policy would report the rest.
        let hosts = ["example", "test", "invalid"].map(|end| format!("MAP *.{end} {}, ", elsewhere.address)).concat();
        let hosts = format!("--host-resolver-rules={rules}{hosts}MAP * ~NOTFOUND, EXCLUDE 127.0.0.1");
        // Only pages of the tests are loaded, and in containers the browser's sandbox lacks its rights.
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            "--disable-sync",
            "--no-first-run",
            "--hide-scrollbars",
            "--lang=en-US",
            "--window-size=1280,900",
            &hosts,
        ];
        let capabilities = json!({
            "browserName": "chrome",
            "timeouts": {"script": 30_000, "pageLoad": 30_000},
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": arguments, "prefs": preferences},
        });
        let body = json!({"capabilities": {"alwaysMatch": capabilities}});
        let made = exchange(address, "POST", "/session", Some(body)).await.expect("the browser starts");
        let session = made["sessionId"].as_str().unwrap().to_owned();
        Some(Self { address, session, elsewhere, _turn: turn })
    }

    /// A command of the protocol; `path` is the part after the session.
    #[track_caller]
    pub(crate) fn command(&self, path: &str, body: Value) -> impl Future<Output = Value> {
        self.ask("POST", path, Some(body))
    }

    /// A command of the protocol by any method.
    #[track_caller]
    pub(crate) fn ask(&self, method: &'static str, path: &str, body: Option<Value>) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        let path = format!("/session/{}{path}", self.session);
        async move {
            let answer = exchange(self.address, method, &path, body).await;
            answer.unwrap_or_else(|error| panic!("{place}: {error}"))
        }
    }

    /// Loads a page.
    #[track_caller]
    pub(crate) fn open(&self, url: &str) -> impl Future<Output = Value> {
        self.command("/url", json!({"url": url}))
    }

    /// Runs the body of a function in the page with `arguments`; returns its result, or that of its promise.
    #[track_caller]
    pub(crate) fn run(&self, script: &str, arguments: &[Value]) -> impl Future<Output = Value> {
        self.command("/execute/sync", json!({"script": script, "args": arguments}))
    }

    /// True if an expression is true in the current document; false also while one document replaces another.
    pub(crate) async fn holds(&self, expression: &str) -> bool {
        let body = json!({"script": format!("return Boolean({expression})"), "args": []});
        let path = format!("/session/{}/execute/sync", self.session);
        exchange(self.address, "POST", &path, Some(body)).await.is_ok_and(|value| value == true)
    }

    /// Screenshot of the first element that the selector finds, as a PNG file.
    pub(crate) async fn picture(&self, selector: &str) -> Vec<u8> {
        let found = self.command("/element", json!({"using": "css selector", "value": selector})).await;
        let element = found[ELEMENT].as_str().unwrap();
        let picture = self.ask("GET", &format!("/element/{element}/screenshot"), None).await;
        STANDARD.decode(picture.as_str().unwrap()).expect("base64")
    }

    /// A command of the Chrome `DevTools` protocol.
    #[track_caller]
    pub(crate) fn devtools(&self, command: &str, parameters: Value) -> impl Future<Output = Value> {
        self.command("/goog/cdp/execute", json!({"cmd": command, "params": parameters}))
    }

    /// Sets width and height of the window's content.
    pub(crate) async fn narrow(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Sets the preferred color scheme: `light` or `dark`.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    /// The first element that a selector finds, by its reference.
    async fn element(&self, selector: &str) -> String {
        let found = self.command("/element", json!({"using": "css selector", "value": selector})).await;
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks the first element that a selector finds, without a script of the page.
    pub(crate) async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.command(&format!("/element/{element}/click"), json!({})).await;
    }

    /// Types into the first field that a selector finds.
    pub(crate) async fn fill(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.command(&format!("/element/{element}/value"), json!({"text": text})).await;
    }

    /// The markup of the page, and its title.
    pub(crate) async fn document(&self) -> (String, String) {
        let ask = async |what: &str| {
            let path = format!("/session/{}/{what}", self.session);
            exchange(self.address, "GET", &path, None).await.expect("a page").as_str().unwrap().to_owned()
        };
        (ask("source").await, ask("title").await)
    }

    /// Lines that the browser logged for developers since the last call.
    pub(crate) async fn log(&self) -> Vec<Value> {
        match self.command("/se/log", json!({"type": "browser"})).await {
            Value::Array(lines) => lines,
            other => panic!("{other}"),
        }
    }

    /// The other hosts that the browser has connected to since the last call.
    pub(crate) fn strangers(&self) -> Vec<String> {
        self.elsewhere.take()
    }

    /// Types a text, key by key. Keys without a character are those of the protocol, see [`keys`].
    #[track_caller]
    pub(crate) fn type_keys(&self, text: &str) -> impl Future<Output = Value> {
        let strokes = text.chars().flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key})));
        self.perform(strokes.collect())
    }

    /// Presses a key while another one is held.
    #[track_caller]
    pub(crate) fn chord(&self, held: char, key: char) -> impl Future<Output = Value> {
        let strokes = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        self.perform(strokes.map(|(kind, key)| json!({"type": kind, "value": key})).into())
    }

    #[track_caller]
    fn perform(&self, strokes: Vec<Value>) -> impl Future<Output = Value> {
        self.command("/actions", json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]}))
    }

    /// Role and name of the focused element, as assistive technology gets them.
    pub(crate) async fn focused(&self) -> (String, String) {
        let ask = async |path: &str| {
            let path = format!("/session/{}/element{path}", self.session);
            exchange(self.address, "GET", &path, None).await.expect("an answer")
        };
        let active = ask("/active").await;
        let element = active[ELEMENT].as_str().unwrap().to_owned();
        let text = async |what: &str| ask(&format!("/{element}/{what}")).await.as_str().unwrap_or_default().to_owned();
        (text("computedrole").await, text("computedlabel").await)
    }

    /// Sets a cookie for the page's host that scripts cannot read.
    #[track_caller]
    pub(crate) fn set_cookie(&self, name: &str, value: &str) -> impl Future<Output = Value> {
        let cookie = json!({"name": name, "value": value, "path": "/", "httpOnly": true, "sameSite": "Strict"});
        self.command("/cookie", json!({"cookie": cookie}))
    }

    /// Switches to the first frame that the selector finds, or back to the whole document.
    pub(crate) async fn go_into(&self, selector: Option<&str>) {
        let frame = match selector {
            Some(selector) => self.command("/element", json!({"using": "css selector", "value": selector})).await,
            None => Value::Null,
        };
        self.command("/frame", json!({"id": frame})).await;
    }

    /// Opens another window, and switches to it; returns its handle. Of the tabs of one window only one would be
    /// visible.
    pub(crate) async fn open_window(&self) -> String {
        let made = self.command("/window/new", json!({"type": "window"})).await;
        let handle = made["handle"].as_str().unwrap().to_owned();
        self.go_to(&handle).await;
        handle
    }

    /// Closes the window; then another one must be chosen.
    pub(crate) async fn close_window(&self) {
        let path = format!("/session/{}/window", self.session);
        exchange(self.address, "DELETE", &path, None).await.expect("the window closes");
    }

    /// Switches to a window.
    #[track_caller]
    pub(crate) fn go_to(&self, handle: &str) -> impl Future<Output = Value> {
        self.command("/window", json!({"handle": handle}))
    }

    /// The handle of the window.
    pub(crate) async fn window(&self) -> String {
        let path = format!("/session/{}/window", self.session);
        let handle = exchange(self.address, "GET", &path, None).await.expect("a window");
        handle.as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    /// Ends the browser, even while a test panics, and so without the runtime.
    fn drop(&mut self) {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        let _ = write!(stream, "DELETE /session/{} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", self.session);
        // The answer comes when the browser has ended.
        let _ = stream.read(&mut [0; 512]);
    }
}

/// One request on a new connection: the value of the answer, or the error of the driver.
async fn exchange(address: SocketAddr, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n", body.len());
    let talk = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = Vec::new();
        let mut stream = stream.take(MAX_ANSWER);
        // The driver keeps connections open, so the answer ends by its Content-Length.
        while !is_whole(&answer) {
            if stream.read_buf(&mut answer).await? == 0 {
                break;
            }
        }
        std::io::Result::Ok(answer)
    };
    let answer =
        tokio::time::timeout(DEADLINE, talk).await.map_err(|_| format!("{path}: no answer in {DEADLINE:?}"))?;
    let answer = answer.map_err(|error| format!("{path}: {error}"))?;
    let start = body_start(&answer).ok_or_else(|| format!("{path}: no answer"))?;
    let mut value: Value = serde_json::from_slice(&answer[start..]).map_err(|error| format!("{path}: {error}"))?;
    match &value["value"]["error"] {
        Value::String(error) => {
            Err(format!("{path}: {error}: {}", value["value"]["message"].as_str().unwrap_or_default()))
        }
        _ => Ok(value["value"].take()),
    }
}

fn body_start(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4)
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(start) = body_start(answer) else { return false };
    let head = String::from_utf8_lossy(&answer[..start]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    answer.len() >= start + length.unwrap_or(0)
}

/// Keys without a character, as the protocol writes them.
pub(crate) mod keys {
    pub(crate) const TAB: char = '\u{e004}';
    pub(crate) const ENTER: char = '\u{e007}';
    pub(crate) const CONTROL: char = '\u{e009}';
    pub(crate) const ALT: char = '\u{e00a}';
    pub(crate) const ESCAPE: char = '\u{e00c}';
    pub(crate) const UP: char = '\u{e013}';
    pub(crate) const DOWN: char = '\u{e015}';
    pub(crate) const DELETE: char = '\u{e017}';
}
