//! Contacts as messages are made for them.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel_content::ViberService;
use messaging_core::domain::contact::AddressSource;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::audiences::CampaignRecipient;
use rusqlite::Connection;

use super::super::fault::Fault;
use super::super::numbers::workspace_number;
use super::super::row::id;
use super::left_out::LeftOut;
use super::suppressed::Suppressed;
use crate::tables::segments::attribute_addresses;

macro_rules! numbered_sql {
    ($address:literal) => {
        concat!("SELECT id, timezone, ", $address, " FROM contacts WHERE n = ?1 AND workspace_number = ?2")
    };
}

/// Contacts of a workspace by their numbers, in the order of these, with their addresses for a channel; on Viber for
/// the service that sends there.
pub(super) fn numbered(
    connection: &Connection,
    workspace: WorkspaceId,
    campaign: CampaignId,
    (channel, viber): (Channel, ViberService),
    numbers: &[u64],
) -> Result<Vec<CampaignRecipient>, Fault> {
    // Locked once instead of once for every look-up.
    let connection = &*connection.unchecked_transaction()?;
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(Vec::new()) };
    let source = AddressSource::of(channel, viber);
    let mut statement = connection.prepare_cached(match source {
        AddressSource::Email => numbered_sql!("email"),
        AddressSource::Phone => numbered_sql!("phone"),
        AddressSource::Attributes => numbered_sql!("attributes"),
    })?;
    let mut suppressed = Suppressed::new(connection, workspace, channel)?;
    let mut left_out = LeftOut::new(connection, workspace, campaign, channel)?;
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut found = Vec::with_capacity(numbers.len());
    for number in numbers {
        let mut rows = statement.query([number.cast_signed(), workspace_number])?;
        let Some(row) = rows.next()? else { continue };
        let address = match source {
            AddressSource::Email | AddressSource::Phone => row.get(2)?,
            AddressSource::Attributes => {
                let mut free = Vec::new();
                for address in attribute_addresses(channel, crate::row::get(row, 2)?)? {
                    if !left_out.contains(number, &address)? {
                        free.push(address);
                    }
                }
                first_free(free, &mut suppressed)?
            }
        };
        found.push(CampaignRecipient { number, contact_id: id(row, 0)?, address, timezone: row.get(1)? });
    }
    Ok(found)
}

/// The first address that is not suppressed; the first if all are.
fn first_free(addresses: Vec<String>, suppressed: &mut Suppressed<'_>) -> Result<Option<String>, Fault> {
    if addresses.len() > 1 {
        for address in &addresses {
            if !suppressed.contains(address)? {
                return Ok(Some(address.clone()));
            }
        }
    }
    Ok(addresses.into_iter().next())
}
