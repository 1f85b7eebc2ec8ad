//! Contacts as messages are made for them.

use std::collections::HashSet;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel_content::ViberService;
use messaging_core::domain::contact::AddressSource;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::audiences::CampaignRecipient;

use super::super::fault::Fault;
use super::super::query::{many, params};
use super::super::reads::Reads;
use super::super::row::{get, id, uuid};
use super::left_out::LeftOut;
use super::scan::suppressed;
use crate::tables::segments::attribute_addresses;

macro_rules! numbered_sql {
    ($address:literal) => {
        concat!(
            "SELECT n, id, timezone, ",
            $address,
            " FROM contacts WHERE n = ANY($1)
              AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $2) ORDER BY n"
        )
    };
}

/// Contacts of a workspace by their numbers, in the order of these, with their addresses for a channel; on Viber for
/// the service that sends there.
pub(super) async fn numbered(
    reads: &Reads,
    (workspace, campaign): (WorkspaceId, CampaignId),
    (channel, viber): (Channel, ViberService),
    numbers: &[u64],
) -> Result<Vec<CampaignRecipient>, Fault> {
    let source = AddressSource::of(channel, viber);
    let sql = match source {
        AddressSource::Email => numbered_sql!("email"),
        AddressSource::Phone => numbered_sql!("phone"),
        AddressSource::Attributes => numbered_sql!("attributes"),
    };
    let wanted: Vec<i64> = numbers.iter().map(|number| number.cast_signed()).collect();
    let mut on = reads.snapshot().await?;
    let mut found = many(&mut on, sql, params![wanted, uuid(workspace)], |row| {
        let (number, address) = (get::<i64>(row, 0)?.cast_unsigned(), get(row, 3)?);
        Ok(CampaignRecipient { number, contact_id: id(row, 1)?, address, timezone: get(row, 2)? })
    })
    .await?;
    if source == AddressSource::Attributes {
        let left_out = LeftOut::read(&mut on, (workspace, campaign), channel, numbers).await?;
        // What was read are the attributes with the addresses.
        let mut free = Vec::with_capacity(found.len());
        for recipient in &found {
            let addresses = attribute_addresses(channel, recipient.address.as_deref())?;
            let is_free = |address: &String| !left_out.contains(recipient.number, address);
            free.push(addresses.into_iter().filter(is_free).collect::<Vec<_>>());
        }
        // Only of several it matters which are suppressed.
        let several: Vec<String> = free.iter().filter(|some| some.len() > 1).flatten().cloned().collect();
        let suppressed = suppressed(&mut on, workspace, channel, several).await?;
        for (recipient, addresses) in found.iter_mut().zip(free) {
            recipient.address = first_free(addresses, &suppressed);
        }
    }
    on.end().await?;
    Ok(found)
}

/// The first address that is not suppressed; the first if all are.
fn first_free(mut addresses: Vec<String>, suppressed: &HashSet<String>) -> Option<String> {
    let free = addresses.iter().position(|address| !suppressed.contains(address)).unwrap_or(0);
    (!addresses.is_empty()).then(|| addresses.swap_remove(free))
}
