//! Parameters of paths, queries and headers.

use messaging_core::scope::Access;
use messaging_engine::ops::Endpoint;
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::schemas;

/// The parameters of an operation.
pub(super) fn of(endpoint: &Endpoint, inputs: &mut SchemaGenerator) -> Vec<Value> {
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
            // A parameter that is left out has no value; `null` would be a text.
            schemas::without_null(&mut property);
            if place == "query" && property["type"] == "array" {
                // Separated by commas, instead of the parameter once for each item.
                parameter["explode"] = json!(false);
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

/// Those that many operations have.
pub(super) fn shared() -> Value {
    json!({
        "IdempotencyKey": {
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "Makes a repetition of this request answer the same and do nothing, for 24 hours.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$"},
        },
        "WorkspaceId": {
            "name": "X-Workspace-Id", "in": "header", "required": false,
            "description": "The workspace; needed with a session, which may open several. A key opens one, and this is not read.",
            "schema": {"type": "string"},
        },
    })
}
