//! An operation that is tried, and the row that it must leave.

use http::Method;
use serde_json::{Value, json};

use super::kinds::{Act, Kind};

/// Members by which entries name a resource.
const NAMES: [&str; 6] = ["name", "domain", "email", "url", "key", "channel"];

/// Changes that an entry must have.
#[derive(Debug, Clone, Default)]
pub(super) struct Effect {
    /// Members of changes, each of which some change of the entry has.
    has: Vec<Value>,
    /// True if the entry has no other changes, except of the resource's version.
    is_all: bool,
}

impl Effect {
    /// Compares the changes of an entry.
    #[track_caller]
    pub(super) fn check(&self, changes: &[Value]) {
        for wanted in &self.has {
            let members = wanted.as_object().unwrap();
            let is_it = |change: &&Value| members.iter().all(|(name, value)| change[name] == *value);
            assert!(changes.iter().any(|change| is_it(&change)), "{wanted} in {changes:?}");
        }
        let others = changes.iter().filter(|change| change["pointer"] != "/version").count();
        assert!(!self.is_all || others == self.has.len(), "{:?} are all of {changes:?}", self.has);
    }
}

/// Effect of an operation on its resource.
#[derive(Debug, Clone)]
enum Doing {
    Create,
    Update,
    Delete,
    /// Another effect, with the changes that the entry must have.
    Other(Vec<Value>),
    Nothing,
}

/// An operation that is tried.
#[derive(Debug, Clone)]
pub(super) struct Tried {
    pub(super) operation: &'static str,
    /// Kind of the resource.
    pub(super) kind: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// The resource as it was last shown.
    before: Value,
    /// The resource as the entry names it; null if the answer names it.
    resource: Value,
    /// True if values are of a person, and not kept.
    is_personal: bool,
    doing: Doing,
}

impl Tried {
    pub(super) fn of(operation: &'static str, kind: &'static str, method: Method, path: String) -> Self {
        let (body, before, resource) = (Vec::new(), Value::Null, Value::Null);
        let doing = Doing::Other(Vec::new());
        Self { operation, kind, method, path, body, before, resource, is_personal: false, doing }
    }

    pub(super) fn create(kind: &Kind, path: String, body: Vec<u8>) -> Self {
        let tried = Self::of(kind.operations[0], kind.name, Method::POST, path);
        Self { body, is_personal: kind.is_personal, doing: Doing::Create, ..tried }
    }

    pub(super) fn update(kind: &Kind, operation: &'static str, path: String, before: Value, body: &Value) -> Self {
        let tried = Self::of(operation, kind.name, Method::PATCH, path).sending(body.clone());
        let resource = kind.resource(&before);
        Self { resource, before, doing: Doing::Update, ..tried }
    }

    pub(super) fn delete(kind: &Kind, path: String, before: Value) -> Self {
        let tried = Self::of(kind.operations[1], kind.name, Method::DELETE, path);
        let (resource, is_personal) = (kind.resource(&before), kind.is_personal);
        let doing = if kind.shows_deletion { Doing::Delete } else { Doing::Other(Vec::new()) };
        Self { before, resource, is_personal, doing, ..tried }
    }

    pub(super) fn act(kind: &Kind, act: &Act, one: &str, before: &Value) -> Self {
        let tried = Self::of(act.operation, kind.name, Method::POST, format!("{one}/{}", act.path));
        let mut resource = if act.is_copy { Value::Null } else { kind.resource(before) };
        if act.changes.is_empty() {
            // Neither the answer nor an operation that reads shows the resource.
            resource["name"] = Value::Null;
        }
        let changed = act.changes.iter().map(|pointer| json!({"pointer": pointer})).collect();
        Self { resource, doing: Doing::Other(changed), ..tried }
    }

    pub(super) fn sending(self, body: Value) -> Self {
        Self { body: body.to_string().into_bytes(), ..self }
    }

    /// Sets the resource, as the entry names it.
    pub(super) fn about(self, resource: Value) -> Self {
        Self { resource, ..self }
    }

    /// Takes the resource from the answer.
    pub(super) fn naming_by_answer(self) -> Self {
        Self { resource: Value::Null, ..self }
    }

    /// Sets members of the changes that the entry must have.
    pub(super) fn changing(self, changes: Value) -> Self {
        let Value::Array(changes) = changes else { panic!("a list") };
        Self { doing: Doing::Other(changes), ..self }
    }

    /// Expects that nothing is changed.
    pub(super) fn without_effect(self) -> Self {
        Self { doing: Doing::Nothing, ..self }
    }

    /// The body as JSON; null for a file.
    pub(super) fn sent(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The resource as the entry of a success names it. A name of null is not compared.
    pub(super) fn resource(&self, answer: &Value) -> Value {
        if !self.resource.is_null() {
            return self.resource.clone();
        }
        let id = ["id", "import_id", "user_id"].iter().map(|name| &answer[*name]).find(|id| id.is_string());
        let name = NAMES.iter().map(|name| &answer[*name]).find(|name| name.is_string());
        let name = name.filter(|name| !self.is_personal && !name.as_str().unwrap().contains(['?', '#']));
        json!({"kind": self.kind, "id": id.expect("an id"), "name": name})
    }

    /// The changes in the entry of a success; `None` if nothing was changed, so that there is no entry.
    pub(super) fn effect(&self, answer: &Value) -> Option<Effect> {
        let sent = self.sent();
        let members = || sent.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let change = |name: &str, before: &Value, after: &Value| {
            let shown = |value: &Value| if self.is_personal { Value::Null } else { value.clone() };
            json!({"pointer": format!("/{name}"), "before": shown(before), "after": shown(after)})
        };
        // A URL with a secret is crossed out, and objects are compared member by member.
        let is_plain = |value: &Value| {
            value.as_str().map_or(!value.is_object() && !value.is_null(), |text| !text.contains(['?', '#']))
        };
        let (has, is_all) = match &self.doing {
            Doing::Nothing => return None,
            Doing::Create if self.before.is_null() => {
                let shown = members().filter(|name| is_plain(&answer[*name]));
                (shown.map(|name| change(name, &Value::Null, &answer[name])).collect(), false)
            }
            Doing::Create | Doing::Update => {
                let changed = members().filter(|name| self.before[*name] != answer[*name]);
                let has: Vec<_> = changed.map(|name| change(name, &self.before[name], &answer[name])).collect();
                if has.is_empty() {
                    return None;
                }
                (has, true)
            }
            Doing::Delete => {
                let named = NAMES.iter().find(|name| self.before[**name].is_string());
                let named = named.filter(|name| is_plain(&self.before[**name]));
                (named.map(|name| change(name, &self.before[*name], &Value::Null)).into_iter().collect(), false)
            }
            Doing::Other(changes) => (changes.clone(), false),
        };
        Some(Effect { has, is_all })
    }
}
