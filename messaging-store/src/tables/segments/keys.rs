//! Keys of workspaces in statements, and reading of read masks.

use messaging_core::domain::audience::contact::addresses_in;
use messaging_core::domain::audience::contact::attributes::Attributes;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::segment::reads::ReadMask;

use crate::fault::Fault;
use crate::row::{Row, get};

/// The number of the workspace in `$1`.
macro_rules! workspace_number {
    () => {
        "(SELECT number FROM workspace_numbers WHERE workspace = $1)"
    };
}

pub(super) use workspace_number;

/// Reads the mask in a column.
pub(crate) fn read_mask(row: &dyn Row, column: usize) -> Result<ReadMask, Fault> {
    Ok(ReadMask::from_bits(get(row, column)?))
}

/// The addresses in a contact's attributes for a channel, in the spelling of the suppression list.
pub(crate) fn attribute_addresses(channel: Channel, attributes: Option<&str>) -> Result<Vec<String>, Fault> {
    let Some(json) = attributes else { return Ok(Vec::new()) };
    let addresses = addresses_in(&Attributes::parse(json)?, channel);
    Ok(addresses.iter().map(|address| address::normalize(channel, address)).collect())
}
