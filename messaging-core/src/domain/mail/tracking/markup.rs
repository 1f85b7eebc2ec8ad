//! Search for the links of an HTML part and the place of the pixel.
//!
//! The tokenizer knows comments, scripts, entities and quotes. It does not give the place of a value, which is searched
//! in the source after the attribute's name; if no value is found there, the link is left alone.

use std::ops::Range;

use html5gum::{Error, naive_next_state};

use crate::domain::mail::html_events::{self, Event, RawText, Span};

/// Links of an HTML part, and the place of the tracking pixel.
pub(super) struct TrackableHtml {
    /// The links, in order.
    pub(super) targets: Vec<Target>,
    /// Byte offset at which the tracking pixel is inserted.
    pub(super) pixel_at: usize,
}

/// The target of a link.
pub(super) struct Target {
    /// Byte offset at which the tag of the link begins.
    pub(super) tag: usize,
    /// Byte range of the target in the source, without quotes.
    pub(super) value: Range<usize>,
    /// True if the target is quoted in the source.
    pub(super) quoted: bool,
    /// The target, entities decoded.
    pub(super) url: String,
    /// True if the sender wants no redirect: `data-no-track`.
    pub(super) untracked: bool,
}

/// Finds the links of an HTML part and the place of the pixel.
pub(super) fn read(html: &str) -> TrackableHtml {
    let mut reader = Reader::new(html);
    html_events::read(html, RawText::Text, &mut |event, span| reader.see(event, span));
    reader.finish()
}

struct Reader<'a> {
    html: &'a str,
    targets: Vec<Target>,
    /// Byte offset of the last `</body>` so far.
    body_end: Option<usize>,
    /// Byte offset of the end of the last tag that is followed by markup, not by the text of a script or a similar
    /// element.
    sound_end: usize,
    /// True if the source ends inside a construct, such as a tag, that text appended to it would become part of.
    broken_end: bool,
    /// True if the last token was a comment; one without an end continues to the end of the source.
    after_comment: bool,
    tag: Option<Tag>,
}

/// A start tag while its attributes are read.
#[derive(Default)]
struct Tag {
    /// Byte offset at which the name of the tag ends.
    name_end: usize,
    is_link: bool,
    /// True if the tag is followed by text up to its end tag, not by markup: a script, a style sheet.
    is_raw: bool,
    untracked: bool,
    attribute: Attribute,
    /// Byte offset at which the name of the first `href` ends, and its value.
    href: Option<(usize, String)>,
}

/// Attribute to which the next value belongs.
#[derive(Default, PartialEq)]
enum Attribute {
    /// The first `href` of the tag, with the byte offset at which its name ends. HTML ignores repeated attributes.
    Href(usize),
    #[default]
    Other,
}

impl<'a> Reader<'a> {
    const fn new(html: &'a str) -> Self {
        Self {
            html,
            targets: Vec::new(),
            body_end: None,
            sound_end: 0,
            broken_end: false,
            after_comment: false,
            tag: None,
        }
    }

    fn see(&mut self, event: Event<'_>, span: Span<usize>) {
        match event {
            Event::OpenStartTag { name } => {
                self.after_comment = false;
                self.tag = Some(Tag {
                    name_end: span.end,
                    is_link: matches!(name, b"a" | b"area"),
                    is_raw: naive_next_state(name).is_some(),
                    ..Tag::default()
                });
            }
            Event::AttributeName { name } => {
                if let Some(tag) = self.tag.as_mut().filter(|tag| tag.is_link) {
                    tag.attribute = Attribute::Other;
                    match name {
                        b"href" if tag.href.is_none() => {
                            tag.href = Some((span.end, String::new()));
                            tag.attribute = Attribute::Href(span.end);
                        }
                        b"data-no-track" => tag.untracked = true,
                        _ => {}
                    }
                }
            }
            Event::AttributeValue { value } => {
                if let Some(tag) = &mut self.tag
                    && let Attribute::Href(name_end) = tag.attribute
                {
                    tag.href = Some((name_end, String::from_utf8_lossy(value).into_owned()));
                }
            }
            Event::CloseStartTag { .. } => self.close_start_tag(span.end),
            Event::EndTag { name } => {
                self.tag = None;
                self.after_comment = false;
                self.sound_end = span.end;
                if name == b"body" && self.html.get(span.start..).is_some_and(|rest| rest.starts_with("</")) {
                    self.body_end = Some(span.start);
                }
            }
            Event::Comment { .. } => self.after_comment = true,
            Event::String { .. } | Event::Doctype { .. } => self.after_comment = false,
            Event::Error(error) => {
                self.broken_end |= matches!(
                    error,
                    Error::EofBeforeTagName
                        | Error::EofInCdata
                        | Error::EofInComment
                        | Error::EofInDoctype
                        | Error::EofInScriptHtmlCommentLikeText
                        | Error::EofInTag
                );
            }
        }
    }

    fn close_start_tag(&mut self, end: usize) {
        let Some(tag) = self.tag.take() else { return };
        if tag.is_raw {
            // Up to the end tag, a pixel put here would be text and not markup.
            self.tag = Some(Tag { is_raw: true, ..Tag::default() });
            return;
        }
        self.sound_end = end;
        if let Some((name_end, url)) = tag.href
            && !url.is_empty()
            && let Some((value, quoted)) = value_after(self.html, name_end)
        {
            let named = self.html.get(..tag.name_end).unwrap_or_default();
            let tag_start = named.rfind('<').unwrap_or_default();
            self.targets.push(Target { tag: tag_start, value, quoted, url, untracked: tag.untracked });
        }
    }

    fn finish(self) -> TrackableHtml {
        let in_raw_text = self.tag.is_some_and(|tag| tag.is_raw);
        let in_comment = self.after_comment && !self.html.ends_with('>');
        let is_sound = !self.broken_end && !in_raw_text && !in_comment;
        let end = if is_sound { self.html.len() } else { self.sound_end };
        let pixel_at = self.body_end.unwrap_or(end);
        let pixel_at = if self.html.is_char_boundary(pixel_at) { pixel_at } else { 0 };
        TrackableHtml { targets: self.targets, pixel_at }
    }
}

/// Returns the byte range of the value of the `href` whose name ends at `name_end`, and true if the value is quoted;
/// `None` if the source has no `href` with a value there.
fn value_after(html: &str, name_end: usize) -> Option<(Range<usize>, bool)> {
    let named = html.get(..name_end)?;
    if !named.get(named.len().checked_sub(4)?..)?.eq_ignore_ascii_case("href") {
        return None;
    }
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
    let bytes = html.as_bytes();
    let skip = |from: usize| bytes[from..].iter().position(|byte| !is_space(*byte)).map(|after| from + after);
    let equals = skip(name_end)?;
    if bytes[equals] != b'=' {
        return None;
    }
    let start = skip(equals + 1)?;
    let until = |from: usize, is_end: &dyn Fn(u8) -> bool| {
        bytes[from..].iter().position(|byte| is_end(*byte)).map(|length| from..from + length)
    };
    match bytes[start] {
        quote @ (b'"' | b'\'') => Some((until(start + 1, &|byte| byte == quote)?, true)),
        _ => Some((until(start, &|byte| is_space(byte) || byte == b'>')?, false)),
    }
}
