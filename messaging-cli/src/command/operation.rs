//! One row of the operations as a clap command.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, Command};
use messaging_core::domain::provider;
use messaging_core::scope::Access;
use messaging_engine::ops::{self, BodyKind, Endpoint};
use serde_json::{Number, Value};

use crate::arguments;
use crate::files;
use crate::members::{self, Kind, Member};

/// The operation whose words a command line named.
pub(crate) fn endpoint(words: &[&str]) -> Option<&'static Endpoint> {
    ops::all().iter().find(|endpoint| endpoint.cli.split(' ').eq(words.iter().copied()))
}

/// Which part of a request a flag belongs to; the prefix of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Path,
    Query,
    Body,
}

impl Part {
    /// The id of a member's argument.
    pub(crate) fn id(self, member: &str) -> String {
        let prefix = match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Body => "body",
        };
        format!("{prefix}.{member}")
    }
}

/// The member of a query that says where a page begins.
pub(crate) const CURSOR: &str = "cursor";

/// The member of a body that holds HTML.
pub(crate) const HTML: &str = "html";

/// Members that hold texts which people keep in files.
const TEXTS_OF_FILES: &[&str] = &[HTML, "mjml", "text"];

/// Whether an operation lists in pages.
pub(crate) fn is_listing(endpoint: &Endpoint) -> bool {
    (endpoint.method)() == http::Method::GET && members::of_query(endpoint).iter().any(|member| member.name == CURSOR)
}

/// The command of an operation.
pub(crate) fn command(word: &'static str, endpoint: &Endpoint) -> Command {
    let mut command = Command::new(word).about(endpoint.summary).after_help(after_help(endpoint));
    for member in members::of_path(endpoint) {
        command = command.arg(positional(&member));
    }
    let noun = endpoint.cli.split(' ').next().unwrap_or_default();
    let mut longs = HashSet::new();
    for member in members::of_query(endpoint) {
        let is_cursor = is_listing(endpoint) && member.name == CURSOR;
        command = command.arg(flag(Part::Query, &member, noun, &mut longs));
        if is_cursor {
            command = command.arg(arguments::all().conflicts_with(Part::Query.id(CURSOR)));
        }
    }
    for member in members::of_body(endpoint) {
        command = command.arg(flag(Part::Body, &member, noun, &mut longs));
        if member.name == HTML {
            command = command.arg(arguments::html_file().conflicts_with(Part::Body.id(HTML)));
        }
    }
    if endpoint.body != BodyKind::None {
        command = command.arg(json_body()).arg(arguments::example());
    }
    if (endpoint.method)() == http::Method::DELETE {
        command = command.arg(arguments::yes());
    }
    if (endpoint.method)() != http::Method::GET {
        command = command.arg(idempotency_key());
    }
    command.args(arguments::target()).arg(arguments::json())
}

/// What stands below the flags: the request, and what no flag has room for.
fn after_help(endpoint: &Endpoint) -> String {
    if endpoint.id == SET_CHANNEL {
        return format!(
            "What --config takes, by channel and provider:\n{}\n{}",
            provider::described(),
            route(endpoint)
        );
    }
    route(endpoint)
}

/// The operation whose body depends on the provider.
const SET_CHANNEL: &str = <ops::channels::SetChannel as ops::Operation>::ID;

/// The request behind a command, for those who know the API.
pub(crate) fn route(endpoint: &Endpoint) -> String {
    format!("Request: {} {} ({})", (endpoint.method)(), endpoint.path, access(endpoint.access))
}

fn positional(member: &Member) -> Arg {
    let arg = Arg::new(Part::Path.id(&member.name)).value_name(member.name.to_uppercase()).required(true);
    let arg = match &member.kind {
        Kind::Choice(choices) => arg.value_parser(PossibleValuesParser::new(choices)),
        _ => arg,
    };
    arg.help(member.help.clone().unwrap_or_default())
}

fn flag(part: Part, member: &Member, noun: &str, longs: &mut HashSet<String>) -> Arg {
    let long = long_name(&member.name, noun, longs);
    let singular = match &member.kind {
        Kind::Texts | Kind::Choices(_) => singular(&long, longs),
        _ => None,
    };
    let mut arg = Arg::new(part.id(&member.name)).long(long).help(help(part, member)).allow_negative_numbers(true);
    arg = match part {
        Part::Body => arg.help_heading("Body"),
        Part::Path | Part::Query => arg.help_heading("Query"),
    };
    if let Some(singular) = singular {
        arg = arg.visible_alias(singular);
    }
    match &member.kind {
        Kind::Text if part == Part::Body && TEXTS_OF_FILES.contains(&member.name.as_str()) => {
            arg.value_name("TEXT").allow_hyphen_values(true).value_parser(ValueParser::new(text_or_file))
        }
        Kind::Text => arg.value_name("TEXT").allow_hyphen_values(true),
        Kind::Time if part == Part::Query => {
            arg.value_name("TIME").value_parser(ValueParser::new(arguments::time_or_age))
        }
        Kind::Time => arg.value_name("TIME"),
        Kind::Choice(choices) => arg.value_name("WORD").value_parser(PossibleValuesParser::new(choices)),
        Kind::Number { whole } => {
            let whole = *whole;
            arg.value_name("N").value_parser(ValueParser::new(move |text: &str| number(text, whole)))
        }
        Kind::Boolean => arg
            .value_name("BOOL")
            .num_args(0..=1)
            // Where it follows without a sign it was joined before, see `boolean_flags`.
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(clap::value_parser!(bool)),
        Kind::Texts => arg.value_name("TEXT,…").value_delimiter(',').action(ArgAction::Append),
        Kind::Choices(choices) => arg
            .value_name("WORD,…")
            .value_delimiter(',')
            .action(ArgAction::Append)
            .value_parser(PossibleValuesParser::new(choices)),
        Kind::Json => arg.value_name("JSON").allow_hyphen_values(true).value_parser(ValueParser::new(json)),
    }
}

/// The flag of a member. One whose name is a shared argument's gets the noun before it: a webhook's `url` is
/// `--webhook-url`, because `--url` is the server.
fn long_name(member: &str, noun: &str, longs: &mut HashSet<String>) -> String {
    let plain = member.replace('_', "-");
    let noun = noun.replace('_', "-");
    let candidates = [plain.clone(), format!("{noun}-{plain}"), format!("body-{plain}")];
    let free = candidates.into_iter().find(|long| !arguments::is_taken(long) && !longs.contains(long));
    let long = free.unwrap_or(plain);
    longs.insert(long.clone());
    long
}

/// `tag` for `tags`, so that the flag reads well when it is repeated.
fn singular(long: &str, longs: &mut HashSet<String>) -> Option<String> {
    // Not `addresse` or `propertie`.
    let is_word = |rest: &&str| !["s", "sse", "xe", "che", "she", "ie"].iter().any(|end| rest.ends_with(end));
    let singular = long.strip_suffix('s').filter(is_word)?;
    if arguments::is_taken(singular) || !longs.insert(singular.to_owned()) {
        return None;
    }
    Some(singular.to_owned())
}

fn help(part: Part, member: &Member) -> String {
    let mut help = member.help.clone().unwrap_or_default();
    let mut add = |text: &str| {
        if !help.is_empty() {
            help.push(' ');
        }
        help.push_str(text);
    };
    if TEXTS_OF_FILES.contains(&member.name.as_str()) || member.kind == Kind::Json {
        add("(`@FILE` reads it from a file)");
    }
    if member.kind == Kind::Time && part == Part::Query {
        add("(or how long ago that was: 90m, 36h, 7d)");
    }
    if member.required {
        add("[required]");
    }
    if let Some(default) = &member.default {
        add(&format!("[default: {default}]"));
    }
    help
}

fn json_body() -> Arg {
    Arg::new(arguments::JSON_BODY)
        .long("json-body")
        .value_name("FILE")
        .help_heading("Body")
        .help("Read the body as JSON from a file, or with `-` from standard input; flags replace members")
}

fn idempotency_key() -> Arg {
    Arg::new(arguments::IDEMPOTENCY_KEY)
        .long("idempotency-key")
        .value_name("KEY")
        .help_heading("Request")
        .help("A repeat with the same key within 24 hours answers like the first and does nothing")
}

fn number(text: &str, whole: bool) -> Result<Value, String> {
    let number: Number = serde_json::from_str(text.trim_start_matches('+')).map_err(|_| "not a number".to_owned())?;
    if whole && !(number.is_i64() || number.is_u64()) {
        return Err("not a whole number".to_owned());
    }
    Ok(Value::Number(number))
}

/// A JSON value, or after an `@` the file that holds it. No JSON begins with that sign.
fn json(text: &str) -> Result<Value, String> {
    let text = match text.strip_prefix('@') {
        Some(file) => Cow::Owned(read_file(file)?),
        None => Cow::Borrowed(text),
    };
    serde_json::from_str(&text).map_err(|error| format!("not JSON: {error}"))
}

/// A text, or after an `@` the file that holds it; a text that begins with that sign is written with two.
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

/// The flags of a command tree that are booleans, `--name`.
fn boolean_flags(command: &Command, found: &mut HashSet<String>) {
    let booleans =
        command.get_arguments().filter(|arg| arg.is_require_equals_set() && arg.get_num_args() == Some((0..=1).into()));
    found.extend(booleans.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")));
    for next in command.get_subcommands() {
        boolean_flags(next, found);
    }
}

/// A command line in which `--flag false` is written as `--flag=false`, where the flag is a boolean: for the parser the
/// word after a flag whose value may be left out is an argument of its own.
pub(crate) fn with_joined_booleans(command: &Command, line: Vec<OsString>) -> Vec<OsString> {
    let is_value = |word: &OsString| word == "true" || word == "false";
    if !line.iter().any(is_value) {
        return line;
    }
    let mut booleans = HashSet::new();
    boolean_flags(command, &mut booleans);
    let mut joined: Vec<OsString> = Vec::with_capacity(line.len());
    let mut is_over = false;
    for word in line {
        let is_flag = |last: &OsString| last.to_str().is_some_and(|last| booleans.contains(last));
        if !is_over
            && is_value(&word)
            && let Some(last) = joined.last_mut().filter(|last| is_flag(last))
        {
            last.push("=");
            last.push(word);
            continue;
        }
        is_over |= word == "--";
        joined.push(word);
    }
    joined
}

/// What the caller needs, in words.
fn access(access: Access) -> String {
    match access {
        Access::Public => "no credentials".to_owned(),
        Access::AnyCredential => "any API key or session".to_owned(),
        Access::Scope(scope) => format!("scope {scope}"),
        Access::Scopes(first, second) => format!("scopes {first} and {second}"),
        Access::Session => "session token".to_owned(),
        Access::Operator => "session token of an operator (messaging admin set-operator)".to_owned(),
        Access::SessionRole(least) => format!("session token with role {} or higher", role(least)),
        Access::Administration => "scope *, or a session token with role admin".to_owned(),
    }
}

fn role(role: messaging_core::scope::Role) -> String {
    serde_json::to_value(role).ok().and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_give_way_to_shared_arguments() {
        let mut longs = HashSet::new();
        let mut long = |member: &str, noun: &str| long_name(member, noun, &mut longs);
        assert_eq!(long("url", "webhook"), "webhook-url");
        assert_eq!(long("from_email", "message"), "from-email");
        assert_eq!(long("data", "event"), "event-data");
        // In the query and in the body.
        assert_eq!(long("limit", "segment"), "limit");
        assert_eq!(long("limit", "segment"), "segment-limit");
    }

    #[test]
    fn lists_may_be_given_one_by_one() {
        let singular = |long: &str| singular(long, &mut HashSet::new());
        assert_eq!(singular("tags").as_deref(), Some("tag"));
        assert_eq!(singular("scopes").as_deref(), Some("scope"));
        for long in ["cc", "addresses", "properties", "access", "urls"] {
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
}
