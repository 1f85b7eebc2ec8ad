//! Pages of listings and their cursors.
//!
//! Contract section 1.5. A cursor is a position in the store's listing, sealed for the workspace, operation, path and
//! filters of the listing ([`CursorKey`](messaging_core::domain::security::page_cursor::CursorKey)), so that it works
//! nowhere else.

use messaging_core::domain::security::page_cursor::CursorScope;
use messaging_core::ids::Id as _;
use messaging_core::input::PageQuery;
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;

/// Number of items of a page by default (contract section 1.5).
const DEFAULT_LIMIT: u32 = 50;

/// A page of a listing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
#[non_exhaustive]
pub struct Page<T> {
    /// The items, newest first.
    pub data: Vec<T>,
    /// Value of `cursor` for the next page; null on the last.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Returns a listing that has one page only.
    pub const fn only(data: Vec<T>) -> Self {
        Self { data, next_cursor: None }
    }
}

/// Query parameters that choose the size and start of a page; the other parameters are filters.
const NO_FILTERS: [&str; 5] = ["limit", "cursor", "after", "since", "wait"];

impl Context<'_> {
    /// Returns the store's request for the page of a query.
    pub fn page(&self, query: &PageQuery) -> Result<PageRequest, Error> {
        let after = query.cursor.as_deref().map(|text| self.read_cursor(text)).transpose()?;
        Ok(PageRequest { after, limit: query.limit.unwrap_or(DEFAULT_LIMIT) as usize })
    }

    /// Returns the page of a slice.
    pub fn answer_page<R, T>(&self, slice: Slice<R>, item: impl FnMut(R) -> T) -> Page<T> {
        let next_cursor = slice.next.map(|key| self.cursor(key));
        Page { data: slice.items.into_iter().map(item).collect(), next_cursor }
    }

    /// Returns the cursor of a position in this listing.
    pub fn cursor(&self, place: StoreCursor) -> String {
        self.app.cursor_key().seal(&self.cursor_scope(), place.to_bytes())
    }

    /// Returns the position that [`Context::cursor`] sealed, for this listing; any other text is refused.
    pub fn read_cursor(&self, text: &str) -> Result<StoreCursor, Error> {
        let place = self.app.cursor_key().open(&self.cursor_scope(), text).ok_or(Error::InvalidCursor)?;
        Ok(StoreCursor::from_bytes(place))
    }

    /// Returns the cursor of a position in a part of this listing that the store does not list: positions in one part
    /// are not valid in another.
    pub fn cursor_in(&self, part: &str, place: [u8; 16]) -> String {
        self.app.cursor_key().seal(&self.cursor_scope().field(part.as_bytes()), place)
    }

    /// Returns the position that [`Context::cursor_in`] sealed, for this part of this listing; `None` for any other
    /// text.
    pub fn read_cursor_in(&self, part: &str, text: &str) -> Option<[u8; 16]> {
        self.app.cursor_key().open(&self.cursor_scope().field(part.as_bytes()), text)
    }

    /// Returns the scope that binds a cursor to its listing. A listing outside of workspaces belongs to the caller.
    fn cursor_scope(&self) -> CursorScope {
        let of = match self.workspace {
            Some(workspace) => workspace.to_bytes(),
            None => self.caller.credential().unwrap_or_default(),
        };
        let is_in_workspace = [u8::from(self.workspace.is_some())];
        let scope = CursorScope::default().field(&is_in_workspace).field(&of);
        let scope = scope.field(self.operation.as_bytes()).field(self.path.as_bytes());
        let mut filters: Vec<_> = form_urlencoded::parse(self.query.as_bytes())
            .filter(|(name, _)| !NO_FILTERS.contains(&name.as_ref()))
            .collect();
        filters.sort();
        filters.iter().fold(scope, |scope, (name, value)| scope.field(name.as_bytes()).field(value.as_bytes()))
    }
}
