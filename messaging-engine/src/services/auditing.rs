//! Entries of audit logs, and the webhooks that are told of them.

use std::net::IpAddr;

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::automation::Automation;
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::audit::changes::{AuditChange, Detail, between};
use messaging_core::domain::security::audit::{Actor, ActorKind, AuditEntry, AuditRow, Resource};
use messaging_core::domain::webhook::EventType;
use messaging_core::domain::webhook::delivery::{Delivery, Subject};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::app::App;

/// Something that happened, to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    /// Whoever did it.
    pub(crate) actor: Actor,
    /// The operation or command.
    pub(crate) operation: String,
    /// The resource.
    pub(crate) resource: Resource,
    /// Its changes.
    pub(crate) changes: Vec<AuditChange>,
    /// Address of the caller.
    pub(crate) ip: Option<IpAddr>,
    /// Id of the request.
    pub(crate) request_id: Option<String>,
}

/// A person as an actor.
pub(crate) fn actor_of(user: &User) -> Actor {
    let name = user.name.clone().unwrap_or_else(|| user.email.clone());
    Actor { kind: ActorKind::User, id: Some(user.id.to_string()), name: Some(name) }
}

impl Recorded {
    /// Something that the server did by itself.
    pub(crate) fn by_system(operation: &str, resource: Resource, changes: Vec<AuditChange>) -> Self {
        let actor = Actor::unnamed(ActorKind::System);
        Self { actor, operation: operation.to_owned(), resource, changes, ip: None, request_id: None }
    }
}

/// A command of the operator, to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    operation: &'static str,
    workspace: Option<WorkspaceId>,
    resource: Resource,
    before: Option<Value>,
    after: Option<Value>,
}

impl Command {
    /// A command, by its words, on a resource.
    pub(crate) fn new(operation: &'static str, kind: &str, id: Option<String>, name: Option<&str>) -> Self {
        let resource = Resource { kind: kind.to_owned(), id, name: name.map(ToOwned::to_owned) };
        Self { operation, workspace: None, resource, before: None, after: None }
    }

    /// Records the entry in the log of a workspace as well.
    pub(crate) fn within(self, workspace: WorkspaceId) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// Adds the resource as it was before the operation.
    pub(crate) fn before(self, resource: &impl Serialize) -> Self {
        Self { before: serde_json::to_value(resource).ok(), ..self }
    }

    /// Adds the resource as it is after the operation.
    pub(crate) fn after(self, resource: &impl Serialize) -> Self {
        Self { after: serde_json::to_value(resource).ok(), ..self }
    }
}

impl App {
    /// The writes that add an entry to logs, `None` for that of the installation, and tell the webhooks of workspaces.
    pub(crate) async fn record_entry(
        &self,
        logs: &[Option<WorkspaceId>],
        recorded: &Recorded,
    ) -> Result<Vec<Write>, StoreError> {
        let now = self.now();
        let mut writes = Vec::new();
        for log in logs {
            let Recorded { actor, operation, resource, changes, ip, request_id } = recorded.clone();
            let entry =
                AuditEntry { id: self.new_id(now), at: now, actor, operation, resource, changes, ip, request_id };
            if let Some(workspace) = *log {
                writes.extend(self.tell_of_entry(workspace, &entry).await?);
            }
            writes.push(Write::Audit(Box::new(AuditRow { workspace_id: *log, entry })));
        }
        Ok(writes)
    }

    /// The writes that record what the server did by itself to a campaign.
    pub(crate) async fn record_own_campaign_change(
        &self,
        operation: &str,
        before: &Campaign,
        after: &Campaign,
    ) -> Result<Vec<Write>, StoreError> {
        let state = |of: &Campaign| json!({"status": of.status, "pause_reason": of.pause_reason, "failure_reason": of.failure_reason});
        let changes = between(Some(&state(before)), Some(&state(after)), Detail::Values);
        let (id, name) = (Some(after.id.to_string()), Some(after.plan.name.clone()));
        let resource = Resource { kind: "campaign".to_owned(), id, name };
        self.record_entry(&[Some(after.workspace_id)], &Recorded::by_system(operation, resource, changes)).await
    }

    /// The writes that record what the server did by itself to an automation.
    pub(crate) async fn record_own_automation_change(
        &self,
        operation: &str,
        before: &Automation,
        after: &Automation,
    ) -> Result<Vec<Write>, StoreError> {
        let state = |of: &Automation| json!({"status": of.status, "pause_reason": of.pause_reason});
        let changes = between(Some(&state(before)), Some(&state(after)), Detail::Values);
        let (id, name) = (Some(after.id.to_string()), Some(after.name.clone()));
        let resource = Resource { kind: "automation".to_owned(), id, name };
        self.record_entry(&[Some(after.workspace_id)], &Recorded::by_system(operation, resource, changes)).await
    }

    /// The changes of a command of the operator with its entries; a command that changes nothing has none.
    pub(crate) async fn record_command(&self, mut changes: Changes, command: Command) -> Result<Changes, StoreError> {
        if changes.is_empty() {
            return Ok(changes);
        }
        let Command { operation, workspace, resource, before, after } = command;
        let recorded = Recorded {
            actor: Actor::unnamed(ActorKind::Command),
            operation: operation.to_owned(),
            resource,
            changes: between(before.as_ref(), after.as_ref(), Detail::Values),
            ip: None,
            request_id: None,
        };
        let logs: Vec<_> = [None].into_iter().chain(workspace.map(Some)).collect();
        changes.extend(self.record_entry(&logs, &recorded).await?);
        Ok(changes)
    }

    /// The writes that tell the webhooks of a workspace of an entry.
    async fn tell_of_entry(&self, workspace: WorkspaceId, entry: &AuditEntry) -> Result<Vec<Write>, StoreError> {
        let Ok(Value::Object(data)) = serde_json::to_value(entry) else { return Ok(Vec::new()) };
        self.tell_of_record(workspace, EventType::AuditRecorded, &data, entry.at).await
    }

    /// The writes that tell the webhooks of a workspace of something that is no event of a message.
    pub(crate) async fn tell_of_record(
        &self,
        workspace: WorkspaceId,
        event_type: EventType,
        data: &Map<String, Value>,
        at: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let listeners = self.listeners(workspace).await?;
        let mut writes = Vec::new();
        for webhook in listeners.webhooks.iter().filter(|webhook| webhook.wants(event_type)) {
            let event = (self.new_id(at), event_type);
            let receiver = (workspace, webhook.id);
            let delivery = Delivery::new(self.new_id(at), receiver, event, Subject::Record(data.clone()), at);
            writes.extend(self.start_delivery(webhook.status, delivery));
        }
        Ok(writes)
    }
}
