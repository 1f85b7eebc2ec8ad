//! `message resend`: sends messages again, as new ones that name the old one in `metadata.resend_of`.
//!
//! It sends the stored request of a message. A message that already has a copy is not sent again; if two commands run
//! at the same moment, only one sends, because the Idempotency-Key is made of the old id.

mod later;

use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_core::time::Timestamp;
use messaging_engine::ops::Endpoint;
use messaging_engine::ops::messages::content::GetMessageContent;
use messaging_engine::ops::messages::{GetMessage, ListMessages, SendMessage};
use serde_json::{Map, Value, json};

use self::later::Later;
use crate::arguments;
use crate::command::operation::{self, CURSOR, Part};
use crate::failure::{Failure, accepted};
use crate::listing::{Pages, patiently};
use crate::names;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::request::Request;
use crate::target::Target;
use crate::terminal;

/// The words of the command.
pub(crate) const WORDS: &[&str] = &["message", "resend"];

const IDS: &str = "ids";
const AGAIN: &str = "again";

/// Status of a message that was not sent again, in the command's answer.
const SKIPPED: &str = "skipped";
const REFUSED: &str = "refused";

/// Number of messages that are named if they were not sent again.
const NAMED: usize = 10;

const HELP: &str =
    "Each message is sent as a new one with `metadata.resend_of`, the id of the old one. Needs the scopes \
messages:send and pii:read.

Messages that were sent again already, and those with a fallback that was sent or waits, are skipped. So you may \
repeat the command, and only the newest copy of a message is sent again. If you name such a message by its id, it is \
refused; --again sends it all the same.

Some messages cannot be sent again: those that have not ended yet, those of campaigns and automations, fallbacks \
(send the first message again), those with attachments, because the API does not return their bytes, and those whose \
content is no longer kept (30 days). The command names them, with exit code 1.

Examples:
  messaging message resend msg_…
  messaging message resend msg_… --again
  messaging message resend --status failed --since 1h
  messaging message resend --status failed,bounced --since 2d --tag order --quiet";

/// The command.
pub(crate) fn command() -> Command {
    let status = Part::Query.id("status");
    let hidden = [CURSOR, "limit"].map(|member| Part::Query.id(member));
    let filters = operation::filters(Endpoint::row::<ListMessages>()).into_iter().map(|arg| {
        let is_hidden = hidden.iter().any(|id| arg.get_id() == id.as_str());
        arg.conflicts_with(IDS).hide(is_hidden)
    });
    Command::new("resend")
        .about("Send messages again whose content is still kept")
        .after_help(HELP)
        .arg(
            Arg::new(IDS)
                .value_name("ID")
                .num_args(1..)
                .required_unless_present(&status)
                .help("The messages; in their place --status and --since say which"),
        )
        .args(filters)
        .mut_arg(&status, |arg| arg.requires(Part::Query.id("since")))
        .arg(
            Arg::new(AGAIN)
                .long("again")
                .action(ArgAction::SetTrue)
                .conflicts_with(&status)
                .help("Send the messages once more that were sent again already"),
        )
        .arg(arguments::yes())
        .args(arguments::target())
        .args(arguments::output())
}

/// Carries it out.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let target = Target::choose(matches, Endpoint::row::<GetMessageContent>().access).await?;
    let (messages, later) = match matches.get_many::<String>(IDS) {
        Some(ids) => named(&target, ids).await?,
        None => listed(&target, matches).await?,
    };
    let (is_named, is_insisted) = (matches.contains_id(IDS), arguments::is_set(matches, AGAIN));
    let rows = Vec::with_capacity(messages.len());
    let mut again = Again { target: &target, later, is_named, is_insisted, rows, replayed: 0 };
    let count = messages.iter().filter(|message| again.unsent(message).is_none()).count();
    if count > 0 && !arguments::is_set(matches, arguments::YES) {
        terminal::confirm(&format!("Send {count} messages again?"))?;
    }
    let bar = Progress::counting("messages");
    for message in &messages {
        if let Err(failure) = again.send(message).await {
            bar.end();
            again.show(output)?;
            return Err(Failure::Cut(Box::new(failure)));
        }
        bar.count(1);
    }
    bar.end();
    again.show(output)?;
    again.failure().map_or(Ok(()), Err)
}

/// Returns the messages with the ids, and their later copies and fallbacks.
async fn named(target: &Target, ids: impl Iterator<Item = &String>) -> Result<(Vec<Value>, Later), Failure> {
    let mut messages = Vec::new();
    for id in ids {
        let reply = patiently(target, &Request::about(Endpoint::row::<GetMessage>(), id)).await?;
        messages.push(match reply.status.as_u16() {
            404 => json!({"message_id": id}),
            _ => accepted(reply)?,
        });
    }
    let created_at = |message: &Value| message["created_at"].as_str()?.parse::<Timestamp>().ok();
    let later = match messages.iter().filter_map(created_at).min() {
        Some(oldest) => Later::since(target, &oldest.to_string()).await?,
        None => Later::default(),
    };
    Ok((messages, later))
}

/// Returns the messages that the filters select, reduced to the members used here, and their later copies and
/// fallbacks.
async fn listed(target: &Target, matches: &ArgMatches) -> Result<(Vec<Value>, Later), Failure> {
    let mut request = Request::read(Endpoint::row::<ListMessages>(), matches)?;
    names::resolve(target, &mut request, matches).await?;
    let since = request.query.iter().find(|(name, _)| name == "since").map(|(_, time)| time.clone());
    let (mut pages, mut messages) = (Pages::new(target, request), Vec::new());
    while let Some(items) = pages.next().await? {
        for item in items {
            let item: Value = serde_json::from_str(item.get()).unwrap_or_default();
            let kept = ["message_id", "status", "campaign_id", "automation_id", "fallback_of"];
            messages.push(kept.map(|member| (member.to_owned(), item[member].clone())).into_iter().collect());
        }
    }
    // The oldest first, as they were sent.
    messages.reverse();
    // Read after the messages, so that a copy that is made meanwhile is seen.
    let later = Later::since(target, &since.unwrap_or_default()).await?;
    Ok((messages, later))
}

/// Reason for which a message was not sent again.
enum Unsent {
    /// It was sent again already, or its fallback was sent or waits.
    Skipped(String),
    /// It cannot be sent again.
    Refused(String),
}

/// Messages to send again, and the result for each.
struct Again<'a> {
    target: &'a Target,
    later: Later,
    /// True if the messages were named by their ids.
    is_named: bool,
    /// True if messages that were sent again already are sent once more (`--again`).
    is_insisted: bool,
    rows: Vec<Value>,
    /// Number of messages whose Idempotency-Key answered with an earlier copy.
    replayed: usize,
}

impl Again<'_> {
    /// Sends one message again; an error is that of the command, not of the message.
    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let id = message["message_id"].as_str().unwrap_or_default();
        let sent = match self.unsent(message) {
            Some(unsent) => Err(unsent),
            None => match self.request(id).await? {
                Ok(body) => self.accept(id, body).await?.map_err(Unsent::Refused),
                Err(reason) => Err(Unsent::Refused(reason)),
            },
        };
        let (new, status, reason) = match sent {
            Ok(new) => (Some(new), "queued", None),
            Err(Unsent::Skipped(reason)) => (None, SKIPPED, Some(reason)),
            Err(Unsent::Refused(reason)) => (None, REFUSED, Some(reason)),
        };
        self.rows.push(json!({"message_id": new, "resend_of": id, "status": status, "reason": reason}));
        Ok(())
    }

    /// Returns the reason why a message is not sent again, if that is known without trying.
    fn unsent(&self, message: &Value) -> Option<Unsent> {
        let id = message["message_id"].as_str().unwrap_or_default();
        match self.later.why_not(id).filter(|_| !self.is_insisted) {
            Some(reason) if self.is_named => Some(Unsent::Refused(format!("{reason}; --again sends it once more"))),
            Some(reason) => Some(Unsent::Skipped(reason)),
            None => why_not(message).map(Unsent::Refused),
        }
    }

    /// Returns the request of a message, to be sent again, or the reason why it cannot be.
    async fn request(&self, id: &str) -> Result<Result<Value, String>, Failure> {
        let reply = patiently(self.target, &Request::about(Endpoint::row::<GetMessageContent>(), id)).await?;
        if reply.status.as_u16() == 404 {
            return Ok(Err("its content is no longer kept".to_owned()));
        }
        let mut content = accepted(reply)?;
        let Value::Object(request) = content["request"].take() else {
            return Ok(Err("its content is no longer kept".to_owned()));
        };
        Ok(body(id, request))
    }

    /// Sends the request; returns the new id, or the reason for the refusal.
    async fn accept(&mut self, id: &str, body: Value) -> Result<Result<String, String>, Failure> {
        let send = Request::new(Endpoint::row::<SendMessage>());
        // With `--again` it is another request than the one before.
        let key = self.later.copy_of(id).map_or_else(|| format!("resend-{id}"), |copy| format!("again-{copy}"));
        let reply =
            patiently(self.target, &Request { body: body.to_string().into(), idempotency_key: Some(key), ..send })
                .await?;
        if matches!(reply.status.as_u16(), 409 | 422) {
            return Ok(Err(output::reason(&reply)));
        }
        self.replayed += usize::from(reply.replayed);
        let sent = accepted(reply)?;
        Ok(Ok(sent["message_id"].as_str().unwrap_or_default().to_owned()))
    }

    /// Prints the result for each message.
    fn show(&self, output: Output) -> Result<(), Failure> {
        if self.replayed > 0 {
            output::note(&format!("{} had been sent again before and are not sent once more", self.replayed));
        }
        let skipped = self.rows.iter().filter(|row| row["status"] == SKIPPED).count();
        if skipped > 0 {
            output::note(&format!("{skipped} skipped: sent again already, or a fallback was sent or waits"));
        }
        output.resource(&json!({"data": self.rows, "next_cursor": null}))
    }

    /// The failure of the command if some messages were not sent.
    fn failure(&self) -> Option<Failure> {
        let refused: Vec<_> = self.rows.iter().filter(|row| row["status"] == REFUSED).collect();
        if refused.is_empty() {
            return None;
        }
        let text = |row: &Value, member: &str| output::plain_text(row[member].as_str().unwrap_or_default());
        let line = |row: &&Value| format!("\n  {}: {}", text(row, "resend_of"), text(row, "reason"));
        let lines: String = refused.iter().take(NAMED).map(line).collect();
        let more = refused.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
        let count = format!("{} of {} messages were not sent again", refused.len(), self.rows.len());
        Some(Failure::Unsuccessful(count + &lines + &more))
    }
}

/// Returns the reason why a message is not sent again, judged by its state.
fn why_not(message: &Value) -> Option<String> {
    match message["status"].as_str() {
        None => return Some("there is no such message".to_owned()),
        Some(status @ ("queued" | "sending" | "deferred")) => {
            return Some(format!("it is {status} and may still be sent"));
        }
        Some(_) => {}
    }
    if let Some(first) = message["fallback_of"].as_str() {
        return Some(format!("it is the fallback of {first}, which is the one to send again"));
    }
    let of = ["campaign_id", "automation_id"].into_iter().find(|member| message[*member].is_string())?;
    let of = of.trim_end_matches("_id");
    Some(format!("it is of the {of} {}, whose rules it would go around", message[format!("{of}_id")].as_str()?))
}

/// Makes the body of the new request from the stored one, or returns the reason why it cannot.
fn body(id: &str, mut request: Map<String, Value>) -> Result<Value, String> {
    if request.contains_key("attachments") {
        return Err("it has attachments, whose content the API does not return".to_owned());
    }
    // A `send_at` of the stored request is past.
    request.remove("send_at");
    match request.entry("metadata").or_insert_with(|| json!({})) {
        Value::Object(metadata) => {
            metadata.insert("resend_of".to_owned(), json!(id));
        }
        other => *other = json!({"resend_of": id}),
    }
    Ok(Value::Object(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_ended_or_is_of_a_campaign_is_not_sent_again() {
        let told = |message: Value| why_not(&message).unwrap_or_default();
        assert_eq!(told(json!({"status": "failed", "campaign_id": null})), "");
        assert!(told(json!({"status": "deferred"})).contains("deferred"));
        assert!(told(json!({"status": "failed", "campaign_id": "cmp_1"})).contains("campaign cmp_1"));
        assert!(told(json!({"status": "failed", "automation_id": "aut_1"})).contains("automation aut_1"));
        assert!(told(json!({"status": "failed", "fallback_of": "msg_0"})).contains("fallback of msg_0"));
        assert!(told(json!({"message_id": "msg_1"})).contains("no such message"));
    }

    #[test]
    fn a_repetition_names_the_message_and_waits_for_no_time() {
        let request = |value: Value| value.as_object().cloned().unwrap();
        let given =
            request(json!({"to": "a@example.com", "send_at": "T", "metadata": {"order": 17, "resend_of": "msg_0"}}));
        let made = body("msg_1", given).unwrap();
        assert_eq!(made, json!({"to": "a@example.com", "metadata": {"order": 17, "resend_of": "msg_1"}}));
        assert_eq!(body("msg_1", request(json!({}))).unwrap(), json!({"metadata": {"resend_of": "msg_1"}}));
        assert!(body("msg_1", request(json!({"attachments": [{"size": 1}]}))).is_err());
    }
}
