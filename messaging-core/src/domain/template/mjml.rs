//! Conversion of MJML into HTML.
//!
//! The library reads XML, so tags of the template language are replaced by words before, and put back after: `{% if a <
//! b %}` is neither text nor markup to it. It ignores what it does not know; here an unknown element is an error, and
//! so is a tag of the template that is missing in the result, because nothing an author wrote may vanish silently.

use mrml::prelude::parser::{Error as MjmlError, ParserOptions, Span, WarningKind};
use mrml::prelude::render::RenderOptions;

use super::fault::{Fault, Position};
use super::gate::Tokens;
use super::markup;

/// The longest source, in bytes.
pub const MAX_MJML: usize = 512 << 10;
/// Maximum nesting depth of elements: the library recurses for each.
const MAX_DEPTH: usize = 64;
/// Maximum number of elements.
const MAX_ELEMENTS: usize = 10_000;

/// The elements of the language.
const ELEMENTS: [&str; 35] = [
    "mjml",
    "mj-accordion",
    "mj-accordion-element",
    "mj-accordion-text",
    "mj-accordion-title",
    "mj-all",
    "mj-attributes",
    "mj-body",
    "mj-breakpoint",
    "mj-button",
    "mj-carousel",
    "mj-carousel-image",
    "mj-class",
    "mj-column",
    "mj-divider",
    "mj-font",
    "mj-group",
    "mj-head",
    "mj-hero",
    "mj-image",
    "mj-navbar",
    "mj-navbar-link",
    "mj-preview",
    "mj-raw",
    "mj-section",
    "mj-social",
    "mj-social-element",
    "mj-spacer",
    "mj-style",
    "mj-table",
    "mj-text",
    "mj-title",
    "mj-wrapper",
    "mj-include",
    "mj-html-attributes",
];

/// Result of converting MJML into HTML.
#[derive(Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The HTML, still a template.
    pub html: String,
    /// Style sheets to inline, as the author marked them.
    pub inline_styles: String,
    /// Positions of parts that the library ignored.
    pub ignored: Vec<Position>,
}

/// Renders a source. Needs no more stack than `on_large_stack` gives.
pub fn render(source: &str, tokens: &Tokens<'_>) -> Result<Rendered, Fault> {
    if source.len() > MAX_MJML {
        return Err(Fault::limit(None, "is longer than 512 KiB"));
    }
    let masked = markup::mask_template_tags(source, tokens);
    let found = markup::read(&masked);
    if found.depth > MAX_DEPTH {
        return Err(Fault::at(Position::of(source, found.deepest), "elements nest more than 64 deep"));
    }
    if found.elements.len() > MAX_ELEMENTS {
        return Err(Fault::limit(None, "has more than 10000 elements"));
    }
    let unknown = |name: &str| (name.starts_with("mj-") || name == "mjml") && !ELEMENTS.contains(&name);
    for element in &found.elements {
        let at = Position::of(source, element.range.start);
        match element.name.as_str() {
            "mj-include" => return Err(Fault::at(at, "files cannot be included")),
            "mj-html-attributes" => return Err(Fault::at(at, "mj-html-attributes is not supported")),
            name if unknown(name) => return Err(Fault::at(at, "no such element in MJML")),
            _ => {}
        }
    }
    let exchanged = Exchanged::new(source, tokens);
    let parsed = mrml::parse_with_options(&exchanged.text, &ParserOptions::default())
        .map_err(|error| exchanged.fault(source, &error))?;
    let ignored = parsed
        .warnings
        .iter()
        .filter(|warning| warning.kind == WarningKind::UnexpectedAttribute)
        .map(|warning| exchanged.position(source, warning.span))
        .collect();
    let html = parsed
        .element
        .render(&RenderOptions::default())
        .map_err(|error| Fault::limit(None, &format!("cannot be rendered: {error}")))?;
    let html = exchanged.back(source, &html)?;
    Ok(Rendered { html, inline_styles: inline_styles(source, &masked), ignored })
}

/// True if the library accepts no text but comments where `before` ends: between the children of elements whose
/// children are all of one kind.
fn takes_no_text(before: &str) -> bool {
    const PARENTS: [&str; 7] =
        ["mjml", "mj-head", "mj-attributes", "mj-navbar", "mj-social", "mj-accordion", "mj-carousel"];
    const CHILDREN: [&str; 13] = [
        "mj-head",
        "mj-accordion-element",
        "mj-accordion-title",
        "mj-accordion-text",
        "mj-attributes",
        "mj-breakpoint",
        "mj-carousel-image",
        "mj-font",
        "mj-navbar-link",
        "mj-preview",
        "mj-social-element",
        "mj-style",
        "mj-title",
    ];
    let Some(tag) = before.rfind('<').map(|at| &before[at + 1..]) else { return false };
    let Some(end) = tag.find('>') else { return false };
    let is_end = tag.starts_with('/') || tag[..end].ends_with('/');
    let name = tag.trim_start_matches('/');
    let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(name.len())];
    if is_end { CHILDREN.contains(&name) } else { PARENTS.contains(&name) || name == "mj-accordion-element" }
}

/// Returns the text of `<mj-style inline="inline">`.
fn inline_styles(source: &str, masked: &str) -> String {
    let mut styles = String::new();
    let wanted = markup::read(masked).elements;
    let wanted = wanted.iter().filter(|element| element.name == "mj-style");
    for element in wanted.filter(|element| element.attribute("inline") == Some("inline")) {
        let rest = &source[element.range.end..];
        styles.push_str(rest.find("</mj-style").map_or("", |end| &rest[..end]));
        styles.push('\n');
    }
    styles
}

/// A source whose template tags are replaced by words.
struct Exchanged {
    text: String,
    /// Ranges of each tag in the source and of its word in the text.
    tags: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>,
    mark: String,
}

impl Exchanged {
    fn new(source: &str, tokens: &Tokens<'_>) -> Self {
        let mut mark = "mjt".to_owned();
        while source.contains(&mark) {
            mark.push('t');
        }
        let mut exchanged = Self { text: String::with_capacity(source.len()), tags: Vec::new(), mark };
        let masked = markup::mask_template_tags(source, tokens);
        let mut written = 0;
        for tag_range in markup::template_tag_ranges(source, tokens) {
            exchanged.text.push_str(&source[written..tag_range.start]);
            let start = exchanged.text.len();
            let word = exchanged.word(exchanged.tags.len());
            let word = if takes_no_text(&masked[..tag_range.start]) { format!("<!--{word}-->") } else { word };
            exchanged.text.push_str(&word);
            exchanged.tags.push((tag_range.clone(), start..exchanged.text.len()));
            written = tag_range.end;
        }
        exchanged.text.push_str(&source[written..]);
        // The library reads nothing after the last element, not even the end of a line.
        let length = exchanged.text.trim_end().len();
        exchanged.text.truncate(length);
        exchanged
    }

    fn word(&self, number: usize) -> String {
        format!("{}{number}z", self.mark)
    }

    /// Returns the byte of the source that became a byte of the text.
    fn offset(&self, at: usize) -> usize {
        let before = self.tags.partition_point(|(_, word)| word.start <= at);
        match before.checked_sub(1).map(|index| &self.tags[index]) {
            None => at,
            Some((tag, word)) if at < word.end => tag.start,
            Some((tag, word)) => tag.end + (at - word.end),
        }
    }

    fn position(&self, source: &str, span: Span) -> Position {
        Position::of(source, self.offset(span.start))
    }

    fn fault(&self, source: &str, error: &MjmlError) -> Fault {
        match error {
            MjmlError::UnexpectedElement { position, .. } => {
                Fault::at(self.position(source, *position), "this element is not allowed here")
            }
            MjmlError::UnexpectedToken { position, .. } => {
                Fault::at(self.position(source, *position), "this is not expected here")
            }
            MjmlError::MissingAttribute { name, position, .. } => {
                Fault::at(self.position(source, *position), format_args!("the attribute {name} is missing"))
            }
            MjmlError::InvalidAttribute { position, .. } => {
                Fault::at(self.position(source, *position), "this attribute has no valid value")
            }
            MjmlError::InvalidFormat { position, .. } => {
                Fault::at(self.position(source, *position), "this has no valid format")
            }
            MjmlError::IncludeLoaderError { position, .. } => {
                Fault::at(self.position(source, *position), "files cannot be included")
            }
            MjmlError::EndOfStream { .. } => Fault::at(Position::of(source, source.len()), "an element is not closed"),
            MjmlError::ParserError { source: cause, .. } => {
                let place = cause.pos();
                let line_start = self.text.match_indices('\n').nth((place.row as usize).saturating_sub(2));
                let line_start = if place.row < 2 { 0 } else { line_start.map_or(0, |(at, _)| at + 1) };
                let column: usize = self.text[line_start..]
                    .chars()
                    .take((place.col as usize).saturating_sub(1))
                    .map(char::len_utf8)
                    .sum();
                Fault::at(Position::of(source, self.offset(line_start + column)), "the markup is not well-formed")
            }
            MjmlError::NoRootNode => Fault::limit(None, "has no <mjml> element"),
            MjmlError::SizeLimit { .. } => Fault::limit(None, "is too long"),
        }
    }

    /// Replaces the words by the tags again.
    fn back(&self, source: &str, html: &str) -> Result<String, Fault> {
        let mut out = String::with_capacity(html.len() + source.len() / 4);
        let mut seen = vec![false; self.tags.len()];
        let mut rest = html;
        while let Some(at) = rest.find(&self.mark) {
            let (before, word) = rest.split_at(at);
            out.push_str(before);
            let digits = &word[self.mark.len()..];
            let length = digits.bytes().take_while(u8::is_ascii_digit).count();
            let number = digits[..length].parse::<usize>().ok().filter(|number| *number < self.tags.len());
            let Some(number) = number.filter(|_| digits[length..].starts_with('z')) else {
                out.push_str(&self.mark);
                rest = digits;
                continue;
            };
            seen[number] = true;
            let (tag, exchanged) = &self.tags[number];
            rest = &digits[length + 1..];
            if self.text[exchanged.clone()].starts_with("<!--") && out.ends_with("<!--") {
                out.truncate(out.len() - "<!--".len());
                rest = rest.strip_prefix("-->").unwrap_or(rest);
            }
            out.push_str(&source[tag.clone()]);
        }
        out.push_str(rest);
        let lost = seen.iter().position(|seen| !seen).map(|number| self.tags[number].0.start);
        // Comments of the template language may vanish, as they have no output.
        match lost.filter(|at| !source[*at..].starts_with("{#") && !source[*at..].trim_start().is_empty()) {
            Some(at) => Err(Fault::at(Position::of(source, at), "MJML leaves out what stands here")),
            None => Ok(out),
        }
    }
}
