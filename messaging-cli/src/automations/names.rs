//! Names in place of ids in files of automations, so that a file can be used in every workspace: `push` replaces the
//! names of templates, lists, segments, campaigns and automations by ids, and `pull` ids by names.

use std::collections::HashMap;

use serde_json::Value;

use crate::failure::Failure;
use crate::output;
use crate::resources::Resources;

/// A kind of resource that automations refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    /// The noun of its commands, as in `messaging template list`.
    noun: &'static str,
    /// The prefix of the ids of this kind.
    prefix: &'static str,
}

const TEMPLATE: Kind = Kind { noun: "template", prefix: "tpl_" };
const LIST: Kind = Kind { noun: "list", prefix: "lst_" };
const SEGMENT: Kind = Kind { noun: "segment", prefix: "seg_" };
const CAMPAIGN: Kind = Kind { noun: "campaign", prefix: "cmp_" };
const AUTOMATION: Kind = Kind { noun: "automation", prefix: "aut_" };

/// Members whose value is the id of a resource, with the kind of resource.
const MEMBERS: [(&str, Kind); 5] = [
    ("template_id", TEMPLATE),
    ("list_id", LIST),
    ("segment_id", SEGMENT),
    ("campaign_id", CAMPAIGN),
    ("automation_id", AUTOMATION),
];

/// Characters of an id after its prefix.
const CODE: usize = 26;
/// Deepest nesting of groups in a filter that is searched; the API refuses filters nested that deep.
const MAX_DEPTH: usize = 64;

impl Kind {
    fn is_id(self, text: &str) -> bool {
        text.strip_prefix(self.prefix).is_some_and(|code| code.len() == CODE)
    }
}

/// A member of an automation that refers to a resource.
struct NamedReference<'v> {
    /// JSON pointer to the member in the request body, for error messages.
    pointer: String,
    kind: Kind,
    value: &'v mut Value,
}

/// The members of a request body that refer to resources: in the trigger, the nodes, the goal and the exit conditions.
/// Values that the author chooses freely, such as variables and the body of a webhook, are not searched.
fn named_references(body: &mut Value) -> Vec<NamedReference<'_>> {
    let mut found = Vec::new();
    let Value::Object(body) = body else { return found };
    for (name, member) in body {
        match (name.as_str(), member) {
            ("trigger", Value::Object(trigger)) => {
                if let Some(config) = trigger.get_mut("config") {
                    of_config(config, "/trigger/config", &mut found);
                }
            }
            ("graph", Value::Object(graph)) => {
                for (name, member) in graph {
                    match (name.as_str(), member) {
                        ("nodes", Value::Array(nodes)) => {
                            for (n, node) in nodes.iter_mut().enumerate() {
                                if let Some(config) = node.get_mut("config") {
                                    of_config(config, &format!("/graph/nodes/{n}/config"), &mut found);
                                }
                            }
                        }
                        ("exit_conditions", Value::Array(all)) => {
                            for (n, one) in all.iter_mut().enumerate() {
                                of_filter(one, format!("/graph/exit_conditions/{n}"), 0, &mut found);
                            }
                        }
                        ("goal", goal) => of_filter(goal, "/graph/goal".to_owned(), 0, &mut found),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Adds the references in the configuration of a trigger or node.
fn of_config<'v>(config: &'v mut Value, pointer: &str, found: &mut Vec<NamedReference<'v>>) {
    let Value::Object(config) = config else { return };
    for (name, value) in config {
        let pointer = format!("{pointer}/{name}");
        match name.as_str() {
            "filter" | "on" => of_filter(value, pointer, 0, found),
            _ => of_member(name, value, pointer, found),
        }
    }
}

/// Adds a member if its name is one of [`MEMBERS`].
fn of_member<'v>(name: &str, value: &'v mut Value, pointer: String, found: &mut Vec<NamedReference<'v>>) {
    if let Some((_, kind)) = MEMBERS.iter().find(|(member, _)| *member == name) {
        found.push(NamedReference { pointer, kind: *kind, value });
    }
}

/// Adds the references in a filter and in its nested groups.
fn of_filter<'v>(filter: &'v mut Value, pointer: String, depth: usize, found: &mut Vec<NamedReference<'v>>) {
    let Value::Object(filter) = filter else { return };
    if depth > MAX_DEPTH {
        return;
    }
    let of_type = match filter.get("type").and_then(Value::as_str) {
        Some("list") => Some(LIST),
        Some("segment") => Some(SEGMENT),
        _ => None,
    };
    for (name, value) in filter {
        let pointer = format!("{pointer}/{name}");
        match (name.as_str(), of_type) {
            ("and" | "or", _) => {
                for (n, part) in value.as_array_mut().into_iter().flatten().enumerate() {
                    of_filter(part, format!("{pointer}/{n}"), depth + 1, found);
                }
            }
            ("not", _) => of_filter(value, pointer, depth + 1, found),
            ("id", Some(kind)) => found.push(NamedReference { pointer, kind, value }),
            _ => of_member(name, value, pointer, found),
        }
    }
}

/// Ids and names of the workspace's resources by kind. Each kind is fetched when it is first needed.
pub(super) struct Names<'a> {
    api: &'a Resources,
    /// Pairs of id and name of the kinds that were fetched.
    known: HashMap<Kind, Vec<(String, String)>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(api: &'a Resources) -> Self {
        Self { api, known: HashMap::new() }
    }

    /// Pairs of id and name of all resources of a kind.
    async fn of(&mut self, kind: Kind) -> Result<&[(String, String)], Failure> {
        if !self.known.contains_key(&kind) {
            let all = self.api.all(kind.noun).await?;
            let text = |one: &Value, member: &str| one[member].as_str().unwrap_or_default().to_owned();
            self.known.insert(kind, all.iter().map(|one| (text(one, "id"), text(one, "name"))).collect());
        }
        Ok(self.known.get(&kind).map_or(&[], Vec::as_slice))
    }

    /// Replaces names by ids. Fails if no resource or several have a name.
    pub(super) async fn put_ids(&mut self, file: &str, body: &mut Value) -> Result<(), Failure> {
        for NamedReference { pointer, kind, value } in named_references(body) {
            let Some(name) = value.as_str().filter(|text| !text.is_empty() && !kind.is_id(text)) else { continue };
            let noun = kind.noun;
            let all = self.of(kind).await?;
            let ids: Vec<&str> = all.iter().filter(|(_, one)| one == name).map(|(id, _)| id.as_str()).collect();
            match ids[..] {
                [only] => *value = Value::from(only),
                [] => return Err(Failure::usage(format!("{file}: {pointer}: no {noun} is called \"{name}\""))),
                _ => {
                    let ids = ids.join(", ");
                    let why = format!("{file}: {pointer}: several {noun}s are called \"{name}\"; write one of {ids}");
                    return Err(Failure::usage(why));
                }
            }
        }
        Ok(())
    }

    /// Replaces ids by names where only one resource of the kind has the name. Ids stay, with a note, for a kind that
    /// the caller may not list.
    pub(super) async fn put_names(&mut self, body: &mut Value) -> Result<(), Failure> {
        for NamedReference { kind, value, .. } in named_references(body) {
            let Some(id) = value.as_str().filter(|text| kind.is_id(text)) else { continue };
            let all = match self.of(kind).await {
                Ok(all) => all,
                Err(Failure::Refused(_)) => {
                    let noun = kind.noun;
                    output::note(&format!("the names of {noun}s may not be read with this key; files keep their ids"));
                    self.known.insert(kind, Vec::new());
                    continue;
                }
                Err(other) => return Err(other),
            };
            let Some((_, name)) = all.iter().find(|(known, _)| known == id) else { continue };
            let is_unique = all.iter().filter(|(_, other)| other == name).count() == 1;
            if is_unique && !name.is_empty() && !kind.is_id(name) {
                *value = Value::from(name.as_str());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_names_something_is_found_and_what_is_free_is_not() {
        let mut body = json!({
            "name": "A", "trigger": {"kind": "message_event", "config": {"event": "open", "campaign_id": "c", "template_id": "t",
                "filter": {"and": [{"not": {"type": "list", "op": "member", "id": "l"}}]}}},
            "graph": {"nodes": [
                {"id": "s", "kind": "send", "config": {"template_id": "t", "variables": {"list_id": "free"}}},
                {"id": "w", "kind": "webhook", "config": {"body": {"template_id": "free"}}},
                {"id": "c", "kind": "condition", "config": {"filter": {"type": "contact", "id": "free"}}},
                {"id": "e", "kind": "wait_event", "config": {"on": {"type": "message", "automation_id": "a"}}}],
                "goal": {"type": "segment", "op": "member", "id": "s"},
                "exit_conditions": [{"or": [{"type": "message", "template_id": "t"}]}]}});
        let mut found: Vec<_> = named_references(&mut body)
            .into_iter()
            .map(|named| format!("{} {}", named.pointer, named.kind.noun))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "/graph/exit_conditions/0/or/0/template_id template",
                "/graph/goal/id segment",
                "/graph/nodes/0/config/template_id template",
                "/graph/nodes/3/config/on/automation_id automation",
                "/trigger/config/campaign_id campaign",
                "/trigger/config/filter/and/0/not/id list",
                "/trigger/config/template_id template",
            ]
        );
    }
}
