//! Contacts as messages are made for them.

use std::collections::{BTreeSet, HashSet};

use messaging_core::domain::audience::contact::AddressSource;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::audiences::CampaignRecipient;

use super::keys::Of;
use super::left_out::LeftOut;
use crate::database::{Database, Query};
use crate::pages::number;
use crate::row::{get, id};
use crate::sql::{Sql, key, params, sql};
use crate::tables::segments::keys::attribute_addresses;
use crate::tables::soft_bounces::digest;

/// Contacts of the workspace `$2` by the numbers `$1`.
macro_rules! select {
    ($address:literal) => {
        sql!(
            sqlite: select!($address, "json_each($1) AS wanted CROSS JOIN contacts c ON c.n = wanted.value WHERE"),
            postgres: select!($address, "contacts c WHERE c.n = ANY ($1) AND"),
        )
    };
    ($address:literal, $from:literal) => {
        concat!(
            "SELECT c.n, c.id, c.timezone, c.",
            $address,
            " FROM ",
            $from,
            " c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $2) ORDER BY c.n"
        )
    };
}

/// Contacts of a workspace by their numbers, in the order of these, with their addresses for a channel; on Viber for
/// the service that sends there.
pub(super) async fn numbered(
    database: &impl Database,
    of: Of,
    (channel, viber): (Channel, ViberService),
    numbers: &[u64],
) -> Result<Vec<CampaignRecipient>, StoreError> {
    let source = AddressSource::of(channel, viber);
    let sql: Sql = match source {
        AddressSource::Email => select!("email"),
        AddressSource::Phone => select!("phone"),
        AddressSource::Attributes => select!("attributes"),
    };
    let wanted: BTreeSet<i64> = numbers.iter().map(|number| number.cast_signed()).collect();
    let wanted: Vec<i64> = wanted.into_iter().collect();
    let query = Query::new(sql, params![wanted, key(of.0)], |row| {
        let (number, address) = (get::<i64>(row, 0)?.cast_unsigned(), get(row, 3)?);
        Ok(CampaignRecipient { number, contact_id: id(row, 1)?, address, timezone: get(row, 2)? })
    });
    let mut found = database.many(query).await?;
    if source == AddressSource::Attributes {
        choose_addresses(database, of, channel, &mut found).await?;
    }
    Ok(found)
}

/// Gives each of some recipients the first of its addresses that is not left out. What was read of them are the attributes
/// with the addresses.
async fn choose_addresses(
    database: &impl Database,
    of: Of,
    channel: Channel,
    recipients: &mut [CampaignRecipient],
) -> Result<(), StoreError> {
    let numbers: Vec<u64> = recipients.iter().map(|recipient| recipient.number).collect();
    let left_out = LeftOut::read(database, of, channel, &numbers).await?;
    let mut free = Vec::with_capacity(recipients.len());
    for recipient in &*recipients {
        let addresses = attribute_addresses(channel, recipient.address.as_deref())?;
        let is_free = |address: &String| !left_out.contains(recipient.number, address);
        free.push(addresses.into_iter().filter(is_free).collect::<Vec<_>>());
    }
    // Only of several it matters which are suppressed.
    let several: Vec<&String> = free.iter().filter(|some| some.len() > 1).flatten().collect();
    let suppressed = suppressed(database, of.0, channel, &several).await?;
    for (recipient, addresses) in recipients.iter_mut().zip(free) {
        recipient.address = first_free(addresses, &suppressed);
    }
    Ok(())
}

/// Those of some addresses that are suppressed.
async fn suppressed(
    database: &impl Database,
    workspace: WorkspaceId,
    channel: Channel,
    addresses: &[&String],
) -> Result<HashSet<String>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "SELECT address FROM suppressions
            WHERE workspace = $1 AND channel = $2 AND digest IN (SELECT unhex(value) FROM json_each($3))",
        postgres: "SELECT address FROM suppressions WHERE workspace = $1 AND channel = $2 AND digest = ANY ($3)",
    );
    if addresses.is_empty() {
        return Ok(HashSet::new());
    }
    let digests: Vec<Vec<u8>> = addresses.iter().map(|address| digest(address)).collect();
    let asked = params![key(workspace), number(&Channel::ALL, &channel), digests];
    Ok(database.many(Query::new(SQL, asked, |row| get(row, 0))).await?.into_iter().collect())
}

/// The first address that is not suppressed; the first if all are.
fn first_free(mut addresses: Vec<String>, suppressed: &HashSet<String>) -> Option<String> {
    let free = addresses.iter().position(|address| !suppressed.contains(address)).unwrap_or(0);
    (!addresses.is_empty()).then(|| addresses.swap_remove(free))
}
