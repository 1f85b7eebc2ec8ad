//! Pages of listings and their cursors.
//!
//! Contract section 1.5. A cursor is the key of the last item and a check sum of the path and filters
//! it was made for, so that it works nowhere else. It holds nothing secret: ids are shown anyway.

use std::hash::Hasher as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::input::PageQuery;
use crate::ports::store::{PageRequest, Slice};

/// Items of a page when the caller does not say (contract section 1.5).
const DEFAULT_LIMIT: u32 = 50;

/// A page.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub struct Page<T> {
    /// The items, newest first.
    pub data: Vec<T>,
    /// What to send as `cursor` for the next page; null on the last.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A listing that has one page only.
    pub const fn only(data: Vec<T>) -> Self {
        Self { data, next_cursor: None }
    }
}

/// Parameters that say how much is wanted and from where: they do not belong to what is listed.
const NO_FILTERS: [&str; 5] = ["limit", "cursor", "after", "since", "wait"];

/// What binds a cursor to its listing: the path and the filters.
fn listing_scope(path: &str, query: &str) -> [u8; 8] {
    let mut filters: Vec<_> =
        form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| !NO_FILTERS.contains(&name.as_ref())).collect();
    filters.sort();
    let mut hasher = SipHasher13::new();
    hasher.write(path.as_bytes());
    for (name, value) in filters {
        hasher.write(name.as_bytes());
        hasher.write_u8(0xFE);
        hasher.write(value.as_bytes());
        hasher.write_u8(0xFF);
    }
    hasher.finish().to_be_bytes()
}

impl Context<'_> {
    /// What the store is asked for.
    pub fn page(&self, query: &PageQuery) -> Result<PageRequest, Error> {
        let after = query.cursor.as_deref().map(|text| self.read_cursor(text)).transpose()?;
        Ok(PageRequest { after, limit: query.limit.unwrap_or(DEFAULT_LIMIT) as usize })
    }

    /// The page of a slice.
    pub fn answer_page<R, T>(&self, slice: Slice<R>, item: impl FnMut(R) -> T) -> Page<T> {
        let next_cursor = slice.next.map(|key| self.cursor(key));
        Page { data: slice.items.into_iter().map(item).collect(), next_cursor }
    }

    /// The text of a place in this listing.
    pub fn cursor(&self, key: [u8; 16]) -> String {
        let mut bytes = [0_u8; 24];
        bytes[..8].copy_from_slice(&listing_scope(self.path, self.query));
        bytes[8..].copy_from_slice(&key);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The place that [`Context::cursor`] made a text of, for this listing.
    pub fn read_cursor(&self, text: &str) -> Result<[u8; 16], Error> {
        let decoded = URL_SAFE_NO_PAD.decode(text).ok();
        let bytes: [u8; 24] = decoded.and_then(|bytes| bytes.try_into().ok()).ok_or(Error::InvalidCursor)?;
        let (scope, key) = bytes.split_first_chunk::<8>().ok_or(Error::InvalidCursor)?;
        if *scope != listing_scope(self.path, self.query) {
            return Err(Error::InvalidCursor);
        }
        key.try_into().map_err(|_| Error::InvalidCursor)
    }
}
