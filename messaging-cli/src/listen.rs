//! `webhook listen`: sends the workspace's events on to a program that is being built.
//!
//! Nothing is registered: the events are fetched by long polls and sent on from here, signed like those of a
//! webhook, so the program may run where no server could reach it. What it answers is shown; nothing is
//! repeated.

use std::time::Duration;

use bytes::Bytes;
use clap::{Arg, ArgMatches, Command};
use http::{Method, StatusCode};
use messaging_core::domain::signature::{SigningKey, new_secret, signed_headers};
use messaging_core::ports::clock::{Clock as _, SystemClock, SystemEntropy};
use messaging_core::ports::fetch::{Fetch as _, FetchRequest, Protocol};
use messaging_transport::{Dns, GuardedFetch};
use serde_json::{Value, json};

use crate::arguments;
use crate::command::operation;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::request::Request;
use crate::target::Target;

/// The words of the command.
pub(crate) const WORDS: &[&str] = &["webhook", "listen"];

const FORWARD: &str = "forward";
const SECRET: &str = "secret";
const EVENTS: &str = "events";

/// How long a poll waits for events, in seconds.
const WAIT: u32 = 25;

/// Events in one answer.
const LIMIT: u32 = 200;

/// How long the program may take, as a webhook's receiver may.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// A server that cannot be reached is tried again after this: whoever builds a program restarts servers.
const AGAIN: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "Sends on what happens from now on, until Ctrl-C. Needs the scope webhooks:read.

Examples:
  messaging webhook listen --forward http://localhost:3000/hook
  messaging webhook listen --forward http://localhost:3000/hook --events bounce,complaint
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
                .help("What requests are signed with [default: a new one, which is shown]"),
        )
        .arg(
            Arg::new(EVENTS)
                .long("events")
                .value_name("TYPE,…")
                .value_delimiter(',')
                .help("Only events of these types [default: all]"),
        )
        .args(arguments::target())
        .arg(arguments::json().help("Print each event as a JSON object on a line of its own"))
}

/// Carries it out; ends with Ctrl-C.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let endpoint = operation::endpoint(&["webhook", "events"]).expect("part of the contract");
    let forward = arguments::text(matches, FORWARD).map(|url| Forward::new(url, matches)).transpose()?;
    let target = Target::choose(matches, endpoint.access).await?;
    let types: Vec<String> = matches.get_many(EVENTS).into_iter().flatten().cloned().collect();
    let listener = Listener { target, output, forward, types };
    tokio::select! {
        ended = listener.run(|| Request::new(endpoint)) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

struct Listener {
    target: Target,
    output: Output,
    forward: Option<Forward>,
    /// Types that are wanted; none: all.
    types: Vec<String>,
}

impl Listener {
    async fn run(self, poll: impl Fn() -> Request) -> Result<(), Failure> {
        let mut place = ("since", SystemClock.now().to_string());
        let mut is_first = true;
        loop {
            let mut request = poll();
            let (name, text) = &place;
            request.query.push(((*name).to_owned(), text.clone()));
            request.query.push(("limit".to_owned(), LIMIT.to_string()));
            // The first answer tells at once that everything works.
            request.query.push(("wait".to_owned(), if is_first { 0 } else { WAIT }.to_string()));
            let reply = match self.target.call(&request).await {
                Ok(reply) if reply.status == StatusCode::TOO_MANY_REQUESTS => {
                    let seconds = reply.retry_after.and_then(|text| text.parse().ok()).unwrap_or(1);
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    continue;
                }
                Ok(reply) if reply.status.is_success() => reply,
                Ok(reply) => return Err(Failure::Refused(reply)),
                Err(Failure::Unreachable(reason)) if !is_first => {
                    output::note(&format!("{reason}; trying again"));
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let page: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            let Some(cursor) = page["next_cursor"].as_str() else {
                return Err(Failure::Unreachable("the server answered something that is not the API".to_owned()));
            };
            place = ("after", cursor.to_owned());
            if is_first {
                self.introduce();
                is_first = false;
            }
            for event in page["data"].as_array().into_iter().flatten() {
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
            None => new_secret(&SystemEntropy::default()).into_inner(),
        };
        let key = SigningKey::parse(&secret).map_err(|error| Failure::usage(format!("--secret: {error}")))?;
        // It is a program of whoever calls this command, most often on this machine.
        let fetch = GuardedFetch::builder(Dns::new(None)).allow_private(true).build();
        fetch.check(url).map_err(|_| Failure::usage("--forward must be a URL such as http://localhost:3000/hook"))?;
        Ok(Self { url: url.to_owned(), secret, key, fetch })
    }

    /// Sends one event; answers the status, or why there is none.
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
