//! `--all`: every page of a listing.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::command::operation::CURSOR;
use crate::failure::Failure;
use crate::output::Output;
use crate::output::rows::Rows;
use crate::request::Request;
use crate::target::Target;

/// Items of a page unless the command line says otherwise.
const LIMIT: &str = "200";

/// How often in a row a page is asked for again that could not be had just now.
const MAX_AGAIN: u32 = 20;

/// A page as it came: its items are passed on without being looked at.
#[derive(Deserialize)]
struct Page {
    data: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// Prints all items.
pub(crate) async fn all(target: &Target, mut request: Request, output: Output) -> Result<(), Failure> {
    if !request.query.iter().any(|(name, _)| name == "limit") {
        request.query.push(("limit".to_owned(), LIMIT.to_owned()));
    }
    let mut rows = Rows::new(output);
    let mut cursor: Option<String> = None;
    loop {
        let mut next = request.clone();
        next.query.extend(cursor.iter().map(|cursor| (CURSOR.to_owned(), cursor.clone())));
        let page = match page(target, &next).await {
            Ok(page) => page,
            Err(failure) => return Err(rows.cut(cursor.as_deref(), failure)),
        };
        rows.add_raw(&page.data)?;
        if page.next_cursor.is_none() {
            return rows.end();
        }
        if page.next_cursor == cursor {
            let failure = Failure::Unreachable("the server answered the same cursor again".to_owned());
            return Err(rows.cut(cursor.as_deref(), failure));
        }
        cursor = page.next_cursor;
    }
}

/// One page, waited for where the rate limit is used up or the server is busy.
async fn page(target: &Target, request: &Request) -> Result<Page, Failure> {
    for again in 0.. {
        let reply = target.call(request).await?;
        if reply.status.is_success() {
            let unclear = |_| Failure::Unreachable("the server answered something that is not the API".to_owned());
            return serde_json::from_slice(&reply.body).map_err(unclear);
        }
        let is_passing = matches!(reply.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        if !is_passing || again >= MAX_AGAIN {
            return Err(Failure::Refused(reply));
        }
        let seconds = reply.retry_after.and_then(|text| text.parse().ok()).unwrap_or(1_u64);
        tokio::time::sleep(Duration::from_secs(seconds.clamp(1, 60))).await;
    }
    unreachable!("the loop ends by itself")
}
