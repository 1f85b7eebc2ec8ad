//! Guards of values that are part of an address.

use std::borrow::Cow;

use super::escape::runs_scripts;

/// Schemes that may be composed of a value and text of the author.
const SCHEMES: [&str; 9] = ["http", "https", "mailto", "tel", "sms", "ftp", "ftps", "webcal", "cid"];

/// Replacement for a refused address.
const NOWHERE: &str = "#";

/// Characters after which no scheme can begin.
const ENDS: [char; 4] = ['/', '?', '#', '\\'];

/// Returns a value at the beginning of an address; `#` for one that would run a script.
pub(super) fn whole(text: &str) -> Cow<'_, str> {
    if runs_scripts(text) { NOWHERE.into() } else { text.into() }
}

/// Returns a value after other text that may be part of a scheme: its colons end none.
pub(super) fn rest(text: &str) -> Cow<'_, str> {
    let end = text.find(ENDS).unwrap_or(text.len());
    if text[..end].contains(':') {
        format!("{}{}", text[..end].replace(':', "%3A"), &text[end..]).into()
    } else {
        text.into()
    }
}

/// Returns a value at the beginning of an address that continues with a colon, if it is a known scheme or an address
/// that runs no script; otherwise `#`.
pub(super) fn scheme(text: &str) -> Cow<'_, str> {
    let is_known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(text));
    if is_known || text.contains(ENDS) || text.contains(':') { whole(text) } else { NOWHERE.into() }
}

/// Returns a value between other text and a colon, if it is the end of `https` or ends the scheme itself; otherwise
/// `#`.
pub(super) fn scheme_rest(text: &str) -> Cow<'_, str> {
    let is_harmless = text.is_empty() || text == "s" || text.contains(ENDS);
    if is_harmless { rest(text) } else { NOWHERE.into() }
}

/// Returns a value in the `content` of `meta`, which may redirect (`0; url=…`); `#` for one that would run a script.
pub(super) fn refresh(text: &str) -> Cow<'_, str> {
    let squeezed: String =
        text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    let runs = squeezed.starts_with(':') || ["script:", "data:"].iter().any(|scheme| squeezed.contains(scheme));
    if runs { NOWHERE.into() } else { text.into() }
}

/// Returns the digit of a heading; `6` for any other text.
pub(super) fn level(text: &str) -> Cow<'_, str> {
    if matches!(text, "1" | "2" | "3" | "4" | "5" | "6") { text.into() } else { "6".into() }
}

/// Tags that a value may name: they show text and have no address.
const TAGS: [&str; 24] = [
    "p", "div", "span", "b", "i", "u", "em", "strong", "small", "td", "th", "tr", "table", "ul", "ol", "li", "h1",
    "h2", "h3", "h4", "h5", "h6", "section", "center",
];

/// Returns a value right after `<`: the name of a tag, or an email address, which is none. Nothing in it begins an
/// attribute.
pub(super) fn tag(text: &str) -> Cow<'_, str> {
    if TAGS.iter().any(|known| known.eq_ignore_ascii_case(text)) {
        return text.into();
    }
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '@' | '.' | '_' | '+' | '-');
    let plain: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    if plain.contains('@') { plain.into() } else { format!("x-{plain}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scheme_is_made_of_parts() {
        for (rewrite, text, expected) in [
            (whole as fn(&str) -> Cow<'_, str>, "https://a.example/x:y", "https://a.example/x:y"),
            (whole, "javascript:alert(1)", "#"),
            (rest, "script:alert(1)", "script%3Aalert(1)"),
            (rest, ":alert(1)/:", "%3Aalert(1)/:"),
            (rest, "/a:b", "/a:b"),
            (scheme, "https", "https"),
            (scheme, "javascript", "#"),
            (scheme, "https://a.example", "https://a.example"),
            (scheme, "javascript:x", "#"),
            (scheme_rest, "s", "s"),
            (scheme_rest, "script", "#"),
            (scheme_rest, ":x", "#"),
            (refresh, "0; url=https://a.example/", "0; url=https://a.example/"),
            (refresh, "0; url=java\tscript:x", "#"),
            (refresh, ":alert(1)", "#"),
            (refresh, "width=device-width", "width=device-width"),
            (tag, "div", "div"),
            (tag, "ann@example.com", "ann@example.com"),
            (tag, "script", "x-script"),
            (tag, "img src=x onerror=alert(1)", "x-img-src-x-onerror-alert-1-"),
            (level, "2", "2"),
            (level, "1 onclick=x", "6"),
        ] {
            assert_eq!(rewrite(text), expected, "{text}");
        }
    }
}
