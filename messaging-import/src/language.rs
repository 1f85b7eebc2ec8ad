//! Template languages of other products, as the Jinja that templates here are written in.
//!
//! A translation is whole or there is none: what is not understood is a [`Fault`] with its line, because a template
//! that silently says less than before is worse than one that is missing. `--set NAME=TEXT` stands in for what
//! another product knew and a template here does not, such as a postal address.

pub(crate) mod go;
pub(crate) mod handlebars;
pub(crate) mod merge_tags;

use std::collections::{BTreeMap, BTreeSet};

/// Blocks within one another; what is nested deeper is no template that people wrote.
const MAX_DEPTH: usize = 32;

/// Names that mean something else in a template here, so that no variable can be called so.
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

/// Why a template is not brought over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(crate) struct Fault {
    /// The line where it is, from 1.
    pub(crate) line: usize,
    /// What is there and why it cannot be.
    pub(crate) what: String,
}

/// What a translation is told beside the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Texts of `--set` that stand in for tags.
    pub(crate) given: &'a BTreeMap<String, String>,
    /// The attributes that the contacts of the export have; `None` where every name may be one.
    pub(crate) attributes: Option<&'a BTreeSet<String>>,
}

/// A text in Jinja.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Translated {
    /// The text.
    pub(crate) text: String,
    /// Notes for the report.
    pub(crate) notes: BTreeSet<&'static str>,
}

/// An expression in Jinja.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    /// A text that stands for itself.
    Literal(String),
    /// A name, a call, or something in parentheses: anything can stand beside it.
    Atom(String),
    /// Something that needs parentheses beside an operator.
    Compound(String),
}

impl Expression {
    /// As it stands alone.
    fn code(&self) -> String {
        match self {
            Self::Literal(text) => quoted(text),
            Self::Atom(code) | Self::Compound(code) => code.clone(),
        }
    }

    /// As it stands beside an operator or a filter.
    fn operand(&self) -> String {
        match self {
            Self::Compound(code) => format!("({code})"),
            other => other.code(),
        }
    }

    /// Through a filter.
    fn through(&self, filter: &str) -> Self {
        Self::Compound(format!("{} | {filter}", self.operand()))
    }

    /// With another one behind an operator.
    fn with(&self, operator: &str, other: &Self) -> Self {
        Self::Compound(format!("{} {operator} {}", self.operand(), other.operand()))
    }
}

/// A text that Jinja is to leave as it is.
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

/// A text as a literal of Jinja.
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

/// Whether Jinja reads it as one name.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !["true", "false", "none", "not", "and", "or", "in", "is", "if", "else"].contains(&text)
}

/// A variable that messages give, by its path; `None` where a template here cannot call it so.
fn variable(path: &[&str]) -> Option<Expression> {
    let is_ours = path.first().is_some_and(|first| !TAKEN.contains(first));
    (is_ours && path.iter().all(|name| is_name(name))).then(|| Expression::Atom(path.join(".")))
}

/// The number of the line where a place of a text is.
fn line_of(source: &str, at: usize) -> usize {
    1 + source[..at].matches('\n').count()
}

/// The start of a tag as a fault shows it.
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
