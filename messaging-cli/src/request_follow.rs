//! Flag `--follow` of `request list`: shows requests as they are logged.

use std::collections::VecDeque;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_engine::ops::requests::ListRequests;
use messaging_engine::ops::{Endpoint, Operation as _};
use serde_json::Value;

use crate::arguments;
use crate::command::part::CURSOR;
use crate::failure::{Failure, accepted_as};
use crate::listing::patiently;
use crate::output::{self, Output};
use crate::request::Request;
use crate::target::Target;

const FOLLOW: &str = "follow";

/// Interval at which the log is read.
const PERIOD: Duration = Duration::from_secs(1);

/// Number of requests that are remembered as shown: more than one reading of the log finds.
const REMEMBERED: usize = 10_000;

/// Pages of one reading, at most; of a log that grows faster some requests are not shown.
const MAX_PAGES: usize = 40;

/// Parameters of the query for the earliest time and the number of requests.
const SINCE: &str = "since";
const LIMIT: &str = "limit";

/// Returns true if the operation is the one that has `--follow`.
pub(crate) fn is_ours(endpoint: &Endpoint) -> bool {
    endpoint.id == ListRequests::ID
}

/// Adds the flag.
pub(crate) fn extend(command: Command) -> Command {
    command.arg(
        Arg::new(FOLLOW).long("follow").short('f').action(ArgAction::SetTrue).conflicts_with(arguments::ALL).help(
            "Show new requests as they are logged, oldest first, until Ctrl-C; with --json one object on each line",
        ),
    )
}

/// True if `--follow` was given.
pub(crate) fn is_wanted(matches: &ArgMatches) -> bool {
    arguments::is_set(matches, FOLLOW)
}

/// A page of requests.
#[derive(serde::Deserialize)]
struct Page {
    data: Vec<Value>,
    next_cursor: Option<String>,
}

/// Shows the page that was asked for, then requests as they are logged, until the command is stopped.
pub(crate) async fn run(target: &Target, request: &Request, output: Output) -> Result<(), Failure> {
    let mut follower = Follower { target, request, output, shown: VecDeque::new(), latest: None };
    tokio::select! {
        ended = follower.follow() => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

struct Follower<'a> {
    target: &'a Target,
    request: &'a Request,
    output: Output,
    /// Ids and times of what was shown last.
    shown: VecDeque<(String, String)>,
    /// The latest time of a request that was shown.
    latest: Option<String>,
}

impl Follower<'_> {
    /// Shows requests until an error occurs.
    async fn follow(&mut self) -> Result<(), Failure> {
        let first = self.page(self.request).await?.data;
        self.show(first)?;
        output::note("following; Ctrl-C ends it");
        loop {
            tokio::time::sleep(PERIOD).await;
            let news = self.news().await?;
            self.show(news)?;
        }
    }

    async fn page(&self, request: &Request) -> Result<Page, Failure> {
        accepted_as(patiently(self.target, request).await?)
    }

    /// Returns the requests logged since the last reading, newest first.
    async fn news(&self) -> Result<Vec<Value>, Failure> {
        let mut request = self.request.clone();
        request.query.retain(|(name, _)| name != LIMIT && name != CURSOR && (name != SINCE || self.latest.is_none()));
        request.query.push((LIMIT.to_owned(), "200".to_owned()));
        // Requests of the same millisecond may come later than those that were shown.
        request.query.extend(self.latest.iter().map(|time| (SINCE.to_owned(), time.clone())));
        let (mut news, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let mut next = request.clone();
            next.query.extend(cursor.iter().map(|cursor| (CURSOR.to_owned(), cursor.clone())));
            let page = self.page(&next).await?;
            news.extend(page.data);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(news)
    }

    /// Shows what was not shown before, oldest first.
    fn show(&mut self, found: Vec<Value>) -> Result<(), Failure> {
        for request in found.into_iter().rev() {
            let text = |member: &str| request[member].as_str().unwrap_or_default().to_owned();
            let (id, at) = (text("id"), text("at"));
            if self.shown.iter().any(|(known, time)| *known == id && *time == at) {
                continue;
            }
            let code = request["code"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
            let line = format!(
                "{at}  {} {:<6} {}{code}  {} ms  {id}",
                request["status"],
                text("method"),
                text("path"),
                request["duration_ms"]
            );
            self.output.line(&request, &output::plain_text(&line))?;
            if self.latest.as_ref().is_none_or(|latest| *latest < at) {
                self.latest = Some(at.clone());
            }
            self.shown.push_back((id, at));
            if self.shown.len() > REMEMBERED {
                self.shown.pop_front();
            }
        }
        Ok(())
    }
}
