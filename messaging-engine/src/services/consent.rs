//! A person withdraws consent by complaining or unsubscribing.
//!
//! Contract section 10: `consent.marketing_email` becomes false, in the commit of what the person did.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::contact::{Consent, Contact, Identifier};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::message::Message;
use messaging_core::ports::store::StoreError;

use crate::app::App;
use crate::services::message_parts::is_to_contact;

impl App {
    /// The writes that withdraw the consent of the contacts with these addresses because of a message to one of them.
    /// None if there is no such contact, or nothing to withdraw. Only email knows a consent that is withdrawn this way.
    ///
    /// Marketing went to a contact, not to an address: who has another address by now withdraws all the same.
    pub(crate) async fn withdraw_consent(
        &self,
        message: &Message,
        addresses: impl IntoIterator<Item = &String>,
    ) -> Result<Vec<Write>, StoreError> {
        let (workspace, channel) = (message.workspace_id, message.channel);
        if channel != Channel::Email {
            return Ok(Vec::new());
        }
        let mut is_recipient = false;
        let spelled_to = address::normalize(channel, &message.to);
        let addresses = addresses.into_iter().inspect(|address| {
            is_recipient |= address::normalize(channel, address) == spelled_to;
        });
        let named: Vec<_> =
            addresses.into_iter().filter_map(|address| Identifier::of_address(channel, address)).collect();
        if named.is_empty() || !self.has_contacts(workspace).await? {
            return Ok(Vec::new());
        }
        let now = self.now();
        let mut contacts = self.store().contacts_identified(workspace, named).await?;
        if is_recipient && is_to_contact(message) {
            let recipient = self.contact_of_message(message).await?;
            contacts.extend(recipient.filter(|one| contacts.iter().all(|known| known.record.id != one.record.id)));
        }
        let agreeing = contacts.into_iter().filter(|stored| stored.record.consent.marketing_email != Some(false));
        let writes = agreeing.map(|stored| {
            let consent = Consent { marketing_email: Some(false), ..stored.record.consent };
            let contact = Contact { consent, updated_at: now, ..stored.record };
            Write::put_contact(contact, Expect::Revision(stored.revision))
        });
        Ok(writes.collect())
    }
}
