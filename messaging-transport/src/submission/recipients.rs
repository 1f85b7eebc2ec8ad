//! Assigns the recipients of an envelope to `to`, `cc` and `bcc` (contract section 22, "Submission").

use messaging_core::domain::channel::address::normalize_email;

/// Recipients of an envelope, by the header fields that name them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Recipients {
    pub(super) to: String,
    pub(super) cc: Vec<String>,
    pub(super) bcc: Vec<String>,
}

/// Sorts the recipients of an envelope: the first of the header `To` is `to`, the others that `To` and `Cc` name are
/// `cc`, the rest `bcc`. An address that only the header names gets nothing, as with every mail server. If `To` names
/// nobody of the envelope, the first `cc` or else the first `bcc` takes its place.
pub(super) fn assign(envelope: &[String], header_to: &[String], header_cc: &[String]) -> Recipients {
    let mut left: Vec<(String, &String)> = Vec::with_capacity(envelope.len());
    for address in envelope {
        let spelled = normalize_email(address);
        if !left.iter().any(|(known, _)| *known == spelled) {
            left.push((spelled, address));
        }
    }
    let mut named = Vec::new();
    let mut to = None;
    for (address, is_to) in header_to.iter().map(|to| (to, true)).chain(header_cc.iter().map(|cc| (cc, false))) {
        let spelled = normalize_email(address);
        let Some(at) = left.iter().position(|(known, _)| *known == spelled) else { continue };
        let (_, address) = left.remove(at);
        if is_to && to.is_none() {
            to = Some(address.clone());
        } else {
            named.push(address.clone());
        }
    }
    let mut bcc: Vec<String> = left.into_iter().map(|(_, address)| address.clone()).collect();
    let to = to.unwrap_or_else(|| match (named.is_empty(), bcc.is_empty()) {
        (false, _) => named.remove(0),
        (true, false) => bcc.remove(0),
        (true, true) => String::new(),
    });
    Recipients { to, cc: named, bcc }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(envelope: &str, to: &str, cc: &str, expected: (&str, &str, &str)) {
        let found = assign(&list(envelope), &list(to), &list(cc));
        let expected = Recipients { to: expected.0.to_owned(), cc: list(expected.1), bcc: list(expected.2) };
        assert_eq!(found, expected, "envelope {envelope}, to {to}, cc {cc}");
    }

    #[test]
    fn the_header_sorts_the_envelope() {
        check("a@x.io", "a@x.io", "", ("a@x.io", "", ""));
        check("a@x.io b@x.io c@x.io d@x.io", "a@x.io b@x.io", "c@x.io", ("a@x.io", "b@x.io c@x.io", "d@x.io"));
        // An address that only the header names gets nothing.
        check("b@x.io", "a@x.io b@x.io", "c@x.io", ("b@x.io", "", ""));
        // As the envelope spells it, and once.
        check("A@X.io a@x.io", "a@x.IO a@x.io", "a@x.io", ("A@X.io", "", ""));
    }

    #[test]
    fn somebody_is_always_to() {
        check("b@x.io c@x.io d@x.io", "a@x.io", "c@x.io", ("c@x.io", "", "b@x.io d@x.io"));
        check("b@x.io c@x.io", "", "", ("b@x.io", "", "c@x.io"));
        check("", "a@x.io", "", ("", "", ""));
    }
}
