//! List of public suffixes (publicsuffix.org).
//!
//! The list is megabytes of code that is compiled anew wherever it is inlined, so it is called only here, and only in
//! functions that are never inlined.

/// Returns the organizational domain (RFC 7489 section 3.2), which is the registered one. For a name below an unknown
/// top-level domain it is its last two labels.
#[inline(never)]
pub fn organizational(domain: &str) -> &str {
    psl::domain_str(domain).unwrap_or(domain)
}

/// Returns the public suffix of a name, if it is on the list.
#[inline(never)]
pub(crate) fn known_suffix(name: &str) -> Option<&str> {
    let suffix = psl::suffix(name.as_bytes()).filter(psl::Suffix::is_known)?;
    name.get(name.len() - suffix.as_bytes().len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_of_the_list() {
        for (name, suffix, registered) in [
            ("mail.acme.co.uk", Some("co.uk"), "acme.co.uk"),
            ("co.uk", Some("co.uk"), "co.uk"),
            ("acme.com.", Some("com."), "acme.com"),
            ("acme.unheard", None, "acme.unheard"),
            ("", None, ""),
        ] {
            assert_eq!((known_suffix(name), organizational(name)), (suffix, registered), "{name}");
        }
    }
}
