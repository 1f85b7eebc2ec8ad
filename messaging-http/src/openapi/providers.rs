//! Schemas of each provider's settings, in requests and answers of a channel's `config`. They are made from the table
//! that settings are validated with.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{self, Form, MASK, Member, ProviderKind};
use serde_json::{Map, Value, json};

use super::schemas::SCHEMAS;

/// Schema of the request that has `config`.
const REQUEST: &str = "ChannelInput";
/// Schema of the answer that has `config`.
const ANSWER: &str = "ChannelSettings";

/// Description of settings without a schema.
const OTHERS: &str = "Settings of a provider without a schema: one that has no settings (`builtin`, `sandbox`), one that is configured \
under `routes` alone, or one that the program embedding this server adds.";

/// The direction of settings: given in a request, or shown in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Given,
    Shown,
}

/// Adds the schemas, and refers to them from `config`.
pub(super) fn describe(schemas: &mut Map<String, Value>) {
    for (side, holder) in [(Side::Given, REQUEST), (Side::Shown, ANSWER)] {
        let mut choices = Vec::new();
        for kind in described() {
            let name = name_of(kind, side);
            choices.push(json!({"$ref": format!("{SCHEMAS}{name}")}));
            schemas.insert(name, schema_of(kind, side));
            if kind.has_routes() {
                schemas.insert(route_name_of(kind, side), route_schema_of(kind, side));
            }
        }
        choices.push(json!({"type": "object", "additionalProperties": true, "description": OTHERS}));
        if side == Side::Given {
            choices.push(json!({"type": "null"}));
        }
        let Some(config) = schemas.get_mut(holder).and_then(|holder| holder["properties"]["config"].as_object_mut())
        else {
            continue;
        };
        config.insert("anyOf".to_owned(), choices.into());
    }
}

/// The providers whose settings have a schema.
pub(super) fn described() -> impl Iterator<Item = &'static ProviderKind> {
    provider::all().iter().filter(|kind| !kind.members.is_empty())
}

/// Name of a schema: `SmsSmppConfig` in answers, `SmsSmppConfigInput` in requests.
pub(super) fn name_of(kind: &ProviderKind, side: Side) -> String {
    format!("{}Config{}", title_of(kind), suffix(side))
}

fn route_name_of(kind: &ProviderKind, side: Side) -> String {
    format!("{}Route{}", title_of(kind), suffix(side))
}

const fn suffix(side: Side) -> &'static str {
    match side {
        Side::Given => "Input",
        Side::Shown => "",
    }
}

fn title_of(kind: &ProviderKind) -> String {
    let words = [kind.channel.as_str(), &kind.name];
    let words = words.iter().flat_map(|word| word.split('_'));
    let capital = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_ascii_uppercase() + rest,
        None => String::new(),
    };
    words.map(capital).collect()
}

fn schema_of(kind: &ProviderKind, side: Side) -> Value {
    let description = format!("Settings of the provider `{}` of the channel `{}`.", kind.name, kind.channel);
    object(kind, side, &description, |_| true)
}

fn route_schema_of(kind: &ProviderKind, side: Side) -> Value {
    let description = format!("Settings of the provider `{}` under `routes` of another one.", kind.name);
    object(kind, side, &description, |member| member.form != Form::Routes)
}

fn object(kind: &ProviderKind, side: Side, description: &str, is_in: impl Fn(&Member) -> bool) -> Value {
    let is_there = |member: &&Member| match side {
        Side::Given => !member.is_made_by_us,
        Side::Shown => member.is_shown(),
    };
    let members: Vec<_> = kind.members.iter().filter(|member| is_in(member)).filter(is_there).collect();
    let is_required = |member: &&&Member| side == Side::Shown || member.required;
    let required: Vec<_> = members.iter().filter(is_required).map(|member| &member.name).collect();
    let properties: Map<_, _> =
        members.iter().map(|member| (member.name.clone(), property(kind.channel, member, side))).collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(channel: Channel, member: &Member, side: Side) -> Value {
    let mut schema = match (side, member.is_secret()) {
        (Side::Shown, true) => json!({"type": "string", "enum": [MASK]}),
        _ => form(channel, member.form, side),
    };
    let is_nullable = side == Side::Shown || !member.required;
    if is_nullable {
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            only => vec![only.clone()],
        };
        schema["type"] = types.into_iter().chain([json!("null")]).collect();
        if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            words.push(Value::Null);
        }
    }
    schema["description"] = member.meaning.clone().into();
    if side == Side::Given {
        if member.is_secret() {
            schema["writeOnly"] = true.into();
        }
        if let Some(default) = &member.default {
            schema["default"] = default.clone();
        }
    }
    schema
}

/// Type of a setting, without the rules that JSON Schema cannot express.
fn form(channel: Channel, form: Form, side: Side) -> Value {
    match form {
        Form::Text | Form::SmsSender | Form::Host | Form::Pem | Form::BySchema => json!({"type": "string"}),
        Form::TextUpTo(longest) => json!({"type": "string", "maxLength": longest}),
        Form::Port => json!({"type": "integer", "minimum": 1, "maximum": 65535}),
        Form::Rate => json!({"type": "number", "exclusiveMinimum": 0}),
        Form::Url | Form::ContactUri => json!({"type": "string", "format": "uri"}),
        Form::Tls => json!({"type": "string", "enum": form.words().split(" | ").collect::<Vec<_>>()}),
        Form::OneOf(words) => json!({"type": "string", "enum": words}),
        Form::Flag => json!({"type": "boolean"}),
        Form::Document => json!({"type": ["object", "string"], "additionalProperties": true}),
        Form::Routes => {
            let routes = described().filter(|kind| kind.channel == channel && kind.has_routes());
            let reference = |kind: &ProviderKind| json!({"$ref": format!("{SCHEMAS}{}", route_name_of(kind, side))});
            let properties: Map<_, _> = routes.map(|kind| (kind.name.clone(), reference(kind))).collect();
            json!({"type": "object", "properties": properties, "additionalProperties": false})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of `enum`, `anyOf` and `required` in a document that are null instead of a list.
    fn null_lists(value: &Value) -> usize {
        match value {
            Value::Object(members) => {
                let own = ["enum", "anyOf", "required"].iter().filter(|name| members.get(**name) == Some(&Value::Null));
                own.count() + members.values().map(null_lists).sum::<usize>()
            }
            Value::Array(items) => items.iter().map(null_lists).sum(),
            _ => 0,
        }
    }

    #[test]
    fn every_setting_of_every_provider_is_described_for_both_sides() {
        let document = crate::openapi::document();
        assert_eq!(null_lists(&document["components"]), 0);
        let schemas = &document["components"]["schemas"];
        for kind in described() {
            for side in [Side::Given, Side::Shown] {
                let name = name_of(kind, side);
                let properties = schemas[&name]["properties"].as_object().expect(&name);
                for member in &kind.members {
                    let is_there = if side == Side::Given { !member.is_made_by_us } else { member.is_shown() };
                    let property = properties.get(&member.name);
                    assert_eq!(property.is_some(), is_there, "{name} {}", member.name);
                    let Some(property) = property else { continue };
                    assert_eq!(property["description"], member.meaning.as_str(), "{name}");
                    let is_hidden =
                        if side == Side::Given { property["writeOnly"] == true } else { property["enum"][0] == MASK };
                    assert_eq!(is_hidden, member.is_secret(), "{name} {}", member.name);
                }
            }
        }
        for (holder, side) in [(REQUEST, Side::Given), (ANSWER, Side::Shown)] {
            assert_eq!(schemas[holder]["properties"]["config"]["additionalProperties"], true, "it stays an object");
            let choices = schemas[holder]["properties"]["config"]["anyOf"].as_array().unwrap();
            for kind in described() {
                let reference = json!({"$ref": format!("{SCHEMAS}{}", name_of(kind, side))});
                assert!(choices.contains(&reference), "{holder} {reference}");
            }
            assert!(choices.iter().any(|choice| choice["additionalProperties"] == true), "others stay valid");
        }
    }

    #[test]
    fn schemas_have_the_types_that_settings_are_validated_with() {
        let kind = provider::find(Channel::Sms, "smpp").unwrap();
        let given = schema_of(kind, Side::Given);
        assert_eq!(name_of(kind, Side::Given), "SmsSmppConfigInput");
        assert_eq!(given["required"], json!(["host", "port", "system_id", "password", "sender"]));
        assert_eq!(given["properties"]["port"]["maximum"], 65535);
        assert_eq!(given["properties"]["tls"]["type"], json!(["boolean", "null"]));
        assert_eq!(given["properties"]["tls"]["default"], false);
        let shown = schema_of(kind, Side::Shown);
        assert_eq!(shown["properties"]["password"]["enum"], json!([MASK, null]));
        let relay = schema_of(provider::find(Channel::Email, "smtp").unwrap(), Side::Given);
        assert_eq!(relay["properties"]["tls"]["enum"], json!(["starttls", "tls", "none", null]));
        let push = schema_of(provider::find(Channel::Push, "fcm").unwrap(), Side::Given);
        let route = &push["properties"]["routes"]["properties"]["apns"]["$ref"];
        assert_eq!(route, "#/components/schemas/PushApnsRouteInput");
        assert_eq!(
            route_schema_of(provider::find(Channel::Push, "apns").unwrap(), Side::Given)["properties"]["routes"],
            Value::Null
        );
    }
}
