//! Answers: of success, and the refusals of contract section 1.4.

use http::Method;
use messaging_core::scope::Access;
use messaging_engine::ops::{BodyKind, Endpoint, OutputKind};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::schemas::SCHEMAS;

/// The answers of an operation; that of a listing may refuse its cursor.
pub(super) fn of(endpoint: &Endpoint, outputs: &mut SchemaGenerator, is_listing: bool) -> Value {
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
    for (status, name) in failures(endpoint, is_listing) {
        responses.insert(status.to_owned(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
    Value::Object(responses)
}

/// Which refusals an operation can give (contract section 1.4).
fn failures(endpoint: &Endpoint, is_listing: bool) -> Vec<(&'static str, &'static str)> {
    let mut failures = Vec::new();
    let is_public = endpoint.access == Access::Public;
    let has_key = !is_public && (endpoint.method)() != Method::GET;
    if endpoint.body != BodyKind::None || has_key || is_listing {
        failures.push(("400", "BadRequest"));
    }
    if endpoint.body != BodyKind::None {
        failures.extend([("413", "PayloadTooLarge"), ("415", "UnsupportedMediaType")]);
    }
    if !is_public {
        failures.extend([("401", "Unauthorized"), ("403", "Forbidden"), ("429", "TooManyRequests")]);
    } else if endpoint.body != BodyKind::None {
        // A sign-in needs no credentials; they are in its body.
        failures.extend([("401", "Unauthorized"), ("429", "TooManyRequests")]);
    }
    // Confirming a sign-on is only there where a provider is.
    if endpoint.path.contains('{') || endpoint.id == "confirmSignOn" {
        failures.push(("404", "NotFound"));
    }
    if (endpoint.method)() != Method::GET {
        failures.push(("409", "Conflict"));
    }
    if matches!(endpoint.id, "redeemTicket" | "confirmSignOn") {
        failures.push(("410", "Gone"));
    }
    failures.extend([("422", "UnprocessableEntity"), ("500", "InternalError"), ("503", "Unavailable")]);
    failures
}

/// The refusals that many operations share.
pub(super) fn shared() -> Value {
    let response = |status: u16, schema: &str, description: &str| {
        json!({
            "description": description,
            "content": {"application/json": {"schema": {"$ref": format!("{SCHEMAS}{schema}")}}},
            "x-status": status.to_string(),
        })
    };
    let mut responses = json!({
        "BadRequest": response(400, "Error", "`invalid_json`: the body is no JSON object; the message says where it ends \
            to be one. `invalid_cursor`: the cursor is not one of this listing with these filters. \
            `invalid_idempotency_key`: it is not 1 to 64 visible ASCII characters."),
        "Unauthorized": response(401, "Error", "`missing_credentials`. `invalid_credentials`: unknown, revoked or \
            expired, or a wrong password or code. `second_factor_required`: the sign-in goes on with `details.token`."),
        "Forbidden": response(403, "Forbidden", "A key without the scope gets `{\"error\":\"scope required: …\"}`. \
            `workspace_forbidden`: of another workspace. `session_required`: keys may not. `role_forbidden`: the role is \
            too low. `second_factor_required`: the workspace requires a second factor of its members. `ip_not_allowed`: the key is not for this address."),
        "NotFound": response(404, "Error", "`not_found`: no such resource in this workspace. `route_not_found`: no such \
            path."),
        "Conflict": response(409, "Error", "`invalid_state`: not possible in the present state, `details` has it and those \
            that allow it. `identifier_conflict`: another contact has it. `already_exists`. `in_use`: `details.by` says by \
            what. `re_entry_not_allowed`. `idempotency_in_progress`: the first request with this key still runs."),
        "Gone": response(410, "Error", "`link_expired`: the link was used, or its time is over."),
        "PayloadTooLarge": response(413, "Error", "`payload_too_large`: the body is longer than this operation takes, or has more than 100,000 values or 128 levels."),
        "UnsupportedMediaType": response(415, "Error", "`unsupported_media_type`: the body is not declared as \
            `application/json`."),
        "UnprocessableEntity": response(422, "Error", "`validation_failed`: `details.errors` has every fault with its \
            place. `idempotency_key_reused`: another request came with this key. `sender_missing`, \
            `sender_domain_not_verified`, `channel_not_configured`, `contact_address_missing`, `schedule_time_required`, \
            `schedule_in_past`, `audience_empty`, `automation_invalid`, `size_mismatch`, `checksum_mismatch`, \
            `url_not_allowed`, `url_fetch_failed`: the message says what to do."),
        "TooManyRequests": response(429, "Error", "`rate_limited`: the limit of the credentials, or of the address that \
            failed to sign in, is used up."),
        "InternalError": response(500, "Error", "`internal_error`: a bug, or a broken machine."),
        "Unavailable": response(503, "Error", "`unavailable`: overloaded, stopping, or the disk takes no writes. Nothing \
            was done, unless `details.outcome` is `unknown`. Try again later, with the same Idempotency-Key."),
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

/// The schemas of refusals.
pub(super) fn schemas() -> Vec<(String, Value)> {
    let error = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string", "description": "Code of the error, for programs; never changes."},
                "message": {"type": "string", "description": "Text of the error, for people; may change."},
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
