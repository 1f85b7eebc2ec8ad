//! Checks for which there is a [`Warning`].

use super::fault::Position;
use super::gate::Tokens;
use super::markup::{self, Element};
use super::warning::{Warning, WarningCode};

/// Large providers cut an email off after this many bytes of HTML.
const CLIPPED_AT: usize = 102 << 10;

/// Maximum number of images or names that one warning lists.
const MAX_LISTED: usize = 5;

/// Checks the HTML of an email. `source` is the author's version of it: HTML or MJML.
pub(super) fn of_html(html: &str, source: &str, tokens: &Tokens<'_>, has_text: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if html.len() > CLIPPED_AT {
        let kib = html.len().div_ceil(1024);
        let message = format!("the HTML has {kib} KiB; large providers cut off what is longer than 102 KiB");
        warnings.push(Warning::new(WarningCode::HtmlTooLarge, message));
    }
    let masked = markup::mask_template_tags(source, tokens);
    if !has_text && crate::domain::mail::plain_text::from_html(&masked_html(html)).trim().is_empty() {
        let message = "there is no text, and none can be made of the HTML: it has nothing to read";
        warnings.push(Warning::new(WarningCode::NoText, message));
    }
    let without_alt = |element: &&Element| {
        matches!(element.name.as_str(), "img" | "mj-image" | "mj-carousel-image") && element.attribute("alt").is_none()
    };
    let markup = markup::read(&masked);
    let lines: Vec<_> = markup
        .elements
        .iter()
        .filter(without_alt)
        .map(|element| Position::of(source, element.range.start).line.to_string())
        .take(MAX_LISTED + 1)
        .collect();
    if !lines.is_empty() {
        let message = format!("images without alt in {}", listed(&lines, "line", "lines"));
        warnings.push(Warning::new(WarningCode::ImageWithoutAlt, message));
    }
    warnings
}

/// Returns the HTML with its tags masked, if it can be tokenized.
fn masked_html(html: &str) -> String {
    super::gate::tokens(html).map_or_else(|_| html.to_owned(), |tokens| markup::mask_template_tags(html, &tokens))
}

/// Returns the warning about names that are not declared.
pub(super) fn of_undeclared(undeclared: &[String]) -> Option<Warning> {
    if undeclared.is_empty() {
        return None;
    }
    let message = format!("used but not declared: {}", listed(undeclared, "", ""));
    Some(Warning::new(WarningCode::UndeclaredVariable, message))
}

/// Returns the warning about attributes that MJML ignored at these positions.
pub(super) fn of_ignored(ignored: &[Position]) -> Option<Warning> {
    if ignored.is_empty() {
        return None;
    }
    let lines: Vec<_> = ignored.iter().map(|at| at.line.to_string()).collect();
    let message = format!("MJML does not know an attribute in {}", listed(&lines, "line", "lines"));
    Some(Warning::new(WarningCode::MjmlAttributeIgnored, message))
}

/// Lists items as in `lines 1, 2, 3 and more`.
fn listed(items: &[String], one: &str, many: &str) -> String {
    let noun = if items.len() == 1 { one } else { many };
    let shown = items.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    let more = if items.len() > MAX_LISTED { " and more" } else { "" };
    format!("{noun} {shown}{more}").trim_start().to_owned()
}
