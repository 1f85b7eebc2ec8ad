//! Search for email addresses in prose, such as the text of a bounce.

use std::ops::Range;

/// Longest local part in octets (RFC 5321 section 4.5.3.1.1).
const MAX_LOCAL: usize = 64;
/// Longest domain in octets (RFC 5321 section 4.5.3.1.2).
const MAX_DOMAIN: usize = 255;

/// Local parts, in lower case, of addresses that send or sign reports and are never a recipient whose mail bounced.
const NOT_RECIPIENTS: &[&str] = &["mailer-daemon", "postmaster", "abuse", "helpdesk", "noreply", "no-reply", "support"];

/// Returns the byte ranges of the addresses in a line, which are in order and do not overlap.
pub(super) fn find(line: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.match_indices('@') {
        let not_before = found.last().map_or(0, |last| last.end);
        if let Some(range) = address_at(line, at, not_before) {
            found.push(range);
        }
    }
    found
}

/// Returns the addresses in a list such as the field `To` or `X-Failed-Recipients`, at most `limit` of them.
pub(super) fn list(text: &str, limit: usize) -> Vec<String> {
    find(text).into_iter().take(limit).map(|range| text[range].to_owned()).collect()
}

/// True if the address may be a recipient whose mail bounced: it is neither one of our own return addresses
/// (`bounce+…`, `unsubscribe+…`) nor one of those that send reports.
pub(super) fn may_be_recipient(address: &str) -> bool {
    let local = address.split('@').next().unwrap_or("").to_ascii_lowercase();
    !local.starts_with("bounce+") && !local.starts_with("unsubscribe+") && !NOT_RECIPIENTS.contains(&local.as_str())
}

/// Returns the address around the `@` at byte `at` of a line, if there is one. It begins no earlier than `not_before`,
/// the end of the address before. The domain needs a dot, and its last label must not be a number, as in an IP address.
fn address_at(line: &str, at: usize, not_before: usize) -> Option<Range<usize>> {
    let before = &line[not_before..at];
    let mut start =
        before.char_indices().rev().take_while(|(_, c)| is_local(*c)).last().map(|(offset, _)| not_before + offset)?;
    // The colon in `mailto:a@b.c` cannot be in a local part, but the quote in `'a@b.c'` can: such signs are dropped at
    // the beginning.
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

/// True if the character may be in an unquoted local part (RFC 5321 `atext`, the dot, and letters of any script, as RFC
/// 6531 allows).
fn is_local(c: char) -> bool {
    c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c)
}

/// True if the character may be in a domain, in letters of any script.
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
