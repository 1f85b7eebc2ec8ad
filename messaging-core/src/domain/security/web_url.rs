//! The form of an absolute URL, before anything is asked about where it leads.
//!
//! Browsers repair what is none (WHATWG URL, "special authority slashes state"): `https:x`, `https:///x` and `https:\x` all
//! lead to the host `x`. Who repairs differently sees another host, so only the form of RFC 3986 is taken.

/// True of `scheme://host…` with one of the schemes, without blanks, control characters and backslashes.
pub fn is_absolute(url: &str, schemes: &[&str]) -> bool {
    let is_clean = !url.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\');
    let rest = url.split_once("://").filter(|(scheme, _)| schemes.iter().any(|one| one.eq_ignore_ascii_case(scheme)));
    let authority = rest.and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    let host = authority.map(|authority| authority.rsplit_once('@').map_or(authority, |(_, host)| host));
    is_clean && host.is_some_and(|host| !host.is_empty() && !host.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::is_absolute;

    #[test]
    fn only_a_scheme_two_slashes_and_a_host_make_an_absolute_url() {
        for url in
            ["https://x", "HTTPS://x/", "http://x:80?y", "https://u:p@x#z", "https://[::1]/", "https://ü.example/é"]
        {
            assert!(is_absolute(url, &["http", "https"]), "{url}");
        }
        for url in [
            "https:x",
            "https:/x",
            "https:///x",
            "https:////x",
            "https://x\\y",
            "https:\\\\x",
            "https:/\\x",
            "https://",
            "https://?x",
            "https://#x",
            "https://:80/",
            "https://u@/",
            "https://x y/",
            " https://x",
            "https://x\n",
            "x",
            "//x",
            "/x",
            "",
            "ftp://x",
            "xhttps://x",
        ] {
            assert!(!is_absolute(url, &["http", "https"]), "{url}");
        }
        assert!(!is_absolute("http://x", &["https"]));
    }
}
