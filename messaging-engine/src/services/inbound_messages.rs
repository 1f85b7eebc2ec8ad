//! Messages from recipients: words that opt out or in, and evidence that they can be reached.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::contact::{Consent, Contact, Identifier};
use messaging_core::domain::audience::suppression::Suppression;
use messaging_core::domain::channel::address;
use messaging_core::domain::channel::inbound_message::{InboundJudgment, InboundKey, InboundMessage, judge};
use messaging_core::domain::message::EventKind;
use messaging_core::ports::store::{PageRequest, StoreError};
use serde_json::json;

use crate::app::App;
use crate::error::Error;

impl App {
    /// Applies a message from a recipient. When it returns, the effect is durable; a repetition has no further effect.
    pub async fn receive_message(&self, message: &InboundMessage) -> Result<(), Error> {
        self.receive_message_once(message, None).await
    }

    /// Applies a message that has an id at the provider: without effect if one with that id came before, also before a
    /// restart. The last word of a recipient counts, and a repetition of an earlier one is not the last.
    pub(crate) async fn receive_message_once(
        &self,
        message: &InboundMessage,
        key: Option<InboundKey>,
    ) -> Result<(), Error> {
        let (workspace, channel) = (message.workspace_id, message.channel);
        let is_new = self.until_committed(|| async move {
            let Some(key) = key else { return Ok((self.judge_message(message).await?, true)) };
            if self.store().is_inbound_noted(workspace, channel, key).await? {
                return Ok((Changes::default(), false));
            }
            let mut changes = self.judge_message(message).await?;
            changes.push(Write::NoteInbound(workspace, channel, key, self.now()));
            Ok((changes, true))
        });
        if is_new.await? {
            self.note_inbound(workspace, channel, None, "message");
        }
        Ok(())
    }

    async fn judge_message(&self, inbound: &InboundMessage) -> Result<Changes, StoreError> {
        let (workspace, channel) = (inbound.workspace_id, inbound.channel);
        let from = address::normalize(channel, &inbound.from);
        let listed = self.store().suppressed(workspace, channel, std::slice::from_ref(&from)).await?.pop();
        let known = listed.as_ref().map(|listed| (listed.record.reason, listed.record.source));
        let own = self.workspace(workspace).await?;
        let own_words = own.as_ref().map_or(&[][..], |workspace| workspace.opt_out_keywords.as_slice());
        let InboundJudgment { lifts, suppresses, unsubscribes, consent } =
            judge(channel, &inbound.event, own_words, known);
        let mut changes = Changes::default();
        let now = self.now();
        if let Some(listed) = listed.as_ref().filter(|_| lifts) {
            changes.push(Write::DeleteSuppression(workspace, listed.record.id, now));
            changes.push(Write::EndSoftBounces(workspace, channel, from.clone()));
        }
        if let Some(listing) = suppresses {
            let detail = listing.detail.map(ToOwned::to_owned);
            let (record, expect) = if let Some(listed) = listed.filter(|_| !lifts) {
                let raised = listed.record.raised(listing.reason, detail);
                (raised.unwrap_or(listed.record), Expect::Revision(listed.revision))
            } else {
                let record = Suppression {
                    id: self.new_id(now),
                    workspace_id: workspace,
                    channel,
                    address: from.clone(),
                    reason: listing.reason,
                    detail,
                    source: listing.source,
                    created_at: now,
                };
                (record, Expect::Absent)
            };
            changes.push(Write::PutSuppression(record, expect));
        }
        if let Some(method) = unsubscribes {
            let newest = PageRequest { after: None, limit: 1 };
            let newest = self.store().messages_to(workspace, &[(channel, from.clone())], newest).await?.items.pop();
            if let Some(newest) = newest {
                let meta = serde_json::Map::from_iter([("method".to_owned(), json!(method))]);
                changes.extend(self.append_events((&newest).into(), [(EventKind::Unsubscribe, meta)]).await?);
            }
        }
        if let Some(consent) = consent {
            changes.extend(self.consent_to_sms(inbound, &from, consent).await?);
        }
        Ok(changes)
    }

    /// Returns the writes that set whether the contact with this number agrees to text messages.
    async fn consent_to_sms(
        &self,
        inbound: &InboundMessage,
        from: &str,
        agrees: bool,
    ) -> Result<Vec<Write>, StoreError> {
        let Some(named) = Identifier::of_address(inbound.channel, from) else { return Ok(Vec::new()) };
        if !self.has_contacts(inbound.workspace_id).await? {
            return Ok(Vec::new());
        }
        let contacts = self.store().contacts_identified(inbound.workspace_id, vec![named]).await?;
        let others = contacts.into_iter().filter(|stored| stored.record.consent.sms != Some(agrees));
        let writes = others.map(|stored| {
            let consent = Consent { sms: Some(agrees), ..stored.record.consent };
            let contact = Contact { consent, updated_at: self.now(), ..stored.record };
            Write::put_contact(contact, Expect::Revision(stored.revision))
        });
        Ok(writes.collect())
    }
}
