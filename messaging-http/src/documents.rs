//! The OpenAPI document and its page, made when somebody first asks.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::{docs_page, openapi};

/// What was made so far.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    openapi: OnceLock<Bytes>,
    page: OnceLock<Bytes>,
}

impl Documents {
    /// `openapi.json`
    pub(crate) fn openapi(&self) -> Bytes {
        self.openapi.get_or_init(|| openapi::text().into()).clone()
    }

    /// `/docs`
    pub(crate) fn page(&self) -> Bytes {
        self.page.get_or_init(|| docs_page::render(&openapi::document()).into()).clone()
    }
}
