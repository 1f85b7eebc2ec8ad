//! Which part of a request an argument belongs to, and which operation a command line names.

use messaging_engine::ops::{self, Endpoint};

/// The operation whose words a command line named.
pub(crate) fn endpoint(words: &[&str]) -> Option<&'static Endpoint> {
    ops::all().iter().find(|endpoint| endpoint.cli.split(' ').eq(words.iter().copied()))
}

/// Which part of a request a flag belongs to; the prefix of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Path,
    Query,
    Body,
}

impl Part {
    /// The id of a member's argument.
    pub(crate) fn id(self, member: &str) -> String {
        let prefix = match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Body => "body",
        };
        format!("{prefix}.{member}")
    }
}

/// The member of a query that says where a page begins.
pub(crate) const CURSOR: &str = "cursor";

/// The member of a body that holds HTML.
pub(crate) const HTML: &str = "html";
