//! Faults of templates, with their positions.

use std::fmt;

use minijinja::ErrorKind;

pub use crate::violation::Position;

/// A source that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Position of the fault; `None` if it concerns the whole source.
    pub position: Option<Position>,
    /// Rule that is broken; never text of the source.
    pub message: String,
}

impl Fault {
    /// Returns a fault at a position.
    pub fn at(position: Position, message: impl fmt::Display) -> Self {
        Self { position: Some(position), message: message.to_string() }
    }

    /// Returns the fault of an exceeded limit.
    pub fn limit(position: Option<Position>, rule: &str) -> Self {
        Self { position, message: rule.to_owned() }
    }

    /// Fault from an error of the template engine, with its position in the source.
    pub(crate) fn of_engine(error: &minijinja::Error, source: &str) -> Self {
        let position = match (error.range(), error.line()) {
            (Some(range), _) => Some(Position::of(source, range.start)),
            (None, Some(line)) => Some(Position { line, column: 1 }),
            (None, None) => None,
        };
        let message = match error.detail() {
            Some(detail) if names_only_the_source(error.kind(), detail, source) => shorten(detail),
            _ => error.kind().to_string(),
        };
        Self { position, message }
    }
}

/// False if the engine may quote a value: a filter, an argument or a template whose name the template has made from
/// one, such as an address that its author may not see (contract section 2.4).
fn names_only_the_source(kind: ErrorKind, detail: &str, source: &str) -> bool {
    /// The engine's own words in such a sentence.
    const WORDS: [&str; 10] =
        ["argument", "does", "exist", "filter", "is", "keyword", "not", "template", "test", "unknown"];
    let may_quote = matches!(
        kind,
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::TooManyArguments | ErrorKind::TemplateNotFound
    );
    let mut words = detail.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`'));
    !may_quote || words.all(|word| WORDS.contains(&word) || source.contains(word))
}

/// Shortens the engine's message, which quotes the unexpected text, to 200 characters without control characters.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_template_made_of_a_value_is_not_quoted() {
        let engine = minijinja::Environment::new();
        let told = |source: &str| {
            let error = engine.render_str(source, minijinja::context! { email => "zqxmark@example.com" }).unwrap_err();
            Fault::of_engine(&error, source).message
        };
        for source in ["{{ [1] | map(email | reverse) | list }}", "{{ [1] | select(email[:3]) | list }}"] {
            let told = told(source);
            assert!(!told.contains("zqx") && !told.contains("kram") && !told.is_empty(), "{source}: {told}");
        }
        assert_eq!(told("{{ email | upcase }}"), "filter upcase is unknown");
    }
}
