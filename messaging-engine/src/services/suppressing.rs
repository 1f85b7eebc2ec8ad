//! Consequences of bounces, complaints and deliveries for addresses: the suppression list, and streaks of soft bounces
//! that lead to it.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::audience::soft_bounce;
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason, SuppressionSource};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::delivery::{Judgment, Suppressed};
use messaging_core::domain::message::Message;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::StoreError;

use crate::app::App;

/// An address to suppress, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The address, as it was spelled.
    pub(crate) address: String,
    /// Reason stored with the suppression.
    pub(crate) reason: SuppressionReason,
    /// Details of the reason.
    pub(crate) detail: Option<String>,
}

impl App {
    /// Returns, for each address, the reason that stops all messages to it, transactional ones too, or `None` if there
    /// is none.
    pub(crate) async fn stopping_reasons<'a>(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        addresses: impl Iterator<Item = &'a String>,
    ) -> Result<Vec<Option<SuppressionReason>>, StoreError> {
        let spelled: Vec<_> = addresses.map(|text| address::normalize(channel, text)).collect();
        let listed = self.store().suppressed(workspace, channel, &spelled).await?;
        let reason = |spelled: &String| {
            let found = listed.iter().find(|stored| stored.record.address == *spelled);
            found.map(|stored| stored.record.reason).filter(|reason| reason.stops_transactional())
        };
        Ok(spelled.iter().map(reason).collect())
    }

    /// Returns the consequences of a judgment for the addresses it names, as writes.
    pub(crate) async fn address_writes(
        &self,
        message: &Message,
        judgment: &Judgment,
    ) -> Result<Vec<Write>, StoreError> {
        let (workspace, channel) = (message.workspace_id, message.channel);
        // Nearly always there is no streak to end. Finding out would cost more than ending it.
        let reached = judgment.reached.iter().map(|address| address::normalize(channel, address));
        let mut writes: Vec<_> = reached.map(|address| Write::EndSoftBounces(workspace, channel, address)).collect();
        let listing = |one: &Suppressed| Listing {
            address: one.address.clone(),
            reason: one.reason,
            detail: one.detail.map(ToOwned::to_owned),
        };
        // The recipient is the source of an opt-out at the provider.
        let (opted_out, others): (Vec<_>, Vec<_>) =
            judgment.suppress.iter().partition(|one| one.reason == SuppressionReason::Unsubscribe);
        let mut listings: Vec<_> = others.into_iter().map(listing).collect();
        let opted_out: Vec<_> = opted_out.into_iter().map(listing).collect();
        for address in &judgment.soft_bounces {
            let address = address::normalize(channel, address);
            let streak = self.store().soft_bounces(workspace, channel, &address).await?;
            if streak.is_full() {
                // Counted first, so that of two bounces at once not both can be the last one.
                writes.extend([
                    Write::CountSoftBounce(streak),
                    Write::EndSoftBounces(workspace, channel, address.clone()),
                ]);
                let detail = Some(soft_bounce::DETAIL.to_owned());
                listings.push(Listing { address, reason: SuppressionReason::Bounce, detail });
            } else {
                writes.push(Write::CountSoftBounce(streak));
            }
        }
        writes.extend(self.suppress(workspace, channel, SuppressionSource::System, listings).await?);
        writes.extend(self.suppress(workspace, channel, SuppressionSource::Recipient, opted_out).await?);
        let complaining = judgment.suppress.iter().filter(|one| one.reason == SuppressionReason::Complaint);
        let complaining = complaining.map(|one| &one.address);
        writes.extend(self.withdraw_consent(message, complaining).await?);
        writes.extend(self.forget_dead_tokens(message, judgment).await?);
        Ok(writes)
    }

    /// Returns the write that removes permanently invalid push tokens from the message's contact: the app registers the
    /// next one, and nothing is sent to the dead one again, even if its suppression is removed.
    async fn forget_dead_tokens(&self, message: &Message, judgment: &Judgment) -> Result<Option<Write>, StoreError> {
        let Some(contact) = message.contact_id.filter(|_| message.channel == Channel::Push) else { return Ok(None) };
        let is_dead = |one: &&Suppressed| one.reason == SuppressionReason::Bounce && one.detail.is_none();
        let dead: Vec<_> = judgment.suppress.iter().filter(is_dead).map(|one| one.address.as_str()).collect();
        if dead.is_empty() {
            return Ok(None);
        }
        let Some(stored) = self.store().contact(message.workspace_id, contact).await? else { return Ok(None) };
        Ok(stored.record.without_push_tokens(&dead).map(|left| {
            let left = Contact { updated_at: self.now(), ..left };
            Write::put_contact(left, Expect::Revision(stored.revision))
        }))
    }

    /// Returns the writes that suppress addresses. An address that is suppressed already keeps its record; its reason
    /// only rises (contract section 10).
    pub(crate) async fn suppress(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        source: SuppressionSource,
        listings: Vec<Listing>,
    ) -> Result<Vec<Write>, StoreError> {
        if listings.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        let mut wanted: Vec<Listing> = Vec::with_capacity(listings.len());
        // The address of an erased recipient is not known any more.
        for listing in listings.into_iter().filter(|listing| !listing.address.is_empty()) {
            let listing = Listing { address: address::normalize(channel, &listing.address), ..listing };
            match wanted.iter_mut().find(|other| other.address == listing.address) {
                Some(other) if other.reason < listing.reason => *other = listing,
                Some(_) => {}
                None => wanted.push(listing),
            }
        }
        let addresses: Vec<_> = wanted.iter().map(|listing| listing.address.clone()).collect();
        let listed = self.store().suppressed(workspace, channel, &addresses).await?;
        let writes = wanted.into_iter().filter_map(|Listing { address, reason, detail }| {
            if let Some(stored) = listed.iter().find(|stored| stored.record.address == address) {
                let raised = stored.record.raised(reason, detail)?;
                return Some(Write::PutSuppression(raised, Expect::Revision(stored.revision)));
            }
            let id = self.new_id(now);
            let record =
                Suppression { id, workspace_id: workspace, channel, address, reason, detail, source, created_at: now };
            Some(Write::PutSuppression(record, Expect::Absent))
        });
        Ok(writes.collect())
    }
}
