//! The OpenAPI 3.1 document, derived from [`messaging_engine::ops::all`].
//!
//! Schemas are those of the input and output types. A type that is both read and written can have two:
//! a member that may be left out in a request is always there in an answer. The one for requests is
//! then named `…Input`.

use std::collections::{BTreeMap, BTreeSet};

use messaging_core::scope::{Access, Role};
use messaging_engine::ops::{self, BodyKind, Endpoint, OutputKind};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::router::BASE;

/// Where references to schemas point.
const SCHEMAS: &str = "#/components/schemas/";

/// The document as it is served and kept in `docs/openapi.json`.
pub fn text() -> String {
    text_at("")
}

/// The same of a server that is mounted at a path.
pub(crate) fn text_at(prefix: &str) -> String {
    let mut text = format!("{:#}", document_at(prefix));
    text.push('\n');
    text
}

/// The document.
pub fn document() -> Value {
    document_at("")
}

/// The same of a server that is mounted at a path.
pub(crate) fn document_at(prefix: &str) -> Value {
    let mut inputs = generator(SchemaSettings::for_deserialize);
    let mut outputs = generator(SchemaSettings::for_serialize);
    let mut paths = BTreeMap::<&str, BTreeMap<String, Value>>::new();
    let mut tags = Vec::new();
    for endpoint in ops::all() {
        let tag = tag(endpoint);
        if !tags.contains(&tag) {
            tags.push(tag);
        }
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
    schemas.extend(error_schemas());
    sort(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "messaging",
            "version": "1",
            "description": "Transactional and campaign messaging. Every path is answered under `/v1` and `/api/v1` alike.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": format!("{prefix}{BASE}")}],
        "tags": tags.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": shared_parameters(),
            "responses": shared_responses(),
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key (`mk_live_…`) or a session token (`ms_…`).",
            }},
        },
    })
}

fn generator(contract: fn(SchemaSettings) -> SchemaSettings) -> SchemaGenerator {
    let mut settings = contract(SchemaSettings::draft2020_12());
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.into_generator()
}

fn operation(endpoint: &Endpoint, inputs: &mut SchemaGenerator, outputs: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.summary,
        "tags": [tag(endpoint)],
        "description": access_text(endpoint.access),
        "parameters": parameters(endpoint, inputs),
        "responses": responses(endpoint, outputs),
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
    if endpoint.body != BodyKind::None {
        operation["requestBody"] = json!({
            "required": endpoint.body == BodyKind::Required,
            "content": {"application/json": {"schema": (endpoint.body_schema)(inputs)}},
        });
    }
    operation
}

/// The word operations are grouped by: the first of the command's words.
fn tag(endpoint: &Endpoint) -> &'static str {
    endpoint.cli.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("service")
}

/// What a caller needs, in words.
pub(crate) fn access_text(access: Access) -> String {
    match access {
        Access::Public => "No credentials.".to_owned(),
        Access::AnyCredential => "Any credentials.".to_owned(),
        Access::Scope(scope) => format!("Scope `{scope}`."),
        Access::Scopes(first, second) => format!("Scopes `{first}` and `{second}`."),
        Access::Session => "A session; API keys are refused.".to_owned(),
        Access::AnyOwner => "A session of somebody who is owner of a workspace; API keys are refused.".to_owned(),
        Access::SessionRole(role) => {
            format!("A session with role {} or higher; API keys are refused.", role_text(role))
        }
        Access::Administration => "Scope `*`, or a session with role admin or higher.".to_owned(),
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
        Access::Scope(scope) => vec![scope.as_str()],
        Access::Scopes(first, second) => vec![first.as_str(), second.as_str()],
        Access::Administration => vec!["*"],
        Access::Public | Access::AnyCredential | Access::Session | Access::SessionRole(_) | Access::AnyOwner => vec![],
    }
}

fn parameters(endpoint: &Endpoint, inputs: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters = Vec::new();
    for (place, schema) in [("path", (endpoint.path_schema)(inputs)), ("query", (endpoint.query_schema)(inputs))] {
        let schema = schema.to_value();
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let mut property = property.clone();
            let mut parameter =
                json!({"name": name, "in": place, "required": place == "path" || required.contains(&name.as_str())});
            if let Some(description) = property.as_object_mut().and_then(|members| members.remove("description")) {
                parameter["description"] = description;
            }
            parameter["schema"] = property;
            parameters.push(parameter);
        }
    }
    let method = (endpoint.method)();
    if endpoint.access != Access::Public && method != http::Method::GET {
        parameters.push(json!({"$ref": "#/components/parameters/IdempotencyKey"}));
    }
    if matches!(endpoint.access, Access::Scope(_) | Access::Scopes(..)) && !endpoint.is_in_workspace() {
        parameters.push(json!({"$ref": "#/components/parameters/WorkspaceId"}));
    }
    parameters
}

fn shared_parameters() -> Value {
    json!({
        "IdempotencyKey": {
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "Makes a repetition of this request answer the same and do nothing, for 24 hours.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$"},
        },
        "WorkspaceId": {
            "name": "X-Workspace-Id", "in": "header", "required": false,
            "description": "The workspace; needed with a session, which may open several. A key opens one.",
            "schema": {"type": "string", "pattern": "^wsp_[0-9A-HJKMNP-TV-Z]{26}$"},
        },
    })
}

fn responses(endpoint: &Endpoint, outputs: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let mut success = json!({"description": endpoint.success.canonical_reason().unwrap_or("Success"), "headers": {
        "X-Request-Id": {"schema": {"type": "string"}},
    }});
    match endpoint.output {
        OutputKind::NoContent => {}
        OutputKind::Json => {
            if let Some(schema) = (endpoint.output_schema)(outputs) {
                success["content"] = json!({"application/json": {"schema": schema}});
            }
        }
        OutputKind::Document(types) => {
            let types = types.iter().map(|name| ((*name).to_owned(), json!({})));
            success["content"] = Value::Object(types.collect());
        }
    }
    if let Some(other) = endpoint.other_success {
        let mut other_success = success.clone();
        other_success["description"] = json!(other.canonical_reason().unwrap_or("Success"));
        responses.insert(other.as_str().to_owned(), other_success);
    }
    responses.insert(endpoint.success.as_str().to_owned(), success);
    for (status, name) in failures(endpoint) {
        responses.insert(status.to_owned(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
    Value::Object(responses)
}

/// Which refusals an operation can give (contract section 1.4).
fn failures(endpoint: &Endpoint) -> Vec<(&'static str, &'static str)> {
    let mut failures = Vec::new();
    if endpoint.body != BodyKind::None {
        failures.extend([("400", "BadRequest"), ("413", "PayloadTooLarge"), ("415", "UnsupportedMediaType")]);
    }
    if endpoint.access != Access::Public {
        failures.extend([("401", "Unauthorized"), ("403", "Forbidden"), ("429", "TooManyRequests")]);
    }
    if endpoint.path.contains('{') {
        failures.push(("404", "NotFound"));
    }
    if (endpoint.method)() != http::Method::GET {
        failures.push(("409", "Conflict"));
    }
    failures.extend([("422", "UnprocessableEntity"), ("500", "InternalError"), ("503", "Unavailable")]);
    failures
}

fn shared_responses() -> Value {
    let response = |description: &str, schema: &str| {
        json!({
            "description": description,
            "content": {"application/json": {"schema": {"$ref": format!("{SCHEMAS}{schema}")}}},
        })
    };
    let mut responses = json!({
        "BadRequest": response("The body is no JSON object, or a cursor or Idempotency-Key is malformed.", "Error"),
        "Unauthorized": response("Credentials are missing or not valid.", "Error"),
        "Forbidden": response("The credentials do not open this.", "Forbidden"),
        "NotFound": response("No such resource.", "Error"),
        "Conflict": response("Not possible in the present state.", "Error"),
        "PayloadTooLarge": response("The body is too long.", "Error"),
        "UnsupportedMediaType": response("The body is not declared as JSON.", "Error"),
        "UnprocessableEntity": response("Fields break their rules, or the request cannot be carried out.", "Error"),
        "TooManyRequests": response("The rate limit of the credentials is used up.", "Error"),
        "InternalError": response("A bug, or a broken machine.", "Error"),
        "Unavailable": response("Overloaded, stopping, or the disk takes no writes: nothing was done, unless `details.outcome` is `unknown`. Try again later, with the same Idempotency-Key.", "Error"),
    });
    responses["Unauthorized"]["headers"] = json!({"WWW-Authenticate": {"schema": {"const": "Bearer"}}});
    for name in ["TooManyRequests", "Unavailable"] {
        responses[name]["headers"] = json!({"Retry-After": {
            "description": "Seconds to wait.",
            "schema": {"type": "integer", "minimum": 1},
        }});
    }
    responses
}

fn error_schemas() -> Vec<(String, Value)> {
    let error = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string", "description": "What went wrong; never changes."},
                "message": {"type": "string", "description": "The same for people; may change."},
                "request_id": {"type": "string", "description": "The same as the header X-Request-Id."},
                "details": {"type": "object", "properties": {
                    "errors": {"type": "array", "maxItems": 100, "items": {"$ref": format!("{SCHEMAS}FieldError")}},
                }},
            },
        }},
    });
    let field = json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "pointer": {"type": "string", "description": "Where in the body (RFC 6901)."},
            "parameter": {"type": "string", "description": "Or which query, path or header parameter."},
            "code": {"type": "string"},
            "message": {"type": "string"},
        },
    });
    let scope = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "string", "pattern": "^scope required: "}},
    });
    let forbidden = json!({"oneOf": [
        {"$ref": format!("{SCHEMAS}Error")},
        {"$ref": format!("{SCHEMAS}ScopeRequired")},
    ]});
    [("Error", error), ("FieldError", field), ("ScopeRequired", scope), ("Forbidden", forbidden)]
        .map(|(name, schema)| (name.to_owned(), schema))
        .into()
}

/// Lets references to the schemas in `twice` point to those for requests.
fn rename(value: &mut Value, twice: &BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => {
                        if target.strip_prefix(SCHEMAS).is_some_and(|name| twice.contains(name)) {
                            target.push_str("Input");
                        }
                    }
                    other => rename(other, twice),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, twice)),
        _ => {}
    }
}

/// Puts the schemas in order by name, whatever order maps keep in this build.
fn sort(schemas: &mut Map<String, Value>) {
    let sorted: BTreeMap<_, _> = std::mem::take(schemas).into_iter().collect();
    schemas.extend(sorted);
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
