//! Finds addresses in prose.

use std::ops::Range;

/// The longest local part and domain (RFC 5321 section 4.5.3.1), in octets.
const MAX_LOCAL: usize = 64;
const MAX_DOMAIN: usize = 255;

/// Local parts that are never a person whose mail bounced: our own return addresses, and who reports.
const NOT_RECIPIENTS: &[&str] = &["mailer-daemon", "postmaster", "abuse", "helpdesk", "noreply", "no-reply", "support"];

/// Where addresses are in a line, in order.
pub(super) fn find(line: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.match_indices('@') {
        let done = found.last().map_or(0, |last| last.end);
        if let Some(range) = around(line, at, done) {
            found.push(range);
        }
    }
    found
}

/// The addresses in a list such as a `To` field or `X-Failed-Recipients`, at most `limit`.
pub(super) fn list(text: &str, limit: usize) -> Vec<String> {
    find(text).into_iter().take(limit).map(|range| text[range].to_owned()).collect()
}

/// Whether mail to the address may have bounced.
pub(super) fn may_be_recipient(address: &str) -> bool {
    let local = address.split('@').next().unwrap_or("").to_ascii_lowercase();
    !local.starts_with("bounce+") && !local.starts_with("unsubscribe+") && !NOT_RECIPIENTS.contains(&local.as_str())
}

fn around(line: &str, at: usize, done: usize) -> Option<Range<usize>> {
    let before = &line[done..at];
    let mut start =
        before.char_indices().rev().take_while(|(_, c)| is_local(*c)).last().map(|(offset, _)| done + offset)?;
    // `mailto:a@b.c` stops at the colon; `'a@b.c'` does not at its quote.
    while start < at && line[start..at].starts_with(['\'', '`', '*', '=', '.', '-', '|']) {
        start += 1;
    }
    let after = &line[at + 1..];
    let length = after.find(|c: char| !is_domain(c)).unwrap_or(after.len());
    let domain = after[..length].trim_end_matches(['.', '-']);
    let fits = at > start && at - start <= MAX_LOCAL && domain.len() <= MAX_DOMAIN;
    let has_labels = domain.contains('.') && !domain.contains("..") && !domain.starts_with('.');
    let ends_in_name = domain.rsplit('.').next().is_some_and(|top| !top.bytes().all(|byte| byte.is_ascii_digit()));
    (fits && has_labels && ends_in_name).then(|| start..at + 1 + domain.len())
}

fn is_local(c: char) -> bool {
    c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c)
}

fn is_domain(c: char) -> bool {
    c.is_alphanumeric() || c == '.' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(list(text, 10), expected, "{text}");
    }

    #[test]
    fn addresses_are_found_whatever_stands_around() {
        check("<ann@example.com>:", &["ann@example.com"]);
        check("to 'ann.b+c@mail.example.com', on Monday.", &["ann.b+c@mail.example.com"]);
        check("a@b.co,c@d.co; E@F.co", &["a@b.co", "c@d.co", "E@F.co"]);
        check("[mailto:ann@example.com]", &["ann@example.com"]);
        check("Ann (ann@example.com) said", &["ann@example.com"]);
        check("用户@例子.广告", &["用户@例子.广告"]);
        check("see ann@example.com.", &["ann@example.com"]);
    }

    #[test]
    fn what_is_none_is_not_found() {
        for text in ["", "@", "a@", "@b.co", "a@b", "a@b..co", "a@1.2.3.4", "@@@@", "a @b.co", "a@.b.co"] {
            check(text, &[]);
        }
        check(&format!("{}@b.co", "a".repeat(65)), &[]);
        assert!(!may_be_recipient("bounce+0123@bounce.example.com"));
        assert!(!may_be_recipient("MAILER-DAEMON@example.com"));
        assert!(may_be_recipient("ann@example.com"));
    }
}
