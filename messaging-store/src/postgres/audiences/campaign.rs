//! The campaign that an audience is of.

use messaging_core::ids::{CampaignId, WorkspaceId};

use super::super::query::params;
use super::super::row::uuid;
use super::super::transaction::Transaction;

/// A conflict unless a campaign is there.
pub(super) fn expect_campaign(transaction: &mut Transaction, workspace: WorkspaceId, campaign: CampaignId) {
    transaction.run(
        "SELECT expect_rows((SELECT count(*) FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed), 1)",
        params![uuid(workspace), uuid(campaign)],
    );
}
