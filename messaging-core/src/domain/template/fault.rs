//! What is wrong with a template, and where.

use std::fmt;

pub use crate::violation::Position;

/// A source that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where; `None` when it is about the whole.
    pub position: Option<Position>,
    /// Which rule, and never what was written.
    pub message: String,
}

impl Fault {
    /// A fault at a place.
    pub fn at(position: Position, message: impl fmt::Display) -> Self {
        Self { position: Some(position), message: message.to_string() }
    }

    /// A limit that is not kept.
    pub fn limit(position: Option<Position>, rule: &str) -> Self {
        Self { position, message: rule.to_owned() }
    }

    /// What the engine refused.
    pub(crate) fn of_engine(error: &minijinja::Error, source: &str) -> Self {
        let position = match (error.range(), error.line()) {
            (Some(range), _) => Some(Position::of(source, range.start)),
            (None, Some(line)) => Some(Position { line, column: 1 }),
            (None, None) => None,
        };
        let message = match error.detail() {
            Some(detail) => shorten(detail),
            None => error.kind().to_string(),
        };
        Self { position, message }
    }
}

/// The engine quotes what it did not expect; a sentence stays a sentence.
fn shorten(detail: &str) -> String {
    detail.chars().filter(|c| !c.is_control()).take(200).collect()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(f, "line {line}, column {column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Fault {}
