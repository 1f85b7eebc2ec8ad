//! Limits on a template's source before a parser sees it.
//!
//! The parser of the template language, the compiler behind it, and the readers of MJML and CSS recurse for nested
//! input, so a deeply nested source would end the process. The tokenizer does not, and its tokens are counted here. The
//! limits are far above what people write.

use minijinja::machinery::{Span, Token, tokenize};

use super::fault::{Fault, Position};

/// Maximum size of the source of one part, in bytes.
pub const MAX_SOURCE: usize = 2 << 20;
/// Maximum number of tokens of one tag.
const MAX_TAG_TOKENS: usize = 1000;
/// Maximum nesting depth of brackets.
const MAX_BRACKETS: usize = 32;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 128;
/// Maximum length of a text constant, in characters.
const MAX_TEXT: usize = 16 << 10;
/// Maximum number of tags of one part.
const MAX_TAGS: usize = 20_000;
/// Maximum number of branches of all conditions: each is compiled inside the one before.
const MAX_BRANCHES: usize = 300;
/// Maximum nesting depth of blocks.
const MAX_BLOCKS: usize = 32;
/// Maximum number of signs and negations of one tag.
const MAX_SIGNS: usize = 100;
/// Maximum number of operators, filters and look-ups of one tag: each is compiled inside the next.
const MAX_STEPS: usize = 300;

/// Statements that would load other templates.
const ABSENT: [&str; 5] = ["include", "import", "from", "extends", "block"];

/// A source as its tokens.
#[derive(Debug)]
pub struct Tokens<'a> {
    /// The tokens with their positions; none for the text between tags.
    pub tokens: Vec<(Token<'a>, Span)>,
    /// Ranges of text. Everything else is tags, comments, and space that they strip.
    pub text: Vec<std::ops::Range<usize>>,
}

/// Splits a source into tokens and refuses one beyond the limits.
pub fn tokens(source: &str) -> Result<Tokens<'_>, Fault> {
    if source.len() > MAX_SOURCE {
        return Err(Fault::limit(None, "is longer than 2 MiB"));
    }
    let mut found = Tokens { tokens: Vec::new(), text: Vec::new() };
    let mut counts = Counts::default();
    for token in tokenize(source, false, minijinja::syntax::SyntaxConfig::default()) {
        let (token, span) = token.map_err(|error| Fault::of_engine(&error, source))?;
        let range = span.start_offset as usize..span.end_offset as usize;
        if let Token::TemplateData(_) = token {
            found.text.push(range);
            continue;
        }
        let at = || Some(Position::of(source, range.start));
        counts.see(&token, found.tokens.last().map(|(token, _)| token)).map_err(|rule| Fault::limit(at(), rule))?;
        found.tokens.push((token, span));
    }
    Ok(found)
}

#[derive(Default)]
struct Counts {
    tags: usize,
    tokens: usize,
    brackets: usize,
    signs: usize,
    steps: usize,
    branches: usize,
    blocks: usize,
}

impl Counts {
    fn see(&mut self, token: &Token<'_>, before: Option<&Token<'_>>) -> Result<(), &'static str> {
        self.tokens += 1;
        match token {
            Token::VariableStart | Token::BlockStart => {
                self.tags += 1;
                (self.tokens, self.brackets, self.signs, self.steps) = (0, 0, 0, 0);
            }
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                self.brackets += 1;
                self.steps += 1;
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.brackets = self.brackets.saturating_sub(1);
            }
            Token::Ident(name) => self.name(name, matches!(before, Some(Token::BlockStart)))?,
            Token::Minus | Token::Plus => (self.signs, self.steps) = (self.signs + 1, self.steps + 1),
            Token::Str(text) if text.len() > MAX_TEXT => return Err("has a text constant of more than 16 KiB"),
            Token::String(text) if text.len() > MAX_TEXT => return Err("has a text constant of more than 16 KiB"),
            Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Comma
            | Token::Colon
            | Token::Assign
            | Token::TemplateData(_)
            | Token::VariableEnd
            | Token::BlockEnd => {}
            _ => self.steps += 1,
        }
        let rules = [
            (self.tags > MAX_TAGS, "has more than 20000 tags"),
            (self.tokens > MAX_TAG_TOKENS, "has a tag of more than 1000 words and signs"),
            (self.brackets > MAX_BRACKETS, "has brackets nested more than 32 deep"),
            (self.signs > MAX_SIGNS, "has more than 100 signs in one tag"),
            (self.steps > MAX_STEPS, "has more than 300 operators, filters and look-ups in one tag"),
            (self.branches > MAX_BRANCHES, "has more than 300 elif branches"),
            (self.blocks > MAX_BLOCKS, "has blocks nested more than 32 deep"),
        ];
        rules.iter().find(|(is_broken, _)| *is_broken).map_or(Ok(()), |(_, rule)| Err(rule))
    }

    fn name(&mut self, name: &str, is_statement: bool) -> Result<(), &'static str> {
        if name.len() > MAX_NAME {
            return Err("has a name of more than 128 characters");
        }
        if name.starts_with("_guard_") {
            return Err("uses a name that begins with _guard_");
        }
        if !is_statement {
            // Words that are operators, and `recursive`, which only a loop can have at its end.
            if matches!(name, "not" | "and" | "or" | "in" | "is" | "if") {
                self.steps += 1;
            }
            if name == "not" {
                self.signs += 1;
            }
            return Ok(());
        }
        if ABSENT.contains(&name) {
            return Err("other templates cannot be included, imported or extended");
        }
        match name {
            "elif" => self.branches += 1,
            "for" | "if" | "with" | "filter" | "macro" | "call" | "autoescape" => self.blocks += 1,
            _ if name.starts_with("end") && name != "endset" => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }
}
