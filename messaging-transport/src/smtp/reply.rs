//! Replies of SMTP servers (RFC 5321 section 4.2) and enhanced status codes (RFC 3463).

use messaging_core::ports::transport::{Acceptance, Outcome, Response};

/// Maximum length of a reply line, with its line end. RFC 5321 section 4.5.3.1.5 says 512, but some servers send more.
pub(super) const MAX_LINE: usize = 8192;

/// Octets of a line that are kept.
const KEPT: usize = 1024;

/// Maximum number of lines of a reply.
pub(super) const MAX_LINES: usize = 100;

/// Maximum length of a reply's text that is kept, in characters.
const MAX_TEXT: usize = 512;

/// A complete reply.
#[derive(Clone)]
pub(crate) struct Reply {
    code: u16,
    lines: Vec<String>,
}

/// Kind of a reply, by its code (RFC 5321 section 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// 2yz: done.
    Done,
    /// 3yz: the server waits for more.
    GoOn,
    /// 421: not now, and the connection is about to close.
    Closing,
    /// 4yz, except 421: refused for now.
    NotNow,
    /// 5yz: refused for good.
    Never,
}

impl Reply {
    pub(crate) const fn code(&self) -> u16 {
        self.code
    }

    pub(super) const fn kind(&self) -> Kind {
        match self.code {
            421 => Kind::Closing,
            ..300 => Kind::Done,
            300..400 => Kind::GoOn,
            400..500 => Kind::NotNow,
            500.. => Kind::Never,
        }
    }

    /// Returns the texts of the lines.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Returns the outcome for a recipient; `None` for 3yz.
    pub(crate) fn outcome(&self, host: &str) -> Option<Outcome> {
        match self.kind() {
            Kind::Done => Some(Outcome::accepted(Acceptance::Delivered, self.response(host))),
            Kind::NotNow | Kind::Closing => Some(Outcome::deferred(self.response(host))),
            Kind::Never => Some(Outcome::refused(self.response(host))),
            Kind::GoOn => None,
        }
    }

    /// Returns the outcome of a reply that ended everything: 4yz defers, 5yz refuses.
    pub(crate) fn refusal(&self, host: &str) -> Outcome {
        let response = self.response(host);
        if self.kind() == Kind::Never { Outcome::refused(response) } else { Outcome::deferred(response) }
    }

    /// Returns the whole reply as a response.
    pub(crate) fn response(&self, host: &str) -> Response {
        let joined = self.lines.join(" ");
        let text = joined.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TEXT).collect();
        Response { code: Some(self.code), enhanced: self.enhanced(), text, host: Some(host.to_owned()) }
    }

    /// Returns the enhanced status code, if the text starts with one that agrees with the reply code.
    fn enhanced(&self) -> Option<String> {
        let code = self.lines.first()?.split_whitespace().next()?;
        let mut parts = code.split('.');
        let is_number = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let class = parts.next()?.parse::<u16>().ok()?;
        let well_formed = class == self.code / 100
            && parts.next().is_some_and(is_number)
            && parts.next().is_some_and(is_number)
            && parts.next().is_none();
        well_formed.then(|| code.to_owned())
    }
}

/// Collects the lines of a reply.
#[derive(Default)]
pub(super) struct Collector {
    code: Option<u16>,
    lines: Vec<String>,
}

impl Collector {
    /// Takes the next line, without its line end, and returns the reply if that was its last line.
    pub(super) fn push(&mut self, line: &[u8]) -> Result<Option<Reply>, &'static str> {
        let (digits, rest) = line.split_at_checked(3).ok_or("a line is too short")?;
        let [class @ b'2'..=b'5', second @ b'0'..=b'9', third @ b'0'..=b'9'] = digits else {
            return Err("a line does not start with a reply code");
        };
        let code = [class, second, third].iter().fold(0, |code, &&digit| code * 10 + u16::from(digit - b'0'));
        if *self.code.get_or_insert(code) != code {
            return Err("the lines have different codes");
        }
        let (is_last, text) = match rest {
            [] => (true, rest),
            [b' ', text @ ..] => (true, text),
            [b'-', text @ ..] => (false, text),
            _ => return Err("the code is not followed by a space or a hyphen"),
        };
        self.lines.push(String::from_utf8_lossy(&text[..text.len().min(KEPT)]).into_owned());
        if is_last {
            return Ok(Some(Reply { code, lines: std::mem::take(&mut self.lines) }));
        }
        if self.lines.len() >= MAX_LINES { Err("it has too many lines") } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(lines: &[&[u8]]) -> Result<Option<Reply>, &'static str> {
        let mut collector = Collector::default();
        let (last, first) = lines.split_last().unwrap();
        for line in first {
            assert!(collector.push(line)?.is_none());
        }
        collector.push(last)
    }

    #[track_caller]
    fn check(lines: &[&[u8]], code: u16, enhanced: Option<&str>, text: &str) {
        let reply = collect(lines).unwrap().unwrap();
        let response = reply.response("mx");
        assert_eq!(response.code, Some(code));
        assert_eq!(response.enhanced.as_deref(), enhanced);
        assert_eq!(response.text, text);
        assert_eq!(response.host.as_deref(), Some("mx"));
    }

    #[test]
    fn replies_become_responses() {
        check(&[b"250 ok"], 250, None, "ok");
        check(&[b"250"], 250, None, "");
        check(&[b"550 5.1.1 no such user"], 550, Some("5.1.1"), "5.1.1 no such user");
        check(&[b"550-5.7.26 a", b"550 5.7.26 b"], 550, Some("5.7.26"), "5.7.26 a 5.7.26 b");
        check(&[b"550 4.1.1 disagrees"], 550, None, "4.1.1 disagrees");
        for text in ["5.1", "5.1.1.1", "5.1.1111", "5.1.x", "5..1", "x"] {
            check(&[format!("550 {text}").as_bytes()], 550, None, text);
        }
        check(&[b"550 bell\x07 tab\t \xff"], 550, None, "bell  tab  \u{fffd}");
        check(&[format!("550 {}", "é".repeat(600)).as_bytes()], 550, None, &"é".repeat(512));
        check(&[format!("250-{}", "x".repeat(4096)).as_bytes(), b"250 y"], 250, None, &"x".repeat(512));
    }

    #[test]
    fn malformed_replies_are_refused() {
        for line in [&b""[..], b"2", b"25", b"abc", b"150 no", b"650 no", b"250x", b"2.0 no", b" 250 no"] {
            assert!(collect(&[line]).is_err(), "{line:?}");
        }
        assert!(collect(&[b"250-a", b"251 b"]).is_err());
        assert!(collect(&vec![&b"250-a"[..]; MAX_LINES]).is_err());
        assert!(collect(&vec![&b"250-a"[..]; MAX_LINES - 1]).unwrap().is_none());
    }

    #[test]
    fn kinds_follow_the_first_digit() {
        for (line, kind) in [
            ("220 a", Kind::Done),
            ("354 a", Kind::GoOn),
            ("421 a", Kind::Closing),
            ("450 a", Kind::NotNow),
            ("554 a", Kind::Never),
        ] {
            assert_eq!(collect(&[line.as_bytes()]).unwrap().unwrap().kind(), kind);
        }
    }
}
