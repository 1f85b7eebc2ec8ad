//! XML as a stream of elements with text, which is all that a report has: no tree, no attributes, no entities but the
//! five predefined ones, no document type.

use quick_xml::Reader;
use quick_xml::errors::Error;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

use super::contents::{Content, fault_of};
use super::shared::{MAX_TEXT, Unreadable};

/// Maximum depth of elements.
const MAX_DEPTH: usize = 16;

/// Maximum octets of the name of an element.
const MAX_NAME: usize = 64;

/// A piece of the document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// An element begins; its path has the names from the root, with slashes between.
    Start(&'a str),
    /// An element ends: its path, and the text since the last element began or ended, without white space around it.
    End(&'a str, &'a str),
}

/// An event of the parser.
enum Step {
    Start(String),
    Empty(String),
    End,
    Other,
    Eof,
}

/// A document that is being read.
pub(super) struct Document<'a> {
    reader: Reader<Content<'a>>,
    buffer: Vec<u8>,
    path: String,
    /// Lengths of the path before each open element.
    lengths: Vec<usize>,
    text: String,
    /// An element without content has begun and not ended yet.
    is_empty: bool,
    /// The element that ended is still in the path.
    has_ended: bool,
}

impl<'a> Document<'a> {
    pub(super) fn new(content: Content<'a>) -> Self {
        Self {
            reader: Reader::from_reader(content),
            buffer: Vec::new(),
            path: String::new(),
            lengths: Vec::new(),
            text: String::new(),
            is_empty: false,
            has_ended: false,
        }
    }

    /// Returns the next piece; `None` at the end of a complete document.
    pub(super) fn next(&mut self) -> Result<Option<Piece<'_>>, Unreadable> {
        if std::mem::take(&mut self.has_ended) {
            self.path.truncate(self.lengths.pop().unwrap_or_default());
            self.text.clear();
        }
        if std::mem::take(&mut self.is_empty) {
            return Ok(Some(self.end()));
        }
        loop {
            match self.step()? {
                Step::Start(name) => return self.start(&name).map(Some),
                Step::Empty(name) => {
                    self.is_empty = true;
                    return self.start(&name).map(Some);
                }
                // The parser has checked that it ends the open element.
                Step::End => return Ok(Some(self.end())),
                Step::Other => {}
                Step::Eof if self.lengths.is_empty() => return Ok(None),
                Step::Eof => return Err(Unreadable::Damaged),
            }
        }
    }

    /// Reads up to the next event; texts are gathered.
    fn step(&mut self) -> Result<Step, Unreadable> {
        self.buffer.clear();
        self.reader.get_mut().begin_piece();
        Ok(match self.reader.read_event_into(&mut self.buffer).map_err(|error| fault(&error))? {
            Event::Start(tag) => Step::Start(name(tag.local_name().into_inner())?),
            Event::Empty(tag) => Step::Empty(name(tag.local_name().into_inner())?),
            Event::End(_) => Step::End,
            Event::Text(text) => append(&mut self.text, &String::from_utf8_lossy(&text)),
            Event::CData(text) => append(&mut self.text, &String::from_utf8_lossy(&text)),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|_| Unreadable::Form)?;
                let name = String::from_utf8_lossy(&reference);
                match (character, resolve_predefined_entity(&name)) {
                    (Some(character), _) => append(&mut self.text, character.encode_utf8(&mut [0; 4])),
                    (None, Some(text)) => append(&mut self.text, text),
                    (None, None) => return Err(Unreadable::Entities),
                }
            }
            Event::DocType(_) => return Err(Unreadable::Entities),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => Step::Other,
            Event::Eof => Step::Eof,
        })
    }

    fn start(&mut self, name: &str) -> Result<Piece<'_>, Unreadable> {
        if self.lengths.len() == MAX_DEPTH {
            return Err(Unreadable::TooDeep);
        }
        self.lengths.push(self.path.len());
        if !self.path.is_empty() {
            self.path.push('/');
        }
        self.path.push_str(name);
        self.text.clear();
        Ok(Piece::Start(&self.path))
    }

    fn end(&mut self) -> Piece<'_> {
        self.has_ended = true;
        Piece::End(&self.path, self.text.trim())
    }
}

/// Returns the name of an element without its namespace.
fn name(octets: &[u8]) -> Result<String, Unreadable> {
    let name = std::str::from_utf8(octets).ok().filter(|name| name.len() <= MAX_NAME && !name.contains('/'));
    name.map(ToOwned::to_owned).ok_or(Unreadable::Form)
}

/// Appends to a text, of which only the needed beginning is kept.
fn append(text: &mut String, more: &str) -> Step {
    let room = (4 * MAX_TEXT).saturating_sub(text.len());
    text.extend(more.chars().take(room));
    Step::Other
}

fn fault(error: &Error) -> Unreadable {
    match error {
        Error::Io(error) => fault_of(error),
        _ => Unreadable::Damaged,
    }
}
