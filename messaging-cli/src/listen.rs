//! `webhook listen`: sends the workspace's events on to a program that is being built.
//!
//! Nothing is registered: the events are fetched by long polls and sent on from here, signed like those of a
//! webhook, so the program may run where no server could reach it. What it answers is shown; nothing is
//! repeated.

use std::time::Duration;

use bytes::Bytes;
use clap::{Arg, ArgMatches, Command};
use http::Method;
use messaging_core::domain::security::signature::{SigningKey, new_secret, signed_headers};
use messaging_core::ports::clock::{Clock as _, SystemClock, SystemEntropy};
use messaging_core::ports::fetch::{Fetch as _, FetchRequest, Protocol};
use messaging_transport::{Dns, GuardedFetch};
use serde_json::{Value, json};

use crate::arguments;
use crate::command::{flags, operation};
use crate::event_log::{self, EventLog, ReadFrom};
use crate::failure::Failure;
use crate::members::{self, Kind};
use crate::output::{self, Output};
use crate::target::Target;
use crate::user_files;

/// The words of the command.
pub(crate) const WORDS: &[&str] = &["webhook", "listen"];

const FORWARD: &str = "forward";
const SECRET: &str = "secret";
const EVENTS: &str = "events";

/// The file that keeps the secret, among those of the user.
const SECRET_FILE: &str = "webhook-listen.secret";

/// Time limit of the program's answer, the same as for receivers of webhooks.
const TIME_LIMIT: Duration = Duration::from_secs(15);

const EXAMPLES: &str =
    "Forwards events from now on, until Ctrl-C. Needs the scope webhooks:read. Prints a line for each event: time, type, \
recipient, and the status that the program answered or the reason why the call failed. The types are those of \
`messaging webhook create --events`.

Examples:
  messaging webhook listen --forward http://localhost:3000/hook
  messaging webhook listen --forward http://localhost:3000/hook --events bounced,complained
  messaging webhook listen --json | jq .event.type";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("listen")
        .about("Send events on to a local program as they happen, signed like a webhook's")
        .after_help(EXAMPLES)
        .arg(
            Arg::new(FORWARD)
                .long("forward")
                .value_name("URL")
                .help("Where events are sent; without it they are only shown"),
        )
        .arg(
            Arg::new(SECRET)
                .long("secret")
                .value_name("whsec_…")
                .help("Secret that signs the requests [default: one that is made at the first start and kept]"),
        )
        .arg(
            Arg::new(EVENTS)
                .long("events")
                .value_name("TYPE,…")
                .value_delimiter(',')
                .value_parser(flags::words(&types()))
                .help("Only events of these types [default: all]"),
        )
        .args(arguments::target())
        .arg(arguments::json().help("Print each event as a JSON object on a line of its own"))
}

/// The types of events that a webhook may ask for.
fn types() -> Vec<String> {
    let create = operation::endpoint(&["webhook", "create"]).expect("part of the contract");
    let events = members::of_body(create).into_iter().find(|member| member.name == EVENTS);
    match events.map(|events| events.kind) {
        Some(Kind::Choices(types)) => types,
        _ => Vec::new(),
    }
}

/// Stands for all types.
const EVERYTHING: &str = "*";

/// Carries it out; ends with Ctrl-C.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let forward = arguments::text(matches, FORWARD).map(|url| Forward::new(url, matches)).transpose()?;
    let target = Target::choose(matches, event_log::endpoint().access).await?;
    let mut types: Vec<_> = matches.get_many::<String>(EVENTS).into_iter().flatten().cloned().collect();
    if types.iter().any(|word| word == EVERYTHING) {
        types.clear();
    }
    let log = EventLog::new(target, ReadFrom::now());
    let listener = Listener { log, output, forward, types };
    tokio::select! {
        ended = listener.run() => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

struct Listener {
    log: EventLog,
    output: Output,
    forward: Option<Forward>,
    /// Types of events to send on; empty for all.
    types: Vec<String>,
}

impl Listener {
    async fn run(mut self) -> Result<(), Failure> {
        let mut is_first = true;
        loop {
            let events = self.log.next().await?;
            if is_first {
                self.introduce();
                is_first = false;
            }
            for event in &events {
                self.pass_on(event).await?;
            }
        }
    }

    fn introduce(&self) {
        match &self.forward {
            Some(Forward { url, secret, .. }) => {
                output::note(&format!("events go to {url}, signed with {secret}; Ctrl-C ends it"));
            }
            None => output::note("listening; Ctrl-C ends it"),
        }
    }

    async fn pass_on(&self, event: &Value) -> Result<(), Failure> {
        let kind = event["type"].as_str().unwrap_or_default();
        if !self.types.is_empty() && !self.types.iter().any(|wanted| wanted == kind) {
            return Ok(());
        }
        let answer = match &self.forward {
            Some(forward) => Some(forward.send(event).await),
            None => None,
        };
        let shown = match &answer {
            None => String::new(),
            Some(Ok(status)) => status.to_string(),
            Some(Err(reason)) => reason.clone(),
        };
        let line = format!(
            "{}  {kind:<12}  {:<30}  {shown}",
            event["timestamp"].as_str().unwrap_or_default(),
            event["data"]["to"].as_str().unwrap_or_default()
        );
        let (status, error) = match answer {
            None => (None, None),
            Some(Ok(status)) => (Some(status), None),
            Some(Err(reason)) => (None, Some(reason)),
        };
        let document = json!({"event": event, "response_status": status, "error": error});
        self.output.line(&document, line.replace(char::is_control, " ").trim_end())
    }
}

/// The secret of earlier starts, or a new one that is kept for later ones: the program that is being built need not be
/// told a new one each time.
fn kept_secret() -> Result<String, Failure> {
    let path = user_files::path(SECRET_FILE)?;
    if let Some(kept) = user_files::read(&path)?.filter(|kept| SigningKey::parse(kept.trim()).is_ok()) {
        return Ok(kept.trim().to_owned());
    }
    let secret = new_secret(&SystemEntropy::default()).into_inner();
    user_files::write(&path, &format!("{secret}\n"))?;
    Ok(secret)
}

/// The program that events are sent to.
struct Forward {
    url: String,
    secret: String,
    key: SigningKey,
    fetch: GuardedFetch,
}

impl Forward {
    fn new(url: &str, matches: &ArgMatches) -> Result<Self, Failure> {
        let secret = match arguments::text(matches, SECRET) {
            Some(secret) => secret.to_owned(),
            None => kept_secret()?,
        };
        let key = SigningKey::parse(&secret).map_err(|error| Failure::usage(format!("--secret: {error}")))?;
        // The program belongs to the caller of this command, and most often runs on this machine.
        let fetch = GuardedFetch::builder(Dns::new(None)).allow_private(true).build();
        fetch.check(url).map_err(|_| Failure::usage("--forward must be a URL such as http://localhost:3000/hook"))?;
        Ok(Self { url: url.to_owned(), secret, key, fetch })
    }

    /// Sends one event; returns the status, or the reason why there is none.
    async fn send(&self, event: &Value) -> Result<u16, String> {
        let body = Bytes::from(event.to_string());
        let id = event["id"].as_str().unwrap_or_default();
        let timestamp = SystemClock.now().as_seconds();
        let headers = signed_headers(std::slice::from_ref(&self.key), id, timestamp, &body)
            .ok_or_else(|| format!("an event whose id no header can have: {id:?}"))?;
        let request = FetchRequest {
            protocol: Protocol::Http1,
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body,
            time_limit: TIME_LIMIT,
            body_limit: 4096,
            redirects: 0,
        };
        match self.fetch.fetch(request).await {
            Ok(fetched) => Ok(fetched.status.as_u16()),
            Err(error) => Err(error.to_string()),
        }
    }
}
