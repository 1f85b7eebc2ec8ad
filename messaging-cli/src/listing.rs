//! Reads all pages of a listing, for `--all` and for commands that need every item.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::command::part::CURSOR;
use crate::failure::{Failure, accepted_as};
use crate::output::Output;
use crate::output::rows::Rows;
use crate::reply::Reply;
use crate::request::Request;
use crate::target::Target;

/// Query parameter with the number of items of a page.
const LIMIT: &str = "limit";

/// Items of a page unless the request has a limit.
const USUAL_LIMIT: &str = "200";

/// Times that a request is repeated after 429 or 503 before that answer is final.
const MAX_AGAIN: u32 = 20;

/// A page whose items are passed on as raw JSON.
#[derive(Deserialize)]
struct Page {
    data: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// The pages of a listing, one after the other.
pub(crate) struct Pages<'a> {
    target: &'a Target,
    request: Request,
    /// Cursor of the next page; `None` begins at the first.
    cursor: Option<String>,
    is_over: bool,
}

impl<'a> Pages<'a> {
    /// The pages of a request, from its cursor on if it has one. Sends nothing yet.
    pub(crate) fn new(target: &'a Target, mut request: Request) -> Self {
        if !request.query.iter().any(|(name, _)| name == LIMIT) {
            request.query.push((LIMIT.to_owned(), USUAL_LIMIT.to_owned()));
        }
        let given = request.query.iter().position(|(name, _)| name == CURSOR);
        let cursor = given.map(|at| request.query.swap_remove(at).1);
        Self { target, request, cursor, is_over: false }
    }

    /// Returns the items of the next page as raw JSON; `None` after the last. Fails if the server returns the same
    /// cursor twice.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Box<RawValue>>>, Failure> {
        if self.is_over {
            return Ok(None);
        }
        let mut request = self.request.clone();
        request.query.extend(self.cursor.iter().map(|cursor| (CURSOR.to_owned(), cursor.clone())));
        let page = page(self.target, &request).await?;
        if page.next_cursor.is_some() && page.next_cursor == self.cursor {
            return Err(Failure::Unreachable("the server answered the same cursor again".to_owned()));
        }
        self.is_over = page.next_cursor.is_none();
        self.cursor = page.next_cursor;
        Ok(Some(page.data))
    }

    /// Cursor at which a listing that broke off can be continued.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}

/// Prints all items page by page. A failure after the first page ends the output with the cursor to continue from.
pub(crate) async fn all(target: &Target, request: Request, output: Output) -> Result<(), Failure> {
    let mut rows = Rows::new(output);
    let mut pages = Pages::new(target, request);
    loop {
        match pages.next().await {
            Ok(Some(items)) => rows.add_raw(&items)?,
            Ok(None) => return rows.end(),
            Err(failure) => return Err(rows.cut(pages.cursor(), failure)),
        }
    }
}

/// Requests one page.
async fn page(target: &Target, request: &Request) -> Result<Page, Failure> {
    accepted_as(patiently(target, request).await?)
}

/// Sends a request, and repeats it up to [`MAX_AGAIN`] times while the answer is 429 or 503. Waits for `Retry-After`
/// before each repetition, between 1 and 60 seconds.
pub(crate) async fn patiently(target: &Target, request: &Request) -> Result<Reply, Failure> {
    for again in 0.. {
        let reply = target.call(request).await?;
        let is_passing = matches!(reply.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        if !is_passing || again >= MAX_AGAIN {
            return Ok(reply);
        }
        let seconds = reply.retry_after.and_then(|text| text.parse().ok()).unwrap_or(1_u64);
        tokio::time::sleep(Duration::from_secs(seconds.clamp(1, 60))).await;
    }
    unreachable!("the loop ends by itself")
}
