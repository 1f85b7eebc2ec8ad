//! Patterns of replies: codes and a regular expression.

use regex_lite::{Regex, RegexBuilder};

use super::verdict::{Meaning, PathAction, Verdict};
use crate::domain::delivery::response::Response;

/// Maximum number of octets of a reply that are read.
const MAX_TEXT: usize = 1024;

/// Maximum memory of a compiled expression, in bytes.
const MAX_COMPILED: usize = 256 * 1024;

/// Pattern of replies, with their meaning.
#[derive(Debug, Clone)]
pub struct ReplyPattern {
    /// Basic or enhanced codes, of which the reply has one; a star at the end stands for anything. Empty fits all.
    codes: Vec<String>,
    /// Expression to find in the text of the reply; `None` fits every text.
    text: Option<Regex>,
    meaning: Meaning,
    action: Option<PathAction>,
}

/// Compiled expressions are compared by their text.
impl PartialEq for ReplyPattern {
    fn eq(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.meaning, one.action, one.text.as_ref().map(|text| text.as_str().to_owned()));
        self.codes == other.codes && parts(self) == parts(other)
    }
}

impl Eq for ReplyPattern {}

impl ReplyPattern {
    /// Returns a pattern. The expression ignores case; `None` fits every text. An action replaces the usual one.
    pub fn new(
        codes: Vec<String>,
        text: Option<&str>,
        meaning: Meaning,
        action: Option<PathAction>,
    ) -> Result<Self, regex_lite::Error> {
        let compile = |text: &str| RegexBuilder::new(text).case_insensitive(true).size_limit(MAX_COMPILED).build();
        Ok(Self { codes, text: text.map(compile).transpose()?, meaning, action })
    }

    pub(super) fn fits(&self, subject: &Subject) -> bool {
        let has_code = self.codes.is_empty() || self.codes.iter().any(|code| subject.has_code(code));
        has_code && self.text.as_ref().is_none_or(|text| text.is_match(&subject.text))
    }

    pub(super) fn verdict(&self, is_permanent: bool) -> Verdict {
        let usual = Verdict::new(self.meaning, is_permanent);
        Verdict { action: self.action.unwrap_or(usual.action), ..usual }
    }
}

/// A reply as patterns read it: its codes, and the text in one line with single spaces.
pub(super) struct Subject {
    codes: Vec<String>,
    text: String,
}

impl Subject {
    pub(super) fn of(reply: &Response) -> Self {
        let text = &reply.text[..reply.text.floor_char_boundary(MAX_TEXT)];
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let in_place = reply.code.map(|code| code.to_string()).into_iter().chain(reply.enhanced.clone());
        // `421-4.7.28` is two codes, `192.0.2.1` and `mx1.example.com` are none.
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '.')).map(|word| word.trim_end_matches('.'));
        let mut codes: Vec<String> = in_place.collect();
        codes.extend(
            words
                .enumerate()
                .filter(|(at, word)| is_enhanced(word) || (*at == 0 && is_basic(word)))
                .map(|(_, word)| word.to_owned()),
        );
        Self { codes, text }
    }

    fn has_code(&self, code: &str) -> bool {
        match code.strip_suffix('*') {
            Some(start) => self.codes.iter().any(|known| known.starts_with(start)),
            None => self.codes.iter().any(|known| known == code),
        }
    }

    /// Returns true for a permanent refusal, by the first code.
    pub(super) fn is_permanent(&self) -> bool {
        self.codes.first().is_some_and(|code| code.starts_with('5'))
    }
}

fn is_basic(word: &str) -> bool {
    word.len() == 3 && word.starts_with(['4', '5']) && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_enhanced(word: &str) -> bool {
    let is_number = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    word.starts_with(['4', '5'])
        && word.get(1..2) == Some(".")
        && word.split('.').count() == 3
        && word.split('.').all(is_number)
}
