//! Frozen audiences of campaigns.
//!
//! In its modules: addresses that are left out ([`left_out`]), contacts for whom messages are created ([`recipients`]),
//! and the facts about contacts before that ([`scanned_piece`], [`walk`], [`tally`]), which each database finds in its
//! own way.

mod keys;
mod left_out;
mod recipients;
pub(crate) mod scanned_piece;
pub(crate) mod tally;
pub(crate) mod walk;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::changes::AudienceRow;
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{AudienceSet, ContactFacts, place_of};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::channel_content::ViberService;
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::audiences::{
    AudiencePiece, AudiencePreview, AudienceQuery, Audiences, CampaignRecipient,
};

use self::keys::{campaign, expect_campaign, insert, key_of};
use self::left_out::LeftOut;
use super::numbers;
use crate::audience_rows::{digest_bytes, set_key, set_of_key};
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{Row, get};
use crate::sql::{Sql, key, params, sql};

pub(crate) use self::left_out::{forget as forget_left_out, forget_old as forget_old_left_out, put as leave_out};

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait AudienceRows {
    /// See [`Audiences::audience_piece`].
    async fn piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError>;

    /// See [`Audiences::taken_addresses`]; the digests are ascending and distinct.
    async fn taken(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError>;

    /// See [`Audiences::preview_audience`].
    async fn count_audience(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
    ) -> Result<AudiencePreview, StoreError>;

    /// See [`Audiences::audience_facts`].
    async fn facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError>;
}

pub(crate) fn put(on: &mut dyn Statements, row: &AudienceRow) -> Result<(), Fault> {
    const DELETE: Sql = sql!(concat!(
        "DELETE FROM campaign_audience WHERE campaign = ",
        campaign!(),
        " AND kind = $3 AND due_at = $4 AND piece = $5"
    ));
    const PUT: Sql = insert!(
        "campaign_audience (campaign, kind, due_at, piece, places)",
        "$3, $4, $5, $6",
        " ON CONFLICT (campaign, kind, due_at, piece) DO UPDATE SET places = excluded.places"
    );
    let of = (row.workspace_id, row.campaign_id);
    let (kind, due_at) = set_key(row.set);
    let mut values = key_of(of);
    values.extend(params![kind, due_at, row.piece.cast_signed()]);
    if row.bits.is_empty() {
        expect_campaign(on, of)?;
        return on.run(DELETE, values);
    }
    values.push(row.bits.encode().into());
    on.run_one(PUT, values)
}

pub(crate) fn take_addresses(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    campaign: CampaignId,
    digests: &[u64],
) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: insert!(
            "campaign_addresses (campaign, n, digests)",
            "(SELECT ifnull(max(a.n), 0) + 1 FROM campaign_addresses a WHERE a.campaign = campaigns.n), $3",
            "",
            ""
        ),
        postgres: insert!("campaign_addresses (campaign, digests)", "$3", " FOR KEY SHARE", ""),
    );
    if digests.is_empty() {
        return expect_campaign(on, (workspace, campaign));
    }
    on.run_one(SQL, params![key(workspace), key(campaign), digest_bytes(digests)])
}

pub(crate) fn forget_addresses(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    campaign: CampaignId,
) -> Result<(), Fault> {
    const SQL: Sql = sql!(concat!("DELETE FROM campaign_addresses WHERE campaign = ", campaign!()));
    on.run(SQL, key_of((workspace, campaign)))
}

fn bits(row: &dyn Row, column: usize) -> Result<Bits, Fault> {
    Bits::decode(get(row, column)?).map_err(|_| Fault::Malformed("a set of contacts cannot be read"))
}

#[async_trait]
impl<D: Database + AudienceRows> Audiences for SqlStore<D> {
    async fn audience_piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError> {
        self.piece(workspace, query, piece).await
    }

    async fn taken_addresses(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        mut digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError> {
        digests.sort_unstable();
        digests.dedup();
        self.taken(workspace, campaign, digests).await
    }

    async fn preview_audience(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
    ) -> Result<AudiencePreview, StoreError> {
        self.count_audience(workspace, query).await
    }

    async fn audience_facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError> {
        self.facts(workspace, query, contact).await
    }

    async fn audience_rows(
        &self,
        workspace_id: WorkspaceId,
        campaign_id: CampaignId,
        set: AudienceSet,
        from: u64,
        limit: usize,
    ) -> Result<Vec<AudienceRow>, StoreError> {
        const SQL: Sql = sql!(concat!(
            "SELECT piece, places FROM campaign_audience WHERE campaign = ",
            campaign!(),
            " AND kind = $3 AND due_at = $4 AND piece >= $5 ORDER BY piece LIMIT $6"
        ));
        let (kind, due_at) = set_key(set);
        // There are no pieces beyond this number.
        let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
        let mut bounds = key_of((workspace_id, campaign_id));
        bounds.extend(params![kind, due_at, from, sql_limit(limit)]);
        let query = Query::new(SQL, bounds, move |row| {
            let piece = get::<i64>(row, 0)?.cast_unsigned();
            Ok(AudienceRow { workspace_id, campaign_id, piece, set, bits: bits(row, 1)? })
        });
        self.many(query).await
    }

    async fn audience_sets_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Vec<AudienceSet>, StoreError> {
        // One step for each set of the campaign: a step over all its rows would read the whole audience.
        macro_rules! select {
            ($next:literal) => {
                concat!(
                    "WITH RECURSIVE named AS (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed),
                     sets (campaign, kind, due_at) AS (
                         SELECT * FROM (
                             SELECT a.campaign, a.kind, a.due_at FROM campaign_audience a
                             WHERE a.campaign = (SELECT n FROM named) ORDER BY a.kind, a.due_at LIMIT 1) AS first
                         UNION ALL ",
                    $next,
                    ")
                     SELECT a.kind, a.due_at, a.places FROM sets {CROSS} JOIN campaign_audience a
                         ON a.campaign = sets.campaign AND a.kind = sets.kind AND a.due_at = sets.due_at AND a.piece = $3
                     ORDER BY a.kind, a.due_at"
                )
            };
        }
        const SQL: Sql = sql!(
            sqlite: select!(
                "SELECT a.campaign, a.kind, a.due_at FROM sets CROSS JOIN campaign_audience a
                 WHERE a.campaign = sets.campaign AND (a.kind, a.due_at, a.piece) = (
                     SELECT kind, due_at, piece FROM campaign_audience WHERE campaign = sets.campaign
                         AND (kind, due_at) > (sets.kind, sets.due_at) ORDER BY kind, due_at, piece LIMIT 1)"
            ),
            postgres: select!(
                "SELECT next.campaign, next.kind, next.due_at FROM sets CROSS JOIN LATERAL (
                     SELECT a.campaign, a.kind, a.due_at FROM campaign_audience a
                     WHERE a.campaign = sets.campaign AND (a.kind, a.due_at) > (sets.kind, sets.due_at)
                     ORDER BY a.kind, a.due_at LIMIT 1) next"
            ),
        );
        let Some(contact) = self.one(numbers::contact(workspace, contact)).await? else { return Ok(Vec::new()) };
        let (piece, place) = place_of(contact.cast_unsigned());
        let query = Query::new(SQL, params![key(workspace), key(campaign), piece.cast_signed()], move |row| {
            let set =
                set_of_key((get(row, 0)?, get(row, 1)?)).ok_or(Fault::Malformed("a number stands for nothing"))?;
            Ok(bits(row, 2)?.contains(place).then_some(set))
        });
        Ok(self.many(query).await?.into_iter().flatten().collect())
    }

    async fn addresses_left_in(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        contact: ContactId,
        mut addresses: Vec<String>,
    ) -> Result<Vec<String>, StoreError> {
        if let Some(number) = self.one(numbers::contact(workspace, contact)).await? {
            let number = number.cast_unsigned();
            let left_out = LeftOut::read(&self.0, (workspace, campaign), channel, &[number]).await?;
            addresses.retain(|address| !left_out.contains(number, address));
        }
        Ok(addresses)
    }

    async fn campaign_recipients(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        viber: ViberService,
        numbers: &[u64],
    ) -> Result<Vec<CampaignRecipient>, StoreError> {
        recipients::numbered(&self.0, (workspace, campaign), (channel, viber), numbers).await
    }
}
