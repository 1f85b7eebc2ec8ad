//! The OpenAPI 3.1 document, derived from [`messaging_engine::ops::all`].
//!
//! Schemas are those of the input and output types. A type that is both read and written can have two:
//! a member that may be left out in a request is always there in an answer. The one for requests is
//! then named `…Input`. The settings of providers are described by their table (`openapi/providers.rs`).

pub(crate) mod examples;
mod links;
mod parameters;
mod providers;
mod responses;
mod schemas;
mod tags;

use std::collections::{BTreeMap, BTreeSet};

use messaging_core::scope::{Access, Role};
use messaging_engine::ops::{self, BodyKind, Endpoint};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use self::schemas::{SCHEMAS, rename, sort};

use crate::router::BASE;

/// The document as it is served and kept in `docs/openapi.json`.
pub fn text() -> String {
    text_at("")
}

/// The document of a server that is mounted at a path, as text.
pub(crate) fn text_at(prefix: &str) -> String {
    let mut text = format!("{:#}", document_at(prefix));
    text.push('\n');
    text
}

/// The document as a value.
pub fn document() -> Value {
    document_at("")
}

/// The document of a server that is mounted at a path.
pub(crate) fn document_at(prefix: &str) -> Value {
    let mut inputs = generator(SchemaSettings::for_deserialize);
    let mut outputs = generator(SchemaSettings::for_serialize);
    let mut paths = BTreeMap::<&str, BTreeMap<String, Value>>::new();
    for endpoint in ops::all() {
        let method = (endpoint.method)().as_str().to_lowercase();
        paths.entry(endpoint.path).or_default().insert(method, operation(endpoint, &mut inputs, &mut outputs));
    }
    let mut schemas = outputs.take_definitions(true);
    let read = inputs.take_definitions(true);
    let twice: BTreeSet<_> = read
        .iter()
        .filter(|(name, schema)| schemas.get(*name).is_some_and(|written| written != *schema))
        .map(|(name, _)| name.clone())
        .collect();
    for (name, mut schema) in read {
        rename(&mut schema, &twice);
        let name = if twice.contains(&name) { format!("{name}Input") } else { name };
        schemas.insert(name, schema);
    }
    let mut paths = json!(paths);
    for operations in paths.as_object_mut().into_iter().flat_map(Map::values_mut) {
        for operation in operations.as_object_mut().into_iter().flat_map(Map::values_mut) {
            rename(&mut operation["parameters"], &twice);
            if let Some(body) = operation.get_mut("requestBody") {
                rename(body, &twice);
            }
        }
    }
    schemas.extend(responses::schemas());
    providers::describe(&mut schemas);
    sort(&mut schemas);
    add_links(&mut paths, &schemas);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "messaging",
            "version": "1",
            "summary": "Self-hosted transactional email, campaigns, automations and six channels.",
            "description": DESCRIPTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": format!("{prefix}{BASE}")}],
        "tags": tags::ALL.map(|name| json!({"name": name, "description": tags::description(name)})).as_slice(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parameters::shared(),
            "responses": responses::shared(),
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key (`mk_live_…`) or a session token (`ms_…`).",
            }},
        },
    });
    schemas::plain_enums(&mut document);
    schemas::free_objects(&mut document);
    add_examples(&mut document["paths"]);
    document
}

/// The description of the API in the document: rules that hold for all operations.
const DESCRIPTION: &str = "Every path is answered under `/v1` and `/api/v1` alike. Requests and answers are JSON; an unknown \
member is refused, unless the request has `Prefer: handling=lenient`. Listings answer `{\"data\":[…],\"next_cursor\":…}`, \
newest first. Every answer has `X-Request-Id`; those to a credential have `RateLimit` and `RateLimit-Policy`. A write with an \
`Idempotency-Key` can be repeated safely for 24 hours.";

/// Adds links to the answers of creations.
fn add_links(paths: &mut Value, schemas: &Map<String, Value>) {
    let all = ops::all();
    for endpoint in all {
        let method = (endpoint.method)().as_str().to_lowercase();
        let answers = &mut paths[endpoint.path][&method]["responses"];
        for status in [Some(endpoint.success), endpoint.other_success].into_iter().flatten() {
            let answer = &mut answers[status.as_str()];
            let schema = &answer["content"]["application/json"]["schema"];
            let name = schema["$ref"].as_str().and_then(|target| target.strip_prefix(SCHEMAS));
            let Some(members) = name.and_then(|name| schemas.get(name)?["properties"].as_object()) else { continue };
            let links = links::of(endpoint, all, members);
            if !links.is_empty() {
                answer["links"] = links.into();
            }
        }
    }
}

/// Adds the recorded examples.
fn add_examples(paths: &mut Value) {
    let recorded = examples::recorded();
    for endpoint in ops::all() {
        let Some(example) = recorded.get(endpoint.id) else { continue };
        let method = (endpoint.method)().as_str().to_lowercase();
        let operation = &mut paths[endpoint.path][&method];
        if let Some(request) = example.request {
            operation["requestBody"]["content"]["application/json"]["example"] = examples::value(request);
        }
        if let Some(answer) = example.answer {
            let success = &mut operation["responses"][endpoint.success.as_str()];
            success["content"]["application/json"]["example"] = examples::value(answer);
        }
    }
}

fn generator(contract: fn(SchemaSettings) -> SchemaSettings) -> SchemaGenerator {
    let mut settings = contract(SchemaSettings::draft2020_12());
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.into_generator()
}

fn operation(endpoint: &Endpoint, inputs: &mut SchemaGenerator, outputs: &mut SchemaGenerator) -> Value {
    let parameters = parameters::of(endpoint, inputs);
    let is_listing = parameters.iter().any(|parameter| parameter["name"] == "cursor" || parameter["name"] == "after");
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.summary,
        "tags": [tags::of(endpoint)],
        "description": access_text(endpoint.access),
        "parameters": parameters,
        "responses": responses::of(endpoint, outputs, is_listing),
        "security": [{"bearer": []}],
    });
    if endpoint.access == Access::Public {
        operation["security"] = json!([]);
    }
    let scopes = scopes(endpoint.access);
    if !scopes.is_empty() {
        operation["x-scope"] = json!(scopes);
    }
    if !endpoint.cli.is_empty() {
        operation["x-command"] = json!(format!("messaging {}", endpoint.cli));
    }
    match endpoint.body {
        BodyKind::None => {}
        BodyKind::Optional | BodyKind::Required => {
            operation["requestBody"] = json!({
                "required": endpoint.body == BodyKind::Required,
                "content": {"application/json": {"schema": (endpoint.body_schema)(inputs)}},
            });
        }
        BodyKind::File(types) => {
            let schema = (endpoint.body_schema)(inputs);
            let content: Map<String, Value> =
                types.iter().map(|media_type| ((*media_type).to_owned(), json!({"schema": schema}))).collect();
            operation["requestBody"] = json!({"required": true, "content": content});
        }
    }
    operation
}

/// Text about the credentials that a caller needs.
pub(crate) fn access_text(access: Access) -> String {
    match access {
        Access::Public => "No credentials.".to_owned(),
        Access::AnyCredential => "Any credentials.".to_owned(),
        Access::Scope(scope) => format!("Scope `{scope}`."),
        Access::Scopes(first, second) => format!("Scopes `{first}` and `{second}`."),
        Access::Session => "A session; API keys are refused.".to_owned(),
        Access::Operator => "A session of an operator of the installation; API keys are refused.".to_owned(),
        Access::SessionRole(role) => {
            format!("A session with role {} or higher; API keys are refused.", role_text(role))
        }
        Access::Administration => "Scope `*`, or a session with role admin or higher.".to_owned(),
        Access::ScopeOrAdmin(scope) => format!("Scope `{scope}`, or a session with role admin or higher."),
    }
}

const fn role_text(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Editor => "editor",
        Role::Admin => "admin",
        Role::Owner => "owner",
    }
}

fn scopes(access: Access) -> Vec<&'static str> {
    match access {
        Access::Scope(scope) | Access::ScopeOrAdmin(scope) => vec![scope.as_str()],
        Access::Scopes(first, second) => vec![first.as_str(), second.as_str()],
        Access::Administration => vec!["*"],
        Access::Public | Access::AnyCredential | Access::Session | Access::SessionRole(_) | Access::Operator => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_in_the_document_once() {
        let document = document();
        let mut ids: Vec<_> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|operations| operations.as_object().unwrap().values())
            .map(|operation| operation["operationId"].as_str().unwrap().to_owned())
            .collect();
        let mut expected: Vec<_> = ops::all().iter().map(|endpoint| endpoint.id.to_owned()).collect();
        ids.sort();
        expected.sort();
        assert_eq!(ids, expected);
    }

    #[test]
    fn every_group_is_described_and_has_its_place() {
        for tag in document()["tags"].as_array().unwrap() {
            assert_ne!(tag["description"], "", "{tag}: add it to `openapi/tags.rs`");
        }
        let used: BTreeSet<_> = ops::all().iter().map(tags::of).collect();
        assert_eq!(used, BTreeSet::from(tags::ALL));
    }

    #[test]
    fn what_is_created_is_linked_to_what_can_be_done_with_it() {
        let document = document();
        let send = &document["paths"]["/messages"]["post"]["responses"]["202"]["links"];
        assert_eq!(send["getMessage"]["parameters"], json!({"id": "$response.body#/message_id"}));
        let list = &document["paths"]["/workspaces/{workspace_id}/lists"]["post"]["responses"]["201"]["links"];
        assert_eq!(list["deleteList"]["parameters"]["id"], "$response.body#/id");
        assert_eq!(list["deleteList"]["parameters"]["workspace_id"], "$request.path.workspace_id");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn walk(value: &Value, document: &Value) {
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        if name == "$ref" {
                            let target = member.as_str().unwrap().strip_prefix('#').unwrap();
                            assert!(document.pointer(target).is_some(), "{target}");
                        }
                        walk(member, document);
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| walk(item, document)),
                _ => {}
            }
        }
        let document = document();
        walk(&document, &document);
    }

    #[test]
    fn every_parameter_of_a_path_is_described() {
        let document = document();
        for endpoint in ops::all() {
            let method = (endpoint.method)().as_str().to_lowercase();
            let parameters = &document["paths"][endpoint.path][&method]["parameters"];
            for name in endpoint.path.split('{').skip(1).filter_map(|part| part.split('}').next()) {
                let described =
                    parameters.as_array().unwrap().iter().any(|one| one["name"] == name && one["in"] == "path");
                assert!(described, "{endpoint:?} {name}");
            }
        }
    }
}
