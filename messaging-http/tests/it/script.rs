//! A parser of the console's scripts: their strings, with the call that each is an argument of, and the markup of their
//! templates. It knows just enough JavaScript to distinguish strings, templates, comments and regular expressions.

use std::collections::BTreeSet;

/// Character that stands in markup for a value that is filled in.
const FILLED: char = '\0';

/// Texts and markup found in a script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Its strings, in order.
    pub(crate) literals: Vec<Literal>,
    /// Templates that are arguments of `t`, which no translation file can contain.
    pub(crate) said_templates: Vec<String>,
    /// The words after a number, singular and plural: the last arguments of `count` and the `words` of a list.
    pub(crate) counted: BTreeSet<(String, String)>,
    /// All strings that stand next to each other.
    pub(crate) pairs: BTreeSet<(String, String)>,
    /// The markup of ``html`…` `` templates; filled-in values are NULs.
    pub(crate) markup: Vec<String>,
}

/// A string of a script.
#[derive(Debug)]
pub(crate) struct Literal {
    pub(crate) text: String,
    /// True if the string is an argument of `t`, and so a text to translate.
    pub(crate) is_said: bool,
}

/// Construct that is open around a place in a script.
#[derive(Debug, PartialEq)]
enum Open {
    /// The arguments of the function with this name; empty for other parentheses.
    Call(String),
    /// A list; `is_words` if it is the `words` of a component.
    List {
        is_words: bool,
    },
    Block,
    /// A place of the template, whose text so far is kept here.
    Place(Template),
}

/// A template that is being read.
#[derive(Debug, PartialEq)]
struct Template {
    text: String,
    is_markup: bool,
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    /// The code so far without comments; each string is `"`, each template `` ` ``, the beginning of each place `$`.
    code: String,
    open: Vec<Open>,
    found: Script,
}

/// Reads a script.
pub(crate) fn read(script: &str) -> Script {
    let mut reader = Reader {
        chars: script.chars().collect(),
        at: 0,
        code: String::new(),
        open: Vec::new(),
        found: Script::default(),
    };
    while reader.at < reader.chars.len() {
        reader.step();
    }
    assert!(reader.open.is_empty(), "what is open at the end of a script: {:?}", reader.open);
    reader.found
}

impl Reader {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\n')
    }

    fn step(&mut self) {
        let c = self.peek(0);
        match (c, self.peek(1)) {
            ('/', '/') => self.skip_to(&['\n']),
            ('/', '*') => {
                self.at += 2;
                self.skip_to(&['*', '/']);
                self.at += 2;
            }
            ('/', _) if self.expects_value() => self.skip_expression(),
            ('"' | '\'', _) => self.string(c),
            ('`', _) => {
                if self.is_said() {
                    let rest: String = self.chars[self.at..].iter().take(60).collect();
                    self.found.said_templates.push(rest);
                }
                let is_markup = self.code.ends_with("html");
                self.at += 1;
                self.template(Template { text: String::new(), is_markup });
            }
            ('}', _) => {
                self.at += 1;
                match self.open.pop() {
                    Some(Open::Place(mut template)) => {
                        template.text.push(FILLED);
                        self.template(template);
                    }
                    _ => self.code.push('}'),
                }
            }
            _ => {
                self.bracket(c);
                self.code.push(c);
                self.at += 1;
            }
        }
    }

    fn bracket(&mut self, c: char) {
        match c {
            '(' => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
                let start = self.code.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
                let name = self.code.get(start..).unwrap_or_default().to_owned();
                self.open.push(Open::Call(name));
            }
            '[' => {
                let is_words = matches!(self.open.last(), Some(Open::Place(template))
                    if self.code.ends_with('$') && template.text.ends_with("words="));
                self.open.push(Open::List { is_words });
            }
            '{' => self.open.push(Open::Block),
            ')' | ']' => {
                self.open.pop();
            }
            _ => {}
        }
    }

    fn skip_to(&mut self, end: &[char]) {
        while self.at < self.chars.len() && !self.chars[self.at..].starts_with(end) {
            self.at += 1;
        }
    }

    /// Returns true if a value may stand here, so that a slash begins a regular expression and is no division.
    fn expects_value(&self) -> bool {
        let code = self.code.trim_end();
        code.is_empty() || code.ends_with(|c| "(,=:[!&|?{};>+$".contains(c)) || code.ends_with("return")
    }

    fn skip_expression(&mut self) {
        let mut is_class = false;
        self.at += 1;
        while self.at < self.chars.len() && (is_class || self.peek(0) != '/') {
            match self.peek(0) {
                '\\' => self.at += 1,
                '[' => is_class = true,
                ']' => is_class = false,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        self.code.push('R');
    }

    /// Returns true if the string here is a text to translate: the first argument of `t`, or one of two alternatives.
    fn is_said(&self) -> bool {
        let code = self.code.trim_end();
        matches!(self.open.last(), Some(Open::Call(name)) if name == "t") && code.ends_with(['(', '?', ':'])
    }

    fn string(&mut self, quote: char) {
        let is_said = self.is_said();
        let before = self.code.trim_end();
        let is_next = before.strip_suffix(',').is_some_and(|before| before.trim_end().ends_with('"'));
        self.at += 1;
        let mut text = String::new();
        while self.at < self.chars.len() && self.peek(0) != quote {
            if self.peek(0) == '\\' {
                self.at += 1;
                text.push(match self.peek(0) {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
            } else {
                text.push(self.peek(0));
            }
            self.at += 1;
        }
        self.at += 1;
        if is_next && let Some(one) = self.found.literals.last() {
            let pair = (one.text.clone(), text.clone());
            let is_counted = match self.open.last() {
                Some(Open::Call(name)) => name == "count",
                Some(Open::List { is_words }) => *is_words,
                _ => false,
            };
            if is_counted {
                self.found.counted.insert(pair.clone());
            }
            self.found.pairs.insert(pair);
        }
        self.found.literals.push(Literal { text, is_said });
        self.code.push('"');
    }

    /// Continues with a template until its end or its next place.
    fn template(&mut self, mut template: Template) {
        loop {
            assert!(self.at < self.chars.len(), "a template has no end: {}", template.text);
            match (self.peek(0), self.peek(1)) {
                ('\\', next) => {
                    template.text.push(next);
                    self.at += 2;
                }
                ('`', _) => {
                    self.at += 1;
                    self.code.push('`');
                    if template.is_markup {
                        self.found.markup.push(template.text);
                    }
                    return;
                }
                ('$', '{') => {
                    self.at += 2;
                    self.code.push('$');
                    self.open.push(Open::Place(template));
                    return;
                }
                (c, _) => {
                    template.text.push(c);
                    self.at += 1;
                }
            }
        }
    }
}

#[test]
fn strings_are_found_with_what_they_are_for() {
    let script = read(
        "// t(\"no\")\nt(\"one\"); t(\n  'two', { name: \"no\" }); const R = [/\"[/\"]/, x / 2]; t(is === \"no\" ? \"three\" : `f${0}`); \
         start(\"no\"); html`<p class=\"x\">${t(\"fo\\\"ur\")} word ${list.map((one) => html`<b words=${[\"row\", \"rows\"]}>${one}</b>`)}</p>`; \
         count(f(1), \"link\", \"links\"); t(`five`); t(A[b] ?? \"six\"); /* t(\"no\") */",
    );
    let said: Vec<_> = script.literals.iter().filter(|one| one.is_said).map(|one| one.text.as_str()).collect();
    assert_eq!(said, ["one", "two", "three", "fo\"ur", "six"]);
    let counted: Vec<_> = script.counted.iter().map(|(one, many)| format!("{one}|{many}")).collect();
    assert_eq!(counted, ["link|links", "row|rows"]);
    assert_eq!(script.markup, ["<b words=\0>\0</b>", "<p class=\"x\">\0 word \0</p>"]);
    assert_eq!(script.said_templates.len(), 2);
}
