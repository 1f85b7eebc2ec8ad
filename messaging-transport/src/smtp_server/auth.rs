//! Signing in with a password (RFC 4954): AUTH PLAIN (RFC 4616) and AUTH LOGIN.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What AUTH LOGIN asks, `Username:` and `Password:` in base64. Clients know the words.
pub(super) const ASK_USER: &str = "334 VXNlcm5hbWU6";
pub(super) const ASK_PASSWORD: &str = "334 UGFzc3dvcmQ6";
/// The challenge of AUTH PLAIN, which is empty.
pub(super) const ASK: &str = "334 ";

/// How a client wants to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mechanism {
    /// One response with everything.
    Plain,
    /// The user name, then the password.
    Login,
}

/// Why a sign-in cannot go on, as the reply that says so.
pub(super) type Malformed = &'static str;

/// The arguments of AUTH: the mechanism, and the first response where the client did not wait to be asked.
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
        // An empty response that is there.
        (Some(b"="), None) => Some(Vec::new()),
        (Some(response), None) => Some(response_of(response)?),
        (Some(_), Some(_)) => return Err("501 5.5.4 AUTH wants a mechanism and one response"),
    };
    Ok((mechanism, response))
}

/// The octets of a response line; `*` is a client that has changed its mind.
pub(super) fn response_of(line: &[u8]) -> Result<Vec<u8>, Malformed> {
    if line == b"*" {
        return Err("501 5.7.0 not signed in");
    }
    STANDARD.decode(line).map_err(|_| "501 5.5.2 not base64")
}

/// The password of a response to AUTH PLAIN: who to act for, who signs in, the password, with U+0000 between them. The
/// names are ignored (contract section 22).
pub(super) fn plain_password(response: &[u8]) -> Result<String, Malformed> {
    const RULE: Malformed = "501 5.5.2 AUTH PLAIN wants two names and a password";
    let parts: Vec<_> = response.split(|byte| *byte == 0).collect();
    let [_, _, password] = parts[..] else { return Err(RULE) };
    password_of(password.to_vec())
}

/// A password as text. Bytes that are none belong to no key.
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
