//! Arguments that several commands of `admin` share: `--limit`, `--cursor` and `--all` of listings, `--workspace`, and
//! `--yes`.

use clap::Args;
use messaging_core::ids::WorkspaceId;
use messaging_core::input::PageQuery;
use messaging_engine::ops::Page;
use messaging_engine::{App, Error};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;
use crate::output::rows::Rows;
use crate::{target, terminal};

/// Items of a page with `--all`, the most that a listing answers.
const MAX_PAGE: u32 = 200;

#[derive(Debug, Args)]
pub(super) struct ListPage {
    /// At most this many items [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: Option<u32>,
    /// `next_cursor` of the previous page
    #[arg(long, value_name = "TEXT")]
    cursor: Option<String>,
    /// All items, page after page
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
}

/// Of a command whose effect cannot be undone.
#[derive(Debug, Args)]
pub(super) struct Confirmation {
    /// Do not ask. Asked is only on a terminal; a script without one is not
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// Asks the person at the terminal; fails unless the answer is yes.
    pub(super) fn ask(&self, question: &str) -> Result<(), Failure> {
        if self.yes { Ok(()) } else { terminal::confirm(question) }
    }
}

impl ListPage {
    /// The query of the page, which is the first one with `--all`.
    fn query(&self) -> PageQuery {
        PageQuery::of(if self.all { Some(MAX_PAGE) } else { self.limit }, self.cursor.clone())
    }
}

/// Prints one page of a listing, or all of them with `--all`.
pub(super) async fn list<T: Serialize>(
    app: &App,
    page: &ListPage,
    output: Output,
    mut fetch: impl AsyncFnMut(PageQuery) -> Result<Page<T>, Error>,
) -> Result<(), Failure> {
    let mut found = fetch(page.query()).await.map_err(|error| target::refused(app, error))?;
    if !page.all {
        return output.resource(&found);
    }
    let mut rows = Rows::new(output);
    loop {
        rows.add(&found.data)?;
        let Some(cursor) = found.next_cursor else { return rows.end() };
        let query = PageQuery::of(Some(MAX_PAGE), Some(cursor));
        found = fetch(query).await.map_err(|error| target::refused(app, error))?;
    }
}

/// The id that `--workspace` was given.
pub(super) fn workspace(text: &str) -> Result<WorkspaceId, Failure> {
    text.parse().map_err(|_| {
        Failure::usage("--workspace is not the id of a workspace (wsp_…): `messaging admin list-workspaces` shows them")
    })
}
