//! A person withdraws consent by complaining or unsubscribing.
//!
//! Contract section 10: `consent.marketing_email` becomes false, in the commit of what the person did.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::contact::{Consent, Contact, Identifier};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::StoreError;

use crate::app::App;

impl App {
    /// The writes that withdraw the consent of the contacts with these addresses. None where there is no
    /// such contact, or nothing to withdraw. Only email knows a consent that is withdrawn this way.
    pub(crate) async fn withdraw_consent(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        addresses: impl IntoIterator<Item = &String>,
    ) -> Result<Vec<Write>, StoreError> {
        if channel != Channel::Email {
            return Ok(Vec::new());
        }
        let named: Vec<_> =
            addresses.into_iter().filter_map(|address| Identifier::of_address(channel, address)).collect();
        if named.is_empty() || !self.has_contacts(workspace).await? {
            return Ok(Vec::new());
        }
        let now = self.now();
        let contacts = self.store().contacts_identified(workspace, named).await?;
        let agreeing = contacts.into_iter().filter(|stored| stored.record.consent.marketing_email != Some(false));
        let writes = agreeing.map(|stored| {
            let consent = Consent { marketing_email: Some(false), ..stored.record.consent };
            let contact = Contact { consent, updated_at: now, ..stored.record };
            Write::put_contact(contact, Expect::Revision(stored.revision))
        });
        Ok(writes.collect())
    }
}
