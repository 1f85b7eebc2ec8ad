//! Makes requests of the API from command lines. No rule is checked here: the API reports all errors at once.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::ArgMatches;
use clap::parser::ValueSource;
use http::Method;
use messaging_engine::ops::{self, BodyKind, Endpoint};
use serde_json::{Map, Value};

use crate::arguments;
use crate::audience;
use crate::command::part::{HTML, Part};
use crate::failure::Failure;
use crate::files;
use crate::members::{self, Kind, Member};
use crate::send;
use crate::source_order;

/// A request that still lacks its workspace.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The operation.
    pub(crate) endpoint: &'static Endpoint,
    /// The parameters of the path, without the workspace.
    pub(crate) path: Vec<(String, String)>,
    /// The parameters of the query.
    pub(crate) query: Vec<(String, String)>,
    /// The body; empty for none.
    pub(crate) body: Bytes,
    /// The Idempotency-Key.
    pub(crate) idempotency_key: Option<String>,
}

/// A request as method, path, query and body, as the API reference shows it.
pub(crate) struct Raw {
    pub(crate) method: Method,
    /// Below the version, with `/` at its beginning and without the query.
    pub(crate) path: String,
    /// Without `?`.
    pub(crate) query: String,
    pub(crate) body: Bytes,
    pub(crate) idempotency_key: Option<String>,
}

impl Request {
    /// A request without a body.
    pub(crate) fn new(endpoint: &'static Endpoint) -> Self {
        Self { endpoint, path: Vec::new(), query: Vec::new(), body: Bytes::new(), idempotency_key: None }
    }

    /// A request without a body about the resource with an id.
    pub(crate) fn about(endpoint: &'static Endpoint, id: impl Into<String>) -> Self {
        Self { path: vec![("id".to_owned(), id.into())], ..Self::new(endpoint) }
    }

    /// The parameters of the query as they stand in a URL.
    pub(crate) fn query_string(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish()
    }

    /// The request that a command's arguments make.
    pub(crate) fn read(endpoint: &'static Endpoint, matches: &ArgMatches) -> Result<Self, Failure> {
        let texts = |part: Part, members: Vec<Member>| -> Vec<(String, String)> {
            let given = members.into_iter().filter_map(|member| {
                let value = value(matches, &part.id(&member.name), &member.kind)?;
                Some((member.name, ops::text(value)))
            });
            given.collect()
        };
        Ok(Self {
            path: texts(Part::Path, members::of_path(endpoint)),
            query: texts(Part::Query, members::of_query(endpoint)),
            body: body(endpoint, matches)?,
            idempotency_key: arguments::text(matches, arguments::IDEMPOTENCY_KEY).map(ToOwned::to_owned),
            endpoint,
        })
    }
}

/// The body: that of `--json-body`, with the members that have flags replaced.
fn body(endpoint: &'static Endpoint, matches: &ArgMatches) -> Result<Bytes, Failure> {
    if endpoint.body == BodyKind::None {
        return Ok(Bytes::new());
    }
    if let BodyKind::File(_) = endpoint.body {
        let file = matches.get_one::<PathBuf>(arguments::FILE_BODY);
        return file.map_or_else(|| Ok(Bytes::new()), |file| files::read_bytes(file).map(Bytes::from));
    }
    let mut flags = Map::new();
    for member in members::of_body(endpoint) {
        if let Some(value) = value(matches, &Part::Body.id(&member.name), &member.kind) {
            let value = if clears(endpoint, &member, &value) { Value::Null } else { value };
            flags.insert(member.name, value);
        }
    }
    if let Some(file) = matches.try_get_one::<PathBuf>(arguments::HTML_FILE).ok().flatten() {
        flags.insert(HTML.to_owned(), Value::String(files::read(file)?));
    }
    if endpoint.id == send::OPERATION {
        send::add_conveniences(matches, &mut flags)?;
    }
    audience::add(matches, &mut flags);
    if source_order::is_ours(endpoint) {
        source_order::add(matches, &mut flags);
    }
    let file = arguments::text(matches, arguments::JSON_BODY);
    let mut object = match file {
        // Unchanged, so that the API gets the file as it is.
        Some(file) if flags.is_empty() && endpoint.id != send::OPERATION => {
            return json_file(file).map(|(bytes, _)| bytes);
        }
        Some(file) => match json_file(file)? {
            (_, Value::Object(object)) => object,
            (bytes, _) if flags.is_empty() => return Ok(bytes),
            _ => {
                return Err(Failure::usage(format!("{} is not a JSON object, so flags cannot change it", shown(file))));
            }
        },
        None => Map::new(),
    };
    let is_empty = flags.is_empty() && file.is_none();
    object.extend(flags);
    if endpoint.id == send::OPERATION {
        send::add_defaults(&mut object);
    }
    if is_empty && endpoint.body == BodyKind::Optional {
        return Ok(Bytes::new());
    }
    Ok(Value::Object(object).to_string().into())
}

/// The word that sets a member to null.
const NULL: &str = "null";

/// Returns true if a flag sets a member to null: it is nullable and the request a PATCH. The text `null` is given in
/// `--json-body`.
fn clears(endpoint: &Endpoint, member: &Member, value: &Value) -> bool {
    (endpoint.method)() == Method::PATCH && member.nullable && *value == NULL
}

/// Returns the value given for a member, or none.
fn value(matches: &ArgMatches, id: &str, kind: &Kind) -> Option<Value> {
    if matches.value_source(id).is_none_or(|source| source == ValueSource::DefaultValue) {
        return None;
    }
    let texts = |id: &str| matches.get_many::<String>(id).map(|texts| texts.cloned().map(Value::String).collect());
    match kind {
        Kind::Text | Kind::Time | Kind::Choice(_) => matches.get_one::<String>(id).cloned().map(Value::String),
        Kind::Number { .. } | Kind::Json => matches.get_one::<Value>(id).cloned(),
        Kind::Boolean => matches.get_one::<bool>(id).copied().map(Value::Bool),
        Kind::Texts | Kind::Choices(_) => texts(id).map(Value::Array),
    }
}

/// A JSON file, as bytes and as a value; `-` is standard input.
pub(crate) fn json_file(file: &str) -> Result<(Bytes, Value), Failure> {
    let bytes = if file == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes).map_err(|error| unreadable(file, &error))?
    } else {
        std::fs::read(Path::new(file)).map_err(|error| unreadable(file, &error))?
    };
    let value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::usage(format!("{} is not JSON: {error}", shown(file))))?;
    Ok((bytes.into(), value))
}

fn unreadable(file: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", shown(file)))
}

fn shown(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

#[cfg(test)]
mod tests;
