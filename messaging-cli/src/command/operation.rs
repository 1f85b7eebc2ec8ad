//! The clap command of an operation, made from its row in the table of operations.

use std::collections::HashSet;
use std::ffi::OsString;

use clap::{Arg, Command};
use messaging_core::domain::channel::provider;
use messaging_core::scope::Access;
use messaging_engine::ops::{self, BodyKind, Endpoint};

use super::flags::{Longs, flag, positional};
pub(crate) use super::part::{CURSOR, HTML, Part, endpoint};
use crate::arguments;
use crate::members;

/// Returns true if an operation answers pages of a listing.
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
    let (query, body) = (members::of_query(endpoint), members::of_body(endpoint));
    let mut longs = Longs::of(query.iter().chain(&body));
    for member in query {
        let is_cursor = is_listing(endpoint) && member.name == CURSOR;
        command = command.arg(flag(Part::Query, &member, noun, &mut longs));
        if is_cursor {
            command = command.arg(arguments::all().conflicts_with(Part::Query.id(CURSOR)));
        }
    }
    for member in body {
        command = command.arg(flag(Part::Body, &member, noun, &mut longs));
        if member.name == HTML {
            command = command.arg(arguments::html_file().conflicts_with(Part::Body.id(HTML)));
        }
    }
    match endpoint.body {
        BodyKind::None => {}
        BodyKind::Optional | BodyKind::Required => command = command.arg(json_body()).arg(arguments::example()),
        BodyKind::File(types) => command = command.arg(file_body(types)),
    }
    if (endpoint.method)() == http::Method::DELETE {
        command = command.arg(arguments::yes());
    }
    if (endpoint.method)() != http::Method::GET {
        command = command.arg(idempotency_key());
    }
    command.args(arguments::target()).args(arguments::output())
}

/// The flags of a listing's filters, for commands that go through all of its pages.
pub(crate) fn filters(endpoint: &Endpoint) -> Vec<Arg> {
    let noun = endpoint.cli.split(' ').next().unwrap_or_default();
    let members = members::of_query(endpoint);
    let mut longs = Longs::of(members.iter());
    members.iter().map(|member| flag(Part::Query, member, noun, &mut longs)).collect()
}

/// Text below the flags: the request, and notes that belong to no flag.
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

/// The request of a command, as method and path.
pub(crate) fn route(endpoint: &Endpoint) -> String {
    format!("Request: {} {} ({})", (endpoint.method)(), endpoint.path, access(endpoint.access))
}

fn json_body() -> Arg {
    Arg::new(arguments::JSON_BODY)
        .long("json-body")
        .value_name("FILE")
        .help_heading("Body")
        .help("Read the body as JSON from a file, or with `-` from standard input; flags replace members")
}

/// The argument for a file that is sent as the body.
fn file_body(types: &[&str]) -> Arg {
    Arg::new(arguments::FILE_BODY)
        .value_name("FILE")
        .required(true)
        .value_parser(clap::value_parser!(std::path::PathBuf))
        .help(format!("The file, of one of the types {}", types.join(", ")))
}

fn idempotency_key() -> Arg {
    Arg::new(arguments::IDEMPOTENCY_KEY)
        .long("idempotency-key")
        .value_name("KEY")
        .help_heading("Request")
        .help("A repeat with the same key within 24 hours answers like the first and does nothing")
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

/// The credentials that an operation needs, in words.
fn access(access: Access) -> String {
    match access {
        Access::Public => "no credentials".to_owned(),
        Access::AnyCredential => "any API key or session".to_owned(),
        Access::Scope(scope) => format!("scope {scope}"),
        Access::Scopes(first, second) => format!("scopes {first} and {second}"),
        Access::Session => "session token".to_owned(),
        Access::Operator => "session token of an operator (messaging admin set-operator)".to_owned(),
        Access::SessionRole(least) => format!("session token with role {} or higher", role(least)),
        Access::ScopeOrAdmin(scope) => format!("scope {scope}, or a session token with role admin"),
        Access::Administration => "scope *, or a session token with role admin".to_owned(),
    }
}

fn role(role: messaging_core::scope::Role) -> String {
    serde_json::to_value(role).ok().and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
}
