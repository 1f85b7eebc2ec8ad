//! `api`: one request as method and path of the API reference, for operations without a command.

use std::io::IsTerminal as _;

use bytes::Bytes;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use messaging_core::scope::Access;
use serde_json::Value;

use crate::arguments;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::request::{self, Raw};
use crate::target::{self, Target};

const METHOD: &str = "method";
const PATH: &str = "path";
const QUERY: &str = "query";

const EXAMPLES: &str =
    "PATH is the path after /v1; {workspace_id} in it is replaced by the workspace of the credentials. Prints the body of \
the answer unchanged, also that of an error; the exit code is then 1.

Examples:
  messaging api GET '/workspaces/{workspace_id}/contacts?limit=10'
  messaging api POST /messages --json-body message.json
  messaging api GET '/workspaces/{workspace_id}/contacts' --query email=ann@example.com | jq .data[0]";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("api")
        .about("Send one request to the API, as its reference writes it")
        .after_help(EXAMPLES)
        .arg(
            Arg::new(METHOD)
                .value_name("METHOD")
                .required(true)
                .value_parser(ValueParser::new(method))
                .help("Such as GET"),
        )
        .arg(Arg::new(PATH).value_name("PATH").required(true).help("Such as /messages"))
        .arg(
            Arg::new(QUERY)
                .long("query")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .value_parser(ValueParser::new(pair))
                .help("A parameter of the query; may be repeated"),
        )
        .arg(
            Arg::new(arguments::JSON_BODY)
                .long("json-body")
                .value_name("FILE")
                .help("Read the body as JSON from a file, or with `-` from standard input"),
        )
        .arg(
            Arg::new(arguments::IDEMPOTENCY_KEY)
                .long("idempotency-key")
                .value_name("KEY")
                .help("A repeat with the same key within 24 hours answers like the first and does nothing"),
        )
        .args(arguments::target())
        .arg(arguments::json().help("Print one JSON document on standard output, whatever the answer is"))
}

fn method(text: &str) -> Result<Method, String> {
    let method = text.to_uppercase();
    match method.as_str() {
        "GET" | "POST" | "PUT" | "PATCH" | "DELETE" => method.parse().map_err(|_| "no method".to_owned()),
        _ => Err("GET, POST, PUT, PATCH or DELETE".to_owned()),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Carries it out.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let raw = read(matches)?;
    let reply = target::block_on(async {
        // Which credentials it needs, the server says.
        let target = Target::choose(matches, Access::Public).await?;
        target.raw(raw).await
    })??;
    if output.is_json() || !reply.is_json() {
        return output.reply(reply);
    }
    let mut text = reply.body.to_vec();
    if std::io::stdout().is_terminal() {
        let parsed = serde_json::from_slice::<Value>(&reply.body).ok();
        text = parsed.and_then(|value| serde_json::to_vec_pretty(&value).ok()).unwrap_or(text);
    }
    text.push(b'\n');
    output::raw(&text)?;
    if reply.status.is_success() { Ok(()) } else { Err(Failure::Refused(reply)) }
}

fn read(matches: &ArgMatches) -> Result<Raw, Failure> {
    let method = matches.get_one::<Method>(METHOD).cloned().expect("required");
    let text = arguments::text(matches, PATH).ok_or_else(|| Failure::usage("PATH is missing"))?;
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let path = format!("/{}", path.trim_start_matches('/'));
    let below = ["/api/v1/", "/v1/"].into_iter().find_map(|version| path.strip_prefix(version));
    let path = below.map_or_else(|| path.clone(), |rest| format!("/{rest}"));
    let mut query = query.to_owned();
    let pairs: Vec<&(String, String)> = matches.get_many(QUERY).into_iter().flatten().collect();
    if !pairs.is_empty() {
        let more = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs.iter().map(|(name, value)| (name, value)))
            .finish();
        if !query.is_empty() {
            query.push('&');
        }
        query.push_str(&more);
    }
    let body = match arguments::text(matches, arguments::JSON_BODY) {
        Some(file) => request::json_file(file)?.0,
        None => Bytes::new(),
    };
    let idempotency_key = arguments::text(matches, arguments::IDEMPOTENCY_KEY).map(ToOwned::to_owned);
    Ok(Raw { method, path, query, body, idempotency_key })
}
