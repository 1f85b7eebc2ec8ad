//! Which addresses the recipients of an unfinished audience have.
//!
//! A row of digests for each piece instead of one for each digest: taking those of 65,536 contacts one by one would hold
//! the writer for a tenth of a second. Whoever asks reads all rows of the campaign, 8 MB for a million of addresses.

use std::time::Instant;

use messaging_core::ids::{CampaignId, WorkspaceId};
use rusqlite::Connection;

use super::super::fault::Fault;
use super::super::numbers::campaign_number;
use super::super::query::one;
use super::scan::LOOK;
use crate::audience_rows::common;

/// Finds out which of some digests are taken, a look at a time.
pub(super) struct TakenAddressScan {
    workspace: WorkspaceId,
    campaign: CampaignId,
    /// Rising.
    asked: Vec<u64>,
    found: Vec<u64>,
    /// The last row that was read.
    row: i64,
}

impl TakenAddressScan {
    pub(super) fn new(workspace: WorkspaceId, campaign: CampaignId, asked: Vec<u64>) -> Self {
        Self { workspace, campaign, asked, found: Vec::new(), row: 0 }
    }

    /// Reads some more rows; answers whether these were all. Rows are only added while somebody asks, so what comes out
    /// is what was taken when the last look began.
    pub(super) fn go_on(&mut self, connection: &Connection) -> Result<bool, Fault> {
        const SQL: &str = "SELECT n, digests FROM campaign_addresses WHERE campaign = ?1 AND n > ?2 ORDER BY n LIMIT 1";
        const MALFORMED: Fault = Fault::Malformed("digests of addresses cannot be read");
        let connection = &*connection.unchecked_transaction()?;
        let Some(campaign) = campaign_number(connection, self.workspace, self.campaign)? else { return Ok(true) };
        let began = Instant::now();
        loop {
            let (asked, found) = (&self.asked, &mut self.found);
            let read = one(connection, SQL, [campaign, self.row], |row| {
                let bytes = row.get_ref(1)?.as_blob().map_err(|_| MALFORMED)?;
                if common(asked, bytes, found) { Ok(row.get(0)?) } else { Err(MALFORMED) }
            })?;
            match read {
                Some(row) => self.row = row,
                None => return Ok(true),
            }
            if began.elapsed() >= LOOK {
                return Ok(false);
            }
        }
    }

    pub(super) fn into_taken(self) -> Vec<u64> {
        self.found
    }
}
