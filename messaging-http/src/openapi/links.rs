//! Links of a creation's answer to the operations on what it created, so that tools can follow them.

use messaging_engine::ops::Endpoint;
use serde_json::{Map, Value, json};

use super::tags;

/// The links of an operation's answer, whose schema has these members.
pub(super) fn of(endpoint: &Endpoint, all: &[Endpoint], members: &Map<String, Value>) -> Map<String, Value> {
    let own: Vec<_> = parameters(endpoint).collect();
    let mut links = Map::new();
    // An operation on a single resource answers with it, and creates nothing.
    if (endpoint.method)() != http::Method::POST || own.iter().any(|name| *name != "workspace_id") {
        return links;
    }
    for next in all.iter().filter(|next| tags::of(next) == tags::of(endpoint) && parameters(next).count() > own.len()) {
        let found: Option<Map<_, _>> = parameters(next)
            .map(|name| Some((name.to_owned(), source(name, &own, tags::of(endpoint), members)?)))
            .collect();
        if let Some(parameters) = found {
            links.insert(next.id.to_owned(), json!({"operationId": next.id, "parameters": parameters}));
        }
    }
    links
}

/// The names of the parameters of an operation's path.
fn parameters(endpoint: &Endpoint) -> impl Iterator<Item = &'static str> {
    endpoint.path.split('{').skip(1).filter_map(|part| part.split('}').next())
}

/// Source of a parameter's value: the path of the request, or its answer, under the same name or as `TAG_id`.
fn source(name: &str, own: &[&str], tag: &str, members: &Map<String, Value>) -> Option<Value> {
    if own.contains(&name) {
        return Some(json!(format!("$request.path.{name}")));
    }
    let with_tag = format!("{tag}_id");
    let member = [name, if name == "id" { with_tag.as_str() } else { name }]
        .into_iter()
        .find(|one| members.contains_key(*one))?;
    Some(json!(format!("$response.body#/{member}")))
}
