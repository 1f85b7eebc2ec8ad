//! Printing of values, with the escapes for each place in HTML.

use std::fmt::{self, Write};

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Error, Output, State, Value};

use super::budget::{charge, charge_tree};

/// Prints a value where the template outputs it: escaped in HTML, plain elsewhere.
///
/// Differences from the engine's own: `null` is empty, as missing values are; true and false are spelled as in JSON; a
/// slash stays a slash, so that addresses are readable.
pub(super) fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    charge_tree(state, value)?;
    if value.is_safe() {
        return Ok(out.write_str(value.as_str().unwrap_or_default())?);
    }
    let is_html = match state.auto_escape() {
        AutoEscape::None => false,
        AutoEscape::Html => true,
        _ => return minijinja::escape_formatter(out, state, value),
    };
    match (value.kind(), value.as_str()) {
        (ValueKind::Undefined | ValueKind::None, _) => Ok(()),
        (ValueKind::Bool, _) => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        (_, Some(text)) if is_html => {
            // Bytes that the escapes add: a block may keep them.
            let special = text.bytes().filter(|byte| matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\'')).count();
            charge(state, 5 * special as u64)?;
            Ok(html(out, text)?)
        }
        (_, Some(text)) => Ok(out.write_str(text)?),
        (ValueKind::Number, _) => Ok(write!(out, "{value}")?),
        _ if is_html => Ok(html(out, &value.to_string())?),
        _ => Ok(write!(out, "{value}")?),
    }
}

/// Returns a value as text, as [`print`] would print it outside HTML.
pub(super) fn printed(state: &mut State<'_, '_>, value: &Value) -> Result<String, Error> {
    charge_tree(state, value)?;
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => String::new(),
        ValueKind::Bool => if value.is_true() { "true" } else { "false" }.to_owned(),
        _ => value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned),
    })
}

/// Escapes for the text and the quoted attributes of HTML.
pub(super) fn html(out: &mut impl Write, text: &str) -> fmt::Result {
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'&' => "&amp;",
            b'"' => "&quot;",
            b'\'' => "&#x27;",
            _ => continue,
        };
        out.write_str(&text[written..at])?;
        out.write_str(escaped)?;
        written = at + 1;
    }
    out.write_str(&text[written..])
}

/// Escapes for an attribute without quotes: every character that could end it.
pub(super) fn unquoted(text: &str) -> String {
    let text = if runs_scripts(text) { "#" } else { text };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_plain = c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '#' | '?' | '%' | ',');
        if is_plain || (!c.is_ascii() && !c.is_whitespace()) {
            out.push(c);
        } else {
            let _ = write!(out, "&#{};", u32::from(c));
        }
    }
    out
}

/// Escapes for a text inside a script or JSON: characters that could end the text or the script are spelled as a
/// number, which both languages read.
pub(super) fn script(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ',' | ':' | '/' | '@' | '+' | '#' | '?') {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// Escapes for a style sheet: characters that could end a value, a rule or the sheet are spelled as a number (CSS
/// Syntax Level 3, section 4.3.7). Addresses that run scripts are removed.
pub(super) fn style(text: &str) -> String {
    let squeezed: String = text
        .chars()
        .filter(|c| !c.is_control() && !c.is_whitespace() && *c != '\\')
        .flat_map(char::to_lowercase)
        .collect();
    if ["script:", "expression", "behavior", "-moz-binding"].iter().any(|bad| squeezed.contains(bad)) {
        return String::new();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_plain =
            c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ',' | ':' | '/' | '#' | '?' | '%' | '=' | '+');
        if is_plain {
            out.push(c);
        } else {
            let _ = write!(out, "\\{:x} ", u32::from(c));
        }
    }
    out
}

/// Escapes for an attribute whose value is markup itself: once for that markup and once for the attribute.
pub(super) fn document(text: &str) -> String {
    let (mut once, mut twice) = (String::new(), String::new());
    // Writing to a text does not fail.
    let _ = html(&mut once, text);
    let _ = html(&mut twice, &once);
    twice
}

/// True if an address would run a script. Programs that follow addresses skip control characters and space in a scheme.
pub(super) fn runs_scripts(address: &str) -> bool {
    let mut scheme = String::new();
    for c in address.chars().filter(|c| !c.is_control() && !c.is_whitespace()).take(24) {
        if c == ':' {
            let image = address.trim_start().get(..11).is_some_and(|start| start.eq_ignore_ascii_case("data:image/"));
            return matches!(scheme.as_str(), "javascript" | "vbscript" | "data" | "livescript") && !image;
        }
        scheme.push(c.to_ascii_lowercase());
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_run_scripts_are_known() {
        for bad in [
            "javascript:alert(1)",
            " JavaScript:alert(1)",
            "java\tscript:alert(1)",
            "java\nscript\u{0}:x",
            "vbscript:x",
            "data:text/html,<script>",
            "data:,x",
        ] {
            assert!(runs_scripts(bad), "{bad:?}");
        }
        for good in [
            "https://a.example/?q=javascript:x",
            "mailto:a@b.c",
            "/javascript",
            "#",
            "",
            "tel:+1",
            "data:image/png;base64,AA",
        ] {
            assert!(!runs_scripts(good), "{good:?}");
        }
    }

    #[test]
    fn each_place_has_its_escapes() {
        let text = "a b='<\"&/é\u{1F600}";
        let mut out = String::new();
        html(&mut out, text).unwrap();
        assert_eq!(out, "a b=&#x27;&lt;&quot;&amp;/é\u{1F600}");
        assert_eq!(unquoted(text), "a&#32;b&#61;&#39;&#60;&#34;&#38;/é\u{1F600}");
        assert_eq!(script(text), "a b\\u003d\\u0027\\u003c\\u0022\\u0026/é\\ud83d\\ude00");
    }
}
