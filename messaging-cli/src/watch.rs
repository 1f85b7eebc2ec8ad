//! `message watch`: shows what becomes of the workspace's messages while it happens.
//!
//! The API has no stream of events, so the newest messages are listed once a second and those that
//! changed are read. A second costs at most [`MAX_REQUESTS`] requests, below the default rate limit of a
//! key; when more has changed, the rest waits for its turn and nothing is left out. Opens, clicks and the
//! like do not change a message: for them the newest messages are read in turn, which takes some seconds.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use messaging_engine::ops::Endpoint;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior};

use crate::arguments;
use crate::command;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::request::Request;
use crate::target::{Reply, Target};

/// The words of the command.
pub(crate) const WORDS: &[&str] = &["message", "watch"];

const UNTIL_FINAL: &str = "until_final";

/// How often the newest messages are listed.
const PERIOD: Duration = Duration::from_secs(1);

/// Requests in one period, the listing included.
const MAX_REQUESTS: usize = 8;

/// Messages that are read in turn for events that the listing does not show, and how many in one period.
const RECENT: usize = 20;
const RECENT_READS: usize = 2;

/// Messages in one listing.
const PAGE: usize = 100;

/// Messages that are followed at the same time; the oldest are given up.
const MAX_FOLLOWED: usize = 10_000;

const EXAMPLES: &str =
    "Follows the messages of the workspace, old and new, until Ctrl-C. Needs the scope messages:send.

Examples:
  messaging message watch
  messaging message watch --json | jq -r 'select(.kind == \"bounce\") | .to'
  messaging message watch --until-final msg_…";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("watch")
        .about("Show the events of messages as they happen")
        .after_help(EXAMPLES)
        .arg(
            Arg::new(UNTIL_FINAL).long("until-final").value_name("MESSAGE_ID").help(
                "Show the events of this message only, from its first, and end when it has been sent or given up",
            ),
        )
        .args(arguments::target())
        .arg(arguments::json().help("Print each event as a JSON object on a line of its own"))
}

/// Carries it out; ends with Ctrl-C.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let list = operation("list")?;
    let target = Target::choose(matches, list.access).await?;
    let watcher =
        Watcher { target, output, list, get: operation("get")?, followed: HashMap::new(), recent: VecDeque::new() };
    let mut period = tokio::time::interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::select! {
        ended = watcher.run(arguments::text(matches, UNTIL_FINAL), period) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

fn operation(verb: &str) -> Result<&'static Endpoint, Failure> {
    command::endpoint(&["message", verb]).ok_or_else(|| Failure::usage("this version has no messages to watch"))
}

struct Watcher {
    target: Target,
    output: Output,
    list: &'static Endpoint,
    get: &'static Endpoint,
    followed: HashMap<String, Followed>,
    /// Messages that are read in turn.
    recent: VecDeque<String>,
}

/// What is known of a message.
#[derive(Debug, Clone, Default)]
struct Followed {
    /// `updated_at` when it was read last.
    updated_at: String,
    /// Events shown; `None` while only those after `updated_at` are news.
    shown: Option<usize>,
    /// The recipient, as the listing shows it.
    to: String,
    /// When it was accepted; the oldest are given up first.
    created_at: String,
}

impl Watcher {
    async fn run(mut self, only: Option<&str>, mut period: Interval) -> Result<(), Failure> {
        if let Some(id) = only {
            loop {
                period.tick().await;
                let message = self.read(id).await?;
                self.show_news(id, &message)?;
                if is_final(&message) {
                    return Ok(());
                }
            }
        }
        let mut changed = VecDeque::new();
        let mut is_first = true;
        loop {
            period.tick().await;
            let mut budget = MAX_REQUESTS;
            self.list_changes(&mut changed, is_first, &mut budget).await?;
            if is_first {
                output::note("watching; Ctrl-C ends it");
                is_first = false;
            }
            while budget > 0
                && let Some(id) = changed.pop_front()
            {
                budget -= 1;
                let message = self.read(&id).await?;
                self.show_news(&id, &message)?;
            }
            for _ in 0..RECENT_READS.min(budget) {
                let Some(id) = self.recent.pop_front() else { break };
                let message = self.read(&id).await?;
                self.skip_old_events(&id, &message);
                self.show_news(&id, &message)?;
                self.recent.push_back(id);
            }
        }
    }

    /// Lists the newest messages, page after page until one that is known, and notes which have changed.
    /// The first time everything is known.
    async fn list_changes(
        &mut self,
        changed: &mut VecDeque<String>,
        is_first: bool,
        budget: &mut usize,
    ) -> Result<(), Failure> {
        let mut cursor: Option<String> = None;
        // Newest first in the listing, oldest first on the screen.
        let mut found = Vec::new();
        loop {
            *budget -= 1;
            let mut request = Request::new(self.list);
            request.query.push(("limit".to_owned(), PAGE.to_string()));
            request.query.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
            let page = accepted(self.target.call(&request).await?)?;
            let mut reached_known = is_first;
            for message in page["data"].as_array().into_iter().flatten() {
                let (Some(id), Some(updated_at)) = (message["message_id"].as_str(), message["updated_at"].as_str())
                else {
                    continue;
                };
                reached_known |= self.followed.contains_key(id);
                let entry = self.followed.entry(id.to_owned()).or_insert_with(|| Followed {
                    updated_at: if is_first { updated_at.to_owned() } else { String::new() },
                    shown: (!is_first).then_some(0),
                    to: message["to"].as_str().unwrap_or_default().to_owned(),
                    created_at: message["created_at"].as_str().unwrap_or_default().to_owned(),
                });
                if entry.updated_at != updated_at {
                    found.push(id.to_owned());
                } else if is_sent(message) && !self.recent.iter().any(|known| known == id) {
                    self.recent.push_back(id.to_owned());
                }
            }
            cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
            if reached_known || cursor.is_none() || *budget <= 1 {
                break;
            }
        }
        for id in found.into_iter().rev() {
            if !changed.contains(&id) {
                changed.push_back(id);
            }
        }
        self.give_up_oldest();
        self.keep_newest_recent();
        Ok(())
    }

    async fn read(&self, id: &str) -> Result<Value, Failure> {
        let mut request = Request::new(self.get);
        let name = self.get.path.split(['{', '}']).nth(1).unwrap_or("id");
        request.path.push((name.to_owned(), id.to_owned()));
        accepted(self.target.call(&request).await?)
    }

    /// Shows the events of a message that were not shown yet.
    fn show_news(&mut self, id: &str, message: &Value) -> Result<(), Failure> {
        let known =
            self.followed.entry(id.to_owned()).or_insert_with(|| Followed { shown: Some(0), ..Followed::default() });
        let events = message["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_news = |at: usize, event: &Value| match known.shown {
            Some(shown) => at >= shown,
            None => event["at"].as_str().is_some_and(|time| time > known.updated_at.as_str()),
        };
        let news: Vec<_> =
            events.iter().enumerate().filter(|(at, event)| is_news(*at, event)).map(|(_, e)| e).collect();
        let to = known.to.clone();
        known.shown = Some(events.len());
        message["updated_at"].as_str().unwrap_or_default().clone_into(&mut known.updated_at);
        for event in news {
            let (document, line) = shown(id, &to, message, event);
            self.output.line(&document, &line)?;
        }
        Ok(())
    }

    /// Of a message that was there before, and has not changed, what has happened so far is no news.
    fn skip_old_events(&mut self, id: &str, message: &Value) {
        if let Some(known) = self.followed.get_mut(id)
            && known.shown.is_none()
            && message["updated_at"] == known.updated_at.as_str()
        {
            known.shown = message["events"].as_array().map(Vec::len);
        }
    }

    fn keep_newest_recent(&mut self) {
        let created_at = |id: &String| self.followed.get(id).map(|known| known.created_at.as_str());
        while self.recent.len() > RECENT {
            let oldest = (0..self.recent.len()).min_by_key(|at| created_at(&self.recent[*at]));
            self.recent.remove(oldest.unwrap_or_default());
        }
    }

    fn give_up_oldest(&mut self) {
        if self.followed.len() > MAX_FOLLOWED {
            let mut times: Vec<_> = self.followed.values().map(|known| known.created_at.clone()).collect();
            times.sort_unstable();
            let first_kept = times.swap_remove(times.len() / 2);
            self.followed.retain(|_, known| known.created_at >= first_kept);
        }
    }
}

/// An event for scripts and for people.
fn shown(id: &str, to: &str, message: &Value, event: &Value) -> (Value, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let recipient = event["meta"]["recipient"].as_str().unwrap_or(to).to_owned();
    let tags: Vec<_> = message["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let label = message["subject"].as_str().map_or_else(|| tags.join(","), ToOwned::to_owned);
    let document = json!({
        "at": event["at"], "kind": event["kind"], "message_id": id, "to": recipient, "status": message["status"],
        "channel": message["channel"], "tags": message["tags"], "meta": event["meta"],
    });
    let mut line = format!("{}  {:<10}  {recipient:<30}  {label:<20}  {id}", text(&event["at"]), text(&event["kind"]));
    for member in ["response", "reason", "url", "message"] {
        if let Some(more) = event["meta"][member].as_str() {
            line.push_str("  ");
            line.push_str(more);
            break;
        }
    }
    (document, line.replace(char::is_control, " "))
}

/// Whether the recipient has it: now it can be opened.
fn is_sent(message: &Value) -> bool {
    matches!(message["status"].as_str(), Some("sent" | "delivered" | "complained"))
}

/// Whether nothing more is expected: sent or delivered, or given up (contract section 4.2).
fn is_final(message: &Value) -> bool {
    !matches!(message["status"].as_str(), Some("queued" | "sending" | "deferred"))
}

fn accepted(reply: Reply) -> Result<Value, Failure> {
    if !reply.status.is_success() {
        return Err(Failure::Refused(reply));
    }
    serde_json::from_slice(&reply.body)
        .map_err(|_| Failure::Unreachable("the server answered something that is not the API".to_owned()))
}
