//! Finding the audience of a campaign, and drawing its test group.
//!
//! A piece of contact numbers is one commit: the contacts in it, by verdict and by due time, with the position that was
//! reached. The draw goes over the same pieces once the number of recipients is known.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use messaging_core::changes::{AudienceRow, Changes, Condition, Expect, Write};
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{AudienceSet, AudienceVerdict, shares_addresses};
use messaging_core::domain::campaign::progress::{CampaignProgress, Freeze, Wave};
use messaging_core::domain::campaign::split::Split;
use messaging_core::domain::delivery::recipient_time::waves::Waves;
use messaging_core::ports::store::{AudiencePiece, AudienceQuery, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::UnderWay;
use crate::jobs::run_campaign::RunCampaign;
use crate::services::campaigns::terms;
use crate::work::job::{JobContext, JobError};

/// Pieces of a wave that are read at a time, of 8 KiB each at most.
const ROWS: usize = 16;

impl RunCampaign {
    /// Judges the next piece of the audience, or draws the test group of one.
    pub(super) async fn freeze(&self, cx: &JobContext, under_way: &UnderWay) -> Result<(), JobError> {
        match &under_way.progress.record.freeze {
            Freeze::Judging(piece) => self.judge(cx, under_way, *piece).await,
            Freeze::Drawing(piece, split) => self.draw(cx, under_way, *piece, split.clone()).await,
            Freeze::Done => Ok(()),
        }
    }

    async fn judge(&self, cx: &JobContext, under_way: &UnderWay, piece: Option<u64>) -> Result<(), JobError> {
        let UnderWay {
            campaign: Stored { record: campaign, revision },
            progress: Stored { record: progress, .. },
            now,
        } = under_way;
        let terms = terms(campaign);
        let wants_zones = terms.wall_time.is_some() || terms.quiet_hours.is_some();
        let query =
            cx.app.audience_query(self.workspace_id, campaign.plan.channel, &campaign.plan.audience, wants_zones);
        let query = query.await.map_err(|error| StoreError::Failed(Box::new(error)))?;
        let query = Arc::new(AudienceQuery { now: progress.as_of, ..query });
        let mut found = cx.app.store().audience_piece(self.workspace_id, &query, piece).await?;
        let mut changes = self.take_addresses(cx, &query, &mut found).await?;
        let judged = found.facts.judge();
        for verdict in AudienceVerdict::ALL.into_iter().filter(|verdict| *verdict != AudienceVerdict::Recipient) {
            self.keep(&mut changes, found.piece, AudienceSet::Left(verdict), judged.set(verdict).clone());
        }
        let zone = query.zone.iana_name().unwrap_or("UTC");
        let mut by_wave: BTreeMap<Timestamp, Bits> = BTreeMap::new();
        let mut waves = Waves::new(terms, progress.as_of, zone);
        let mut rest = judged.set(AudienceVerdict::Recipient).clone();
        for (name, named) in &found.zones {
            let mut here = named.clone();
            here.keep_all(&rest);
            rest.remove_all(&here);
            by_wave.entry(waves.due(Some(name))).or_default().add_all(&here);
        }
        by_wave.entry(waves.due(None)).or_default().add_all(&rest);
        let mut reached = CampaignProgress::clone(progress);
        let sizes = by_wave.iter().map(|(due_at, bits)| Wave { due_at: *due_at, recipients: u64::from(bits.len()) });
        let is_last = reached.note_judged(campaign, &judged, sizes.filter(|wave| wave.recipients > 0), found.next);
        for (due_at, bits) in by_wave {
            self.keep(&mut changes, found.piece, AudienceSet::Recipients(due_at), bits);
        }
        if is_last {
            changes.push(Write::ForgetAddresses(self.workspace_id, self.campaign_id));
            let frozen = campaign.frozen(reached.counts.recipients, reached.has_test(campaign), *now);
            changes.extend(frozen.map(|frozen| Write::put(Box::new(frozen), Expect::Revision(*revision))));
        }
        self.reach(cx, under_way, reached, changes).await
    }

    /// Finds the duplicates of a piece, and notes which addresses it takes.
    async fn take_addresses(
        &self,
        cx: &JobContext,
        query: &AudienceQuery,
        found: &mut AudiencePiece,
    ) -> Result<Changes, JobError> {
        let mut changes = Changes::default();
        if shares_addresses(query.channel, query.viber) {
            let digests: Vec<u64> = found.addresses.iter().flat_map(|(_, digests)| digests).copied().collect();
            let taken = cx.app.store().taken_addresses(self.workspace_id, self.campaign_id, digests).await?;
            let mut taken: HashSet<u64> = taken.into_iter().collect();
            let claims = found.facts.find_duplicates(&found.addresses, &mut taken);
            let (workspace, id) = (self.workspace_id, self.campaign_id);
            changes.push(Write::TakeAddresses(workspace, id, claims.taken));
            if !claims.left_out.is_empty() {
                changes.push(Write::LeaveOutAddresses(workspace, id, found.piece, claims.left_out));
            }
        }
        Ok(changes)
    }

    /// Draws who of a piece belongs to the test group.
    async fn draw(&self, cx: &JobContext, under_way: &UnderWay, from: u64, mut split: Split) -> Result<(), JobError> {
        let progress = &under_way.progress.record;
        let (mut pieces, mut end) = (BTreeMap::<u64, Bits>::new(), None);
        for wave in &progress.waves {
            let set = AudienceSet::Recipients(wave.due_at);
            let rows = cx.app.store().audience_rows(self.workspace_id, self.campaign_id, set, from, ROWS).await?;
            if rows.len() == ROWS {
                // Of those behind, other waves may have been read, and this one was not.
                end = end.into_iter().chain(rows.last().map(|row| row.piece)).min();
            }
            for row in rows {
                pieces.entry(row.piece).or_default().add_all(&row.bits);
            }
        }
        let mut changes = Changes::default();
        for (piece, bits) in pieces.into_iter().filter(|(piece, _)| end.is_none_or(|end| *piece <= end)) {
            let drawn = bits.iter().filter(|_| split.draw() == Some(0)).collect();
            self.keep(&mut changes, piece, AudienceSet::TestGroup, drawn);
        }
        let freeze = end.map_or(Freeze::Done, |end| Freeze::Drawing(end + 1, split));
        self.reach(cx, under_way, CampaignProgress { freeze, ..progress.clone() }, changes).await
    }

    fn keep(&self, changes: &mut Changes, piece: u64, set: AudienceSet, bits: Bits) {
        if !bits.is_empty() {
            let (workspace_id, campaign_id) = (self.workspace_id, self.campaign_id);
            changes.push(Write::PutAudience(Box::new(AudienceRow { workspace_id, campaign_id, piece, set, bits })));
        }
    }

    /// Commits what was reached, as long as the campaign is wanted.
    async fn reach(
        &self,
        cx: &JobContext,
        under_way: &UnderWay,
        reached: CampaignProgress,
        mut changes: Changes,
    ) -> Result<(), JobError> {
        changes.push(Write::Expect(Condition::Campaign(
            self.workspace_id,
            self.campaign_id,
            under_way.campaign.record.status,
        )));
        changes.push(Write::put(Box::new(reached), Expect::Revision(under_way.progress.revision)));
        Ok(cx.commit(changes).await?)
    }
}
