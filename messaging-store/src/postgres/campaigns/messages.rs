//! Messages of a campaign, by what became of them.

use messaging_core::domain::message::milestones::Seen;
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ids::{CampaignId, ContactId, Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::campaigns::Wanted;
use messaging_core::ports::store::{PageRequest, Slice, StoreError};

use super::super::reads::Reads;

pub(super) async fn list(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
    wanted: Wanted,
    page: &PageRequest,
) -> Result<Slice<Message>, StoreError> {
    let _ = (reads, workspace, campaign, wanted, page);
    Err(StoreError::Unavailable)
}
pub(super) async fn of_contact(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
    contact: ContactId,
) -> Result<Option<MessageId>, StoreError> {
    let _ = (reads, workspace, campaign, contact);
    Err(StoreError::Unavailable)
}
