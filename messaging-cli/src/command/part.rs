//! Parts of a request as ids of arguments, and the operation that the words of a command name.

use messaging_engine::ops::{self, Endpoint};

/// The operation with these words on the command line, such as `["message", "send"]`.
pub(crate) fn endpoint(words: &[&str]) -> Option<&'static Endpoint> {
    ops::all().iter().find(|endpoint| endpoint.cli.split(' ').eq(words.iter().copied()))
}

/// The part of a request that an argument fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Path,
    Query,
    Body,
}

impl Part {
    /// The id of the argument that fills a member: `query.limit`.
    pub(crate) fn id(self, member: &str) -> String {
        let prefix = match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Body => "body",
        };
        format!("{prefix}.{member}")
    }
}

/// Query parameter with the place where a page begins.
pub(crate) const CURSOR: &str = "cursor";

/// The member of a body that holds HTML.
pub(crate) const HTML: &str = "html";
