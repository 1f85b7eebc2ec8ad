//! Refusals of messages, as replies to the client.

use std::fmt::Write as _;

use crate::smtp_server::handler::Reply;

/// Maximum length of a reply's text, so that its line is within RFC 5321 section 4.5.3.1.5.
const MAX_TEXT: usize = 400;

/// A refusal: reply code, enhanced status code (RFC 3463), and a text for people that begins with the API's error code
/// of the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: u16,
    enhanced: &'static str,
    text: String,
}

impl Refusal {
    /// Refusal because of a failure of the server; a later try may work.
    pub const TRY_LATER: Self = Self { code: 451, enhanced: "4.3.0", text: String::new() };

    /// Creates a refusal. `code` is from 400 to 599; a text that does not fit a line is cut, and its characters outside
    /// ASCII are replaced.
    pub fn new(code: u16, enhanced: &'static str, text: impl AsRef<str>) -> Self {
        let fit = |letter: char| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' };
        Self { code, enhanced, text: text.as_ref().chars().map(fit).take(MAX_TEXT).collect() }
    }

    /// Returns the reply code.
    pub const fn code(&self) -> u16 {
        self.code
    }

    /// Returns the refusal as a reply.
    pub(super) fn into_reply(self) -> Reply {
        let mut line = format!("{} {}", self.code, self.enhanced);
        let text = if self.text.is_empty() { "try again later" } else { &self.text };
        let _ = write!(line, " {text}");
        if self.code < 500 { Reply::Later(line.into()) } else { Reply::Refused(line.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_whatever_its_text() {
        let reply = Refusal::new(550, "5.6.0", "a\r\n250 ok \u{fc}").into_reply();
        assert_eq!(reply, Reply::refused("550 5.6.0 a??250 ok ?"));
        let Reply::Later(line) = Refusal::new(451, "4.3.0", "x".repeat(1000)).into_reply() else {
            panic!("it is temporary")
        };
        assert!(line.len() < 500);
        assert_eq!(Refusal::TRY_LATER.into_reply(), Reply::Later("451 4.3.0 try again later".into()));
    }
}
