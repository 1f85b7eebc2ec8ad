//! Making the messages of a campaign: a page of recipients, their messages and the position reached are one commit.

use messaging_core::changes::{
    Changes, Condition, CountMessages, EventSubject, Expect, NewWaiting, WaitingKey, Write, track_of,
};
use messaging_core::domain::campaign::audience::bits::Bits;
use messaging_core::domain::campaign::audience::{AudienceSet, number_at};
use messaging_core::domain::campaign::progress::{CampaignProgress, Group};
use messaging_core::domain::campaign::{Campaign, CampaignStatus};
use messaging_core::domain::delivery::recipient_time::{self, Recipient, Terms, Verdict, zone_of};
use messaging_core::domain::message::hold::Hold;
use messaging_core::domain::message::{EventKind, Message, MessageStatus};
use messaging_core::ports::store::{CampaignRecipient, CommitError, Stored};
use messaging_core::time::Timestamp;

use super::UnderWay;
use crate::jobs::deliver_message::DeliverMessage;
use crate::jobs::run_campaign::RunCampaign;
use crate::services::campaigns::terms;
use crate::services::page_size::PageSize;
use crate::work::job::{JobContext, JobError};

/// Number of recipients of one commit.
const PAGE: usize = 500;
/// Number of pieces that are read at a time, of 8 KiB each at most.
const ROWS: usize = 16;

/// Recipients to get messages now, by number and variant.
#[derive(Default)]
struct Page {
    numbers: Vec<u64>,
    variants: Vec<u8>,
}

impl RunCampaign {
    /// Makes the messages of the next recipients; returns true if there was anything to do.
    pub(super) async fn fan_out(&self, cx: &JobContext, under_way: &UnderWay) -> Result<bool, JobError> {
        let UnderWay { campaign: Stored { record: campaign, .. }, progress, now } = under_way;
        let mut size = PageSize::new(PAGE);
        loop {
            let mut reached = progress.record.clone();
            let wave = reached.wave();
            let page = match wave {
                Some(wave) => self.page(cx, campaign, &mut reached, wave, size.size()).await?,
                None => Page::default(),
            };
            if page.numbers.is_empty() {
                reached.end_wave(wave);
            }
            if reached == progress.record {
                return Ok(false);
            }
            let at = (wave.unwrap_or(*now), *now);
            let mut changes = self.messages(cx, campaign, &reached, &page, at, size.refused()).await?;
            changes.push(Write::Expect(Condition::Campaign(
                self.workspace_id,
                self.campaign_id,
                CampaignStatus::Sending,
            )));
            changes.push(Write::put(Box::new(reached), Expect::Revision(progress.revision)));
            match cx.commit(changes).await {
                Ok(()) => return Ok(true),
                // The one recipient gets a message that is withdrawn, and the others do not wait.
                Err(error) => size.failed(error, page.numbers.len())?,
            }
        }
    }

    /// Finds the next recipients of a wave and draws their variants.
    async fn page(
        &self,
        cx: &JobContext,
        campaign: &Campaign,
        reached: &mut CampaignProgress,
        wave: Timestamp,
        size: usize,
    ) -> Result<Page, JobError> {
        let (store, mut page) = (cx.app.store(), Page::default());
        let set = AudienceSet::Recipients(wave);
        let rows = store.audience_rows(self.workspace_id, self.campaign_id, set, reached.fan_out.piece, ROWS).await?;
        for row in rows {
            let from = if row.piece == reached.fan_out.piece { reached.fan_out.place } else { 0 };
            (reached.fan_out.piece, reached.fan_out.place) = (row.piece, from);
            let mut wanted = row.bits;
            match reached.fan_out.group {
                Group::Everyone => {}
                Group::Test => wanted.keep_all(&self.test_group(cx, row.piece).await?),
                Group::Rest => wanted.remove_all(&self.test_group(cx, row.piece).await?),
            }
            for place in wanted.iter_from(from) {
                if page.numbers.len() == size {
                    reached.fan_out.place = place;
                    return Ok(page);
                }
                page.numbers.push(number_at(row.piece, place));
                page.variants.push(variant(campaign, reached));
            }
            (reached.fan_out.piece, reached.fan_out.place) = (row.piece + 1, 0);
        }
        Ok(page)
    }

    /// Returns the recipients in a piece that belong to the test group.
    async fn test_group(&self, cx: &JobContext, piece: u64) -> Result<Bits, JobError> {
        let set = AudienceSet::TestGroup;
        let rows = cx.app.store().audience_rows(self.workspace_id, self.campaign_id, set, piece, 1).await?;
        Ok(rows.into_iter().find(|row| row.piece == piece).map(|row| row.bits).unwrap_or_default())
    }

    /// Returns the messages of a page. A recipient who was erased since, has no address any more, or is refused, gets a
    /// message that is withdrawn, as if that had happened a moment later: so the whole audience is accounted for.
    async fn messages(
        &self,
        cx: &JobContext,
        campaign: &Campaign,
        progress: &CampaignProgress,
        page: &Page,
        (due_at, now): (Timestamp, Timestamp),
        refused: Option<&CommitError>,
    ) -> Result<Changes, JobError> {
        let mut changes = Changes::default();
        if page.numbers.is_empty() {
            return Ok(changes);
        }
        let channel = campaign.plan.channel;
        let viber = cx.app.viber_service_for(self.workspace_id, channel).await?;
        let found =
            cx.app.store().campaign_recipients(self.workspace_id, self.campaign_id, channel, viber, &page.numbers);
        let found = found.await?;
        let workspace = cx.app.workspace(self.workspace_id).await?;
        let zone = workspace.as_ref().map_or("UTC", |workspace| &workspace.timezone);
        let terms = Terms { frequency_cap: None, ..terms(campaign) };
        let mut found = found.into_iter().peekable();
        let (mut waiting, mut gone) = (Vec::with_capacity(page.numbers.len()), Vec::new());
        for (number, variant) in page.numbers.iter().zip(&page.variants) {
            let mut recipient = found.next_if(|recipient| recipient.number == *number);
            if let Some(why) = refused {
                let subject =
                    recipient.take().map_or_else(|| self.campaign_id.to_string(), |one| one.contact_id.to_string());
                changes.push(cx.app.quarantine(Some(self.workspace_id), ("campaign_recipient", &subject), why, None));
            }
            let message = self.message(cx, campaign, progress, recipient.as_ref(), *variant, now);
            if message.to.is_empty() {
                let key = WaitingKey { track: 0, due_at: now, message_id: message.id };
                waiting.push(NewWaiting { message, track: 0, due_at: now });
                gone.push(key);
                continue;
            }
            let hold = recipient.filter(|_| due_at > now).and_then(|one| hold(&terms, &one, zone, now));
            let track = track_of(DeliverMessage::lane_of(&message).resource());
            waiting.push(NewWaiting { message: Message { hold, ..message }, track, due_at });
        }
        let counts = CountMessages::of_all_new(waiting.iter().map(|new| &new.message));
        for key in &gone {
            let withdrawn = [(EventKind::Cancelled, serde_json::Map::new())];
            let subject = EventSubject {
                workspace_id: self.workspace_id,
                message_id: key.message_id,
                channel,
                to: "",
                attempt: None,
            };
            changes.extend(cx.app.append_events(subject, withdrawn).await?);
        }
        changes.push(Write::InsertWaiting(self.workspace_id, self.campaign_id, waiting));
        if !gone.is_empty() {
            changes.push(Write::TakeWaiting(self.workspace_id, self.campaign_id, gone));
        }
        changes.extend(counts.into_iter().map(|count| Write::CountMessages(Box::new(count))));
        Ok(changes)
    }

    fn message(
        &self,
        cx: &JobContext,
        campaign: &Campaign,
        progress: &CampaignProgress,
        recipient: Option<&CampaignRecipient>,
        variant: u8,
        now: Timestamp,
    ) -> Message {
        let place = usize::from(variant);
        let to = recipient.and_then(|recipient| recipient.address.clone()).unwrap_or_default();
        Message {
            status: if to.is_empty() { MessageStatus::Cancelled } else { MessageStatus::Queued },
            from_email: progress.senders.get(place).cloned().flatten(),
            contact_id: recipient.map(|recipient| recipient.contact_id),
            campaign_id: Some(self.campaign_id),
            variant: Some(variant),
            template_id: progress.templates.get(place).map(|used| used.id),
            ..Message::queued(cx.app.new_id(now), self.workspace_id, campaign.plan.channel, to, now)
        }
    }
}

/// Returns the variant of the next recipient.
fn variant(campaign: &Campaign, reached: &mut CampaignProgress) -> u8 {
    let drawn = reached.fan_out.variants.as_mut().and_then(messaging_core::domain::campaign::split::Split::draw);
    let place = drawn.or(campaign.winner).unwrap_or(0);
    u8::try_from(place).unwrap_or(0)
}

/// Returns the hold of a new message by the clock, if there is one.
fn hold(terms: &Terms, recipient: &CampaignRecipient, workspace: &str, now: Timestamp) -> Option<Hold> {
    let zone = zone_of(recipient.timezone.as_deref(), workspace);
    let recipient = Recipient { zone: &zone, suppression: None, has_consent: true, sends: &[], cap_since: None };
    match recipient_time::look(terms, &recipient, now) {
        Verdict::Hold { reason, until } => Some(Hold { reason, until, since: now }),
        Verdict::Go | Verdict::Suppress(_) => None,
    }
}
