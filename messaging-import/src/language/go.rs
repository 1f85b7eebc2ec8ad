//! Translates Go templates of listmonk.

use super::{Expression, Fault, Known, MAX_DEPTH, Translated, is_name, line_of, push_literal, quoted, shown, variable};

/// Phrases of listmonk's own, in English.
const PHRASES: [(&str, &str); 2] =
    [("email.unsub", "Unsubscribe"), ("email.unsubHelp", "You do not want these emails any more?")];

/// Note about a layout: here a template is the whole email.
const CONTENT_NOTE: &str =
    "the campaign's body stood at {{ template \"content\" . }}; it is the variable `content` now, put a text there";

/// Translates a body or a subject.
pub(crate) fn translate(source: &str, known: Known<'_>) -> Result<Translated, Fault> {
    let mut work = Work { known, out: Translated::default(), blocks: Vec::new(), dots: Vec::new() };
    let mut at = 0;
    while let Some(start) = source[at..].find("{{").map(|found| at + found) {
        work.text(&source[at..start]);
        let fault = |what: String| Fault { line: line_of(source, start), what };
        let end = end_of(&source[start + 2..]).ok_or_else(|| fault("{{ is not closed".to_owned()))?;
        let inner = &source[start + 2..start + 2 + end];
        at = start + 2 + end + 2;
        work.action(inner).map_err(|why| fault(format!("{}: {why}", shown(&source[start..at]))))?;
    }
    work.text(&source[at..]);
    match work.blocks.last() {
        None => Ok(work.out),
        Some(_) => Err(Fault { line: line_of(source, source.len()), what: "{{ end }} is missing".to_owned() }),
    }
}

/// Returns the offset of the `}}` that ends an action; strings and comments may hold the sign.
fn end_of(text: &str) -> Option<usize> {
    let body = text.strip_prefix('-').unwrap_or(text).trim_start();
    if body.starts_with("/*") {
        let comment = text.find("*/")? + 2;
        return text[comment..].find("}}").map(|found| comment + found);
    }
    let (mut quote, mut is_escaped) = (None, false);
    for (at, letter) in text.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some('"') if letter == '\\' => is_escaped = true,
            Some(open) if letter == open => quote = None,
            None if matches!(letter, '"' | '`') => quote = Some(letter),
            None if text[at..].starts_with("}}") => return Some(at),
            Some(_) | None => {}
        }
    }
    None
}

/// Block that the next `{{ end }}` closes.
enum Block {
    If,
    /// A loop; like `With`, it changes the meaning of the dot.
    Each {
        variables: usize,
    },
    With {
        variables: usize,
    },
}

/// Meaning of the dot or a `$name`.
struct Dot {
    /// Name of the variable; empty for the dot.
    name: String,
    code: String,
}

struct Work<'a> {
    known: Known<'a>,
    out: Translated,
    blocks: Vec<Block>,
    dots: Vec<Dot>,
}

impl Work<'_> {
    fn text(&mut self, text: &str) {
        // `@TrackLink` marks a link whose clicks are counted; here all links are.
        push_literal(&mut self.out.text, &text.replace("@TrackLink", ""));
    }

    /// Writes a tag of Jinja that trims spaces where the action does.
    fn put(&mut self, trims: (bool, bool), open: &str, code: &str, close: &str) {
        let mark = |trim| if trim { "-" } else { "" };
        let code = format!("{open}{} {code} {}{close}", mark(trims.0), mark(trims.1));
        self.out.text.push_str(&code);
    }

    fn tag(&mut self, trims: (bool, bool), code: &str) {
        self.put(trims, "{%", code, "%}");
    }

    fn nothing(&mut self, trims: (bool, bool)) {
        if trims != (false, false) {
            self.put(trims, "{#", "", "#}");
        }
    }

    fn action(&mut self, inner: &str) -> Result<(), String> {
        let trims = (inner.starts_with("- ") || inner.starts_with("-\n"), inner.ends_with(" -"));
        let inner = if trims.0 { &inner[1..] } else { inner };
        let inner = if trims.1 { inner.strip_suffix('-').unwrap_or(inner) } else { inner };
        let inner = inner.trim();
        if inner.starts_with("/*") {
            self.nothing(trims);
            return Ok(());
        }
        let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
        let rest = rest.trim();
        match word {
            "if" | "with" | "range" if self.blocks.len() >= MAX_DEPTH => Err("is nested too deep".to_owned()),
            "if" => {
                let condition = self.expression(rest)?.code();
                self.tag(trims, &format!("if {condition}"));
                self.blocks.push(Block::If);
                Ok(())
            }
            "with" => {
                let value = self.expression(rest)?;
                self.tag(trims, &format!("if {}", value.code()));
                self.dots.push(Dot { name: String::new(), code: value.operand() });
                self.blocks.push(Block::With { variables: 1 });
                Ok(())
            }
            "range" => self.range(trims, rest),
            "else" => self.otherwise(trims, rest),
            "end" if rest.is_empty() => self.end(trims),
            "define" | "block" | "break" | "continue" => Err("is not understood".to_owned()),
            "template" if rest.starts_with("\"content\"") => {
                self.out.notes.insert(CONTENT_NOTE);
                self.put(trims, "{{", "content | safe", "}}");
                Ok(())
            }
            "template" => Err("other templates cannot be named".to_owned()),
            "TrackView" => {
                // Opens are counted by the pixel that is added when a message is sent.
                self.nothing(trims);
                Ok(())
            }
            "L.T" | "L.Ts" | "L.Tc" => {
                let key = rest.trim_matches('"');
                let phrase = PHRASES.iter().find(|(name, _)| *name == key).map(|(_, phrase)| (*phrase).to_owned());
                let phrase = self.known.given.get(key).cloned().or(phrase);
                let phrase =
                    phrase.ok_or_else(|| format!("listmonk's own phrase is not known; give it by --set '{key}=…'"))?;
                self.nothing(trims);
                self.text(&phrase);
                Ok(())
            }
            _ => match self.expression(inner)? {
                Expression::Literal(text) => {
                    self.nothing(trims);
                    self.text(&text);
                    Ok(())
                }
                value => {
                    self.put(trims, "{{", &value.code(), "}}");
                    Ok(())
                }
            },
        }
    }

    /// Translates `range X`, `range $item := X`, or `range $index, $item := X`.
    fn range(&mut self, trims: (bool, bool), rest: &str) -> Result<(), String> {
        let (names, over) = rest.split_once(":=").map_or(("", rest), |(names, over)| (names.trim(), over.trim()));
        let over = self.expression(over)?.operand();
        let item =
            format!("element_{}", 1 + self.blocks.iter().filter(|block| matches!(block, Block::Each { .. })).count());
        self.tag(trims, &format!("for {item} in {over}"));
        let mut named = vec![Dot { name: String::new(), code: item.clone() }];
        let names: Vec<_> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        match names.as_slice() {
            [] => {}
            [one] => named.push(Dot { name: (*one).to_owned(), code: item }),
            [index, one] => {
                named.push(Dot { name: (*index).to_owned(), code: "loop.index0".to_owned() });
                named.push(Dot { name: (*one).to_owned(), code: item });
            }
            _ => return Err("has more than two names".to_owned()),
        }
        self.blocks.push(Block::Each { variables: named.len() });
        self.dots.extend(named);
        Ok(())
    }

    fn otherwise(&mut self, trims: (bool, bool), rest: &str) -> Result<(), String> {
        match self.blocks.last() {
            Some(Block::If) if !rest.is_empty() => {
                let condition = rest.strip_prefix("if ").ok_or("is not understood")?;
                let condition = self.expression(condition)?.code();
                self.tag(trims, &format!("elif {condition}"));
            }
            Some(_) if rest.is_empty() => {
                // In the other branch of a loop or a `with` the dot has its previous meaning again.
                if let Some(Block::Each { variables } | Block::With { variables }) = self.blocks.last_mut() {
                    let kept = self.dots.len() - std::mem::take(variables);
                    self.dots.truncate(kept);
                }
                self.tag(trims, "else");
            }
            _ => return Err("is not understood here".to_owned()),
        }
        Ok(())
    }

    fn end(&mut self, trims: (bool, bool)) -> Result<(), String> {
        let (word, variables) = match self.blocks.pop().ok_or("closes nothing")? {
            Block::If => ("endif", 0),
            Block::With { variables } => ("endif", variables),
            Block::Each { variables } => ("endfor", variables),
        };
        self.dots.truncate(self.dots.len() - variables);
        self.tag(trims, word);
        Ok(())
    }

    fn expression(&self, text: &str) -> Result<Expression, String> {
        let tokens = tokens(text)?;
        let mut reading = Reading { work: self, tokens: &tokens, at: 0, depth: 0 };
        let value = reading.pipeline()?;
        if reading.at == tokens.len() { Ok(value) } else { Err("is not understood".to_owned()) }
    }

    /// Translates `.Subscriber.Email`, `.name`, or `$item.name`.
    fn path(&self, path: &str) -> Result<Expression, String> {
        let (start, rest) = path.split_once('.').unwrap_or((path, ""));
        let names: Vec<_> = rest.split('.').filter(|name| !name.is_empty()).collect();
        let is_sought = |dot: &&Dot| dot.name == start;
        match self.dots.iter().rev().find(is_sought) {
            Some(dot) => {
                if !names.iter().all(|name| is_name(name)) {
                    return Err("has a name that is not understood".to_owned());
                }
                let mut code = dot.code.clone();
                for name in names {
                    code = format!("{code}.{name}");
                }
                Ok(Expression::Atom(code))
            }
            None if start.is_empty() || start == "$" => root(&names),
            None => Err(format!("{start} is not set")),
        }
    }
}

/// Translates a value that listmonk passes to a template.
fn root(names: &[&str]) -> Result<Expression, String> {
    let atom = |code: &str| Ok(Expression::Atom(code.to_owned()));
    match names {
        ["Subscriber", "Email"] => atom("contact.email"),
        ["Subscriber", "Name"] => atom("contact.attributes.name"),
        ["Subscriber", "FirstName"] => atom("contact.attributes.first_name"),
        ["Subscriber", "LastName"] => atom("contact.attributes.last_name"),
        ["Subscriber", "UUID"] => atom("contact.attributes.listmonk_uuid"),
        ["Subscriber", "Attribs", path @ ..] if path.iter().all(|name| is_name(name)) => {
            Ok(Expression::Atom(["contact.attributes"].iter().chain(path).copied().collect::<Vec<_>>().join(".")))
        }
        ["Campaign", "Name"] => atom("campaign.name"),
        ["Campaign", "UUID"] => atom("campaign.id"),
        ["Tx", "Data", path @ ..] if !path.is_empty() => {
            variable(path).ok_or_else(|| "has a name that no variable can have".to_owned())
        }
        _ => Err("is nothing that a template here knows".to_owned()),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// `.Subscriber.Email`, `$x.name`
    Path(String),
    /// A function.
    Word(String),
    Text(String),
    Number(String),
    Open,
    Close,
    Pipe,
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '(' | ')' | '|' => {
                tokens.push(match first {
                    '(' => Token::Open,
                    ')' => Token::Close,
                    _ => Token::Pipe,
                });
                1
            }
            '`' => {
                let end = rest[1..].find('`').ok_or("has a text that is not closed")?;
                tokens.push(Token::Text(rest[1..=end].to_owned()));
                end + 2
            }
            '"' => {
                // Go's escapes are those of JSON in practice.
                let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let read = stream.next().and_then(Result::ok).ok_or("has a text that is not understood")?;
                tokens.push(Token::Text(read));
                stream.byte_offset()
            }
            _ => {
                let is_end = |letter: char| letter.is_whitespace() || "()|\"`".contains(letter);
                let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
                tokens.push(match first {
                    '.' | '$' => Token::Path(word.to_owned()),
                    '0'..='9' | '-' if word.parse::<f64>().is_ok() => Token::Number(word.to_owned()),
                    _ if word.chars().all(|letter| letter.is_alphanumeric() || "._".contains(letter)) => {
                        Token::Word(word.to_owned())
                    }
                    _ => return Err("is not understood".to_owned()),
                });
                word.len()
            }
        };
        rest = rest[taken..].trim_start();
    }
    Ok(tokens)
}

struct Reading<'a> {
    work: &'a Work<'a>,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Reading<'_> {
    fn pipeline(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("is nested too deep".to_owned());
        }
        let mut value = self.command(None)?;
        while self.tokens.get(self.at) == Some(&Token::Pipe) {
            self.at += 1;
            value = self.command(Some(value))?;
        }
        self.depth -= 1;
        Ok(value)
    }

    /// Translates a function with its arguments, the last of which may come through a pipe, or a value.
    fn command(&mut self, piped: Option<Expression>) -> Result<Expression, String> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) if !["true", "false", "nil"].contains(&word.as_str()) => {
                self.at += 1;
                let mut arguments = Vec::new();
                while let Some(argument) = self.operand()? {
                    arguments.push(argument);
                }
                arguments.extend(piped);
                function(word, &arguments)
            }
            _ => match (self.operand()?, piped) {
                (Some(value), None) => Ok(value),
                _ => Err("is not understood".to_owned()),
            },
        }
    }

    fn operand(&mut self) -> Result<Option<Expression>, String> {
        let Some(token) = self.tokens.get(self.at) else { return Ok(None) };
        let value = match token {
            Token::Close | Token::Pipe => return Ok(None),
            Token::Text(text) => Expression::Literal(text.clone()),
            Token::Number(number) => Expression::Atom(number.clone()),
            Token::Path(path) if path == "." && self.work.dots.is_empty() => Expression::Atom(String::new()),
            Token::Path(path) => self.work.path(path)?,
            Token::Word(word) => match word.as_str() {
                "true" | "false" => Expression::Atom(word.clone()),
                "nil" => Expression::Atom("none".to_owned()),
                // The word is a function without arguments.
                _ => function(word, &[])?,
            },
            Token::Open => {
                self.at += 1;
                let value = self.pipeline()?;
                if self.tokens.get(self.at) != Some(&Token::Close) {
                    return Err("has a parenthesis that is not closed".to_owned());
                }
                value
            }
        };
        self.at += 1;
        Ok(Some(value))
    }
}

/// Translates a function of Go, of Sprig or of listmonk. The whole data, a lone dot, is an argument of listmonk's
/// functions: an empty atom.
fn function(name: &str, arguments: &[Expression]) -> Result<Expression, String> {
    let is_data = |argument: &Expression| *argument == Expression::Atom(String::new());
    let chain = |operator: &str| {
        let all: Vec<_> = arguments.iter().map(Expression::operand).collect();
        Expression::Compound(all.join(&format!(" {operator} ")))
    };
    if name == "UnsubscribeURL" && arguments.iter().all(is_data) {
        return Ok(Expression::Atom("unsubscribe_url".to_owned()));
    }
    if let ("TrackLink", [link, data @ ..]) = (name, arguments)
        && data.iter().all(is_data)
    {
        return Ok(link.clone());
    }
    if arguments.iter().any(is_data) {
        return Err(format!("{name} is not understood"));
    }
    Ok(match (name, arguments) {
        ("eq", [one, others @ ..]) if !others.is_empty() => {
            let alternatives: Vec<_> = others.iter().map(|other| one.with("==", other).code()).collect();
            Expression::Compound(alternatives.join(" or "))
        }
        ("ne", [one, other]) => one.with("!=", other),
        ("lt", [one, other]) => one.with("<", other),
        ("le", [one, other]) => one.with("<=", other),
        ("gt", [one, other]) => one.with(">", other),
        ("ge", [one, other]) => one.with(">=", other),
        ("and", [_, ..]) => chain("and"),
        ("or", [_, ..]) => chain("or"),
        ("not", [one]) => Expression::Compound(format!("not {}", one.operand())),
        ("default", [other, one]) => one.through(&format!("default({}, true)", other.code())),
        ("upper" | "lower" | "title" | "trim", [one]) => one.through(name),
        ("len", [one]) => one.through("length"),
        ("Safe" | "safeHTML", [Expression::Literal(text)]) => Expression::Literal(text.clone()),
        ("Safe" | "safeHTML", [one]) => one.through("safe"),
        ("index", [one, keys @ ..]) if !keys.is_empty() => {
            let mut code = one.operand();
            for key in keys {
                code = match key {
                    Expression::Literal(text) => format!("{code}[{}]", quoted(text)),
                    other => format!("{code}[{}]", other.code()),
                };
            }
            Expression::Atom(code)
        }
        _ => return Err(format!("{name} is not understood")),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(source: &str) -> Result<String, String> {
        let given = BTreeMap::from([("email.hello".to_owned(), "Hello".to_owned())]);
        let read = translate(source, Known { given: &given, attributes: None });
        read.map(|translated| translated.text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_people_write_becomes_jinja() {
        for (source, expected) in [
            ("Hi {{ .Subscriber.FirstName }}!", "Hi {{ contact.attributes.first_name }}!"),
            ("{{.Subscriber.Email}} {{ .Subscriber.Name }}", "{{ contact.email }} {{ contact.attributes.name }}"),
            ("{{ .Subscriber.Attribs.home.city }}", "{{ contact.attributes.home.city }}"),
            ("{{ index .Subscriber.Attribs \"shoe-size\" }}", "{{ contact.attributes['shoe-size'] }}"),
            (
                "{{ .Subscriber.FirstName | default \"there\" }}",
                "{{ contact.attributes.first_name | default('there', true) }}",
            ),
            ("{{ default \"x\" .Tx.Data.name | upper }}", "{{ (name | default('x', true)) | upper }}"),
            ("<a href=\"{{ UnsubscribeURL }}\">", "<a href=\"{{ unsubscribe_url }}\">"),
            ("<a href=\"{{ UnsubscribeURL . }}\">", "<a href=\"{{ unsubscribe_url }}\">"),
            (
                "<a href=\"{{ TrackLink \"https://a.example/?a=1&b=2\" . }}\">",
                "<a href=\"https://a.example/?a=1&b=2\">",
            ),
            ("<a href=\"https://a.example@TrackLink\">", "<a href=\"https://a.example\">"),
            ("a{{ TrackView }}b", "ab"),
            ("a {{- /* no }} more */ -}} b", "a {#-  -#} b"),
            (
                "{{ if .Tx.Data.paid }}a{{ else if gt .Tx.Data.n 3 }}b{{ else }}c{{ end }}",
                "{% if paid %}a{% elif n > 3 %}b{% else %}c{% endif %}",
            ),
            (
                "{{ if and (eq .Tx.Data.a \"x\" \"y\") (not .Tx.Data.b) }}z{{end}}",
                "{% if (a == 'x' or a == 'y') and (not b) %}z{% endif %}",
            ),
            (
                "{{ range .Tx.Data.items }}{{ .name }}: {{ . }}{{ else }}none{{ end }}",
                "{% for element_1 in items %}{{ element_1.name }}: {{ element_1 }}{% else %}none{% endfor %}",
            ),
            (
                "{{ range $i, $x := .Tx.Data.items }}{{ $i }}{{ $x.sku }}{{ $.Subscriber.Email }}{{ end }}",
                "{% for element_1 in items %}{{ loop.index0 }}{{ element_1.sku }}{{ contact.email }}{% endfor %}",
            ),
            (
                "{{ with .Subscriber.Attribs.shop }}{{ .name }}{{ end }}",
                "{% if contact.attributes.shop %}{{ contact.attributes.shop.name }}{% endif %}",
            ),
            ("{{ template \"content\" . }}", "{{ content | safe }}"),
            ("{{ Safe \"<!-- a -->\" }}", "<!-- a -->"),
            ("{{ L.T \"email.unsub\" }} {{ L.T \"email.hello\" }}", "Unsubscribe Hello"),
            ("body{#x{a:b}}", "body{{ '{#' }}x{a:b}}"),
        ] {
            assert_eq!(read(source).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (source, expected) in [
            ("a\nb {{ now | date \"2006\" }}", "line 2: {{ now | date \"2006\" }}: now is not understood"),
            ("{{ .Subscriber.Status }}", "line 1: {{ .Subscriber.Status }}: is nothing that a template here knows"),
            ("{{ if .Tx.Data.x }}", "line 1: {{ end }} is missing"),
            ("{{ end }}", "line 1: {{ end }}: closes nothing"),
            ("{{ $x := 3 }}", "line 1: {{ $x := 3 }}: is not understood"),
            ("{{ .Tx.Data.contact }}", "line 1: {{ .Tx.Data.contact }}: has a name that no variable can have"),
            ("{{ template \"footer\" . }}", "line 1: {{ template \"footer\" . }}: other templates cannot be named"),
            ("{{ MessageURL }}", "line 1: {{ MessageURL }}: MessageURL is not understood"),
            ("\n\n{{ x", "line 3: {{ is not closed"),
            (
                "{{ L.T \"x.y\" }}",
                "line 1: {{ L.T \"x.y\" }}: listmonk's own phrase is not known; give it by --set 'x.y=…'",
            ),
        ] {
            assert_eq!(read(source), Err(expected.to_owned()), "{source}");
        }
    }
}
