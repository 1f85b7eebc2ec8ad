//! Search for the contacts that have an address whose suppression changed, if no index finds them.

use std::collections::HashMap;
use std::time::Instant;

use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Timestamp;

use super::follow::Matching;
use super::keys::attribute_addresses;
use crate::database::Query;
use crate::fault::Fault;
use crate::pages::{number, sql_limit};
use crate::row::{get, numbered, time};
use crate::sql::{Sql, key, params, sql};
use crate::tables::numbers;

/// Maximum number of addresses that are searched for together.
const MAX_ADDRESSES: usize = 1000;

/// Contacts that were found to have one of the changed addresses.
pub(crate) struct Traced {
    /// Rows of the addresses that were searched for.
    pub(crate) addresses: Vec<i64>,
    /// Number of the last contact examined.
    pub(crate) looked_through: i64,
    pub(crate) contacts: Vec<(i64, Change)>,
    pub(crate) is_end: bool,
}

/// Time at which an address was added to the suppression list or removed from it, and the number of automations in a
/// row that led to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) at: Timestamp,
    pub(crate) depth: u8,
}

/// An address to search for: its row, the address, its change, and the last contact examined.
type Sought = (i64, (Channel, String), Change, i64);

/// Starts the search for the contacts with an address; `change` has the time of the change and its depth.
pub(crate) fn seek(
    workspace: WorkspaceId,
    (channel, address): (Channel, &str),
    change: Change,
) -> (Sql, Vec<crate::sql::Value>) {
    const SQL: Sql = sql!(
        "INSERT INTO changed_addresses (workspace_number, channel, address, looked_through, at, depth)
         SELECT number, $2, $3, 0, $4, $5 FROM workspace_numbers WHERE workspace = $1"
    );
    (SQL, params![key(workspace), number(&Channel::ALL, &channel), address, change.at, change.depth])
}

/// Searches for contacts with changed addresses that no index finds. `None` if there are no such addresses.
pub(crate) async fn trace<M: Matching>(on: &mut M, workspace: WorkspaceId) -> Result<Option<Traced>, Fault> {
    const ADDRESSES: Sql = sql!(
        "SELECT n, channel, address, at, depth, looked_through FROM changed_addresses
         WHERE workspace_number = $1 ORDER BY looked_through DESC, n LIMIT $2"
    );
    const CONTACTS: Sql = sql!("SELECT n, attributes FROM contacts WHERE n > $1 AND n <= $2 ORDER BY n LIMIT $3");
    let began = Instant::now();
    let Some(workspace_number) = on.one(numbers::workspace(workspace)).await? else { return Ok(None) };
    let bounds = params![workspace_number, sql_limit(MAX_ADDRESSES)];
    let query = Query::new(ADDRESSES, bounds, |row| {
        let address = (numbered(&Channel::ALL, get(row, 1)?)?, get(row, 2)?);
        Ok((get(row, 0)?, address, Change { at: time(row, 3)?, depth: get(row, 4)? }, get(row, 5)?))
    });
    let sought: Vec<Sought> = on.many(query).await?;
    // The addresses whose search is furthest; the others are searched for afterwards, from their own positions.
    let Some(from) = sought.first().map(|(.., looked_through)| *looked_through) else { return Ok(None) };
    let sought: Vec<_> = sought.into_iter().take_while(|(.., looked_through)| *looked_through == from).collect();
    // Of several changes of an address the last one counts, since contacts are evaluated as they are then.
    let wanted: HashMap<_, _> = sought.iter().map(|(_, address, change, _)| (address.clone(), *change)).collect();
    let channels: Vec<Channel> =
        Channel::ALL.into_iter().filter(|one| wanted.keys().any(|(of, _)| of == one)).collect();
    let (first, last) = numbers::contacts_of(workspace_number).into_inner();
    let addresses = sought.iter().map(|(n, ..)| *n).collect();
    let mut traced = Traced { addresses, looked_through: from.max(first), contacts: Vec::new(), is_end: false };
    let piece = M::PIECE * 4;
    while !traced.is_end && began.elapsed() < M::LOOK {
        let channels = channels.clone();
        let query = Query::new(CONTACTS, params![traced.looked_through, last, sql_limit(piece)], move |row| {
            let mut addresses = Vec::new();
            for channel in &channels {
                let of_channel = attribute_addresses(*channel, get(row, 1)?)?;
                addresses.extend(of_channel.into_iter().map(|address| (*channel, address)));
            }
            Ok((get(row, 0)?, addresses))
        });
        let contacts = on.many(query).await?;
        traced.is_end = contacts.len() < piece;
        for (contact, addresses) in contacts {
            traced.looked_through = contact;
            let changes = addresses.iter().filter_map(|address| wanted.get(address));
            traced.contacts.extend(changes.map(|change| (contact, *change)));
        }
    }
    Ok(Some(traced))
}
