//! Which addresses the recipients of an unfinished audience have.
//!
//! A row of digests for each piece instead of one for each digest. Whoever asks reads all rows of the campaign, 8 MB for a
//! million of addresses.

use messaging_core::ids::{CampaignId, WorkspaceId};

use super::super::fault::Fault;
use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{get, uuid};
use super::super::transaction::Transaction;
use super::campaign::expect_campaign;
use crate::audience_rows::{common, digest_bytes};

pub(in super::super) fn take(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    campaign: CampaignId,
    digests: &[u64],
) {
    if digests.is_empty() {
        expect_campaign(transaction, workspace, campaign);
        return;
    }
    transaction.run_one(
        "INSERT INTO campaign_addresses (campaign, digests)
         SELECT n, $3 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE",
        params![uuid(workspace), uuid(campaign), digest_bytes(digests)],
    );
}

pub(in super::super) fn forget(transaction: &mut Transaction, workspace: WorkspaceId, campaign: CampaignId) {
    transaction.run(
        "DELETE FROM campaign_addresses
         WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)",
        params![uuid(workspace), uuid(campaign)],
    );
}

/// Those of some digests that are taken, rising in each row.
pub(super) async fn among(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
    mut digests: Vec<u64>,
) -> Result<Vec<u64>, Fault> {
    const SQL: &str = "SELECT digests FROM campaign_addresses
        WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed) ORDER BY n";
    digests.sort_unstable();
    digests.dedup();
    let mut found = Vec::new();
    let mut on = reads.snapshot().await?;
    on.each_row(SQL, params![uuid(workspace), uuid(campaign)], |row| {
        let are_digests = common(&digests, get(row, 0)?, &mut found);
        if are_digests { Ok(()) } else { Err(Fault::Malformed("digests of addresses cannot be read")) }
    })
    .await?;
    on.end().await?;
    Ok(found)
}
