//! Names where the API takes ids: `--template welcome`, `list get News`.
//!
//! A value that does not begin like an id of its kind is a name. It is looked up right before the request, in the same
//! workspace, and must fit one resource.

use clap::ArgMatches;
use messaging_engine::ops::Endpoint;
use serde_json::{Map, Value};

use crate::audience;
use crate::command::part::{self, Part};
use crate::failure::Failure;
use crate::listing::Pages;
use crate::output::plain_text;
use crate::request::Request;
use crate::target::Target;

/// A kind of resource that may be given by name.
struct Kind {
    /// The noun of its commands.
    noun: &'static str,
    /// Prefix of its ids, with the underscore.
    prefix: &'static str,
    /// The member with its name.
    name: &'static str,
    /// Members of requests that hold one or several of its ids.
    members: &'static [&'static str],
}

const KINDS: [Kind; 5] = [
    Kind { noun: "template", prefix: "tpl_", name: "name", members: &["template_id"] },
    Kind { noun: "list", prefix: "lst_", name: "name", members: &["list_id", "list_ids", "exclude_list_ids"] },
    Kind { noun: "segment", prefix: "seg_", name: "name", members: &["segment_id", "segment_ids"] },
    Kind { noun: "domain", prefix: "dom_", name: "domain", members: &["sending_domain_id"] },
    Kind { noun: "pool", prefix: "ipp_", name: "name", members: &["ip_pool_id", "marketing_ip_pool_id"] },
];

/// Number of names that are suggested if none fits.
const OFFERED: usize = 10;

/// The noun of the resource that a member holds the id of, if that kind of resource has names.
pub(crate) fn noun_of(member: &str) -> Option<&'static str> {
    kind_of(member).map(|kind| kind.noun)
}

fn kind_of(member: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.members.contains(&member))
}

/// Kind of resource that a path parameter of the operation is the id of.
fn kind_in_path(endpoint: &Endpoint, member: &str) -> Option<&'static Kind> {
    let noun = endpoint.cli.split(' ').next().unwrap_or_default();
    kind_of(member).or_else(|| KINDS.iter().find(|kind| member == "id" && kind.noun == noun))
}

/// Replaces names with ids in a request that was read from a command line.
pub(crate) async fn resolve(target: &Target, request: &mut Request, matches: &ArgMatches) -> Result<(), Failure> {
    let endpoint = request.endpoint;
    for (member, value) in &mut request.path {
        if let Some(kind) = kind_in_path(endpoint, member) {
            replace(target, kind, value).await?;
        }
    }
    for (member, value) in &mut request.query {
        if let Some(kind) = kind_of(member) {
            replace(target, kind, value).await?;
        }
    }
    in_body(target, request, matches).await
}

/// Replaces names in the members of a body that flags gave; the members of `--json-body` are left as they are.
async fn in_body(target: &Target, request: &mut Request, matches: &ArgMatches) -> Result<(), Failure> {
    let is_given = |member: &&str| matches!(matches.try_contains_id(&Part::Body.id(member)), Ok(true));
    let given: Vec<_> = KINDS.iter().flat_map(|kind| kind.members).copied().filter(is_given).collect();
    let has_audience = audience::is_given(matches);
    if given.is_empty() && !has_audience {
        return Ok(());
    }
    let Ok(mut body) = serde_json::from_slice::<Map<String, Value>>(&request.body) else { return Ok(()) };
    for member in given {
        in_member(target, &mut body, member).await?;
    }
    if let (true, Some(Value::Object(audience))) = (has_audience, body.get_mut(audience::MEMBER)) {
        for member in ["list_ids", "segment_ids", "exclude_list_ids"] {
            in_member(target, audience, member).await?;
        }
    }
    request.body = Value::Object(body).to_string().into();
    Ok(())
}

/// Replaces names in a member of an object: a text, or a list of texts.
async fn in_member(target: &Target, object: &mut Map<String, Value>, member: &str) -> Result<(), Failure> {
    let Some(kind) = kind_of(member) else { return Ok(()) };
    let values = match object.get_mut(member) {
        Some(Value::Array(values)) => values.as_mut_slice(),
        Some(value) => std::slice::from_mut(value),
        None => return Ok(()),
    };
    for value in values {
        if let Value::String(value) = value {
            replace(target, kind, value).await?;
        }
    }
    Ok(())
}

/// Replaces a name with the id.
async fn replace(target: &Target, kind: &'static Kind, value: &mut String) -> Result<(), Failure> {
    if !value.is_empty() && !value.starts_with(kind.prefix) {
        *value = id_of(target, kind, value).await?;
    }
    Ok(())
}

/// The id of the only resource with a name.
async fn id_of(target: &Target, kind: &'static Kind, name: &str) -> Result<String, Failure> {
    let list = part::endpoint(&[kind.noun, "list"]).expect("part of the contract");
    let mut pages = Pages::new(target, Request::new(list));
    let (mut fitting, mut others) = (Vec::new(), Vec::new());
    let noun = kind.noun;
    let advice = || format!("to look up the {noun} {name:?}, the key has to list {noun}s; or give its id");
    while let Some(page) = pages.next().await.map_err(|failure| failure.advised(advice))? {
        for item in page {
            let item: Value = serde_json::from_str(item.get()).unwrap_or_default();
            let text = |member: &str| plain_text(item[member].as_str().unwrap_or_default());
            if item[kind.name] == name {
                fitting.push(text("id"));
            } else if others.len() < OFFERED {
                others.push(text(kind.name));
            }
        }
    }
    match fitting.as_slice() {
        [only] => Ok(only.clone()),
        [] if others.is_empty() => Err(Failure::Failed(format!("no {noun} is called {name:?}: there is none at all"))),
        [] => Err(Failure::Failed(format!("no {noun} is called {name:?}; there are {}", others.join(", ")))),
        several => {
            Err(Failure::Failed(format!("several {noun}s are called {name:?}; give one of {}", several.join(", "))))
        }
    }
}
