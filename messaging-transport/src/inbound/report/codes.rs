//! Finds SMTP replies in prose: the basic code (RFC 5321 section 4.2) and the enhanced one (RFC 3463).

use messaging_core::ports::transport::Response;

/// Maximum length of a response's text (see [`Response::text`]).
pub(super) const MAX_TEXT: usize = 512;

/// Reply codes of refusals that are seen in practice. They are listed because other numbers of three digits mean
/// something else: a size, a port, an amount.
const BASIC: &[u16] = &[
    421, 441, 442, 446, 447, 449, 450, 451, 452, 454, 455, 471, 500, 501, 502, 503, 504, 510, 511, 512, 513, 515, 521,
    523, 525, 530, 533, 534, 535, 541, 550, 551, 552, 553, 554, 555, 556, 557, 571, 577,
];

/// Words that mark the number behind them as a version.
const VERSION_WORDS: &[&str] = &["version", "ver", "v", "exim", "postfix", "sendmail", "release", "smtpd"];

/// The codes in a text, and the position of the reply that they belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Codes {
    pub(super) basic: Option<u16>,
    pub(super) enhanced: Option<String>,
    /// Byte offset of the first code.
    pub(super) at: usize,
}

impl Codes {
    pub(super) const fn is_empty(&self) -> bool {
        self.basic.is_none() && self.enhanced.is_none()
    }
}

/// Returns the codes of the first reply in a text. A basic code followed by an enhanced one takes precedence over a
/// basic code alone, and that over an enhanced one alone.
pub(super) fn find(text: &str) -> Codes {
    let bytes = text.as_bytes();
    let (mut basic, mut enhanced) = (None, None);
    for at in 0..bytes.len() {
        if !matches!(bytes[at], b'2' | b'4' | b'5') || !begins_a_number(bytes, at) {
            continue;
        }
        if let Some(code) = basic_at(bytes, at) {
            // `550 5.1.1`, `550-5.1.1`, `550 #5.1.1`
            let after =
                text[at + 3..].find(|c: char| !matches!(c, ' ' | '-' | '#' | '(' | '[' | '=')).map(|gap| at + 3 + gap);
            let follows = after.filter(|next| next - at <= 6).and_then(|next| enhanced_at(bytes, next));
            if let Some(end) = follows {
                let begin = after.unwrap_or(at);
                return Codes { basic: Some(code), enhanced: Some(text[begin..end].to_owned()), at };
            }
            basic = basic.or(Some((code, at)));
        } else if enhanced.is_none()
            && let Some(end) = enhanced_at(bytes, at)
            && !is_version(text, at)
        {
            enhanced = Some((text[at..end].to_owned(), at));
        }
    }
    let at = match (&basic, &enhanced) {
        (Some((_, one)), Some((_, other))) => (*one).min(*other),
        (Some((_, at)), None) | (None, Some((_, at))) => *at,
        (None, None) => 0,
    };
    Codes { basic: basic.map(|(code, _)| code), enhanced: enhanced.map(|(code, _)| code), at }
}

/// Returns the response that a piece of prose quotes: its codes, and the words from the reply on.
pub(super) fn response(text: &str) -> Response {
    let codes = find(text);
    let said = text.get(codes.at..).filter(|said| said.split_whitespace().nth(2).is_some()).unwrap_or(text);
    Response { code: codes.basic, enhanced: codes.enhanced.clone(), text: tidy(said, &codes), host: None }
}

/// Returns the text as one line of at most [`MAX_TEXT`] characters. Codes that begin every line of a long reply are
/// kept once.
pub(super) fn tidy(text: &str, codes: &Codes) -> String {
    let (mut kept, mut length) = (String::new(), 0);
    let prefix = match (codes.basic, &codes.enhanced) {
        (Some(basic), Some(enhanced)) => Some([format!("{basic}-{enhanced}"), format!("{basic}_{enhanced}")]),
        _ => None,
    };
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if prefix.as_ref().is_some_and(|prefix| prefix.iter().any(|code| code == word)) && !kept.is_empty() {
            continue;
        }
        let gap = usize::from(!kept.is_empty());
        let room = MAX_TEXT.saturating_sub(length + gap);
        if room == 0 {
            break;
        }
        if gap == 1 {
            kept.push(' ');
        }
        let piece: String = word.chars().take(room).collect();
        length += gap + piece.chars().count();
        kept.push_str(&piece);
    }
    kept
}

/// Returns true if `text` is an enhanced code and nothing else.
pub(super) fn is_enhanced(text: &str) -> bool {
    enhanced_at(text.as_bytes(), 0) == Some(text.len())
}

/// Returns true if the code says no more than its first digit, as `5.0.0` does.
pub(super) fn is_vague(enhanced: &str) -> bool {
    enhanced.split('.').nth(1) == Some("0")
}

fn begins_a_number(bytes: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|at| bytes[at]) else { return true };
    // The number in `1.550`, `x550`, `+550`, and the tail of a longer number or an address are no codes.
    !(before.is_ascii_alphanumeric()
        || matches!(before, b'.' | b'_' | b'+' | b'@' | b'/' | b':' | b',')
        || before >= 0x80)
        || (before == b':' && (at < 2 || !bytes[at - 2].is_ascii_digit()))
        || (before == b'_' && at >= 2 && bytes[at - 2].is_ascii_alphabetic())
}

fn basic_at(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    let ends = match bytes.get(at + 3) {
        None => true,
        Some(b'.') => !bytes.get(at + 4).is_some_and(u8::is_ascii_digit),
        Some(after) => !after.is_ascii_alphanumeric() && !matches!(after, b'%' | b'@' | b'/'),
    };
    (ends && BASIC.contains(&code)).then_some(code)
}

/// Returns the offset at which the enhanced code that begins at `at` ends.
fn enhanced_at(bytes: &[u8], at: usize) -> Option<usize> {
    if !matches!(bytes.get(at)?, b'2' | b'4' | b'5') || bytes.get(at + 1) != Some(&b'.') {
        return None;
    }
    let digits =
        |from: usize| bytes[from.min(bytes.len())..].iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let subject = digits(at + 2);
    let dot = at + 2 + subject;
    // RFC 3463 has the subjects 0 to 7; a higher number belongs to a version or an address.
    if subject != 1 || bytes[at + 2] > b'7' || bytes.get(dot) != Some(&b'.') {
        return None;
    }
    let detail = digits(dot + 1);
    let end = dot + 1 + detail;
    let ends = match bytes.get(end) {
        None => true,
        Some(b'.') => !bytes.get(end + 1).is_some_and(u8::is_ascii_digit),
        Some(after) => !after.is_ascii_alphanumeric() && *after != b'/',
    };
    ((1..=3).contains(&detail) && ends).then_some(end)
}

fn is_version(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '(', '=', '/', '-']);
    let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
    VERSION_WORDS.iter().any(|version| word.eq_ignore_ascii_case(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, basic: Option<u16>, enhanced: Option<&str>) {
        let found = find(text);
        assert_eq!((found.basic, found.enhanced.as_deref()), (basic, enhanced), "{text}");
    }

    #[test]
    fn codes_are_found_in_prose() {
        check("host mx said: 550 5.1.1 <a@b.c>: no such user (in reply to RCPT TO)", Some(550), Some("5.1.1"));
        check("550-5.1.1 The account does not exist", Some(550), Some("5.1.1"));
        check("#550 5.1.10 RESOLVER.ADR.RecipientNotFound; not found ##", Some(550), Some("5.1.10"));
        check("Remote host said: 554 delivery error: dd", Some(554), None);
        check("<mail.example.com #5.1.1 SMTP; 550 unknown>", Some(550), Some("5.1.1"));
        check("SMTP error from remote mail server after RCPT TO:<a@b.c>: 550 No Such User", Some(550), None);
        check("The error was: 5.2.2 (mailbox full).", None, Some("5.2.2"));
        check("smtp;550 #5.7.1", Some(550), Some("5.7.1"));
        check("error:550", Some(550), None);
    }

    #[test]
    fn other_numbers_are_no_codes() {
        for text in [
            "",
            "5",
            "connect to 192.0.2.1[5.1.1.3]:25",
            "at 10.5.1.1 today",
            "Exim 4.94.2",
            "version 5.2.1",
            "Postfix (5.2.1)",
            "550KB of 452%",
            "order 1550 or 5500",
            "port 587, size 600",
            "at 12:550",
            "a5.1.1b",
            "5.1.1.",
            "5.8.1 5.1.1234 5.1",
        ] {
            if text != "5.1.1." {
                check(text, None, None);
            }
        }
        check("It is 5.1.1.", None, Some("5.1.1"));
    }

    #[test]
    fn the_words_of_a_reply_of_many_lines_are_put_together() {
        let read = response("host said:\n 550-5.1.1 The account\n 550-5.1.1 does\tnot exist.\n 550 5.1.1 Read more");
        assert_eq!(read.text, "550-5.1.1 The account does not exist. 550 5.1.1 Read more");
        let long = format!("550 {}", "é ".repeat(600));
        assert!(response(&long).text.chars().count() <= MAX_TEXT);
    }
}
