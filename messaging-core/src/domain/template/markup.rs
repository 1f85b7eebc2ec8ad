//! The elements of an HTML or MJML source, found without building a tree.
//!
//! Libraries that build one call themselves for every level. What they get has been counted here first.
//! Tags of the template language are painted over before, byte for byte, so that every place stays where
//! it is in what the author wrote.

use std::ops::Range;

use super::gate::Tokens;
use crate::domain::mail::html_events::{self, Event, RawText, Span};

/// A start tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// Its name, lower case.
    pub(super) name: String,
    /// From `<` to after `>`.
    pub(super) place: Range<usize>,
    /// Its attributes: name in lower case, value with entities decoded.
    pub(super) attributes: Vec<(String, String)>,
    /// Where the value of `style` stands, with its quotes.
    pub(super) style: Option<Range<usize>>,
}

impl Element {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Summary of the elements that a source holds.
#[derive(Debug, Default)]
pub(super) struct Markup {
    /// Its start tags, in order.
    pub(super) elements: Vec<Element>,
    /// How deep they nest at most, as far as end tags tell.
    pub(super) depth: usize,
    /// Byte offset of the first element at the greatest depth.
    pub(super) deepest: usize,
    /// How many elements that format text are open at most.
    pub(super) formatting: usize,
    /// Whether there are more elements than are looked at.
    pub(super) is_cut: bool,
    /// The text of style sheets.
    pub(super) styles: Vec<Range<usize>>,
}

/// Elements that are looked at.
const MAX_ELEMENTS: usize = 50_000;

/// Bytes of a tag whose attributes are told apart.
const MAX_TAG: usize = 16 << 10;

/// Elements without content.
const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// Elements that a browser opens again in every block until they are closed.
const FORMATTING: [&str; 14] =
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];

/// The source with every tag of the template language painted over: outputs as letters, which are text
/// and values; the others as spaces.
pub(super) fn painted(source: &str, tokens: &Tokens<'_>) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for gap in gaps(source, tokens) {
        let paint = if source[gap.clone()].contains("{{") { b'q' } else { b' ' };
        bytes[gap].fill(paint);
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Where the source has tags of the template language, neighbors taken as one.
pub(super) fn gaps(source: &str, tokens: &Tokens<'_>) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let mut at = 0;
    for text in &tokens.text {
        if text.start > at {
            gaps.push(at..text.start);
        }
        at = at.max(text.end);
    }
    if at < source.len() {
        gaps.push(at..source.len());
    }
    // The tokenizer leaves out the last line end of a source as well.
    gaps.retain(|gap| !source[gap.clone()].trim().is_empty());
    gaps
}

/// Reads a source.
pub(super) fn read(html: &str) -> Markup {
    let mut reader =
        Reader { html, found: Markup::default(), open: Vec::new(), formatting: 0, element: None, raw_from: None };
    html_events::read(html, RawText::Text, &mut |event, span| reader.see(event, span));
    reader.found
}

struct Reader<'a> {
    html: &'a str,
    found: Markup,
    open: Vec<String>,
    /// How many of the open elements format text.
    formatting: usize,
    element: Option<Element>,
    /// Where the text of the open style sheet begins.
    raw_from: Option<usize>,
}

impl Reader<'_> {
    fn see(&mut self, event: Event<'_>, span: Span<usize>) {
        match event {
            Event::OpenStartTag { name } => {
                self.element = Some(Element {
                    name: String::from_utf8_lossy(name).into_owned(),
                    place: span.start..span.end,
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
                    && let Some(from) = self.raw_from.take()
                {
                    self.found.styles.push(from..span.start.max(from));
                }
            }
            Event::Comment { .. } | Event::String { .. } | Event::Doctype { .. } | Event::Error(_) => {}
        }
    }

    fn close_to(&mut self, depth: usize) {
        let closed = self.open.drain(depth..).filter(|name| FORMATTING.contains(&name.as_str())).count();
        self.formatting -= closed;
    }

    fn close_start_tag(&mut self, self_closing: bool, end: usize) {
        let Some(mut element) = self.element.take() else { return };
        let begins_tag = |at: usize| self.html[..at].rfind('<');
        element.place = begins_tag(element.place.end.min(self.html.len())).unwrap_or(element.place.start)..end;
        if element.name == "style" {
            self.raw_from = Some(end);
        }
        if !self_closing && !VOID.contains(&element.name.as_str()) {
            self.open.push(element.name.clone());
            self.formatting += usize::from(FORMATTING.contains(&element.name.as_str()));
            self.found.formatting = self.found.formatting.max(self.formatting);
            if self.open.len() > self.found.depth {
                self.found.depth = self.open.len();
                self.found.deepest = element.place.start;
            }
            // What follows is refused anyway, and looking for ends in it would take long.
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

/// Where the values of an element's attributes stand, with their quotes. An attribute without a value, and
/// a repeated one, is left out.
pub(super) fn values_of(html: &str, element: &Element) -> Vec<(String, Range<usize>)> {
    let mut places = Vec::new();
    if element.place.len() > MAX_TAG {
        return places;
    }
    let mut at = element.place.start + 1 + element.name.len();
    for (name, _) in &element.attributes {
        let Some(rest) = html.get(at..element.place.end) else { break };
        let Some(found) = rest.to_ascii_lowercase().find(name.as_str()) else { continue };
        let name_end = at + found + name.len();
        at = name_end;
        if let Some(place) = value_after(html, name_end).filter(|place| place.end <= element.place.end) {
            at = place.end;
            if !places.iter().any(|(known, _)| known == name) {
                places.push((name.clone(), place));
            }
        }
    }
    places
}

/// Where the value stands of the attribute whose name ends at `name_end`, with its quotes.
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
        let places: Vec<_> = markup.elements.iter().map(|element| &html[element.place.clone()]).collect();
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
