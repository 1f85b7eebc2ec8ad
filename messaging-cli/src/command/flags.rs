//! The members of an operation's path, query and body as arguments.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _, ValueParser};
use clap::{Arg, ArgAction};
use serde_json::{Number, Value};

use super::part::{HTML, Part};
use super::spoken::in_commands;
use crate::arguments;
use crate::files;
use crate::members::{Kind, Member};
use crate::names;

/// Members whose texts people keep in files, so that `@FILE` reads them.
const TEXTS_OF_FILES: &[&str] = &[HTML, "mjml", "text"];

/// Name of the member with the values for templates, and name of its flag.
const VARIABLES: (&str, &str) = ("variables", "vars");

/// Members with a time in the future: their flags refuse a duration without `+`, which is a time in the past.
const AHEAD: &[&str] = &["send_at", "expires_at", "at", "until"];

/// Pairs of words with one meaning: the state of a message, and the event that reports it.
const SYNONYMS: [(&str, &str); 5] = [
    ("bounced", "bounce"),
    ("complained", "complaint"),
    ("opened", "open"),
    ("clicked", "click"),
    ("unsubscribed", "unsubscribe"),
];

/// Long names that flags of a command have, and reserved names of its members.
pub(super) struct Longs(HashSet<String>);

impl Longs {
    /// Reserves the names of the members: no other flag may take them.
    pub(super) fn of<'a>(members: impl Iterator<Item = &'a Member>) -> Self {
        Self(members.map(|member| format!("{RESERVED}{}", plain(&member.name))).collect())
    }

    /// Takes a name if it is free; returns false if it is not.
    fn take(&mut self, long: &str) -> bool {
        !arguments::is_taken(long) && self.0.insert(long.to_owned())
    }

    /// Takes an alias of a flag if it is free and not the name of a member; returns false otherwise.
    fn take_alias(&mut self, long: &str) -> bool {
        !self.0.contains(&format!("{RESERVED}{long}")) && self.take(long)
    }
}

/// Prefix of the reserved names of members; no flag begins with it.
const RESERVED: &str = "member ";

fn plain(member: &str) -> String {
    member.replace('_', "-")
}

pub(super) fn positional(member: &Member) -> Arg {
    let arg = Arg::new(Part::Path.id(&member.name)).value_name(member.name.to_uppercase()).required(true);
    let arg = match &member.kind {
        Kind::Choice(choices) => arg.value_parser(PossibleValuesParser::new(choices)),
        _ => arg,
    };
    arg.help(member.help.clone().unwrap_or_default())
}

/// Returns the flag of a member.
pub(super) fn flag(part: Part, member: &Member, noun: &str, longs: &mut Longs) -> Arg {
    let long = long_name(&member.name, noun, longs);
    let singular = match &member.kind {
        Kind::Texts | Kind::Choices(_) => singular(&long, longs),
        _ => None,
    };
    let by_name = names::noun_of(&member.name).filter(|noun| longs.take_alias(noun));
    let mut arg = Arg::new(part.id(&member.name)).long(long).help(help(part, member)).allow_negative_numbers(true);
    arg = match part {
        Part::Body => arg.help_heading("Body"),
        Part::Path | Part::Query => arg.help_heading("Query"),
    };
    if let Some(singular) = singular {
        arg = arg.visible_alias(singular);
    }
    if let Some(noun) = by_name {
        arg = arg.visible_alias(noun);
    }
    if member.name == VARIABLES.0 {
        arg = arg.alias(VARIABLES.0);
    }
    match &member.kind {
        Kind::Text if part == Part::Body && TEXTS_OF_FILES.contains(&member.name.as_str()) => {
            arg.value_name("TEXT").allow_hyphen_values(true).value_parser(ValueParser::new(text_or_file))
        }
        Kind::Text => arg.value_name("TEXT").allow_hyphen_values(true),
        Kind::Time if is_ahead(part, member) => {
            arg.value_name("TIME").value_parser(ValueParser::new(arguments::time_ahead))
        }
        Kind::Time => arg.value_name("TIME").value_parser(ValueParser::new(arguments::time_or_age)),
        Kind::Choice(choices) => arg.value_name("WORD").value_parser(words(choices)),
        Kind::Number { whole } => {
            let whole = *whole;
            arg.value_name("N").value_parser(ValueParser::new(move |text: &str| number(text, whole)))
        }
        Kind::Boolean => arg
            .value_name("BOOL")
            .num_args(0..=1)
            // A value that follows without `=` was joined before, see `boolean_flags`.
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(clap::value_parser!(bool)),
        Kind::Texts => arg.value_name("TEXT,…").value_delimiter(',').action(ArgAction::Append),
        Kind::Choices(choices) => {
            arg.value_name("WORD,…").value_delimiter(',').action(ArgAction::Append).value_parser(words(choices))
        }
        Kind::Json => arg.value_name("JSON").allow_hyphen_values(true).value_parser(ValueParser::new(json)),
    }
}

/// Returns the long name of a member's flag. A member with the name of a shared argument or another flag gets the noun
/// as a prefix: a webhook's `url` is `--webhook-url`, because `--url` is the server. If that is taken too, the prefix
/// is `body-`.
fn long_name(member: &str, noun: &str, longs: &mut Longs) -> String {
    let (plain, noun) = (plain(if member == VARIABLES.0 { VARIABLES.1 } else { member }), plain(noun));
    let candidates = [plain.clone(), format!("{noun}-{plain}"), format!("body-{plain}")];
    candidates.into_iter().find(|long| longs.take(long)).unwrap_or(plain)
}

/// Returns the singular of a plural, `tag` for `tags`, if it is free: it reads well when the flag is repeated.
fn singular(long: &str, longs: &mut Longs) -> Option<String> {
    // Not `addresse`, `propertie` or `statu`.
    let is_word = |rest: &&str| !["s", "u", "sse", "xe", "che", "she", "ie"].iter().any(|end| rest.ends_with(end));
    let singular = long.strip_suffix('s').filter(is_word)?;
    longs.take_alias(singular).then(|| singular.to_owned())
}

fn is_ahead(part: Part, member: &Member) -> bool {
    part == Part::Body && AHEAD.contains(&member.name.as_str())
}

/// Returns a parser of one of `choices`, each of which may also be given by its synonym.
pub(crate) fn words(choices: &[String]) -> ValueParser {
    let known: Vec<_> = choices.to_vec();
    let values = choices.iter().map(|word| PossibleValue::new(word.clone()).aliases(synonym(word, choices)));
    let values: Vec<_> = values.collect();
    PossibleValuesParser::new(values)
        .map(move |word: String| {
            let is_known = known.contains(&word);
            let other = known.iter().find(|known| !is_known && synonym(known, &[]) == Some(word.as_str()));
            other.cloned().unwrap_or(word)
        })
        .into()
}

/// Returns the state that an event of this kind leads to; without a synonym, `kind` itself.
pub(crate) fn status_of(kind: &str) -> &str {
    SYNONYMS.iter().find(|(_, event)| *event == kind).map_or(kind, |(status, _)| *status)
}

/// Returns the synonym of a word, unless the synonym is a choice of its own.
fn synonym(word: &str, choices: &[String]) -> Option<&'static str> {
    let other = SYNONYMS.iter().find_map(|(one, other)| match word {
        _ if word == *one => Some(*other),
        _ if word == *other => Some(*one),
        _ => None,
    });
    other.filter(|other| !choices.iter().any(|choice| choice == other))
}

fn help(part: Part, member: &Member) -> String {
    let mut help = in_commands(member.help.as_deref().unwrap_or_default());
    let mut add = |text: &str| {
        if !help.is_empty() {
            help.push(' ');
        }
        help.push_str(text);
    };
    if TEXTS_OF_FILES.contains(&member.name.as_str()) || member.kind == Kind::Json {
        add("(`@FILE` reads it from a file)");
    }
    if member.kind == Kind::Time {
        let is_ahead = is_ahead(part, member);
        add(if is_ahead {
            "(or in how long that is: +90m, +36h, +7d)"
        } else {
            "(or how long ago that was: 90m, 36h, 7d)"
        });
    }
    if names::noun_of(&member.name).is_some() {
        add("(or its name)");
    }
    if member.required {
        add("[required]");
    }
    if let Some(default) = &member.default {
        add(&format!("[default: {default}]"));
    }
    help
}

fn number(text: &str, whole: bool) -> Result<Value, String> {
    let number: Number = serde_json::from_str(text.trim_start_matches('+')).map_err(|_| "not a number".to_owned())?;
    if whole && !(number.is_i64() || number.is_u64()) {
        return Err("not a whole number".to_owned());
    }
    Ok(Value::Number(number))
}

/// Parses a JSON value, or reads it from the file named after an `@`. No JSON begins with that sign.
pub(crate) fn json(text: &str) -> Result<Value, String> {
    let text = match text.strip_prefix('@') {
        Some(file) => Cow::Owned(read_file(file)?),
        None => Cow::Borrowed(text),
    };
    serde_json::from_str(&text).map_err(|error| format!("not JSON: {error}; a file is given as @FILE"))
}

/// Returns a text, or reads it from the file named after an `@`; a text that begins with that sign is written with two.
fn text_or_file(text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(file) => read_file(file),
        None => Ok(text.to_owned()),
    }
}

fn read_file(file: &str) -> Result<String, String> {
    files::read(Path::new(file)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_give_way_to_shared_arguments() {
        let mut longs = Longs(HashSet::new());
        let mut long = |member: &str, noun: &str| long_name(member, noun, &mut longs);
        assert_eq!(long("url", "webhook"), "webhook-url");
        assert_eq!(long("from_email", "message"), "from-email");
        assert_eq!(long("data", "event"), "event-data");
        // Once in the query and once in the body.
        assert_eq!(long("limit", "segment"), "limit");
        assert_eq!(long("limit", "segment"), "segment-limit");
    }

    #[test]
    fn lists_may_be_given_one_by_one() {
        let singular = |long: &str| singular(long, &mut Longs(HashSet::new()));
        assert_eq!(singular("tags").as_deref(), Some("tag"));
        assert_eq!(singular("scopes").as_deref(), Some("scope"));
        for long in ["cc", "addresses", "properties", "access", "urls", "status"] {
            assert_eq!(singular(long), None, "{long}");
        }
    }

    #[test]
    fn numbers_keep_their_form() {
        assert_eq!(number("+17", true).unwrap().to_string(), "17");
        assert_eq!(number("1.50", false).unwrap().to_string(), "1.5");
        assert_eq!(number("-1", true).unwrap().to_string(), "-1");
        for bad in ["1.5", "1e3", "x", "", "99999999999999999999999"] {
            assert!(number(bad, true).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_word_may_be_called_by_its_synonym() {
        let choices = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let read = |of: &[&str], word: &str| {
            let command = clap::Command::new("x").arg(Arg::new("w").value_parser(words(&choices(of))));
            let matches = command.try_get_matches_from(["x", word]).ok()?;
            matches.get_one::<String>("w").cloned()
        };
        assert_eq!(read(&["bounced", "sent"], "bounce").as_deref(), Some("bounced"));
        assert_eq!(read(&["bounce", "open"], "bounced").as_deref(), Some("bounce"));
        assert_eq!(read(&["bounce", "bounced"], "bounced").as_deref(), Some("bounced"));
        assert_eq!(read(&["sent"], "bounced"), None);
    }
}
