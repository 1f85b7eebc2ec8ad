//! Complaints about mail, counted for the path over which it was delivered.
//!
//! The exchanger that took a message is in the event of its delivery, and the source in the record of the attempt. The
//! mail with the complaint comes to any node; if another one uses the source, the stored state of the path reports it.

use messaging_core::changes::{Changes, Expect, SourceWrite, Write};
use messaging_core::domain::delivery::attempt::{AttemptOutcome, KEPT_ATTEMPTS};
use messaging_core::domain::delivery::ip_pool::source::SourceAddress;
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::domain::message::EventKind;
use messaging_core::error::Chain;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{CommitError, PageRequest, StoreError, Stored};
use serde_json::Value;

use super::site_counts::{MAX_DELIVERIES, delivery_to};
use super::sources::with_complaint;
use crate::app::App;

/// Number of tries to store a complaint while the node that uses the path keeps changing its state.
const MAX_COMMITS: usize = 8;

impl App {
    /// Counts complaints of recipients of a message. The complaints themselves are stored already; one that cannot be
    /// counted is logged.
    pub(super) async fn count_complaints(&self, workspace: WorkspaceId, message: MessageId, addresses: &[String]) {
        if addresses.is_empty() {
            return;
        }
        if let Err(error) = self.try_to_count(workspace, message, addresses).await {
            tracing::warn!(%message, error = %Chain(&error), "complaints are not counted for the path of a message");
        }
    }

    async fn try_to_count(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        addresses: &[String],
    ) -> Result<(), StoreError> {
        let (kind, page) = (EventKind::Delivered, PageRequest { after: None, limit: KEPT_ATTEMPTS as usize });
        let deliveries = self.store().message_events_of_kind(workspace, message, kind, MAX_DELIVERIES).await?;
        let attempts = self.store().attempts(workspace, message, page).await?.items;
        for address in addresses {
            let delivery = delivery_to(&deliveries, address);
            let Some(exchanger) = delivery.and_then(|event| event.meta.get("mx")).and_then(Value::as_str) else {
                continue;
            };
            let dialogs = attempts.iter().map(|attempt| &attempt.dialog);
            let took = dialogs.filter(|dialog| dialog.outcome == AttemptOutcome::Delivered);
            let source = took.filter(|dialog| dialog.mx.as_deref() == Some(exchanger)).find_map(|dialog| dialog.source);
            let Some(source) = source else { continue };
            if let Some(site) = self.paths().complained(source, exchanger) {
                self.tell_complaint(source, &site).await?;
            }
        }
        Ok(())
    }

    /// Stores a complaint in the state of a path that another node uses.
    async fn tell_complaint(&self, source: SourceAddress, site: &SiteName) -> Result<(), StoreError> {
        for _ in 0..MAX_COMMITS {
            // A path that is no longer kept has no rate to lower.
            let Some(Stored { record, revision }) = self.store().path_row(source, site.as_str()).await? else {
                return Ok(());
            };
            let row = Box::new(with_complaint(self.site_rules(), record, self.now()));
            let write = Write::Source(SourceWrite::OrderPath(row, Expect::Revision(revision)));
            match self.commit_in_background(Changes::from_iter([write])).await {
                Err(CommitError::Conflict) => {}
                outcome => return outcome.map_err(CommitError::into_store_error),
            }
        }
        Ok(())
    }
}
