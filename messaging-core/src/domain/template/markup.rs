//! Search for the elements of an HTML or MJML source without building a tree.
//!
//! Libraries that build a tree recurse once for each level of nesting, so depth and number of elements are counted here
//! before such a library gets a source. Tags of the template language are overwritten first, byte for byte
//! ([`mask_template_tags`]), so that every byte offset is also valid in the source that the author wrote.

use std::ops::Range;

use super::gate::Tokens;
use crate::domain::mail::html_events::{self, Event, RawText, Span};

/// A start tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// Its name, lower case.
    pub(super) name: String,
    /// Byte range from `<` to after `>`.
    pub(super) range: Range<usize>,
    /// Its attributes: name in lower case, value with entities decoded.
    pub(super) attributes: Vec<(String, String)>,
    /// Byte range of the value of the first `style` attribute, including its quotes.
    pub(super) style: Option<Range<usize>>,
}

impl Element {
    /// Returns the value of the first attribute with a name, which is given in lower case.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Summary of the elements that a source holds.
#[derive(Debug, Default)]
pub(super) struct Markup {
    /// Its first [`MAX_ELEMENTS`] start tags, in the order of the source.
    pub(super) elements: Vec<Element>,
    /// Greatest number of elements that are open at once. An element is open until its end tag or the end tag of an
    /// element around it; optional end tags are not inferred. Inexact above 600.
    pub(super) depth: usize,
    /// Byte offset of the first element at the greatest depth.
    pub(super) deepest: usize,
    /// Greatest number of [`FORMATTING`] elements that are open at once.
    pub(super) formatting: usize,
    /// True if the source has more than [`MAX_ELEMENTS`] start tags, so that `elements` lacks some.
    pub(super) is_cut: bool,
    /// Byte ranges of the contents of `style` elements.
    pub(super) styles: Vec<Range<usize>>,
}

/// Maximum number of elements that are kept.
const MAX_ELEMENTS: usize = 50_000;

/// Maximum length, in bytes, of a start tag in which [`values_of`] locates values: it copies the rest of the tag for
/// each attribute.
const MAX_TAG: usize = 16 << 10;

/// Void elements of HTML, which have no content and no end tag.
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// Formatting elements of HTML: until they are closed, a browser opens them again in every block, which multiplies the
/// elements of its tree.
const FORMATTING: [&str; 14] =
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];

/// Returns a copy of the source in which every tag of the template language is overwritten, byte for byte: by letters
/// if it has outputs (`{{`), because letters are valid text and attribute values, otherwise by spaces.
pub(super) fn mask_template_tags(source: &str, tokens: &Tokens<'_>) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for tag_range in template_tag_ranges(source, tokens) {
        let paint = if source[tag_range.clone()].contains("{{") { b'q' } else { b' ' };
        bytes[tag_range].fill(paint);
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns the byte ranges of the tags of the template language in the source; adjacent tags are one range.
pub(super) fn template_tag_ranges(source: &str, tokens: &Tokens<'_>) -> Vec<Range<usize>> {
    let mut tag_ranges = Vec::new();
    let mut at = 0;
    for text in &tokens.text {
        if text.start > at {
            tag_ranges.push(at..text.start);
        }
        at = at.max(text.end);
    }
    if at < source.len() {
        tag_ranges.push(at..source.len());
    }
    // The tokenizer's text also lacks the last line end of a source, which is no tag.
    tag_ranges.retain(|tag_range| !source[tag_range.clone()].trim().is_empty());
    tag_ranges
}

/// Finds the elements of a source whose template tags are overwritten.
pub(super) fn read(html: &str) -> Markup {
    let mut reader =
        Reader { html, found: Markup::default(), open: Vec::new(), formatting: 0, element: None, style_start: None };
    html_events::read(html, RawText::Text, &mut |event, span| reader.see(event, span));
    reader.found
}

/// Builds a [`Markup`] from the events of the HTML tokenizer.
struct Reader<'a> {
    html: &'a str,
    found: Markup,
    /// Names of the open elements, the outermost first.
    open: Vec<String>,
    /// Number of open elements that are in [`FORMATTING`].
    formatting: usize,
    /// The start tag that is being read.
    element: Option<Element>,
    /// Byte offset at which the content of the open `style` element begins.
    style_start: Option<usize>,
}

impl Reader<'_> {
    /// Processes the next event of the tokenizer; `span` is its byte range in the source.
    fn see(&mut self, event: Event<'_>, span: Span<usize>) {
        match event {
            Event::OpenStartTag { name } => {
                self.element = Some(Element {
                    name: String::from_utf8_lossy(name).into_owned(),
                    range: span.start..span.end,
                    attributes: Vec::new(),
                    style: None,
                });
            }
            Event::AttributeName { name } => {
                if let Some(element) = &mut self.element {
                    let name = String::from_utf8_lossy(name).into_owned();
                    if name == "style" && element.style.is_none() {
                        element.style = value_after(self.html, span.end);
                    }
                    element.attributes.push((name, String::new()));
                }
            }
            Event::AttributeValue { value } => {
                if let Some((_, held)) = self.element.as_mut().and_then(|element| element.attributes.last_mut()) {
                    *held = String::from_utf8_lossy(value).into_owned();
                }
            }
            Event::CloseStartTag { self_closing } => self.close_start_tag(self_closing, span.end),
            Event::EndTag { name } => {
                let name = String::from_utf8_lossy(name);
                if let Some(at) = self.open.iter().rposition(|open| *open == name) {
                    self.close_to(at);
                }
                if name == "style"
                    && let Some(from) = self.style_start.take()
                {
                    self.found.styles.push(from..span.start.max(from));
                }
            }
            Event::Comment { .. } | Event::String { .. } | Event::Doctype { .. } | Event::Error(_) => {}
        }
    }

    /// Closes the open elements from index `depth` on.
    fn close_to(&mut self, depth: usize) {
        let closed = self.open.drain(depth..).filter(|name| FORMATTING.contains(&name.as_str())).count();
        self.formatting -= closed;
    }

    /// Completes the start tag that is being read, which ends at byte `end`: opens its element unless that has no
    /// content, and keeps the start tag if there are fewer than [`MAX_ELEMENTS`].
    fn close_start_tag(&mut self, self_closing: bool, end: usize) {
        let Some(mut element) = self.element.take() else { return };
        let begins_tag = |at: usize| self.html[..at].rfind('<');
        element.range = begins_tag(element.range.end.min(self.html.len())).unwrap_or(element.range.start)..end;
        if element.name == "style" {
            self.style_start = Some(end);
        }
        if !self_closing && !VOID.contains(&element.name.as_str()) {
            self.open.push(element.name.clone());
            self.formatting += usize::from(FORMATTING.contains(&element.name.as_str()));
            self.found.formatting = self.found.formatting.max(self.formatting);
            if self.open.len() > self.found.depth {
                self.found.depth = self.open.len();
                self.found.deepest = element.range.start;
            }
            // Callers that look at the depth accept at most 128 levels, so it need not be exact from here on. Cutting
            // the list keeps the search for the start tag of each end tag short.
            if self.open.len() > 600 {
                self.close_to(300);
            }
        }
        if self.found.elements.len() < MAX_ELEMENTS {
            self.found.elements.push(element);
        } else {
            self.found.is_cut = true;
        }
    }
}

/// Returns the byte ranges of the values of an element's attributes, including their quotes, with the attributes'
/// names. Attributes without a value and repeated ones are left out; a tag longer than [`MAX_TAG`] gives none.
pub(super) fn values_of(html: &str, element: &Element) -> Vec<(String, Range<usize>)> {
    let mut places = Vec::new();
    if element.range.len() > MAX_TAG {
        return places;
    }
    let mut at = element.range.start + 1 + element.name.len();
    for (name, _) in &element.attributes {
        let Some(rest) = html.get(at..element.range.end) else { break };
        let Some(found) = rest.to_ascii_lowercase().find(name.as_str()) else { continue };
        let name_end = at + found + name.len();
        at = name_end;
        if let Some(place) = value_after(html, name_end).filter(|place| place.end <= element.range.end) {
            at = place.end;
            if !places.iter().any(|(known, _)| known == name) {
                places.push((name.clone(), place));
            }
        }
    }
    places
}

/// Returns the byte range of the value, including its quotes, of the attribute whose name ends at byte `name_end`;
/// `None` if it has no value.
fn value_after(html: &str, name_end: usize) -> Option<Range<usize>> {
    let rest = html.get(name_end..)?;
    let after_name = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let value = after_name.strip_prefix('=')?.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let start = html.len() - value.len();
    let length = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].find(quote)? + 2,
        _ => value.find(|c: char| c.is_ascii_whitespace() || c == '>')?,
    };
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_where_they_stand() {
        let html = "<p>x<IMG src=\"a&amp;b\"\n alt='t'/></p><style>a{}</style><b style=\"x\" >y</b><i style=z>";
        let markup = read(html);
        let places: Vec<_> = markup.elements.iter().map(|element| &html[element.range.clone()]).collect();
        assert_eq!(places, ["<p>", "<IMG src=\"a&amp;b\"\n alt='t'/>", "<style>", "<b style=\"x\" >", "<i style=z>"]);
        assert_eq!(markup.elements[1].attribute("src"), Some("a&b"));
        let styles: Vec<_> = markup.elements.iter().filter_map(|element| Some(&html[element.style.clone()?])).collect();
        assert_eq!(styles, ["\"x\"", "z"]);
        assert_eq!(markup.styles.iter().map(|style| &html[style.clone()]).collect::<Vec<_>>(), ["a{}"]);
        assert_eq!((markup.depth, markup.formatting), (1, 1));
    }

    #[test]
    fn depth_is_counted_by_end_tags() {
        assert_eq!(read(&"<div>".repeat(500)).depth, 500);
        assert_eq!(read(&"<div></div>".repeat(500)).depth, 1);
        assert_eq!(read(&"<br>".repeat(500)).depth, 0);
        assert_eq!(read(&"<b>".repeat(20)).formatting, 20);
    }
}
