//! Sets of contacts that were frozen.

use messaging_core::changes::AudienceRow;
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{AudienceSet, place_of};
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use tokio_postgres::Row;

use super::super::fault::Fault;
use super::super::numbers::contact_number;
use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{get, sql_limit, uuid};
use super::super::transaction::Transaction;
use super::campaign::expect_campaign;
use crate::audience_rows::{set_key, set_of_key};

fn bits(row: &Row, column: usize) -> Result<Bits, Fault> {
    Bits::decode(get(row, column)?).map_err(|_| Fault::Malformed("a set of contacts cannot be read"))
}

pub(in super::super) fn put(transaction: &mut Transaction, row: &AudienceRow) {
    let (kind, due_at) = set_key(row.set);
    let mut key = params![uuid(row.workspace_id), uuid(row.campaign_id), kind, due_at, row.piece.cast_signed()];
    if row.bits.is_empty() {
        expect_campaign(transaction, row.workspace_id, row.campaign_id);
        transaction.run(
            "DELETE FROM campaign_audience WHERE kind = $3 AND due_at = $4 AND piece = $5
                 AND campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)",
            key,
        );
    } else {
        key.extend(params![row.bits.encode()]);
        transaction.run_one(
            "INSERT INTO campaign_audience (campaign, kind, due_at, piece, places)
             SELECT n, $3, $4, $5, $6 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE
             ON CONFLICT (campaign, kind, due_at, piece) DO UPDATE SET places = excluded.places",
            key,
        );
    }
}

pub(super) async fn rows(
    reads: &Reads,
    (workspace_id, campaign_id): (WorkspaceId, CampaignId),
    set: AudienceSet,
    from: u64,
    limit: usize,
) -> Result<Vec<AudienceRow>, StoreError> {
    const SQL: &str = "SELECT piece, places FROM campaign_audience
        WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
            AND kind = $3 AND due_at = $4 AND piece >= $5 ORDER BY piece LIMIT $6";
    let (kind, due_at) = set_key(set);
    // Beyond all pieces there is none.
    let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
    let bounds = params![uuid(workspace_id), uuid(campaign_id), kind, due_at, from, sql_limit(limit)];
    reads
        .many(SQL, bounds, |row| {
            let piece = get::<i64>(row, 0)?.cast_unsigned();
            Ok(AudienceRow { workspace_id, campaign_id, piece, set, bits: bits(row, 1)? })
        })
        .await
}

pub(super) async fn sets_of(
    reads: &Reads,
    workspace: WorkspaceId,
    campaign: CampaignId,
    contact: ContactId,
) -> Result<Vec<AudienceSet>, StoreError> {
    // One step for each set of the campaign: a step over all its rows would read the whole audience.
    const SQL: &str = "WITH RECURSIVE named AS (
            SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed
        ), sets AS (
            (SELECT a.campaign, a.kind, a.due_at FROM campaign_audience a WHERE a.campaign = (SELECT n FROM named)
             ORDER BY a.kind, a.due_at LIMIT 1)
            UNION ALL
            SELECT next.campaign, next.kind, next.due_at FROM sets CROSS JOIN LATERAL (
                SELECT a.campaign, a.kind, a.due_at FROM campaign_audience a
                WHERE a.campaign = sets.campaign AND (a.kind, a.due_at) > (sets.kind, sets.due_at)
                ORDER BY a.kind, a.due_at LIMIT 1) next
        )
        SELECT a.kind, a.due_at, a.places FROM sets
        JOIN campaign_audience a ON a.campaign = sets.campaign AND a.kind = sets.kind AND a.due_at = sets.due_at
            AND a.piece = $3
        ORDER BY a.kind, a.due_at";
    let contact = contact_number(&mut reads.clone(), workspace, contact).await?;
    let Some(contact) = contact else { return Ok(Vec::new()) };
    let (piece, place) = place_of(contact.cast_unsigned());
    let found = reads.many(SQL, params![uuid(workspace), uuid(campaign), piece.cast_signed()], |row| {
        let set = set_of_key((get(row, 0)?, get(row, 1)?)).ok_or(Fault::Malformed("a number stands for nothing"))?;
        Ok((set, bits(row, 2)?.contains(place)))
    });
    Ok(found.await?.into_iter().filter(|(_, is_in)| *is_in).map(|(set, _)| set).collect())
}
