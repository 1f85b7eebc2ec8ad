//! Places in HTML where escaping quotes and angle brackets is not enough.
//!
//! The text between the tags of a template is read as a browser reads it, in the order of the source. A value in an
//! attribute without quotes ends at a space; one at the beginning of `href` may choose the scheme; one inside a script
//! is program text. Such outputs get a guard of their own.

use minijinja::machinery::Token;

use super::gate::Tokens;

/// Reason for which a value at a place in HTML is dangerous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Danger {
    /// At the beginning of an address.
    Address,
    /// In an address, after other text, where the scheme may still come.
    AddressRest,
    /// At the beginning of an address, before the colon that ends its scheme.
    Scheme,
    /// In an address, after other text and before the colon that ends its scheme.
    SchemeRest,
    /// Inside a script, an event handler, or an address that is one.
    Script,
    /// Inside a style sheet or a `style` attribute.
    Style,
    /// Inside an attribute that holds a document.
    Document,
    /// Inside the `content` of a `meta` element, which may redirect to another page.
    Refresh,
    /// The digit of `<h1>`.
    Level,
    /// The name of a tag, or an address in angle brackets.
    Tag,
}

/// A place that needs more than the usual escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputContext {
    /// Danger of the place, apart from quotes.
    pub(super) danger: Option<Danger>,
    /// True if it is inside a tag, but not inside quotes.
    pub(super) unquoted: bool,
}

/// Attributes that hold addresses.
const ADDRESSES: [&str; 18] = [
    "href",
    "src",
    "action",
    "formaction",
    "background",
    "poster",
    "cite",
    "xlink:href",
    "data",
    "codebase",
    "classid",
    "longdesc",
    "manifest",
    "ping",
    "dynsrc",
    "lowsrc",
    "icon",
    "profile",
];

/// Attributes of `animate` and `set` that become the value of another attribute, maybe an address.
const ANIMATED: [&str; 4] = ["to", "from", "by", "values"];

const COMPUTED_TAG: &str = "a part of the name of a tag cannot be computed; only the digit of h1 to h6 can";
const COMPUTED_NAME: &str = "an attribute whose name is computed cannot have a computed value";
const BLOCK_INSIDE: &str = "call and filter blocks cannot stand inside of a tag, a script or a style sheet";

/// Returns the outputs in dangerous places with their offsets, in order; or the rule that the source breaks.
pub(super) fn dangers(source: &str, tokens: &Tokens<'_>) -> Result<Vec<(usize, OutputContext)>, &'static str> {
    let mut reader = Reader::default();
    let mut texts = tokens.text.iter().peekable();
    for (index, (token, span)) in tokens.tokens.iter().enumerate() {
        if !matches!(token, Token::VariableStart | Token::BlockStart) {
            continue;
        }
        let at = span.start_offset as usize;
        while let Some(text) = texts.next_if(|text| text.start < at) {
            reader.read(&source[text.clone()]);
        }
        match (token, tokens.tokens.get(index + 1)) {
            (Token::VariableStart, _) => reader.see_output(at)?,
            (_, Some((Token::Ident(name), _))) => reader.see_block(name)?,
            _ => {}
        }
    }
    Ok(reader.found)
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

/// State of the search for an address's scheme.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum Scheme {
    /// A colon may still end one.
    #[default]
    Open,
    /// The scheme is harmless, or there is none.
    Decided,
    /// The scheme makes a browser run the rest as a script, as `javascript:` does.
    Script,
}

/// An `if` or `for` that began inside an address, with the state at its beginning.
struct Block {
    is_loop: bool,
    scheme: Scheme,
    literal: String,
    outputs: usize,
    pending: Vec<usize>,
}

#[derive(Default)]
struct Reader {
    state: State,
    /// The name of the tag, lower case.
    tag: String,
    /// The name of the attribute, lower case.
    name: String,
    /// True if an output is part of the attribute's name.
    is_computed: bool,
    /// Of an address: the state of its scheme, the literal text before that is decided, and the number of outputs so
    /// far.
    scheme: Scheme,
    literal: String,
    outputs: usize,
    /// Outputs in `found` that may be part of the address's scheme.
    pending: Vec<usize>,
    /// The beginning of a character reference.
    reference: Option<String>,
    /// Open blocks inside the address.
    blocks: Vec<Block>,
    /// The last characters, for finding the end of a comment or a script.
    tail: String,
    found: Vec<(usize, OutputContext)>,
}

impl Reader {
    /// Returns the danger of a value in the attribute, by the attribute's meaning.
    fn danger_of_value(&mut self) -> Result<Option<Danger>, &'static str> {
        if self.is_computed {
            return Err(COMPUTED_NAME);
        }
        Ok(match self.name.as_str() {
            name if name.starts_with("on") => Some(Danger::Script),
            "style" => Some(Danger::Style),
            "srcdoc" => Some(Danger::Document),
            "content" if self.tag == "meta" => Some(Danger::Refresh),
            _ if self.is_address() => self.danger_of_address(),
            _ => None,
        })
    }

    fn is_address(&self) -> bool {
        let name = self.name.as_str();
        ADDRESSES.contains(&name)
            || (ANIMATED.contains(&name) && (self.tag.starts_with("animate") || self.tag == "set"))
    }

    fn danger_of_address(&mut self) -> Option<Danger> {
        self.end_reference();
        match self.scheme {
            Scheme::Decided => None,
            Scheme::Script => Some(Danger::Script),
            Scheme::Open => {
                self.pending.push(self.found.len());
                let is_first = self.outputs == 0 && self.literal.is_empty();
                // The body of a loop is repeated after itself.
                let is_repeated = self.blocks.iter().any(|block| block.is_loop);
                self.outputs += 1;
                Some(if is_first && !is_repeated { Danger::Address } else { Danger::AddressRest })
            }
        }
    }

    /// Handles an output that begins at `at`.
    fn see_output(&mut self, at: usize) -> Result<(), &'static str> {
        if self.state == State::BeforeValue {
            self.begin_value(None);
        }
        let unquoted = matches!(self.state, State::Tag | State::Name | State::Value(None));
        let danger = match self.state {
            State::TagName if matches!(self.tag.as_str(), "h" | "/h") => Some(Danger::Level),
            State::TagName if matches!(self.tag.as_str(), "" | "/") => Some(Danger::Tag),
            State::TagName => return Err(COMPUTED_TAG),
            State::Value(_) => self.danger_of_value()?,
            State::Script => Some(Danger::Script),
            State::Style => Some(Danger::Style),
            State::Tag | State::Name => {
                if self.state == State::Tag {
                    self.name.clear();
                }
                self.is_computed = true;
                self.state = State::Name;
                None
            }
            State::Text | State::Comment | State::BeforeValue => None,
        };
        if danger.is_some() || unquoted {
            self.found.push((at, OutputContext { danger, unquoted }));
        }
        Ok(())
    }

    /// Handles the beginning of a statement with this name.
    fn see_block(&mut self, name: &str) -> Result<(), &'static str> {
        let is_inside = !matches!(self.state, State::Text | State::Comment);
        if matches!(name, "call" | "filter") && is_inside {
            return Err(BLOCK_INSIDE);
        }
        let is_in_address = matches!(self.state, State::Value(_)) && self.is_address();
        match name {
            "if" | "for" if is_in_address => {
                self.end_reference();
                self.blocks.push(Block {
                    is_loop: name == "for",
                    scheme: self.scheme,
                    literal: self.literal.clone(),
                    outputs: self.outputs,
                    pending: self.pending.clone(),
                });
            }
            "elif" | "else" => {
                if let Some(block) = self.blocks.last() {
                    (self.scheme, self.outputs) = (block.scheme, block.outputs);
                    self.literal.clone_from(&block.literal);
                    self.pending.extend(&block.pending);
                }
            }
            "endif" | "endfor" => {
                if let Some(block) = self.blocks.pop() {
                    // It is not known which branch was taken: the state before the block applies again, after some
                    // text.
                    self.scheme = block.scheme;
                    self.outputs += 1;
                    self.pending.extend(block.pending);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_value(&mut self, quote: Option<char>) {
        self.state = State::Value(quote);
        (self.scheme, self.outputs, self.reference) = (Scheme::Open, 0, None);
        self.literal.clear();
        self.pending.clear();
        self.blocks.clear();
    }

    /// Handles a literal character of a value, which may be part of a character reference.
    fn see_value(&mut self, c: char) {
        if self.scheme != Scheme::Open || !self.is_address() {
            return;
        }
        if let Some(reference) = &mut self.reference {
            if (c.is_ascii_alphanumeric() || c == '#') && reference.len() < 10 {
                reference.push(c.to_ascii_lowercase());
                return;
            }
            self.end_reference();
            if c == ';' {
                return;
            }
        }
        if c == '&' {
            self.reference = Some(String::new());
        } else {
            self.see_address(c);
        }
    }

    /// Decodes a character reference. Of the named ones only those matter that can be part of a scheme.
    fn end_reference(&mut self) {
        let Some(reference) = self.reference.take() else { return };
        let number = match reference.strip_prefix("#x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => reference.strip_prefix('#').and_then(|digits| digits.parse().ok()),
        };
        match reference.as_str() {
            "colon" => self.see_address(':'),
            "sol" => self.see_address('/'),
            "quest" => self.see_address('?'),
            "num" => self.see_address('#'),
            "tab" | "newline" => {}
            _ => self.see_address(number.and_then(char::from_u32).unwrap_or('&')),
        }
    }

    /// Handles a character of an address whose scheme is not decided.
    fn see_address(&mut self, c: char) {
        if self.scheme != Scheme::Open || c.is_whitespace() || c.is_control() {
            return;
        }
        let is_data = self.outputs == 0 && self.literal.starts_with("data:");
        match c {
            // The media type decides: an image runs nothing.
            '/' | ',' | ';' if is_data => {
                self.scheme = if self.literal == "data:image" { Scheme::Decided } else { Scheme::Script };
            }
            '/' | '?' | '#' | '\\' => self.scheme = Scheme::Decided,
            ':' if self.outputs == 0 && self.literal == "data" => self.literal.push(':'),
            ':' if self.outputs == 0 => {
                let runs = matches!(self.literal.as_str(), "javascript" | "vbscript" | "livescript");
                self.scheme = if runs { Scheme::Script } else { Scheme::Decided };
            }
            ':' => {
                for index in self.pending.drain(..) {
                    let danger = &mut self.found[index].1.danger;
                    *danger = match *danger {
                        Some(Danger::Address) => Some(Danger::Scheme),
                        Some(Danger::AddressRest) => Some(Danger::SchemeRest),
                        other => other,
                    };
                }
                self.scheme = Scheme::Decided;
            }
            c if self.literal.len() < 16 => self.literal.push(c.to_ascii_lowercase()),
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
                // Space is allowed before the equals sign.
                '=' if !self.name.is_empty() => self.state = State::BeforeValue,
                c => {
                    self.is_computed = false;
                    self.name.clear();
                    self.name.push(c.to_ascii_lowercase());
                    self.state = State::Name;
                }
            },
            State::Name => match c {
                '>' => self.close_tag(),
                '=' => self.state = State::BeforeValue,
                c if c.is_ascii_whitespace() => self.state = State::Tag,
                c => {
                    if self.name.len() < 16 {
                        self.name.push(c.to_ascii_lowercase());
                    }
                }
            },
            State::BeforeValue => match c {
                '>' => self.close_tag(),
                '"' | '\'' => self.begin_value(Some(c)),
                c if c.is_ascii_whitespace() => {}
                c => {
                    self.begin_value(None);
                    self.see_value(c);
                }
            },
            State::Value(Some(quote)) if c == quote => self.end_value(),
            State::Value(Some(_)) => self.see_value(c),
            State::Value(None) => match c {
                '>' => self.close_tag(),
                c if c.is_ascii_whitespace() => self.end_value(),
                c => self.see_value(c),
            },
            State::Comment => self.until(c, "-->"),
            State::Script => self.until(c, "</script"),
            State::Style => self.until(c, "</style"),
        }
    }

    /// Returns to text after `end`; the end of a script is a tag again.
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

    /// Ends a value: the state is between attributes again.
    fn end_value(&mut self) {
        self.state = State::Tag;
        self.name.clear();
        self.is_computed = false;
        self.blocks.clear();
    }

    fn close_tag(&mut self) {
        self.end_value();
        self.tail.clear();
        self.state = match self.tag.as_str() {
            "script" => State::Script,
            "style" => State::Style,
            _ => State::Text,
        };
        self.tag.clear();
    }
}
