//! Questions about contacts, answered for many at once.

use jiff::tz::TimeZone;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Ask, StoreError};

use super::super::reads::Reads;

pub(super) async fn answer(
    reads: &Reads,
    workspace: WorkspaceId,
    asks: &[Ask],
    zone: &TimeZone,
) -> Result<Vec<bool>, StoreError> {
    let _ = (reads, workspace, asks, zone);
    Err(StoreError::Unavailable)
}
