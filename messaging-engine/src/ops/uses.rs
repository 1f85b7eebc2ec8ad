//! What cannot be removed because something else needs it (contract section 12.5, "In use").

use messaging_core::changes::{Condition, Write};
use messaging_core::domain::campaign::Reference;
use messaging_core::ids::WorkspaceId;

use crate::error::Error;
use crate::ops::context::Context;

/// What an answer `in_use` names at most.
const MAX_NAMED: usize = 100;

/// Refuses to remove what a campaign that is scheduled, sending or paused, or an active automation, needs; `by` is what
/// else needs it. Adds the write that is a conflict when one comes to need it meanwhile: it is then decided again.
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
