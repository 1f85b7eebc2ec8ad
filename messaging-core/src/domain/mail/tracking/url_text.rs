//! URLs as browsers read and send them (WHATWG URL).

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Characters that are percent-encoded everywhere; letters beyond ASCII always are.
const UNSAFE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`');

/// Returns a text without control characters and spaces around it, and without tabs and line ends inside ("basic URL
/// parser", steps 1 to 3).
pub(super) fn trimmed(text: &str) -> String {
    let text = text.trim_matches(|c: char| c <= ' ');
    text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect()
}

/// Returns true if a URL leads to a web page: it has the scheme http or https, and a host.
pub(super) fn is_web(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && rest.chars().next().is_some_and(|first| !matches!(first, '/' | '?' | '#' | '\\') && first > ' ')
        && !url.contains(|c: char| c.is_control())
}

/// Returns the URL in ASCII, as a `Location` header takes it: the host as A-labels, the rest percent-encoded.
pub fn ascii(url: &str) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, UNSAFE).to_string();
    let Some((scheme, rest)) = url.split_once("://") else { return encoded(url) };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
    let (user, place) = authority.rsplit_once('@').map_or(("", authority), |(user, place)| (user, place));
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, Some(port)),
        _ => (place, None),
    };
    let host = if host.is_ascii() { None } else { idna::domain_to_ascii(host).ok() }.unwrap_or_else(|| encoded(host));
    let user = if user.is_empty() { String::new() } else { format!("{}@", encoded(user)) };
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{user}{host}{port}{}", encoded(scheme), encoded(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_ascii_and_leads_to_the_same_place() {
        for (url, expected) in [
            ("https://a.co/x?y=1&z=%20#f", "https://a.co/x?y=1&z=%20#f"),
            ("https://a.co", "https://a.co"),
            ("https://exämple.de/ü ö?q=\"<é>\"", "https://xn--exmple-cua.de/%C3%BC%20%C3%B6?q=%22%3C%C3%A9%3E%22"),
            ("https://exämple.de:8080?x", "https://xn--exmple-cua.de:8080?x"),
            ("http://ü:p@a.co:80/", "http://%C3%BC:p@a.co:80/"),
            ("http://[::1]:80/", "http://[::1]:80/"),
            ("http://[::1]/", "http://[::1]/"),
            ("HTTP://A.co\\x", "HTTP://A.co\\x"),
        ] {
            assert_eq!(ascii(url), expected);
        }
    }
}
