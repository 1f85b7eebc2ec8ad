//! HTML as a series of events, without a tree.
//!
//! All readers share one instance of the tokenizer: it is generic over its callback, and each instance is 180 kB of
//! code.

use std::collections::BTreeMap;
use std::convert::Infallible;

use html5gum::Tokenizer;
use html5gum::emitters::callback::CallbackEmitter;

pub(in crate::domain) use html5gum::Span;
pub(in crate::domain) use html5gum::emitters::callback::CallbackEvent as Event;

/// Treatment of the content of scripts, style sheets and similar elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::domain) enum RawText {
    /// The content is text up to the end tag, as browsers have it.
    Text,
    /// Tags in the content are tags.
    Markup,
}

/// Calls `see` for every event, with its place in the source, in bytes.
pub(in crate::domain) fn read(html: &str, raw: RawText, see: &mut dyn FnMut(Event<'_>, Span<usize>)) {
    let mut emitter = CallbackEmitter::new(|event: Event<'_>, span: Span<usize>| {
        see(event, span);
        None::<Infallible>
    });
    emitter.naively_switch_states(raw == RawText::Text);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
}

/// A piece of a source.
#[derive(Debug)]
pub(in crate::domain) enum Piece<'a> {
    /// A start tag.
    Start {
        /// Its name, lower case.
        name: &'a str,
        /// Its attributes by their names in lower case; if a name occurs twice the first counts.
        attributes: &'a BTreeMap<String, String>,
        /// True if the tag is self-closing, so that it ends in `/>`.
        is_closed: bool,
    },
    /// An end tag, by its name in lower case.
    End(&'a str),
    /// Text, entities decoded.
    Text(&'a str),
}

/// Calls `see` for start tags with their attributes, for end tags and for text, and for nothing else.
pub(in crate::domain) fn pieces(html: &str, raw: RawText, see: &mut dyn FnMut(Piece<'_>)) {
    let (mut tag, mut attributes, mut attribute) = (String::new(), BTreeMap::new(), None);
    read(html, raw, &mut |event, _| match event {
        Event::OpenStartTag { name } => {
            tag = String::from_utf8_lossy(name).into_owned();
            attributes.clear();
            attribute = None;
        }
        Event::AttributeName { name } => {
            let name = String::from_utf8_lossy(name).into_owned();
            let is_new = !attributes.contains_key(&name);
            attribute = is_new.then(|| name.clone());
            attributes.entry(name).or_insert_with(String::new);
        }
        Event::AttributeValue { value } => {
            if let Some(known) = attribute.as_ref().and_then(|name| attributes.get_mut(name)) {
                known.push_str(&String::from_utf8_lossy(value));
            }
        }
        Event::CloseStartTag { self_closing } => {
            see(Piece::Start { name: &tag, attributes: &attributes, is_closed: self_closing });
        }
        Event::EndTag { name } => see(Piece::End(&String::from_utf8_lossy(name))),
        Event::String { value } => see(Piece::Text(&String::from_utf8_lossy(value))),
        Event::Comment { .. } | Event::Doctype { .. } | Event::Error(_) => {}
    });
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn told(html: &str, raw: RawText) -> String {
        let mut told = String::new();
        pieces(html, raw, &mut |piece| {
            match piece {
                Piece::Start { name, attributes, is_closed } => {
                    write!(told, "<{name}{attributes:?}{}>", if is_closed { "/" } else { "" })
                }
                Piece::End(name) => write!(told, "</{name}>"),
                Piece::Text(text) => write!(told, "{text:?}"),
            }
            .unwrap();
        });
        told
    }

    #[test]
    fn tags_are_told_with_their_attributes_and_text_with_its_entities() {
        assert_eq!(
            told("<A HREF='?a&amp;b' href=c x>a &lt; b</a><!-- c --><br/>", RawText::Markup),
            r#"<a{"href": "?a&b", "x": ""}>"a < b"</a><br{}/>"#
        );
    }

    #[test]
    fn the_content_of_a_script_is_text_where_that_is_asked_for() {
        assert_eq!(told("<script><b></script>", RawText::Text), r#"<script{}>"<b>"</script>"#);
        assert_eq!(told("<script><b></script>", RawText::Markup), "<script{}><b{}></script>");
    }
}
