//! `message watch`: shows the events of the workspace's messages as they occur, or those of one message until its end.

use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Command, value_parser};
use messaging_engine::ops::Endpoint;
use serde_json::{Value, json};

use crate::arguments;
use crate::command::{flags, operation};
use crate::event_log::{self, EventLog, ReadFrom};
use crate::failure::{Failure, accepted};
use crate::output::{self, Output};
use crate::request::Request;
use crate::target::Target;

/// The words of the command.
pub(crate) const WORDS: &[&str] = &["message", "watch"];

const UNTIL_FINAL: &str = "until_final";
const TIMEOUT: &str = "timeout";
const SINCE: &str = "since";
const AFTER: &str = "after";

/// Interval at which one message is read.
const PERIOD: Duration = Duration::from_secs(1);

/// Number of times in a row that an unreachable server is tried again.
const MAX_SILENT: u32 = 40;

const EXAMPLES: &str = "Without --until-final: shows the events of all messages from now on, each once, until Ctrl-C; then prints how to continue. \
Needs the scope webhooks:read; addresses are masked without pii:read.

With --until-final: shows the events of one message from its first. Exit code 0 when it was sent, 1 when it bounced, failed, was \
suppressed or cancelled, 3 after --timeout or Ctrl-C. Needs the scope messages:send.

Examples:
  messaging message watch
  messaging message watch --since 2026-01-31T09:00:00Z --json | jq -r 'select(.kind == \"bounce\") | .to'
  messaging message watch --until-final msg_… --timeout 60 || echo 'not delivered'";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("watch")
        .about("Show the events of messages as they happen")
        .after_help(EXAMPLES)
        .arg(
            Arg::new(UNTIL_FINAL).long("until-final").value_name("MESSAGE_ID").conflicts_with_all([SINCE, AFTER]).help(
                "Show the events of this message only, from its first, and end when it has been sent or given up",
            ),
        )
        .arg(
            Arg::new(TIMEOUT)
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(1..=31_536_000))
                .requires(UNTIL_FINAL)
                .help("Give up waiting for that after so long, with exit code 3"),
        )
        .arg(
            Arg::new(SINCE)
                .long("since")
                .value_name("TIME")
                .value_parser(ValueParser::new(arguments::time_or_age))
                .help("Begin with the events of this time, RFC 3339, or how long ago that was: 90m, 36h, 7d; events are kept for 30 days"),
        )
        .arg(
            Arg::new(AFTER)
                .long("after")
                .value_name("CURSOR")
                .conflicts_with(SINCE)
                .help("Go on where an earlier watch has ended"),
        )
        .args(arguments::target())
        .arg(arguments::json().help("Print each event as a JSON object on a line of its own"))
}

/// Carries it out; without a message it runs until Ctrl-C.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    if let Some(id) = arguments::text(matches, UNTIL_FINAL) {
        let get = operation::endpoint(&["message", "get"]).expect("part of the contract");
        let target = Target::choose(matches, get.access).await?;
        let timeout = matches.get_one::<u64>(TIMEOUT).copied();
        let one = OneMessage { target, output, get, id, status: String::new(), shown: 0 };
        return tokio::select! {
            ended = one.until_final(timeout) => ended,
            _ = tokio::signal::ctrl_c() => Err(Failure::TimedOut("interrupted before the message was final".to_owned())),
        };
    }
    let from = match (arguments::text(matches, AFTER), arguments::text(matches, SINCE)) {
        (Some(cursor), _) => ReadFrom::After(cursor.to_owned()),
        (None, Some(time)) => ReadFrom::Since(time.to_owned()),
        (None, None) => ReadFrom::now(),
    };
    let target = Target::choose(matches, event_log::endpoint().access).await?;
    let mut log = EventLog::new(target, from);
    let ended = tokio::select! {
        ended = watch(&mut log, output) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    if let Some(cursor) = log.cursor() {
        output::note(&format!("to go on from here: messaging message watch --after {cursor}"));
    }
    ended
}

/// Shows events for as long as they come.
async fn watch(log: &mut EventLog, output: Output) -> Result<(), Failure> {
    let mut is_first = true;
    loop {
        let events = log.next().await?;
        if is_first {
            output::note("watching; Ctrl-C ends it");
            is_first = false;
        }
        // Nothing waits in between, so that all events read are shown if the command is stopped.
        for event in &events {
            let data = &event["data"];
            let (document, line) = shown(data, &event["type"], &event["timestamp"], &data["meta"]);
            output.line(&document, &line)?;
        }
    }
}

/// One message that is read until its end.
struct OneMessage<'a> {
    target: Target,
    output: Output,
    get: &'static Endpoint,
    id: &'a str,
    /// Status when it was last read.
    status: String,
    /// Events that are shown already.
    shown: usize,
}

impl OneMessage<'_> {
    async fn until_final(mut self, timeout: Option<u64>) -> Result<(), Failure> {
        let Some(seconds) = timeout else { return self.follow().await };
        if let Ok(ended) = tokio::time::timeout(Duration::from_secs(seconds), self.follow()).await {
            return ended;
        }
        let status = if self.status.is_empty() { "unknown" } else { &self.status };
        Err(Failure::TimedOut(format!("not final after {seconds} s: the status is {status}")))
    }

    async fn follow(&mut self) -> Result<(), Failure> {
        let mut silent = 0;
        loop {
            match self.read().await {
                // The server restarts, for example; the message is processed without this command.
                Err(Failure::Unreachable(_)) if silent < MAX_SILENT && !self.status.is_empty() => silent += 1,
                message => {
                    silent = 0;
                    let message = message?;
                    self.show_news(&message)?;
                    if let Some(end) = end(&message) {
                        return end;
                    }
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn read(&self) -> Result<Value, Failure> {
        let mut request = Request::new(self.get);
        request.path.push(("id".to_owned(), self.id.to_owned()));
        accepted(self.target.call(&request).await?)
    }

    /// Shows the events that were not shown yet.
    fn show_news(&mut self, message: &Value) -> Result<(), Failure> {
        message["status"].as_str().unwrap_or_default().clone_into(&mut self.status);
        let events = message["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        for event in events.iter().skip(self.shown) {
            let (document, line) = shown(message, &event["kind"], &event["at"], &event["meta"]);
            self.output.line(&document, &line)?;
        }
        self.shown = events.len();
        Ok(())
    }
}

/// An event of a message for scripts and for people.
fn shown(message: &Value, kind: &Value, at: &Value, meta: &Value) -> (Value, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = &message["message_id"];
    let recipient = meta["recipient"].as_str().or_else(|| message["to"].as_str()).unwrap_or_default();
    let tags: Vec<_> = message["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let label = message["subject"].as_str().map_or_else(|| tags.join(","), ToOwned::to_owned);
    let document = json!({
        "at": at, "kind": kind, "message_id": id, "to": recipient, "status": message["status"],
        "channel": message["channel"], "tags": message["tags"], "meta": meta,
    });
    let (at, kind, id) = (text(at), text(kind), text(id));
    // The word of the message's status in listings.
    let kind = flags::status_of(&kind);
    let mut line = format!("{at}  {kind:<12}  {recipient:<30}  {label:<20}  {id}");
    for member in ["response", "reason", "url", "message"] {
        if let Some(more) = meta[member].as_str() {
            line.push_str("  ");
            line.push_str(more);
            break;
        }
    }
    (document, line.replace(char::is_control, " "))
}

/// Result of the command if the message has reached its end (contract section 4.2); none if it has not.
fn end(message: &Value) -> Option<Result<(), Failure>> {
    match message["status"].as_str() {
        Some("queued" | "sending" | "deferred") => None,
        Some(status @ ("bounced" | "failed" | "suppressed" | "cancelled")) => {
            let why = message["explanation"]["text"].as_str().map(|why| format!(": {}", output::plain_text(why)));
            Some(Err(Failure::Unsuccessful(format!("the message is {status}{}", why.unwrap_or_default()))))
        }
        _ => Some(Ok(())),
    }
}
