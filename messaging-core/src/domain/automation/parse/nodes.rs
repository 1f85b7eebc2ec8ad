//! Parser of nodes (contract section 13.2).

mod actions;
mod waits;

use serde_json::Value;

use super::forms::{
    ConditionConfig, ExitConfig, ListConfig, NodeForm, NodeName, SendConfig, SplitConfig, TagConfig,
    UpdateContactConfig, WaitConfig, WaitEventConfig, WebhookConfig,
};
use super::reader::{InDrafts, LocatedObject, Reader};
use crate::domain::automation::graph::{NodeKind, Share};
use crate::domain::segment::parse::Reference;
use crate::violation::FieldCode;

/// A node, as far as it could be read.
#[derive(Debug)]
pub(super) struct ReadNode {
    pub(super) id: String,
    /// Kind and settings; `None` when incomplete or wrong.
    pub(super) kind: Option<NodeKind>,
    /// Names of its branches; `None` while they are not known.
    pub(super) branches: Option<Vec<String>>,
}

/// Reads the node at an index of its graph; `None` when not even its id can be read.
pub(super) fn read(reader: &mut Reader, index: usize, sent: &Value) -> Option<ReadNode> {
    let pointer = format!("/graph/nodes/{index}");
    let id = sent.get("id").unwrap_or(&Value::Null);
    if sent.is_object() && (id.is_null() || id == "") {
        reader.fault(format!("{pointer}/id"), FieldCode::Required, "is required");
    }
    let Some(form) = reader.form::<NodeForm>(sent.clone(), &pointer, InDrafts::Required) else {
        // Edges may name a broken node, so that their faults are reported as well.
        let id = sent.get("id").and_then(Value::as_str)?.to_owned();
        return Some(ReadNode { id, kind: None, branches: None });
    };
    let members = form.config.unwrap_or_default();
    let pointer = format!("{pointer}/config");
    let config = LocatedObject { members: &members, pointer: &pointer };
    let kind = read_kind(reader, form.kind, config);
    if let Some(NodeKind::Send(send)) = &kind {
        reader.sends.push((index, (**send).clone()));
    }
    let branches = match (form.kind, &kind) {
        (NodeName::Split, Some(NodeKind::Split(shares))) => {
            Some(shares.iter().map(|share| share.name.clone()).collect())
        }
        (NodeName::Split, _) => None,
        (kind, _) => Some(fixed_branches(kind).iter().map(|&name| name.to_owned()).collect()),
    };
    Some(ReadNode { id: form.id?, kind, branches })
}

const fn fixed_branches(kind: NodeName) -> &'static [&'static str] {
    match kind {
        NodeName::WaitEvent => &["event", "timeout"],
        NodeName::Condition => &["yes", "no"],
        NodeName::Webhook => &["next", "error"],
        NodeName::Exit | NodeName::Split => &[],
        NodeName::Send
        | NodeName::Wait
        | NodeName::UpdateContact
        | NodeName::AddToList
        | NodeName::RemoveFromList
        | NodeName::AddTag
        | NodeName::RemoveTag => &["next"],
    }
}

fn read_kind(reader: &mut Reader, kind: NodeName, config: LocatedObject<'_>) -> Option<NodeKind> {
    Some(match kind {
        NodeName::Send => {
            let form = reader.config::<SendConfig>(config)?;
            NodeKind::Send(Box::new(actions::send(reader, config, form)?))
        }
        NodeName::Wait => {
            let form = reader.config::<WaitConfig>(config)?;
            NodeKind::Wait(waits::wait(reader, config, form)?)
        }
        NodeName::WaitEvent => {
            let form = reader.config::<WaitEventConfig>(config)?;
            let on = waits::awaited(reader, config);
            let timeout = reader.need(config, "timeout", form.timeout);
            NodeKind::WaitEvent { on: on?, timeout: timeout? }
        }
        NodeName::Condition => {
            reader.config::<ConditionConfig>(config)?;
            let filter = config.get("filter");
            let filter = reader.need(config, "filter", filter)?;
            NodeKind::Condition(reader.filter(filter, &config.at("filter"))?)
        }
        NodeName::Split => {
            let form = reader.config::<SplitConfig>(config)?;
            NodeKind::Split(split(reader, config, form)?)
        }
        NodeName::UpdateContact => {
            let form = reader.config::<UpdateContactConfig>(config)?;
            NodeKind::UpdateContact(Box::new(actions::update(reader, config, form)))
        }
        NodeName::AddToList => {
            let form = reader.config::<ListConfig>(config)?;
            NodeKind::AddToList(reader.need_id(config, "list_id", form.list_id, Reference::List)?)
        }
        NodeName::RemoveFromList => {
            let form = reader.config::<ListConfig>(config)?;
            NodeKind::RemoveFromList(reader.need_id(config, "list_id", form.list_id, Reference::List)?)
        }
        NodeName::AddTag => {
            let form = reader.config::<TagConfig>(config)?;
            NodeKind::AddTag(actions::tag(reader, config, form)?)
        }
        NodeName::RemoveTag => {
            let form = reader.config::<TagConfig>(config)?;
            NodeKind::RemoveTag(actions::tag(reader, config, form)?)
        }
        NodeName::Webhook => {
            let form = reader.config::<WebhookConfig>(config)?;
            NodeKind::Webhook(Box::new(actions::call(reader, config, form)?))
        }
        NodeName::Exit => {
            let form = reader.config::<ExitConfig>(config)?;
            NodeKind::Exit(form.reason.filter(|reason| !reason.is_empty()))
        }
    })
}

fn split(reader: &mut Reader, config: LocatedObject<'_>, form: SplitConfig) -> Option<Vec<Share>> {
    let branches = reader.need(config, "branches", form.branches)?;
    for (index, branch) in branches.iter().enumerate() {
        if branches[..index].iter().any(|earlier| earlier.name == branch.name) {
            let at = format!("{}/{index}/name", config.at("branches"));
            reader.fault(at, FieldCode::Duplicate, "another branch has this name");
        }
    }
    Some(branches.into_iter().map(|branch| Share { name: branch.name, weight: branch.weight }).collect())
}
