//! The places in HTML where escaping quotes and angle brackets is not enough.
//!
//! The text between the tags of a template is read as a browser reads it, in the order of the source. A
//! value in an attribute without quotes ends at a space; one at the beginning of `href` may choose the
//! scheme; one inside a script is program text. Such outputs get a guard of their own.

use minijinja::machinery::Token;

use super::gate::Tokens;

/// Why a place is dangerous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Danger {
    /// Inside a tag, but not inside quotes.
    Unquoted,
    /// At the beginning of an address.
    Address,
    /// Inside a script or an event handler.
    Script,
}

/// Attributes that hold addresses.
const ADDRESSES: [&str; 8] = ["href", "src", "action", "formaction", "background", "poster", "cite", "xlink:href"];

/// The outputs in dangerous places, by where they begin, in order.
pub(super) fn dangers(source: &str, tokens: &Tokens<'_>) -> Vec<(usize, Danger)> {
    let mut reader = Reader::default();
    let mut found = Vec::new();
    let mut texts = tokens.text.iter().peekable();
    for (token, span) in &tokens.tokens {
        if !matches!(token, Token::VariableStart) {
            continue;
        }
        let at = span.start_offset as usize;
        while let Some(text) = texts.next_if(|text| text.start < at) {
            reader.read(&source[text.clone()]);
        }
        if let Some(danger) = reader.danger() {
            found.push((at, danger));
        }
        reader.see_output();
    }
    found
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum State {
    #[default]
    Text,
    /// After `<`, in the name of a tag.
    TagName,
    /// In a tag, between attributes.
    Tag,
    /// In the name of an attribute.
    Name,
    /// After `=`.
    BeforeValue,
    Value(Option<char>),
    /// In a comment.
    Comment,
    /// In a script, until its end tag.
    Script,
    /// In a style sheet.
    Style,
}

#[derive(Default)]
struct Reader {
    state: State,
    /// The name of the tag, lower case.
    tag: String,
    /// The name of the attribute, lower case.
    name: String,
    /// Whether the attribute's value has begun.
    has_begun: bool,
    /// The last characters, for finding what ends a comment or a script.
    tail: String,
}

impl Reader {
    fn danger(&self) -> Option<Danger> {
        match self.state {
            State::Tag | State::Name | State::BeforeValue | State::Value(None) => Some(Danger::Unquoted),
            State::Value(Some(_)) if self.name.starts_with("on") => Some(Danger::Script),
            State::Value(Some(_)) if !self.has_begun && ADDRESSES.contains(&self.name.as_str()) => {
                Some(Danger::Address)
            }
            State::Script => Some(Danger::Script),
            State::Text | State::TagName | State::Value(_) | State::Comment | State::Style => None,
        }
    }

    /// An output stands here.
    fn see_output(&mut self) {
        match self.state {
            State::BeforeValue => self.state = State::Value(None),
            State::Value(_) => self.has_begun = true,
            _ => {}
        }
    }

    fn read(&mut self, text: &str) {
        for c in text.chars() {
            self.see(c);
        }
    }

    fn see(&mut self, c: char) {
        match self.state {
            State::Text if c == '<' => {
                self.state = State::TagName;
                self.tag.clear();
            }
            State::Text => {}
            State::TagName => match c {
                '>' => self.close_tag(),
                c if c.is_ascii_whitespace() && self.tag.is_empty() => self.state = State::Text,
                c if c.is_ascii_whitespace() => self.state = State::Tag,
                c => {
                    if self.tag.len() < 16 {
                        self.tag.push(c.to_ascii_lowercase());
                    }
                    if self.tag == "!--" {
                        self.state = State::Comment;
                        self.tail.clear();
                    }
                }
            },
            State::Tag => match c {
                '>' => self.close_tag(),
                c if c.is_ascii_whitespace() || c == '/' => {}
                c => {
                    self.name.clear();
                    self.name.push(c.to_ascii_lowercase());
                    self.state = State::Name;
                }
            },
            State::Name => match c {
                '>' => self.close_tag(),
                '=' => {
                    self.state = State::BeforeValue;
                    self.has_begun = false;
                }
                c if c.is_ascii_whitespace() => self.state = State::Tag,
                c => {
                    if self.name.len() < 16 {
                        self.name.push(c.to_ascii_lowercase());
                    }
                }
            },
            State::BeforeValue => match c {
                '>' => self.close_tag(),
                '"' | '\'' => self.state = State::Value(Some(c)),
                c if c.is_ascii_whitespace() => {}
                _ => {
                    self.state = State::Value(None);
                    self.has_begun = true;
                }
            },
            State::Value(Some(quote)) if c == quote => self.state = State::Tag,
            State::Value(Some(_)) => self.has_begun |= !c.is_whitespace(),
            State::Value(None) => match c {
                '>' => self.close_tag(),
                c if c.is_ascii_whitespace() => self.state = State::Tag,
                _ => self.has_begun = true,
            },
            State::Comment => self.until(c, "-->"),
            State::Script => self.until(c, "</script"),
            State::Style => self.until(c, "</style"),
        }
    }

    /// Goes back to text after `end`; what closes a script is a tag again.
    fn until(&mut self, c: char, end: &str) {
        self.tail.push(c.to_ascii_lowercase());
        if self.tail.ends_with(end) {
            self.tail.clear();
            if self.state == State::Comment {
                self.state = State::Text;
            } else {
                self.state = State::Tag;
                self.tag.clear();
            }
        } else if self.tail.len() > 32 {
            let keep = self.tail.char_indices().rev().nth(8).map_or(0, |(at, _)| at);
            self.tail.drain(..keep);
        }
    }

    fn close_tag(&mut self) {
        self.tail.clear();
        self.state = match self.tag.as_str() {
            "script" => State::Script,
            "style" => State::Style,
            _ => State::Text,
        };
        self.tag.clear();
    }
}
