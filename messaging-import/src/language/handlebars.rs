//! Translates Handlebars templates of SendGrid.

use super::{Expression, Fault, Known, MAX_DEPTH, Translated, is_name, line_of, push_literal, quoted, shown, variable};

/// Tags of SendGrid for the unsubscribe link.
const UNSUBSCRIBE: [&str; 3] = ["unsubscribe", "unsubscribe_preferences", "unsubscribe_url"];

/// Tags for that link in SendGrid's older syntax.
const OLD_UNSUBSCRIBE: [&str; 5] = [
    "<%asm_group_unsubscribe_raw_url%>",
    "<%asm_global_unsubscribe_raw_url%>",
    "<%asm_preferences_raw_url%>",
    "[unsubscribe]",
    "[Unsubscribe]",
];

/// Names that SendGrid fills in, but this project does not.
const THEIRS: [&str; 7] =
    ["Sender_Name", "Sender_Address", "Sender_City", "Sender_State", "Sender_Zip", "Sender_Country", "weblink"];

/// Helpers that compare two values, with the operator of Jinja.
const COMPARISONS: [(&str, &str); 6] =
    [("equals", "=="), ("notEquals", "!="), ("greaterThan", ">"), ("lessThan", "<"), ("and", "and"), ("or", "or")];

/// Translates a part of a template.
pub(crate) fn translate(source: &str, known: Known<'_>) -> Result<Translated, Fault> {
    let mut work = Work { known, out: Translated::default(), blocks: Vec::new() };
    let mut at = 0;
    while let Some(start) = source[at..].find("{{").map(|found| at + found) {
        let place = |what: String, at: usize| Fault { line: line_of(source, at), what };
        work.text(&source[at..start]).map_err(|what| place(what, at))?;
        let rest = &source[start..];
        let (open, close) = if rest.starts_with("{{!--") {
            ("{{!--", "--}}")
        } else if rest.starts_with("{{{") {
            ("{{{", "}}}")
        } else {
            ("{{", "}}")
        };
        let end = rest[open.len()..].find(close).map(|found| open.len() + found);
        let end = end.ok_or_else(|| place(format!("{open} is not closed"), start))?;
        at = start + end + close.len();
        let tag = match open {
            "{{!--" => "!",
            _ => &rest[open.len()..end],
        };
        let done = work.tag(tag, open == "{{{");
        done.map_err(|why| place(format!("{}: {why}", shown(&source[start..at])), start))?;
    }
    work.text(&source[at..]).map_err(|what| Fault { line: line_of(source, at), what })?;
    match work.blocks.last() {
        None => Ok(work.out),
        Some(block) => {
            Err(Fault { line: line_of(source, source.len()), what: format!("{{{{/{}}}}} is missing", block.helper) })
        }
    }
}

struct Block {
    /// The helper that closes the block.
    helper: String,
    /// Jinja's name for `this` inside of a loop.
    item: Option<String>,
    /// True if the other branch has begun.
    is_other: bool,
    /// Tags that close the conditions of `{{else if}}` in the block.
    closes: &'static str,
}

struct Work<'a> {
    known: Known<'a>,
    out: Translated,
    blocks: Vec<Block>,
}

impl Work<'_> {
    fn text(&mut self, text: &str) -> Result<(), String> {
        let mut rest = text;
        while let Some((at, tag)) =
            OLD_UNSUBSCRIBE.iter().filter_map(|tag| rest.find(tag).map(|at| (at, *tag))).min_by_key(|(at, _)| *at)
        {
            push_literal(&mut self.out.text, refuse_old(&rest[..at])?);
            self.out.text.push_str("{{ unsubscribe_url }}");
            rest = &rest[at + tag.len()..];
        }
        push_literal(&mut self.out.text, refuse_old(rest)?);
        Ok(())
    }

    fn put(&mut self, trims: (bool, bool), open: &str, code: &str, close: &str) {
        let mark = |trim| if trim { "-" } else { "" };
        let code = format!("{open}{} {code} {}{close}", mark(trims.0), mark(trims.1));
        self.out.text.push_str(&code);
    }

    fn tag(&mut self, tag: &str, is_raw: bool) -> Result<(), String> {
        let trims = (tag.starts_with('~'), tag.ends_with('~'));
        let tag = tag.trim_matches('~').trim();
        if tag.starts_with('!') {
            if trims != (false, false) {
                self.put(trims, "{#", "", "#}");
            }
            return Ok(());
        }
        if let Some(word) = tag.strip_prefix('/') {
            return self.end(trims, word.trim());
        }
        if let Some(block) = tag.strip_prefix('#') {
            return self.begin(trims, block.trim());
        }
        if tag == "else" || tag == "^" {
            return self.otherwise(trims, "");
        }
        if let Some(rest) = tag.strip_prefix("else ") {
            return self.otherwise(trims, rest.trim());
        }
        let (tag, is_raw) = tag.strip_prefix('&').map_or((tag, is_raw), |rest| (rest.trim(), true));
        if tag.starts_with(['>', '^']) {
            return Err("is not understood".to_owned());
        }
        if let Some(given) = self.known.given.get(tag) {
            push_literal(&mut self.out.text, given);
            return Ok(());
        }
        let value = self.value(tag)?;
        let value = if is_raw && value.code() != "unsubscribe_url" { value.through("safe") } else { value };
        self.put(trims, "{{", &value.code(), "}}");
        Ok(())
    }

    /// Translates `insert name "default=there"`, `length items`, or a name.
    fn value(&self, tag: &str) -> Result<Expression, String> {
        let words = words(tag)?;
        match words.as_slice() {
            [one] => self.operand(one),
            [helper, name] if helper == "insert" => self.operand(name),
            [helper, name, default] if helper == "insert" => {
                let default = unquoted(default).and_then(|text| text.strip_prefix("default=").map(ToOwned::to_owned));
                let default = default.ok_or("has a default that is not understood")?;
                Ok(self.operand(name)?.through(&format!("default({}, true)", quoted(&default))))
            }
            [helper, name] if helper == "length" => Ok(self.operand(name)?.through("length")),
            [helper, ..] => Err(format!("{helper} is not understood")),
            [] => Err("is empty".to_owned()),
        }
    }

    fn condition(&self, helper: &str, words: &[String]) -> Result<String, String> {
        if let Some((_, operator)) = COMPARISONS.iter().find(|(name, _)| *name == helper) {
            let [one, other] = words else { return Err(format!("{helper} takes two values")) };
            return Ok(self.operand(one)?.with(operator, &self.operand(other)?).code());
        }
        match (helper, words) {
            ("if", [one]) => Ok(self.operand(one)?.code()),
            ("unless", [one]) => Ok(format!("not {}", self.operand(one)?.operand())),
            _ => Err(format!("{helper} is not understood")),
        }
    }

    fn begin(&mut self, trims: (bool, bool), block: &str) -> Result<(), String> {
        if self.blocks.len() >= MAX_DEPTH {
            return Err("is nested too deep".to_owned());
        }
        let words = words(block)?;
        let (helper, words) = words.split_first().ok_or("is empty")?;
        if helper == "each" {
            let [over] = words else { return Err("is not understood".to_owned()) };
            let over = self.operand(over)?.operand();
            let item = format!("element_{}", 1 + self.blocks.iter().filter(|block| block.closes == "endfor").count());
            self.put(trims, "{%", &format!("for {item} in {over}"), "%}");
            self.blocks.push(Block { helper: helper.clone(), item: Some(item), is_other: false, closes: "endfor" });
            return Ok(());
        }
        let condition = self.condition(helper, words)?;
        self.put(trims, "{%", &format!("if {condition}"), "%}");
        self.blocks.push(Block { helper: helper.clone(), item: None, is_other: false, closes: "endif" });
        Ok(())
    }

    fn otherwise(&mut self, trims: (bool, bool), rest: &str) -> Result<(), String> {
        let block = self.blocks.last().ok_or("belongs to nothing")?;
        if block.is_other {
            return Err("is the second one".to_owned());
        }
        if rest.is_empty() {
            if let Some(block) = self.blocks.last_mut() {
                block.is_other = true;
                block.item = None;
            }
            self.put(trims, "{%", "else", "%}");
            return Ok(());
        }
        if block.closes != "endif" {
            return Err("is not understood here".to_owned());
        }
        let words = words(rest)?;
        let (helper, words) = words.split_first().ok_or("is empty")?;
        let condition = self.condition(helper, words)?;
        self.put(trims, "{%", &format!("elif {condition}"), "%}");
        Ok(())
    }

    fn end(&mut self, trims: (bool, bool), word: &str) -> Result<(), String> {
        match self.blocks.pop() {
            Some(block) if block.helper == word => {
                self.put(trims, "{%", block.closes, "%}");
                Ok(())
            }
            Some(block) => Err(format!("closes {}", block.helper)),
            None => Err("closes nothing".to_owned()),
        }
    }

    fn operand(&self, word: &str) -> Result<Expression, String> {
        if let Some(text) = unquoted(word) {
            return Ok(Expression::Literal(text));
        }
        if word.parse::<f64>().is_ok() || ["true", "false"].contains(&word) {
            return Ok(Expression::Atom(word.to_owned()));
        }
        let (mut scopes, mut path) = (self.blocks.iter().filter_map(|block| block.item.as_deref()).rev(), word);
        let mut scope = scopes.next();
        if let Some(name) = path.strip_prefix("@root.") {
            (scope, path) = (None, name);
        } else if let Some(name) = path.strip_prefix('@') {
            let known = [("index", "loop.index0"), ("first", "loop.first"), ("last", "loop.last")];
            let known = known.iter().find(|(known, _)| scope.is_some() && *known == name);
            let (_, code) = known.ok_or("is not understood here")?;
            return Ok(Expression::Atom((*code).to_owned()));
        }
        while let Some(outer) = path.strip_prefix("../") {
            scope.ok_or("has no outer values here")?;
            (scope, path) = (scopes.next(), outer);
        }
        let names: Vec<_> = match path {
            "this" | "." => Vec::new(),
            path => path.strip_prefix("this.").unwrap_or(path).split('.').collect(),
        };
        if !names.iter().all(|name| is_name(name)) {
            return Err("is not understood".to_owned());
        }
        match (scope, names.as_slice()) {
            (Some(scope), names) => {
                Ok(Expression::Atom([scope].iter().chain(names).copied().collect::<Vec<_>>().join(".")))
            }
            (None, [name]) if UNSUBSCRIBE.contains(name) => Ok(Expression::Atom("unsubscribe_url".to_owned())),
            (None, [name]) if THEIRS.contains(name) => {
                Err(format!("only SendGrid knows it; give it by --set '{name}=…'"))
            }
            // In a design it is the contact's email, in other templates a variable.
            (None, ["email"]) => Ok(Expression::Compound("email or contact.email".to_owned())),
            (None, []) => Err("is not understood here".to_owned()),
            (None, names) => variable(names).ok_or_else(|| "has a name that no variable can have".to_owned()),
        }
    }
}

/// Refuses tags of the older syntax.
fn refuse_old(text: &str) -> Result<&str, String> {
    match text.find("<%") {
        Some(at) => {
            Err(format!("{}: is not understood", shown(text[at..].split_inclusive("%>").next().unwrap_or("<%"))))
        }
        None => Ok(text),
    }
}

/// Returns the words of a tag; quoted texts keep their quotation marks.
fn words(tag: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = tag.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if matches!(first, '"' | '\'') {
            rest[1..].find(first).ok_or("has a text that is not closed")? + 2
        } else {
            rest.find(char::is_whitespace).unwrap_or(rest.len())
        };
        words.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    Ok(words)
}

fn unquoted(word: &str) -> Option<String> {
    ['"', '\''].iter().find_map(|mark| {
        let inner = word.strip_prefix(*mark)?.strip_suffix(*mark)?;
        Some(inner.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(source: &str) -> Result<String, String> {
        let given = BTreeMap::from([("Sender_City".to_owned(), "Oslo".to_owned())]);
        let read = translate(source, Known { given: &given, attributes: None });
        read.map(|translated| translated.text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_people_write_becomes_jinja() {
        for (source, expected) in [
            ("Hi {{first_name}}, {{{ html }}} {{& more}}", "Hi {{ first_name }}, {{ html | safe }} {{ more | safe }}"),
            ("{{user.address.city}}", "{{ user.address.city }}"),
            ("{{insert name \"default=dear customer\"}}", "{{ name | default('dear customer', true) }}"),
            ("{{email}}", "{{ email or contact.email }}"),
            ("<a href=\"{{{unsubscribe}}}\">", "<a href=\"{{ unsubscribe_url }}\">"),
            ("<a href=\"<%asm_group_unsubscribe_raw_url%>\">", "<a href=\"{{ unsubscribe_url }}\">"),
            ("{{!-- {{no}} --}}a{{! b }}c", "ac"),
            ("{{#if a}}1{{else if b}}2{{else}}3{{/if}}", "{% if a %}1{% elif b %}2{% else %}3{% endif %}"),
            ("{{#unless a.b}}1{{/unless}}", "{% if not a.b %}1{% endif %}"),
            ("{{#equals plan \"it's\"}}1{{/equals}}", "{% if plan == 'it\\'s' %}1{% endif %}"),
            ("{{#greaterThan n 3}}1{{else}}2{{/greaterThan}}", "{% if n > 3 %}1{% else %}2{% endif %}"),
            ("{{#and a b}}1{{/and}}", "{% if a and b %}1{% endif %}"),
            (
                "{{#each items}}{{@index}} {{this.name}} {{price}} {{../total}} {{@root.x}}{{else}}{{none}}{{/each}}",
                "{% for element_1 in items %}{{ loop.index0 }} {{ element_1.name }} {{ element_1.price }} {{ total }} \
                 {{ x }}{% else %}{% NONE %}{% endfor %}",
            ),
            (
                "{{#each a}}{{#each this.b}}{{this}}{{../c}}{{/each}}{{/each}}",
                "{% for element_1 in a %}{% for element_2 in element_1.b %}{{ element_2 }}{{ element_1.c }}{% endfor %}{% endfor %}",
            ),
            ("{{length items}} {{~ x ~}} y", "{{ items | length }} {{- x -}} y"),
            ("{{Sender_City}}", "Oslo"),
        ] {
            let source = source.replace("{{none}}", "-");
            let expected = expected.replace("{% NONE %}", "-");
            assert_eq!(read(&source), Ok(expected), "{source}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (source, expected) in [
            ("\n{{formatDate at \"DD\"}}", "line 2: {{formatDate at \"DD\"}}: formatDate is not understood"),
            ("{{> footer}}", "line 1: {{> footer}}: is not understood"),
            ("{{first-name}}", "line 1: {{first-name}}: is not understood"),
            ("{{#if a}}", "line 1: {{/if}} is missing"),
            ("{{#if a}}{{/each}}", "line 1: {{/each}}: closes if"),
            ("{{/if}}", "line 1: {{/if}}: closes nothing"),
            ("{{else}}", "line 1: {{else}}: belongs to nothing"),
            ("{{ x", "line 1: {{ is not closed"),
            ("{{Sender_Name}}", "line 1: {{Sender_Name}}: only SendGrid knows it; give it by --set 'Sender_Name=…'"),
            ("{{campaign}}", "line 1: {{campaign}}: has a name that no variable can have"),
            ("{{@index}}", "line 1: {{@index}}: is not understood here"),
            ("a <%body%>", "line 1: <%body%>: is not understood"),
        ] {
            assert_eq!(read(source), Err(expected.to_owned()), "{source}");
        }
    }
}
