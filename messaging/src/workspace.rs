//! One workspace of an installation, as a program uses it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::domain::channel::Channel;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_engine::ops::PageQuery;
use messaging_engine::ops::messages::{AcceptedMessage, GetMessage, MessagePath, MessageReport};
use messaging_engine::ops::sandbox::{CapturedSource, GetSandboxMessage, SandboxPath};
use messaging_engine::ops::sending_domains::report::{RecordItem, SendingDomainReport};
use messaging_engine::ops::sending_domains::verification::{ListSendingDomainRecords, VerifySendingDomain};
use messaging_engine::ops::sending_domains::{DomainPath, ListSendingDomains};
use messaging_engine::work::Workers;
use messaging_engine::{App, Caller, Error, Message, admin};
use tokio::sync::watch;

use crate::events::Events;
use crate::setup::{capture, domain_of};

/// One workspace of an open installation. Clones share it.
#[derive(Clone)]
pub struct Messaging {
    shared: Arc<Shared>,
    caller: Caller,
    workspace: WorkspaceId,
    sender: Option<String>,
}

/// Installation that several workspaces share.
struct Shared {
    app: App,
    /// True if email of new workspaces is captured.
    captures: bool,
    workers: Mutex<Option<Workers>>,
    closing: watch::Sender<bool>,
}

impl fmt::Debug for Messaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messaging")
            .field("workspace", &self.workspace)
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

impl Messaging {
    pub(crate) fn new(app: App, workers: Option<Workers>, workspace: WorkspaceId, sender: Option<String>) -> Self {
        let captures = sender.is_none();
        let shared = Shared { app, captures, workers: Mutex::new(workers), closing: watch::Sender::new(false) };
        Self { shared: Arc::new(shared), caller: Caller::Operator(Some(workspace)), workspace, sender }
    }

    /// Accepts a message. It is on disk when the call returns, and the workers send it.
    ///
    /// An email without `from_email` and template is from the [sender](crate::Builder::sender).
    pub async fn send(&self, message: Message) -> Result<AcceptedMessage, Error> {
        self.app().send(self.with_sender(message), &self.caller).await
    }

    /// Accepts a message once: a second call with the same key within 24 hours returns the first result and sends
    /// nothing. The key has 1 to 64 visible ASCII characters.
    pub async fn send_once(
        &self,
        idempotency_key: impl Into<String>,
        message: Message,
    ) -> Result<AcceptedMessage, Error> {
        self.app().send_once(self.with_sender(message), Some(idempotency_key.into()), &self.caller).await
    }

    fn with_sender(&self, mut message: Message) -> Message {
        let names_none = message.from_email.is_none() && message.sending_domain_id.is_none();
        if message.channel == Channel::Email && names_none && message.template_id.is_none() {
            message.from_email.clone_from(&self.sender);
        }
        message
    }

    /// Returns the report of a message: its status, the reason for it, and its events so far.
    pub async fn message(&self, id: MessageId) -> Result<MessageReport, Error> {
        self.app().run(GetMessage).path(MessagePath { id }).by(&self.caller).await
    }

    /// Returns an email that was captured instead of sent, as it would have gone on the wire. `NotFound` until the
    /// workers have processed it.
    pub async fn captured(&self, id: MessageId) -> Result<CapturedSource, Error> {
        let path = SandboxPath { workspace_id: self.workspace, message_id: id };
        self.app().run(GetSandboxMessage).path(path).by(&self.caller).await
    }

    /// Returns the events of the workspace's messages after `cursor`, the `next_cursor` of an earlier page; without
    /// one, from the oldest that is kept.
    ///
    /// Events are recorded from the first call on, and are kept for 30 days.
    pub async fn events(&self, cursor: Option<String>) -> Result<Events, Error> {
        Events::follow(self.app().clone(), self.caller.clone(), self.shared.closing.subscribe(), cursor).await
    }

    /// Returns the DNS records that the sender's domain needs; none without a [sender](crate::Builder::sender).
    pub async fn dns_records(&self) -> Result<Vec<RecordItem>, Error> {
        let Some(domain) = self.sender_domain().await? else { return Ok(Vec::new()) };
        let path = DomainPath { workspace_id: self.workspace, id: domain.id };
        Ok(self.app().run(ListSendingDomainRecords).path(path).by(&self.caller).await?.data)
    }

    /// Looks up the DNS records of the sender's domain now, and returns the result. The workers look them up too, less
    /// often.
    pub async fn verify_sender(&self) -> Result<SendingDomainReport, Error> {
        let domain = self.sender_domain().await?.ok_or(Error::NotFound)?;
        let path = DomainPath { workspace_id: self.workspace, id: domain.id };
        self.app().run(VerifySendingDomain).path(path).by(&self.caller).await
    }

    /// Returns the sending domain of the sender: its domain, or the nearest one above it.
    async fn sender_domain(&self) -> Result<Option<SendingDomainReport>, Error> {
        let Some(name) = self.sender.as_deref().and_then(domain_of) else { return Ok(None) };
        let mut query = PageQuery::default();
        let mut nearest: Option<SendingDomainReport> = None;
        loop {
            let page = self.app().run(ListSendingDomains).query(query.clone()).by(&self.caller).await?;
            for domain in page.data.into_iter().filter(|domain| is_at_or_below(&name, &domain.domain)) {
                if nearest.as_ref().is_none_or(|nearest| nearest.domain.len() < domain.domain.len()) {
                    nearest = Some(domain);
                }
            }
            match page.next_cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => return Ok(nearest),
            }
        }
    }

    /// Returns another workspace of the installation, which is created with this name at the first call. Workspaces
    /// share nothing but the database: use one for each of your tenants. It has no sender of its own; while the program
    /// names none, its email is captured as well.
    pub async fn workspace(&self, name: &str) -> Result<Self, Error> {
        let workspace = admin::embedded_workspace(self.app(), name).await?;
        if self.shared.captures {
            capture(self.app(), workspace).await?;
        }
        let caller = Caller::Operator(Some(workspace));
        Ok(Self { shared: Arc::clone(&self.shared), caller, workspace, sender: None })
    }

    /// Returns the id of the workspace.
    pub fn workspace_id(&self) -> WorkspaceId {
        self.workspace
    }

    /// Returns the application, for every operation in [`ops`](crate::ops).
    pub fn app(&self) -> &App {
        &self.shared.app
    }

    /// Returns the identity of calls in this workspace: the operator's, who may do everything in it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Ends the installation in order: waits up to 10 seconds for attempts under way, then closes the database.
    /// Messages that are still queued are sent after the next start. Concerns all workspaces; later calls fail.
    pub async fn close(&self) {
        self.shared.closing.send_replace(true);
        self.app().end_waits();
        let workers = self.shared.workers.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(workers) = workers {
            workers.stop().await;
        }
        self.app().store().close().await;
    }
}

/// Returns true if `name` is `domain` or a name below it.
fn is_at_or_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_below_a_domain_at_a_dot() {
        for (name, domain, expected) in [
            ("example.com", "example.com", true),
            ("mail.example.com", "example.com", true),
            ("badexample.com", "example.com", false),
            ("example.com", "mail.example.com", false),
        ] {
            assert_eq!(is_at_or_below(name, domain), expected, "{name} {domain}");
        }
    }
}
