//! Parses delivery status notifications (RFC 3464), addresses in UTF-8 included (RFC 6533).

use messaging_core::domain::mail::report::{Action, RecipientReport};
use messaging_core::ports::transport::Response;

use super::codes::{self, Codes};
use crate::mail::fields::{self, Fields};

/// Maximum number of recipients read from one notification; a message of ours has at most 101.
const MAX_RECIPIENTS: usize = 200;

/// Fields that name the recipient of a group.
const RECIPIENT_FIELDS: &[&str] = &["Original-Recipient", "Final-Recipient", "X-Actual-Recipient"];

/// Returns the recipients' reports in a `message/delivery-status` part.
pub(super) fn read(part: &[u8]) -> Vec<RecipientReport> {
    let groups = groups(part);
    let reporter = groups.iter().find_map(|group| group.get("Reporting-MTA")).and_then(host);
    groups
        .iter()
        .filter(|group| is_about_a_recipient(group))
        .take(MAX_RECIPIENTS)
        .filter_map(|group| recipient(group, reporter.as_deref()))
        .collect()
}

/// Returns the groups of fields. Empty lines divide them; some programs write several such lines, or none, so that a
/// second `Final-Recipient` begins a group as well.
fn groups(part: &[u8]) -> Vec<Fields> {
    let mut found = Vec::new();
    let mut rest = part;
    while !rest.is_empty() && found.len() <= MAX_RECIPIENTS {
        let (group, after) = fields::split(rest);
        if group.is_empty() && after.len() == rest.len() {
            // The line is no field: skip it.
            rest = fields::after_line(rest);
            continue;
        }
        if !group.is_empty() {
            found.extend(by_recipient(group));
        }
        rest = after;
    }
    found
}

/// Divides a group in which several recipients follow one another.
fn by_recipient(group: Fields) -> Vec<Fields> {
    if group.all("Final-Recipient").count() < 2 {
        return vec![group];
    }
    let mut records = vec![Fields::default()];
    for (name, value) in group {
        let record = records.last_mut().expect("there is one from the beginning");
        let is_next = |field: &str| name.eq_ignore_ascii_case(field) && record.get("Final-Recipient").is_some();
        if is_next("Final-Recipient") || (is_next("Original-Recipient") && record.get("Action").is_some()) {
            records.push(Fields::default());
        }
        records.last_mut().expect("there is one from the beginning").push(name, value);
    }
    records
}

fn is_about_a_recipient(group: &Fields) -> bool {
    RECIPIENT_FIELDS.iter().any(|name| group.get(name).is_some())
        || (group.get("Status").is_some() && group.get("Action").is_some())
}

fn recipient(group: &Fields, reporter: Option<&str>) -> Option<RecipientReport> {
    let mut addresses: Vec<String> = Vec::new();
    for name in RECIPIENT_FIELDS {
        for address in group.get(name).into_iter().flat_map(spellings) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    let status = group.get("Status").and_then(status);
    let action = action(group.get("Action").unwrap_or(""), status.as_deref())?;
    let mut response = diagnostic(group.get("Diagnostic-Code").unwrap_or(""), status);
    response.host = group.get("Remote-MTA").and_then(host).or_else(|| reporter.map(ToOwned::to_owned));
    Some(RecipientReport { addresses, action, response })
}

/// Returns the action (RFC 3464 section 2.3.3), or one by the class of the status if it is missing.
fn action(text: &str, status: Option<&str>) -> Option<Action> {
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty()).unwrap_or("");
    Some(match word.to_ascii_lowercase().as_str() {
        "failed" | "failure" | "fail" | "bounced" | "error" => Action::Failed,
        "delayed" | "delay" => Action::Delayed,
        "delivered" => Action::Delivered,
        "relayed" => Action::Relayed,
        "expanded" => Action::Expanded,
        _ => match status?.as_bytes().first()? {
            b'5' => Action::Failed,
            b'4' => Action::Delayed,
            _ => Action::Delivered,
        },
    })
}

/// Returns the status code (RFC 3464 section 2.3.4); some programs write an explanation behind it.
fn status(text: &str) -> Option<String> {
    let word = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find(|word| !word.is_empty())?;
    codes::is_enhanced(word).then(|| word.to_owned())
}

/// Returns the diagnostic code (RFC 3464 section 2.3.6) combined with the status: the remote host's own code is worth
/// more than the reporting host's version of it.
fn diagnostic(text: &str, status: Option<String>) -> Response {
    let (kind, said) = text.split_once(';').unwrap_or(("", text));
    let (kind, said) = if is_atom(kind.trim()) {
        (kind.trim().to_ascii_lowercase(), said.trim())
    } else {
        (String::new(), text.trim())
    };
    let mut found = codes::find(said);
    // A reply begins with its code, whatever the code is; elsewhere a number may be anything.
    found.basic = leading_code(said).filter(|_| kind == "smtp").or(found.basic);
    let is_reply = kind == "smtp" || found.basic.is_some();
    let enhanced = match (found.enhanced.clone(), status) {
        (Some(said), Some(status)) if codes::is_vague(&said) && !codes::is_vague(&status) => Some(status),
        (Some(said), _) => Some(said),
        // The status was derived from the bare code by the host; the words say more.
        (None, Some(status))
            if is_reply && status == "5.1.1" && found.basic.is_some_and(|code| code != 553) && said.len() > 3 =>
        {
            None
        }
        (None, status) => status,
    };
    let codes = Codes { basic: found.basic, enhanced: enhanced.clone(), at: 0 };
    Response { code: found.basic, enhanced, text: codes::tidy(said, &codes), host: None }
}

/// Returns the code that a reply begins with (RFC 5321 section 4.2).
fn leading_code(said: &str) -> Option<u16> {
    let digits = said.get(..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let ends = said.as_bytes().get(3).is_none_or(|after| !after.is_ascii_alphanumeric() && *after != b'.');
    digits.parse().ok().filter(|code| ends && matches!(code, 200..=599))
}

/// Returns the host in a value such as `dns; mx.example.com (192.0.2.1)`.
fn host(text: &str) -> Option<String> {
    let name = text.split_once(';').map_or(text, |(_, name)| name);
    let name = name.split_whitespace().next()?.trim_matches(['[', ']', '<', '>', '"']).trim_end_matches('.');
    let fits = name.len() <= 253 && name.contains(['.', ':']) && !name.contains(|c: char| c.is_control());
    fits.then(|| name.to_ascii_lowercase())
}

/// Returns the possible spellings of a recipient: as it stands, and with its encoding undone.
fn spellings(text: &str) -> Vec<String> {
    let (kind, address) = match text.split_once(';') {
        Some((kind, address)) if is_atom(kind.trim()) => (kind.trim(), address),
        _ => ("", text),
    };
    let address = address.trim().trim_start_matches("mailto:");
    let address = address.split_once('<').map_or(address, |(_, rest)| rest.split('>').next().unwrap_or(rest));
    let address = address.split_whitespace().next().unwrap_or("").trim_matches(['<', '>', '"', '\'', ',', ';']);
    if !address.contains('@') || address.len() > 1024 {
        return Vec::new();
    }
    let mut found = vec![address.to_owned()];
    let decoded = if kind.eq_ignore_ascii_case("utf-8") { from_unicode_xtext(address) } else { from_xtext(address) };
    found.extend(decoded.filter(|decoded| decoded != address));
    found
}

fn is_atom(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 40
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Decodes xtext (RFC 3461 section 4), such as `+2B` for a plus sign.
fn from_xtext(text: &str) -> Option<String> {
    if !text.contains('+') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex =
            after.get(..2).filter(|digits| digits.iter().all(|d| d.is_ascii_digit() || (b'A'..=b'F').contains(d)));
        if byte == b'+' {
            let digits = std::str::from_utf8(hex?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(|c: char| c.is_control()))
}

/// Decodes the form of RFC 6533 section 3, such as `\x{4E2D}` for a character.
fn from_unicode_xtext(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\x{") {
        let (digits, behind) = after.split_once('}')?;
        decoded.push_str(before);
        decoded.push(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).filter(|c| !c.is_control())?);
        rest = behind;
    }
    decoded.push_str(rest);
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Failed a@b.c 550 5.1.1 text`
    #[track_caller]
    fn check(part: &str, expected: &[&str]) {
        let shown: Vec<_> = read(part.as_bytes())
            .iter()
            .map(|report| {
                let code = report.response.code.map_or("-".to_owned(), |code| code.to_string());
                let enhanced = report.response.enhanced.as_deref().unwrap_or("-");
                format!("{:?} {} {code} {enhanced} {}", report.action, report.addresses.join(","), report.response.text)
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn groups_are_recipients() {
        check(
            "Reporting-MTA: dns; mx.example.com\r\n\r\n\r\nFinal-Recipient: RFC822; <a@b.co>\r\nAction: failed\r\n\
             Status: 5.1.1 (bad address)\r\nDiagnostic-Code: smtp; 550 5.1.1\r\n  <a@b.co>...\r\n\tUser unknown\r\n\r\n\
             Original-Recipient: rfc822; x@y.co\r\nFinal-Recipient: rfc822; d@e.co\r\nAction: delayed\r\nStatus: 4.4.1\r\n",
            &["Failed a@b.co 550 5.1.1 550 5.1.1 <a@b.co>... User unknown", "Delayed x@y.co,d@e.co - 4.4.1 "],
        );
        // Without empty lines between.
        check(
            "Reporting-MTA: dns; m.co\nFinal-Recipient: rfc822; a@b.co\nAction: failed\nStatus: 5.7.1\n\
             Original-Recipient: rfc822; C@d.co\nFinal-Recipient: rfc822; c@d.co\nAction: failed\nStatus: 5.2.2\n",
            &["Failed a@b.co - 5.7.1 ", "Failed C@d.co,c@d.co - 5.2.2 "],
        );
    }

    #[test]
    fn what_is_missing_is_derived_or_left_out() {
        check("Final-Recipient: a@b.co\nStatus: 5.2.2\n", &["Failed a@b.co - 5.2.2 "]);
        check("Final-Recipient: rfc822; a@b.co\nStatus: 4.2.2\n", &["Delayed a@b.co - 4.2.2 "]);
        check("Final-Recipient: rfc822; a@b.co\nStatus: 2.1.5\n", &["Delivered a@b.co - 2.1.5 "]);
        check("Final-Recipient: rfc822; a@b.co\n", &[]);
        check("Action: failed\nStatus: 5.1.1\n", &["Failed  - 5.1.1 "]);
        check("Final-Recipient: x400; /C=DE/S=ann\nAction: failed\nStatus: 5\n", &["Failed  - - "]);
        check("", &[]);
        check("\r\n\r\nnot fields\r\nat all\r\n", &[]);
    }

    #[test]
    fn the_remote_hosts_own_code_counts_more() {
        let of = |diagnostic: &str, status: &str| {
            let read = super::diagnostic(diagnostic, Some(status.to_owned()));
            (read.code, read.enhanced.unwrap_or_default())
        };
        assert_eq!(of("smtp; 550 5.7.1 spam", "5.1.1"), (Some(550), "5.7.1".to_owned()));
        assert_eq!(of("smtp; 550 5.0.0 no such user", "5.1.1"), (Some(550), "5.1.1".to_owned()));
        assert_eq!(of("smtp; 550 rejected as spam", "5.1.1"), (Some(550), String::new()));
        assert_eq!(of("smtp; 552 full", "5.2.2"), (Some(552), "5.2.2".to_owned()));
        assert_eq!(of("X-Postfix; unknown user: \"ann\"", "5.1.1"), (None, "5.1.1".to_owned()));
        assert_eq!(of("", "5.4.4"), (None, "5.4.4".to_owned()));
    }

    #[test]
    fn encoded_addresses_are_read_both_ways() {
        assert_eq!(spellings("rfc822; ann+2Bx@b.co"), ["ann+2Bx@b.co", "ann+x@b.co"]);
        assert_eq!(spellings("rfc822; ann+tag@b.co"), ["ann+tag@b.co"]);
        assert_eq!(spellings("utf-8; \\x{4E2D}@b.co"), ["\\x{4E2D}@b.co", "中@b.co"]);
        assert_eq!(spellings("utf-8; 中@b.co"), ["中@b.co"]);
        assert_eq!(spellings("rfc822; Ann <ann@b.co>"), ["ann@b.co"]);
        assert_eq!(spellings("rfc822; ann"), [""; 0]);
    }
}
