//! Sign-in with a password (RFC 4954): AUTH PLAIN (RFC 4616) and AUTH LOGIN.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Challenges of AUTH LOGIN, `Username:` and `Password:` in base64. Clients know the words.
pub(super) const ASK_USER: &str = "334 VXNlcm5hbWU6";
pub(super) const ASK_PASSWORD: &str = "334 UGFzc3dvcmQ6";
/// Challenge of AUTH PLAIN, which is empty.
pub(super) const ASK: &str = "334 ";

/// Mechanism of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mechanism {
    /// One response with user name and password.
    Plain,
    /// The user name, then the password.
    Login,
}

/// Reply to a malformed sign-in.
pub(super) type Malformed = &'static str;

/// Parses the arguments of AUTH: the mechanism, and the initial response if there is one.
pub(super) fn arguments(text: &[u8]) -> Result<(Mechanism, Option<Vec<u8>>), Malformed> {
    let mut words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let mechanism = match words.next() {
        Some(name) if name.eq_ignore_ascii_case(b"PLAIN") => Mechanism::Plain,
        Some(name) if name.eq_ignore_ascii_case(b"LOGIN") => Mechanism::Login,
        Some(_) => return Err("504 5.5.4 AUTH PLAIN and AUTH LOGIN are known here"),
        None => return Err("501 5.5.4 AUTH wants a mechanism"),
    };
    let response = match (words.next(), words.next()) {
        (None, _) => None,
        // `=` is an empty initial response.
        (Some(b"="), None) => Some(Vec::new()),
        (Some(response), None) => Some(response_of(response)?),
        (Some(_), Some(_)) => return Err("501 5.5.4 AUTH wants a mechanism and one response"),
    };
    Ok((mechanism, response))
}

/// Decodes a response line; `*` means that the client cancels.
pub(super) fn response_of(line: &[u8]) -> Result<Vec<u8>, Malformed> {
    if line == b"*" {
        return Err("501 5.7.0 not signed in");
    }
    STANDARD.decode(line).map_err(|_| "501 5.5.2 not base64")
}

/// Returns the password in a response to AUTH PLAIN: authorization identity, user name and password, with U+0000
/// between them. Both names are ignored (contract section 22).
pub(super) fn plain_password(response: &[u8]) -> Result<String, Malformed> {
    const RULE: Malformed = "501 5.5.2 AUTH PLAIN wants two names and a password";
    let parts: Vec<_> = response.split(|byte| *byte == 0).collect();
    let [_, _, password] = parts[..] else { return Err(RULE) };
    password_of(password.to_vec())
}

/// Returns a password as text. Octets that are not UTF-8 belong to no key.
pub(super) fn password_of(bytes: Vec<u8>) -> Result<String, Malformed> {
    String::from_utf8(bytes).map_err(|_| "501 5.5.2 not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_a_mechanism_and_may_bring_a_response() {
        assert_eq!(arguments(b"PLAIN"), Ok((Mechanism::Plain, None)));
        assert_eq!(arguments(b"  login dXNlcg=="), Ok((Mechanism::Login, Some(b"user".to_vec()))));
        assert_eq!(arguments(b"PLAIN ="), Ok((Mechanism::Plain, Some(Vec::new()))));
        for (bad, code) in
            [(&b""[..], "501"), (b"CRAM-MD5", "504"), (b"PLAIN a b", "501"), (b"PLAIN ?", "501"), (b"LOGIN *", "501")]
        {
            assert!(arguments(bad).unwrap_err().starts_with(code), "{bad:?}");
        }
    }

    #[test]
    fn the_names_of_a_plain_response_do_not_matter() {
        assert_eq!(plain_password(b"\0user\0key").as_deref(), Ok("key"));
        assert_eq!(plain_password(b"other\0\0key").as_deref(), Ok("key"));
        for bad in [&b""[..], b"key", b"user\0key", b"a\0b\0c\0d", b"\0user\0\xff"] {
            assert!(plain_password(bad).is_err(), "{bad:?}");
        }
    }
}
