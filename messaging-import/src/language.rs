//! Translates template languages of other products into the Jinja of this project's templates.
//!
//! A template is translated as a whole or not at all: anything that is not understood is a [`Fault`] with its line,
//! because a template that silently says less than before is worse than a missing one. `--set NAME=TEXT` replaces
//! values that the other product had and a template here does not, such as a postal address.

pub(crate) mod go;
pub(crate) mod handlebars;
pub(crate) mod merge_tags;

use std::collections::{BTreeMap, BTreeSet};

/// Maximum nesting of blocks; deeper ones do not occur in templates that people write.
const MAX_DEPTH: usize = 32;

/// Names with another meaning in a template here, which no variable can have.
const TAKEN: [&str; 10] = [
    "contact",
    "unsubscribe_url",
    "preferences_url",
    "archive_url",
    "workspace",
    "campaign",
    "message_id",
    "event",
    "loop",
    "self",
];

/// Reason why a template is not translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(crate) struct Fault {
    /// Line of the fault, from 1.
    pub(crate) line: usize,
    /// Text at fault, and the reason.
    pub(crate) what: String,
}

/// Parameters of a translation, besides the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Texts of `--set` that replace tags.
    pub(crate) given: &'a BTreeMap<String, String>,
    /// Attributes that the contacts of the export have; `None` if every name may be one.
    pub(crate) attributes: Option<&'a BTreeSet<String>>,
}

/// Text in Jinja.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Translated {
    /// The text.
    pub(crate) text: String,
    /// Notes for the report.
    pub(crate) notes: BTreeSet<&'static str>,
}

/// Expression in Jinja.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    /// A literal text.
    Literal(String),
    /// A name, a call, or an expression in parentheses: it needs no parentheses beside an operator.
    Atom(String),
    /// An expression that needs parentheses beside an operator.
    Compound(String),
}

impl Expression {
    /// Returns the code of the expression on its own.
    fn code(&self) -> String {
        match self {
            Self::Literal(text) => quoted(text),
            Self::Atom(code) | Self::Compound(code) => code.clone(),
        }
    }

    /// Returns the code of the expression as an operand or before a filter.
    fn operand(&self) -> String {
        match self {
            Self::Compound(code) => format!("({code})"),
            other => other.code(),
        }
    }

    /// Applies a filter.
    fn through(&self, filter: &str) -> Self {
        Self::Compound(format!("{} | {filter}", self.operand()))
    }

    /// Combines it with another one by an operator.
    fn with(&self, operator: &str, other: &Self) -> Self {
        Self::Compound(format!("{} {operator} {}", self.operand(), other.operand()))
    }
}

/// Appends a text that Jinja is to leave as it is.
fn push_literal(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let taken = if ["{{", "{%", "{#"].iter().any(|opening| from.starts_with(opening)) {
            out.push_str("{{ '");
            out.push_str(&from[..2]);
            out.push_str("' }}");
            2
        } else {
            out.push('{');
            1
        };
        rest = &from[taken..];
    }
    out.push_str(rest);
}

/// Returns a text as a literal of Jinja.
fn quoted(text: &str) -> String {
    let mut literal = String::from("'");
    for letter in text.chars() {
        match letter {
            '\'' | '\\' => {
                literal.push('\\');
                literal.push(letter);
            }
            '\n' => literal.push_str("\\n"),
            other => literal.push(other),
        }
    }
    literal.push('\'');
    literal
}

/// Returns true if Jinja reads the text as one name.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !["true", "false", "none", "not", "and", "or", "in", "is", "if", "else"].contains(&text)
}

/// Returns a variable that messages supply, by its path; `None` if a template here cannot use that name.
fn variable(path: &[&str]) -> Option<Expression> {
    let is_ours = path.first().is_some_and(|first| !TAKEN.contains(first));
    (is_ours && path.iter().all(|name| is_name(name))).then(|| Expression::Atom(path.join(".")))
}

/// Returns the number of the line at an offset of a text.
fn line_of(source: &str, at: usize) -> usize {
    1 + source[..at].matches('\n').count()
}

/// Returns the start of a tag, as a fault shows it.
fn shown(tag: &str) -> String {
    const MOST: usize = 60;
    let line: String = tag.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MOST { line } else { line.chars().take(MOST - 1).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_looks_like_jinja_stays_text() {
        for (text, expected) in [
            ("a { b } c", "a { b } c"),
            ("@media x{#a{b:c}}", "@media x{{ '{#' }}a{b:c}}"),
            ("{{ x }} {% y %}", "{{ '{{' }} x }} {{ '{%' }} y %}"),
            ("{{{", "{{ '{{' }}{"),
        ] {
            let mut out = String::new();
            push_literal(&mut out, text);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn literals_are_quoted_and_names_checked() {
        assert_eq!(quoted("it's a \\ \"thing\"\n"), r#"'it\'s a \\ "thing"\n'"#);
        assert_eq!(variable(&["order", "id"]), Some(Expression::Atom("order.id".to_owned())));
        for taken in [&["contact"][..], &["order", "first-name"], &["1st"], &["not"], &[""]] {
            assert_eq!(variable(taken), None, "{taken:?}");
        }
    }
}
