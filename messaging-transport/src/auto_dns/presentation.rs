//! Names and values of DNS records in the notation of DNS providers: quotation marks, final dots, names within a zone.

use messaging_core::domain::mail::domain_name::organizational;

/// Maximum number of octets of one string of a TXT record (RFC 1035 section 3.3).
pub(super) const MAX_STRING: usize = 255;

/// Returns the names that the zone of a domain may have, the longest first: the domain and its parents, up to the
/// registered domain.
pub(super) fn zone_names(domain: &str) -> Vec<&str> {
    let shortest = organizational(domain).len();
    let mut names = vec![domain];
    let mut rest = domain;
    while let Some((_, above)) = rest.split_once('.') {
        if above.len() < shortest {
            break;
        }
        names.push(above);
        rest = above;
    }
    names
}

/// Returns a text as the strings of a TXT record, each in quotation marks (RFC 1035 section 5.1).
pub(super) fn quoted(text: &str) -> String {
    let mut strings = vec![String::new()];
    let mut length = 0;
    for character in text.chars() {
        if length + character.len_utf8() > MAX_STRING {
            strings.push(String::new());
            length = 0;
        }
        length += character.len_utf8();
        let string = strings.last_mut().expect("there is always one");
        if matches!(character, '"' | '\\') {
            string.push('\\');
        }
        string.push(character);
    }
    strings.iter().map(|string| format!("\"{string}\"")).collect::<Vec<_>>().join(" ")
}

/// Returns the text of a TXT record, joined from its quoted strings; a text without a quotation mark at its beginning
/// is only trimmed. An octet may be written as a backslash and three decimal digits (RFC 1035 section 5.1).
pub(super) fn unquoted(value: &str) -> String {
    unquoted_by(value, 10)
}

/// Does the same as `unquoted` for a provider that writes the three digits of an octet in another base.
pub(super) fn unquoted_by(value: &str, base: u32) -> String {
    let value = value.trim();
    if !value.starts_with('"') {
        return value.to_owned();
    }
    let (mut octets, mut is_inside) = (Vec::new(), false);
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => is_inside = !is_inside,
            '\\' if is_inside => escaped(&mut characters, &mut octets, base),
            other if is_inside => octets.extend(other.encode_utf8(&mut [0; 4]).bytes()),
            _ => {}
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

/// Reads an escape after its backslash: an octet in three digits (`?` if above 255), or a literal character.
fn escaped(characters: &mut std::str::Chars<'_>, octets: &mut Vec<u8>, base: u32) {
    let digits: String = characters.clone().take(3).collect();
    if digits.len() == 3 && digits.chars().all(|digit| digit.is_digit(base)) {
        octets.push(u8::from_str_radix(&digits, base).unwrap_or(b'?'));
        *characters = characters.as_str()[3..].chars();
    } else if let Some(character) = characters.next() {
        octets.extend(character.encode_utf8(&mut [0; 4]).bytes());
    }
}

/// Returns a name in lower case and without its final dot.
pub(super) fn plain_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Returns a name with a final dot, as in a zone file.
pub(super) fn absolute(name: &str) -> String {
    format!("{}.", name.strip_suffix('.').unwrap_or(name))
}

/// Returns a name relative to its zone; `@` for the zone itself, and for a name outside it.
pub(super) fn relative<'a>(host: &'a str, zone: &str) -> &'a str {
    host.strip_suffix(zone).and_then(|rest| rest.strip_suffix('.')).unwrap_or("@")
}

/// Returns the preference and the host of an MX value such as `10 mx.example.org`.
pub(super) fn exchanger(value: &str) -> Option<(u16, &str)> {
    let (preference, host) = value.trim().split_once(char::is_whitespace)?;
    Some((preference.parse().ok()?, host.trim()))
}

/// Difference between the current values and the wanted ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Values to remove.
    pub(super) gone: Vec<String>,
    /// Values to add.
    pub(super) new: Vec<String>,
}

impl Difference {
    pub(super) fn of(before: &[String], after: &[String]) -> Self {
        let without = |of: &[String], other: &[String]| of.iter().filter(|one| !other.contains(one)).cloned().collect();
        Self { gone: without(before, after), new: without(after, before) }
    }
}

/// Returns true if two lists have the same length and the same values, in any order.
pub(super) fn are_same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && Difference::of(one, other) == Difference::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_read_back() {
        assert_eq!(quoted("v=spf1 -all"), r#""v=spf1 -all""#);
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
        let long = "x".repeat(300);
        assert_eq!(quoted(&long), format!("\"{}\" \"{}\"", "x".repeat(255), "x".repeat(45)));
        for text in ["", "v=spf1 -all", r#"a"b\c"#, &long, "ü"] {
            assert_eq!(unquoted(&quoted(text)), text);
        }
        assert_eq!(unquoted("v=DMARC1; p=none"), "v=DMARC1; p=none");
        assert_eq!(unquoted(r#""v=DKIM1\; p=A""B" "C""#), "v=DKIM1; p=ABC");
        assert_eq!(unquoted(r#""\097b\300""#), "ab?");
        assert_eq!(unquoted_by(r#""v=DMARC1\073 p=none\"""#, 8), "v=DMARC1; p=none\"");
    }

    #[test]
    fn the_zone_is_the_domain_or_one_above_it() {
        assert_eq!(zone_names("a.mail.acme.co.uk"), ["a.mail.acme.co.uk", "mail.acme.co.uk", "acme.co.uk"]);
        assert_eq!(zone_names("acme.test"), ["acme.test"]);
        assert_eq!(relative("bounce.acme.test", "acme.test"), "bounce");
        assert_eq!(relative("acme.test", "acme.test"), "@");
        assert_eq!(absolute("mx.acme.test"), "mx.acme.test.");
        assert_eq!(exchanger("10 mx.acme.test"), Some((10, "mx.acme.test")));
    }

    #[test]
    fn only_what_differs_is_changed() {
        let list = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let difference = Difference::of(&list(&["a", "b"]), &list(&["b", "c"]));
        assert_eq!((difference.gone, difference.new), (list(&["a"]), list(&["c"])));
        assert!(are_same(&list(&["a", "b"]), &list(&["b", "a"])));
        assert!(!are_same(&list(&["a"]), &list(&["a", "a"])));
    }
}
