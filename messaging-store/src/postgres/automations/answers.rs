//! Questions about contacts, answered for many at once.

use jiff::tz::TimeZone;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Ask, StoreError};

use super::super::reads::Reads;
use super::super::segments;

pub(super) async fn answer(
    reads: &Reads,
    workspace: WorkspaceId,
    asks: &[Ask],
    zone: &TimeZone,
) -> Result<Vec<bool>, StoreError> {
    let mut snapshot = reads.snapshot().await?;
    let answers = segments::answers(&mut snapshot, workspace, asks, zone).await?;
    snapshot.end().await?;
    Ok(answers)
}
