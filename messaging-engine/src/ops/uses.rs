//! Refusal to remove what something else needs (contract section 12.5, "In use").

use messaging_core::changes::{Condition, Write};
use messaging_core::domain::campaign::Reference;
use messaging_core::ids::WorkspaceId;

use crate::error::Error;
use crate::ops::context::Context;

/// Largest number of ids that an answer `in_use` contains.
const MAX_NAMED: usize = 100;

/// Refuses to remove a resource that a campaign that is scheduled, sending or paused, or an active automation, needs;
/// `by` are other users of it. Adds the write that conflicts if the resource comes to be needed meanwhile: it is then
/// decided again.
pub(super) async fn refuse_used(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    what: Reference,
    mut by: Vec<String>,
) -> Result<(), Error> {
    let campaigns = cx.store().campaigns_holding(workspace, what, MAX_NAMED).await?;
    by.extend(campaigns.into_iter().map(|id| id.to_string()));
    let automations = cx.store().automations_holding(workspace, what, MAX_NAMED).await?;
    by.extend(automations.into_iter().map(|id| id.to_string()));
    by.truncate(MAX_NAMED);
    if !by.is_empty() {
        return Err(Error::InUse { by });
    }
    cx.change(Write::Expect(Condition::Unused(workspace, what)));
    Ok(())
}
