//! `campaign watch`: shows the progress of a campaign until it has ended.
//!
//! On a terminal a bar on standard error shows how many recipients were handled; with `--json` every change is a JSON
//! object on a separate line. The command makes two requests a second: for the campaign and for its statistics.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use messaging_engine::ops::Endpoint;
use serde_json::{Value, json};

use crate::arguments;
use crate::command::operation;
use crate::failure::{Failure, accepted};
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::request::Request;
use crate::target::Target;

/// The words that call the command, after the name of the program.
pub(crate) const WORDS: &[&str] = &["campaign", "watch"];

const ID: &str = "id";

/// Interval at which the campaign is read.
const PERIOD: Duration = Duration::from_secs(1);

/// Number of times in a row that the server may be unreachable before the command gives up: it may be restarting.
const MAX_SILENT: u32 = 40;

const EXAMPLES: &str =
    "Exit code 0 when the campaign was sent, 1 when it failed or was cancelled, or is an unscheduled draft. \
Goes on waiting while the campaign is paused; Ctrl-C ends it with 3. Needs the scope campaigns:read.

Examples:
  messaging campaign watch cmp_…
  messaging campaign schedule cmp_… --send-now && messaging campaign watch cmp_… --json | jq .delivered";

/// The definition of the command: its arguments and help.
pub(crate) fn command() -> Command {
    Command::new("watch")
        .about("Show the progress of a campaign until it has ended")
        .after_help(EXAMPLES)
        .arg(Arg::new(ID).value_name("ID").required(true).help("The campaign"))
        .args(arguments::target())
        .arg(arguments::json().help("Print each change as a JSON object on a line of its own"))
}

/// Runs the command until the campaign or Ctrl-C ends it.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let (get, stats) = (operation("get")?, operation("stats")?);
    let id = arguments::text(matches, ID).unwrap_or_default();
    let target = Target::choose(matches, get.access).await?;
    let watcher = Watcher { target, output, get: Request::about(get, id), stats: Request::about(stats, id) };
    tokio::select! {
        ended = watcher.run() => ended,
        _ = tokio::signal::ctrl_c() => {
            Err(Failure::TimedOut("interrupted before the campaign has ended; it goes on".to_owned()))
        }
    }
}

fn operation(verb: &str) -> Result<&'static Endpoint, Failure> {
    operation::endpoint(&["campaign", verb]).ok_or_else(|| Failure::usage("this version has no campaigns to watch"))
}

struct Watcher {
    target: Target,
    output: Output,
    get: Request,
    stats: Request,
}

impl Watcher {
    async fn run(self) -> Result<(), Failure> {
        let bar = Progress::new("", Unit::Items);
        let (mut shown, mut silent) = (Value::Null, 0);
        loop {
            let document = match self.look().await {
                // The server may be restarting; the campaign continues there without this command.
                Err(Failure::Unreachable(_)) if silent < MAX_SILENT && !shown.is_null() => {
                    silent += 1;
                    tokio::time::sleep(PERIOD).await;
                    continue;
                }
                look => look?,
            };
            silent = 0;
            let status = document["status"].as_str().unwrap_or_default().to_owned();
            if self.output.is_json() && document != shown {
                self.output.line(&document, "")?;
            }
            show(&bar, &document);
            if let Some(end) = end(&status, &document) {
                bar.end();
                if !self.output.is_json() {
                    self.output.line(&document, &summary(&document))?;
                }
                return end;
            }
            shown = document;
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// State and statistics of the campaign now, as one document.
    async fn look(&self) -> Result<Value, Failure> {
        let campaign = accepted(self.target.call(&self.get).await?)?;
        let stats = accepted(self.target.call(&self.stats).await?)?;
        let mut document = json!({"campaign_id": campaign["id"]});
        for name in ["status", "phase", "scheduled_at", "recipients", "waiting", "pause_reason", "failure_reason"] {
            document[name] = campaign[name].clone();
        }
        for name in ["sending", "sent", "delivered", "deferred", "bounces", "failed", "cancelled", "skipped"] {
            document[name] = stats[name].clone();
        }
        Ok(document)
    }
}

/// The result of the command for a campaign that has ended; `None` while it continues.
fn end(status: &str, document: &Value) -> Option<Result<(), Failure>> {
    let unsuccessful = |text: String| Some(Err(Failure::Unsuccessful(text)));
    match status {
        // The last attempts may still be in progress.
        "sent" if count(document, "sending") > 0 => None,
        "sent" => Some(Ok(())),
        "failed" => {
            let reason = document["failure_reason"].as_str().unwrap_or("unknown");
            unsuccessful(format!("the campaign failed: {reason}"))
        }
        "cancelled" => unsuccessful("the campaign was cancelled".to_owned()),
        "draft" => unsuccessful("the campaign is a draft: messaging campaign schedule ID".to_owned()),
        _ => None,
    }
}

/// A count in the document; 0 if it is absent.
fn count(document: &Value, name: &str) -> u64 {
    document[name].as_u64().unwrap_or_default()
}

/// One line with the final state and the counts of recipients by outcome.
fn summary(document: &Value) -> String {
    let of = |name| count(document, name);
    let skipped: u64 =
        document["skipped"].as_object().into_iter().flatten().filter_map(|(_, many)| many.as_u64()).sum();
    let status = output::plain_text(document["status"].as_str().unwrap_or_default());
    format!(
        "{status}: {} recipients, {} sent, {} delivered, {} bounced, {} failed, {} cancelled, {skipped} skipped",
        of("recipients"),
        of("sent"),
        of("delivered"),
        of("bounces"),
        of("failed"),
        of("cancelled"),
    )
}

/// Sets the progress bar to the recipients that no longer wait, and its text to the state with phase or pause reason.
fn show(bar: &Progress, document: &Value) {
    let recipients = count(document, "recipients");
    bar.set(recipients.saturating_sub(count(document, "waiting")), recipients);
    let status = document["status"].as_str().unwrap_or_default();
    let more = [&document["phase"], &document["pause_reason"]].into_iter().find_map(Value::as_str);
    let message = more.map_or_else(|| status.to_owned(), |more| format!("{status} ({more})"));
    bar.message(&output::plain_text(&message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_campaign_is_that_of_the_command() {
        let code = |status: &str| {
            end(status, &json!({"failure_reason": "internal"})).map(|end| match end {
                Ok(()) => 0,
                Err(failure) => failure.exit_code(),
            })
        };
        assert!(end("sent", &json!({"sending": 1})).is_none(), "attempts are under way");
        let codes = ["sent", "failed", "cancelled", "draft", "scheduled", "sending", "paused"].map(code);
        assert_eq!(codes, [Some(0), Some(1), Some(1), Some(1), None, None, None]);
    }

    #[test]
    fn everybody_is_in_the_summary() {
        let document = json!({"status": "sent", "recipients": 9, "sent": 7, "delivered": 6, "bounces": 1, "failed": 1,
            "cancelled": 0, "skipped": {"suppressed": 2, "no_consent": 1}});
        let expected = "sent: 9 recipients, 7 sent, 6 delivered, 1 bounced, 1 failed, 0 cancelled, 3 skipped";
        assert_eq!(summary(&document), expected);
    }
}
