//! The OpenAPI document and its page, made at the first request for them.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::{docs_page, openapi};

/// The OpenAPI document and its page, each kept once it was made.
#[derive(Debug)]
pub(crate) struct Documents {
    /// The path that the server is mounted at; empty for the root.
    prefix: String,
    openapi: OnceLock<Bytes>,
    page: OnceLock<Bytes>,
}

impl Documents {
    pub(crate) const fn new(prefix: String) -> Self {
        Self { prefix, openapi: OnceLock::new(), page: OnceLock::new() }
    }

    /// A path without the prefix that the server is mounted at. Routers of other servers may have removed it already.
    pub(crate) fn below_prefix<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(self.prefix.as_str()).filter(|rest| rest.starts_with('/')).unwrap_or(path)
    }

    /// `openapi.json`
    pub(crate) fn openapi(&self) -> Bytes {
        self.openapi.get_or_init(|| openapi::text_at(&self.prefix).into()).clone()
    }

    /// `/docs`
    pub(crate) fn page(&self) -> Bytes {
        self.page.get_or_init(|| docs_page::render(&openapi::document_at(&self.prefix)).into()).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_segments_are_a_prefix() {
        let mounted = Documents::new("/mail".to_owned());
        for (path, below) in
            [("/mail/v1/me", "/v1/me"), ("/v1/me", "/v1/me"), ("/mailing", "/mailing"), ("/mail", "/mail")]
        {
            assert_eq!(mounted.below_prefix(path), below);
        }
        assert_eq!(Documents::new(String::new()).below_prefix("/v1/me"), "/v1/me");
    }
}
