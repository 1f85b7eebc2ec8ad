//! Inlining of style sheets into elements, because many mail programs ignore `<style>`.
//!
//! Done once, when a template is saved, not for every message: it costs more than rendering and signing together. The
//! library builds a tree and serializes it, which would move the tags of the template language out of tables and change
//! the source. So it gets a copy in which those tags are masked and every element carries a number, and only the
//! `style` of each number is taken from the result. Everything else stays byte for byte as it was.
//!
//! The output of a template is not known at that time. Where that matters the style sheet stays the only one: for
//! elements whose own tags contain template language, and altogether if rules depend on an element's place among others
//! (`:first-child`, `a + b`) while conditions and loops change it.

use std::fmt::Write as _;

use super::gate::Tokens;
use super::markup::{self, Element};

/// Maximum nesting depth of elements.
const MAX_DEPTH: usize = 128;
/// Maximum number of open elements that format text.
const MAX_FORMATTING: usize = 16;
/// Maximum number of elements.
const MAX_ELEMENTS: usize = 10_000;
/// Maximum size of style sheets, in bytes.
const MAX_STYLES: usize = 128 << 10;
/// Maximum number of matches: elements times rules.
const MAX_MATCHES: usize = 4_000_000;
/// Maximum length of a selector, in characters.
const MAX_SELECTOR: usize = 1000;
/// Maximum size of the source, in bytes.
const MAX_HTML: usize = 512 << 10;

/// The attribute that numbers elements in the library's copy.
const NUMBER: &str = "data-inline-number";

/// Result of inlining the style sheets of a source.
#[derive(Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The source with styles in its elements; unchanged if there was nothing to do.
    pub html: String,
    /// Reason why style sheets were left where they are.
    pub left: Option<&'static str>,
}

/// Inlines the style sheets of a source, or `extra` instead of them if given. Needs no more stack than `on_large_stack`
/// gives.
pub fn inline(source: &str, tokens: &Tokens<'_>, extra: Option<&str>) -> Inlined {
    let left = |reason| Inlined { html: source.to_owned(), left: reason };
    let masked = markup::mask_template_tags(source, tokens);
    let found = markup::read(&masked);
    let styles: String = match extra {
        Some(extra) => extra.to_owned(),
        None => found.styles.iter().map(|style| &source[style.clone()]).collect(),
    };
    if styles.trim().is_empty() {
        return left(None);
    }
    let tag_ranges = markup::template_tag_ranges(source, tokens);
    let touches = |from: usize, to: usize| tag_ranges.iter().any(|tag| tag.start < to && from < tag.end);
    let has_statements = tag_ranges.iter().any(|tag_range| source[tag_range.clone()].contains("{%"));
    if extra.is_none() && found.styles.iter().any(|style| touches(style.start, style.end)) {
        return left(Some("the style sheet has template tags in it"));
    }
    if has_statements && asks_for_place(&styles) {
        return left(Some("rules ask for an element's place among others, and the template changes it"));
    }
    let rules = styles.matches('{').count();
    let is_too_much = source.len() > MAX_HTML
        || found.is_cut
        || found.depth > MAX_DEPTH
        || found.formatting > MAX_FORMATTING
        || found.elements.len() > MAX_ELEMENTS
        || styles.len() > MAX_STYLES
        || rules.saturating_mul(found.elements.len()) > MAX_MATCHES
        || styles.split(['{', '}']).any(|part| part.len() > MAX_SELECTOR * 8)
        || styles.split(['{', '}', ',']).any(|selector| selector.len() > MAX_SELECTOR && !selector.contains(';'));
    if is_too_much {
        return left(Some("it is too large or too deeply nested"));
    }
    let numbered = numbered(&masked, &found.elements);
    let Some(answer) = library(&numbered, extra) else {
        return left(Some("it cannot be read"));
    };
    let styled = styles_by_number(&answer, found.elements.len());
    let mut out = String::with_capacity(source.len() * 2);
    let mut written = 0;
    for (element, style) in found.elements.iter().zip(styled) {
        let Some(style) = style else { continue };
        let is_ours = !tag_ranges.iter().any(|tag_range| {
            let inside = tag_range.start < element.range.end && element.range.start < tag_range.end;
            inside && (source[tag_range.clone()].contains("{%") || in_style(element, tag_range))
        });
        if !is_ours || element.attribute("style").map(str::trim) == Some(style.trim()) {
            continue;
        }
        let value = format!("\"{}\"", style.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;"));
        let (at, until, text) = if let Some(place) = &element.style {
            (place.start, place.end, value)
        } else {
            let after_name = element.range.start + 1 + element.name.len();
            (after_name, after_name, format!(" style={value}"))
        };
        if at < written || !source.is_char_boundary(at) || !source.is_char_boundary(until) {
            continue;
        }
        out.push_str(&source[written..at]);
        out.push_str(&text);
        written = until;
    }
    out.push_str(&source[written..]);
    Inlined { html: out, left: None }
}

/// True if a tag of the template language stands in the element's style, or makes its classes.
fn in_style(element: &Element, tag_range: &std::ops::Range<usize>) -> bool {
    element.style.as_ref().is_some_and(|style| tag_range.start < style.end && style.start < tag_range.end)
}

/// True if rules depend on the neighbors of an element.
fn asks_for_place(styles: &str) -> bool {
    let words = [":first", ":last", ":nth", ":only", ":empty", ":has", "+", "~"];
    // Only selectors count: a value may contain such a character.
    styles
        .split('}')
        .filter_map(|rule| rule.split('{').next())
        .any(|selector| words.iter().any(|word| selector.contains(word)))
}

/// Returns the source with a number on every element.
fn numbered(masked: &str, elements: &[Element]) -> String {
    let mut out = String::with_capacity(masked.len() + elements.len() * 32);
    let mut written = 0;
    for (number, element) in elements.iter().enumerate() {
        let at = element.range.start + 1 + element.name.len();
        if at < written || !masked.is_char_boundary(at) {
            continue;
        }
        out.push_str(&masked[written..at]);
        // Writing into a string does not fail.
        let _ = write!(out, " {NUMBER}=\"{number}\"");
        written = at;
    }
    out.push_str(&masked[written..]);
    out
}

/// Returns the style of each element in the library's result.
fn styles_by_number(answer: &str, count: usize) -> Vec<Option<String>> {
    let mut styles = vec![None; count];
    for element in markup::read(answer).elements {
        let number = element.attribute(NUMBER).and_then(|number| number.parse::<usize>().ok());
        if let Some(slot) = number.and_then(|number| styles.get_mut(number))
            && slot.is_none()
        {
            *slot = element.attribute("style").map(ToOwned::to_owned);
        }
    }
    styles
}

#[cfg(feature = "inline-css")]
fn library(html: &str, extra: Option<&str>) -> Option<String> {
    let options = css_inline::CSSInliner::options()
        .inline_style_tags(extra.is_none())
        .keep_style_tags(true)
        .keep_link_tags(true)
        .load_remote_stylesheets(false)
        .extra_css(extra.map(Into::into));
    options.build().inline(html).ok()
}

/// Without the feature there is no library, and styles are left where they are.
#[cfg(not(feature = "inline-css"))]
fn library(_: &str, _: Option<&str>) -> Option<String> {
    None
}
