//! The examples of the API document: recorded from a run of `examples/scenario.http`, and compared with the recorded
//! ones by every run of the tests, so that they are the server's real answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use messaging_core::changes::{Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::source::{NamedSource, PathRow, SourceAddress, SourceRow};
use messaging_core::domain::delivery::path::PathState;
use messaging_core::domain::mail::auto_dns::DnsProviderName;
use messaging_core::domain::security::totp::TotpSecret;
use messaging_core::domain::security::user_email::UserEmail;
use messaging_core::entropy::{Entropy, SeededEntropy};
use messaging_core::ports::clock::ManualClock;
use messaging_core::ports::dns_provider::DnsProvider;
use messaging_core::ports::fetch::Fetched;
use messaging_core::ports::resolver::{LookupError, Resolver};
use messaging_core::ports::store::Priority;
use messaging_core::scope::Role;
use messaging_engine::ops::members::{CreateMember, MemberInput};
use messaging_engine::ops::sessions::sign_on::{FinishSignOn, SignOnInput, SignOnOutcome};
use messaging_engine::ops::{self, BodyKind, Endpoint};
use messaging_engine::{App, Caller, SecretKey, Settings, admin};
use messaging_http::{ApiService, ServiceOptions};
use messaging_store::{SqliteOptions, SqliteStore, TemporaryDatabases};
use messaging_testing::{MemoryDnsProvider, MemoryFetch, MemoryOidcProvider, fetched};
use messaging_transport::Options;
use serde_json::Value;
use tower_service::Service;

/// URL and content of the page that a template is imported from.
const PAGE_URL: &str = "https://example.com/spring.html";
const PAGE: &str = "<html><body><h1>Spring is here</h1></body></html>";

/// A file that is uploaded.
const PICTURE: &[u8] = b"GIF89a\x40\x01\xc8\x00\x80\0\0\0\0\0\xff\xff\xff;";

/// A DNS without any records.
#[derive(Debug)]
struct EmptyDns;

#[async_trait]
impl Resolver for EmptyDns {
    async fn txt(&self, _: &str) -> Result<Vec<String>, LookupError> {
        Ok(Vec::new())
    }

    async fn mx(&self, _: &str) -> Result<Vec<(u16, String)>, LookupError> {
        Ok(Vec::new())
    }

    async fn cname(&self, _: &str) -> Result<Option<String>, LookupError> {
        Ok(None)
    }

    async fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, LookupError> {
        Ok(Vec::new())
    }
}

/// One request of the scenario, and its answer.
#[derive(Default)]
struct Example {
    request: Option<String>,
    answer: Option<String>,
}

/// Randomness that begins anew with every step, so that values drawn by jobs meanwhile change nothing.
#[derive(Debug)]
struct Steps(Mutex<SeededEntropy>);

impl Steps {
    fn begin(&self, step: u64) {
        *self.0.lock().unwrap() = SeededEntropy::new(step);
    }
}

impl Entropy for Steps {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().unwrap().fill(buffer);
    }
}

/// A separate server, and the ids in its answers.
struct Run {
    app: App,
    clock: Arc<ManualClock>,
    entropy: Arc<Steps>,
    service: ApiService,
    kept: BTreeMap<String, String>,
    token: String,
    /// The secret of the factor that was added.
    secret: Option<TotpSecret>,
    failures: Vec<String>,
    _directory: tempfile::TempDir,
}

/// A workspace that invites the user of the run.
async fn invitation(app: &App, name: &str) -> String {
    let owner = "cleo@example.com";
    admin::create_user(app, owner, None, None).await.unwrap();
    let workspace = admin::create_workspace(app, name, owner).await.unwrap().id;
    let invited = MemberInput::new(admin::DEV_EMAIL.parse::<UserEmail>().unwrap(), Role::Editor);
    app.run(CreateMember).body(invited).by(&Caller::Operator(Some(workspace))).await.unwrap();
    workspace.to_string()
}

/// The ticket of a first single sign-on of the user of the run, who has a password.
async fn first_sign_on(app: &App, provider: &MemoryOidcProvider) -> String {
    provider.person(serde_json::json!({"email": admin::DEV_EMAIL, "email_verified": true}));
    let start = app.begin_sign_on().await.unwrap();
    let query = provider.authorize(&start.location);
    let client = IpAddr::from([203, 0, 113, 9]);
    let person = app.finish_sign_on(Some(start.cookie.expose()), &query, client).await.unwrap();
    match app.run(FinishSignOn).body(SignOnInput::from(person)).by(&Caller::Anonymous).await.unwrap() {
        SignOnOutcome::Confirm { ticket } => ticket.into_inner(),
        other => panic!("{other:?}"),
    }
}

/// A source of mail with a path, as a node that has sent stores them.
async fn source(app: &App) {
    let ip = SourceAddress::from(IpAddr::from([203, 0, 113, 7]));
    app.store().announce_sources(&[NamedSource { ip, name: "mail.example.com".to_owned() }]).await.unwrap();
    let row = SourceRow { level: 4, last_used_at: Some(app.now()), ..SourceRow::new(ip, app.now()) };
    let path = PathRow {
        ip,
        site: "gmail".to_owned(),
        state: serde_json::to_string(&PathState::default()).unwrap(),
        sent_today: 0,
        day: 0,
        is_stopped: false,
        updated_at: app.now(),
    };
    let writes = [
        Write::Source(SourceWrite::PutSource(row, Expect::Absent)),
        Write::Source(SourceWrite::PutPath(Box::new(path), Expect::Absent)),
    ];
    app.store().commit(writes.into_iter().collect(), Priority::Foreground).await.unwrap();
}

impl Run {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(SqliteOptions::new(directory.path().join("test.db"))).unwrap();
        let clock = Arc::new(ManualClock::new("2026-01-31T09:15:00.000Z".parse().unwrap()));
        let fetch = Arc::new(MemoryFetch::default());
        let entropy = Arc::new(Steps(Mutex::new(SeededEntropy::new(0))));
        let page = fetched(200, &[("content-type", "text/html")], PAGE);
        fetch.always(PAGE_URL, Ok(Fetched { url: PAGE_URL.to_owned(), ..page }));
        let zone = MemoryDnsProvider::new("acme.example", "an-api-token");
        let provider = Arc::new(MemoryOidcProvider::new(clock.clone(), fetch));
        let settings = Settings::default()
            .hostname("mail.example.com")
            // Browsers keep passkeys for this address.
            .public_url("http://localhost:8080")
            .grants_every_source(true);
        let app = App::builder(Arc::new(store), SecretKey::from_bytes([3; 32]))
            .clock(clock.clone())
            .entropy(entropy.clone())
            .fetch(provider.clone())
            .resolver(Arc::new(EmptyDns))
            .dns_providers([(DnsProviderName::Cloudflare, Arc::new(zone) as Arc<dyn DnsProvider>)])
            .temporary_stores(Arc::new(TemporaryDatabases::new(directory.path().join("trials"))))
            .settings(settings.oidc(MemoryOidcProvider::settings()))
            .transports(messaging_transport::defaults(&Options::new("mail.example.com")))
            .build()
            .await
            .unwrap();
        let dev = admin::prepare_dev(&app).await.unwrap();
        source(&app).await;
        let service = ApiService::new(app.clone(), ServiceOptions::default());
        let sign_on = first_sign_on(&app, &provider).await;
        let (inviting, declined) = (invitation(&app, "Partners").await, invitation(&app, "Elsewhere").await);
        let kept = BTreeMap::from([
            ("inviting".to_owned(), inviting),
            ("declined".to_owned(), declined),
            ("sign_on".to_owned(), sign_on),
            ("password".to_owned(), dev.console_password.unwrap().expose().to_owned()),
            ("workspace".to_owned(), dev.workspace_id.to_string()),
        ]);
        let (token, secret, failures) = (String::new(), None, Vec::new());
        Self { app, clock, entropy, service, kept, token, secret, failures, _directory: directory }
    }

    /// Fills in the stored values, by name; the longest name that fits.
    fn filled(&self, text: &str) -> String {
        let mut names: Vec<_> = self.kept.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        names.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    /// The path of a request; `given` are the parameters in the scenario.
    fn path(&self, endpoint: &Endpoint, given: &BTreeMap<&str, String>) -> String {
        let mut path = String::from("/v1");
        for part in endpoint.path.split('/').skip(1) {
            let value = match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None => part.to_owned(),
                Some(name) if given.contains_key(name) => given[name].clone(),
                Some(name) => {
                    let group = endpoint.cli.split(' ').next().unwrap();
                    let kept = if name == "id" { group } else { name.trim_end_matches("_id") };
                    let kept = if kept == "user" { "member" } else { kept };
                    self.kept.get(kept).cloned().unwrap_or_default()
                }
            };
            let _ = write!(path, "/{value}");
        }
        path
    }

    /// Carries out a step; returns request and answer, both as texts.
    async fn step(&mut self, head: &str, body: &str) -> (&'static Endpoint, Example) {
        let mut words = head.split(' ');
        let id = words.next().unwrap();
        let endpoint = ops::all().iter().find(|one| one.id == id).unwrap_or_else(|| panic!("no operation {id}"));
        let (mut keep, mut query, mut given) = (None, String::new(), BTreeMap::new());
        while let Some(word) = words.next() {
            match word.split_once('=') {
                _ if word == ">" => keep = words.next(),
                _ if word.starts_with('?') => query = self.filled(word),
                Some((name, value)) => {
                    given.insert(name, self.filled(value));
                }
                None => panic!("{head}: {word}"),
            }
        }
        if let Some(secret) = &self.secret {
            self.kept.insert("code".to_owned(), secret.code_at(self.app.now()));
        }
        let body = self.filled(body);
        let uri = format!("{}{query}", self.path(endpoint, &given));
        let mut request = Request::builder().method((endpoint.method)()).uri(&uri);
        request = request.header("x-workspace-id", &self.kept["workspace"]);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let sent = match endpoint.body {
            BodyKind::File(_) => {
                request = request.header("content-type", "image/gif");
                Bytes::from_static(PICTURE)
            }
            _ => Bytes::from(body.clone()),
        };
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        let request = request.body(Full::<Bytes>::from(sent)).unwrap();
        let Ok(response) = Service::call(&mut self.service.clone(), request).await;
        let status = response.status();
        let is_json =
            response.headers().get("content-type").is_some_and(|it| it.as_bytes().starts_with(b"application/json"));
        let Ok(answer) = response.into_body().collect().await;
        let answer = String::from_utf8_lossy(&answer.to_bytes()).into_owned();
        let parsed: Value = serde_json::from_str(&answer).unwrap_or_default();
        if let Some(pending) = parsed["error"]["details"]["token"].as_str() {
            self.kept.insert("pending".to_owned(), pending.to_owned());
        } else if status != endpoint.success && Some(status) != endpoint.other_success {
            self.failures.push(format!("{head}: {uri} {body} answered {status} {answer}"));
        }
        if endpoint.id == "createFactor" {
            self.secret = parsed["secret"].as_str().and_then(TotpSecret::from_base32);
        }
        if let Some(token) = parsed["token"].as_str().filter(|_| self.token.is_empty()) {
            token.clone_into(&mut self.token);
        }
        if let Some((_, ticket)) = parsed["url"].as_str().and_then(|url| url.split_once("#ticket=")) {
            self.kept.insert("ticket".to_owned(), ticket.to_owned());
        }
        if let Some(name) = keep {
            let group = format!("{}_id", endpoint.cli.split(' ').next().unwrap());
            // From a list with the caller's own resource, takes another one.
            let other = parsed["data"].as_array().and_then(|data| data.iter().find(|one| one["current"] == false));
            let first = parsed["data"].as_array().and_then(|data| data.first());
            let resource = other.or(first).unwrap_or(&parsed);
            let id = ["id", "user_id", group.as_str()].iter().find_map(|member| resource[*member].as_str());
            match id {
                Some(id) => drop(self.kept.insert(name.to_owned(), id.to_owned())),
                None => self.failures.push(format!("{head}: no id in {answer}")),
            }
        }
        // Logging draws ids as well.
        self.app.requests_written().await;
        let answer = Some(answer).filter(|answer| is_json && !answer.is_empty());
        (endpoint, Example { request: Some(body).filter(|body| !body.is_empty()), answer })
    }
}

/// Replaces the values that differ from run to run: DKIM keys are made by the machine's own randomness, and so are the
/// values derived from them.
fn steady(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("p=") {
        let (before, after) = rest.split_at(at + 2);
        let length = after.find(|c: char| !(c.is_ascii_alphanumeric() || "+/=".contains(c))).unwrap_or(after.len());
        out.push_str(before);
        out.push_str(if length >= 40 { "MIIB…" } else { &after[..length] });
        rest = &after[length..];
    }
    out + rest
}

/// Replaces the free space of this machine by a fixed one.
fn of_no_machine(text: &str) -> String {
    let name = "\"free_bytes\": ";
    let Some((before, after)) = text.split_once(name) else { return text.to_owned() };
    format!("{before}{name}41748271104{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Replaces durations of this machine by a fixed one.
fn of_no_time(example: Example) -> Example {
    let name = "\"duration_ms\":";
    let steady = |text: String| {
        let mut parts = text.split(name);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            format!("{text}{name}12{}", part.trim_start_matches(|c: char| c.is_ascii_digit()))
        })
    };
    Example { answer: example.answer.map(steady), ..example }
}

/// Numbers ids in the order in which they occur: those made by jobs differ in every run.
fn numbered(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    let mut known = Vec::new();
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('_') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        let length = after.find(|c: char| !is_part(c)).unwrap_or(after.len());
        let (id, left) = after.split_at(length);
        rest = left;
        if length == 26 {
            let number = known.iter().position(|one| *one == id).unwrap_or_else(|| {
                known.push(id);
                known.len() - 1
            });
            let _ = write!(out, "01KG9NB3H0ZHQB53KA000{number:05}");
        } else {
            out.push_str(id);
        }
    }
    out + rest
}

/// JSON with a line for each member, in its own order.
fn pretty(json: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    while let Some(character) = characters.next() {
        if in_text {
            out.push(character);
            in_text = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '{' | '[' => {
                out.push(character);
                if characters.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    out.extend(characters.next());
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => {
                in_text = other == '"';
                out.push(other);
            }
        }
    }
    out
}

#[tokio::test]
async fn the_recorded_examples_are_what_the_server_answers() {
    let mut run = Run::start().await;
    let mut examples = BTreeMap::<&str, Example>::new();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/examples/scenario.http");
    let scenario = std::fs::read_to_string(scenario).unwrap();
    for (number, step) in scenario.split("\n### ").skip(1).enumerate() {
        run.entropy.begin(1 + number as u64);
        let (head, body) = step.split_once('\n').unwrap_or((step, ""));
        if let Some(seconds) = head.strip_prefix("later ") {
            run.clock.advance(Duration::from_secs(seconds.trim().parse().unwrap()));
        }
        if head == "run" || head.starts_with("later ") {
            run.app.run_until_idle().await.unwrap();
            continue;
        }
        let (endpoint, example) = run.step(head.trim(), body.trim()).await;
        let example = if endpoint.path.contains("/requests") { of_no_time(example) } else { example };
        // The first use of an operation is its example.
        examples.entry(endpoint.id).or_insert(example);
    }

    assert!(run.failures.is_empty(), "the scenario does not go on:\n{}", run.failures.join("\n"));

    let all: BTreeSet<_> = ops::all().iter().map(|endpoint| endpoint.id).collect();
    let missing: Vec<_> = all.iter().filter(|id| !examples.contains_key(**id)).collect();
    assert!(missing.is_empty(), "operations without an example; add them to examples/scenario.http: {missing:?}");

    let mut members = Vec::new();
    for (id, example) in examples {
        let parts = [("request", example.request), ("answer", example.answer)];
        let parts = parts.into_iter().filter_map(|(name, text)| Some(format!("\"{name}\":{}", text?)));
        members.push(format!("\"{id}\":{{{}}}", parts.collect::<Vec<_>>().join(",")));
    }
    let made = of_no_machine(&numbered(&steady(&pretty(&format!("{{{}}}", members.join(",")))))) + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openapi/examples.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, made).unwrap();
        return;
    }
    let kept = without_random_parts(&std::fs::read_to_string(&path).unwrap_or_default());
    let made = without_random_parts(&made);
    let difference = kept.lines().zip(made.lines()).enumerate().find(|(_, (kept, made))| kept != made);
    assert!(
        kept == made,
        "the examples of the API document are not what the server answers (first difference: {difference:?}); run \
         `UPDATE=1 cargo test -p messaging-http --test it`, twice, and look at the diff"
    );
}

/// The text without cursors and the tokens of addresses for reports, of forms and of images: they have the random part
/// of ids.
fn without_random_parts(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for start in ["dmarc+", "tlsrpt+", "/f/", "/i/", "\"next_cursor\": \""] {
            let token = line.find(start).map(|at| at + start.len());
            if let Some((from, length)) = token.and_then(|from| Some((from, line[from..].find(['@', '"', '\\'])?))) {
                line.replace_range(from..from + length, "…");
            }
        }
        lines.push(line);
    }
    lines.join("\n")
}
