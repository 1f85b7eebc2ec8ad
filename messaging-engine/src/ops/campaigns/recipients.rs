//! The recipients of a campaign: the outcome for each contact that its lists and segments name.
//!
//! Contract sections 12.3 and 12.5. First come the contacts with a message, the newest message first. Then come those
//! without one, from the frozen audience: its sets in turn, each in the order of the numbers of its contacts. A set is
//! stored as a bitmap in pieces, and the place is the bit within a piece. A contact that was erased before it had a
//! message is not listed.

use std::cmp::Ordering;

use http::{Method, StatusCode};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::audience::{AudienceSet, AudienceVerdict, number_at};
use messaging_core::domain::campaign::outcome::RecipientOutcome;
use messaging_core::domain::campaign::progress::{CampaignProgress, Group};
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::message::explanation;
use messaging_core::domain::message::milestones::EngagementFlags;
use messaging_core::domain::message::{EventKind, Message, MessageEvent, MessageStatus};
use messaging_core::ids::{ContactId, MessageId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::{CampaignMessageFilter, PageRequest, StoreCursor};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CampaignPath, find};
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;

/// Marks cursors of the second part of the listing, the contacts without a message.
const AUDIENCE: &str = "audience";

/// Most contacts that one page reads from the audience. A page may be shorter than asked for, or empty, because some of
/// them have a message and are skipped.
const MAX_READ: usize = 1000;

/// Most slices of messages that one page reads, because few messages of a slice may have the outcome that is asked for.
const MAX_SLICES: usize = 5;

/// Pieces of a set that are read at a time, each at most 8 KiB.
const PIECES: usize = 16;

/// Filters and page of a listing of recipients.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct RecipientQuery {
    /// Only recipients with this outcome. `opened`, `clicked`, `unsubscribed` and `complained` list every recipient to
    /// whom that happened, even if another one is their outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RecipientOutcome>,
    /// Only recipients who got the variant of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for RecipientQuery {}

/// Outcome of a campaign for one contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CampaignRecipient")]
#[non_exhaustive]
pub struct RecipientView {
    /// Id of the contact; null once it was erased.
    pub contact_id: Option<ContactId>,
    /// Address of the contact; null if it has none, masked without `pii:read`.
    pub to: Option<String>,
    /// Id of the message to the contact, if there is one.
    pub message_id: Option<MessageId>,
    /// Name of the variant that was sent; null without a message and in campaigns without variants.
    pub variant: Option<String>,
    /// Outcome, the first that applies.
    pub outcome: RecipientOutcome,
    /// Class of a bounce, reason of a failure or suppression, or what the message waits for.
    pub reason: Option<String>,
    /// Time of the outcome; for contacts that are not sent to, the start of the campaign; null while it waits.
    pub at: Option<Timestamp>,
}

/// `GET /workspaces/{workspace_id}/campaigns/{id}/recipients`
pub struct ListRecipients;

impl Operation for ListRecipients {
    const ID: &'static str = "listCampaignRecipients";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/campaigns/{id}/recipients";
    const ACCESS: Access = Access::Scope(Scope::CampaignsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "campaign recipients";
    const SUMMARY: &'static str = "List what became of a campaign for each contact that its lists and segments name";
    type Path = CampaignPath;
    type Query = RecipientQuery;
    type Body = Empty;
    type Output = Page<RecipientView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<RecipientView>, Error> {
        let campaign = find(cx, call.path).await?.record;
        let RecipientQuery { outcome, variant, limit, cursor } = call.query;
        let variant = variant.map(|name| place_of(&campaign, &name)).transpose()?;
        let progress = cx.store().campaign_progress(campaign.workspace_id, campaign.id).await?;
        let progress = progress.map(|stored| stored.record);
        let page = cx.page(&PageQuery::of(limit, None))?;
        let start = match cursor {
            Some(text) => match cx.read_cursor_in(AUDIENCE, &text) {
                Some(position) => ListingPosition::Audience(AudiencePosition::read(position)),
                None => ListingPosition::Messages(Some(cx.read_cursor(&text)?)),
            },
            None => ListingPosition::Messages(None),
        };
        let sets = sets(&campaign, progress.as_ref(), outcome, variant);
        let mut listing = Listing { cx, campaign: &campaign, outcome, variant, limit: page.limit, lines: Vec::new() };
        let next = match (start, progress) {
            (ListingPosition::Messages(after), progress) => match listing.messages(after).await? {
                Some(next) => Some(cx.cursor(next)),
                None => listing.audience(&sets, progress.as_ref(), AudiencePosition::default()).await?,
            },
            (ListingPosition::Audience(position), progress) => {
                listing.audience(&sets, progress.as_ref(), position).await?
            }
        };
        Ok(Page { data: listing.lines, next_cursor: next })
    }
}

/// Index of a variant among those of its campaign.
fn place_of(campaign: &Campaign, name: &str) -> Result<u8, Error> {
    let place = campaign.plan.variants.iter().position(|variant| variant.name == name);
    place.and_then(|place| u8::try_from(place).ok()).ok_or_else(|| {
        let mut violations = Violations::new();
        violations.add_parameter("variant", FieldCode::UnknownValue, "the campaign has no variant of this name");
        violations.into()
    })
}

/// Position at which a listing goes on: among the messages, or in the frozen audience.
enum ListingPosition {
    Messages(Option<StoreCursor>),
    Audience(AudiencePosition),
}

/// A position in the sets of a frozen audience.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct AudiencePosition {
    /// Index of the set.
    set: u16,
    /// Index of the piece of the set's bitmap.
    piece: u64,
    /// First bit of the piece that was not read.
    place: u16,
}

impl AudiencePosition {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&self.set.to_be_bytes());
        bytes[2..10].copy_from_slice(&self.piece.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.place.to_be_bytes());
        bytes
    }

    fn read(bytes: [u8; 16]) -> Self {
        let [a, b, p0, p1, p2, p3, p4, p5, p6, p7, c, d, ..] = bytes;
        Self {
            set: u16::from_be_bytes([a, b]),
            piece: u64::from_be_bytes([p0, p1, p2, p3, p4, p5, p6, p7]),
            place: u16::from_be_bytes([c, d]),
        }
    }
}

/// The sets of the audience that may have recipients for the listing, in order.
fn sets(
    campaign: &Campaign,
    progress: Option<&CampaignProgress>,
    outcome: Option<RecipientOutcome>,
    variant: Option<u8>,
) -> Vec<AudienceSet> {
    // A contact without a message has no variant.
    let Some(progress) = progress.filter(|_| variant.is_none()) else { return Vec::new() };
    let is_wanted = |verdict| {
        let without = RecipientOutcome::without_message(verdict, campaign.is_withdrawn());
        outcome.is_none_or(|wanted| wanted == without)
    };
    let left = AudienceVerdict::ALL.into_iter().filter(|verdict| *verdict != AudienceVerdict::Recipient);
    let left = left.filter(|verdict| is_wanted(*verdict)).map(AudienceSet::Left);
    let waves = progress.waves.iter().map(|wave| AudienceSet::Recipients(wave.due_at));
    let has_waiting = is_wanted(AudienceVerdict::Recipient) && !progress.is_complete(campaign);
    left.chain(waves.filter(|_| has_waiting)).collect()
}

struct Listing<'a, 'c> {
    cx: &'a Context<'c>,
    campaign: &'a Campaign,
    outcome: Option<RecipientOutcome>,
    variant: Option<u8>,
    limit: usize,
    lines: Vec<RecipientView>,
}

impl Listing<'_, '_> {
    /// Adds recipients with a message. Answers the cursor of the next ones, `None` at the end.
    async fn messages(&mut self, mut after: Option<StoreCursor>) -> Result<Option<StoreCursor>, Error> {
        let Some(wanted) = wanted(self.outcome) else { return Ok(None) };
        for _ in 0..MAX_SLICES {
            let page = PageRequest { after, limit: self.limit - self.lines.len() };
            let (workspace, campaign) = (self.campaign.workspace_id, self.campaign.id);
            let slice = self.cx.store().campaign_messages(workspace, campaign, wanted, page).await?;
            for message in slice.items {
                let outcome = RecipientOutcome::of_message(message.status, message.milestones.seen);
                let is_wanted = self.outcome.is_none_or(|wanted| match wanted.seen() {
                    Some(seen) => message.milestones.seen.has(seen),
                    None => wanted == outcome,
                });
                if is_wanted && self.variant.is_none_or(|variant| message.variant == Some(variant)) {
                    let line = self.line_of(message, outcome).await?;
                    self.lines.push(line);
                }
            }
            after = slice.next;
            if after.is_none() || self.lines.len() >= self.limit {
                break;
            }
        }
        Ok(after)
    }

    async fn line_of(&self, message: Message, outcome: RecipientOutcome) -> Result<RecipientView, Error> {
        let (mut at, mut reason) = (message.updated_at, None);
        if let Some((kind, member)) = event_of(outcome) {
            let events =
                self.cx.store().message_events_of_kind(message.workspace_id, message.id, kind, MAX_EVENTS).await?;
            let is_person = |event: &&MessageEvent| event.meta.get("machine") != Some(&Value::Bool(true));
            if let Some(event) = events.iter().find(is_person) {
                at = event.at;
                reason = member.and_then(|member| event.meta.get(member)?.as_str().map(ToOwned::to_owned));
            }
        }
        let mut at = Some(at);
        if outcome == RecipientOutcome::Waiting {
            at = None;
            let hold = explanation::turn_of(&message, self.campaign.status);
            let hold = hold.and_then(|hold| serde_json::to_value(hold.reason).ok());
            reason = hold.and_then(|hold| hold.as_str().map(ToOwned::to_owned));
        }
        let variants = &self.campaign.plan.variants;
        let variant = message.variant.and_then(|place| variants.get(usize::from(place)));
        let to = Some(message.to).filter(|to| !to.is_empty());
        let redactor = self.cx.redactor();
        Ok(RecipientView {
            contact_id: message.contact_id,
            to: to.map(|to| redactor.address(message.channel, to)),
            message_id: Some(message.id),
            variant: variant.map(|variant| variant.name.clone()),
            outcome,
            reason,
            at,
        })
    }

    /// Adds recipients without a message. Answers the cursor of the next ones, `None` at the end.
    async fn audience(
        &mut self,
        sets: &[AudienceSet],
        progress: Option<&CampaignProgress>,
        from: AudiencePosition,
    ) -> Result<Option<String>, Error> {
        let Some(progress) = progress else { return Ok(None) };
        let (mut at, mut read) = (from, 0);
        while let Some(set) = sets.get(usize::from(at.set)) {
            let next = Self::skip_fanned_out(*set, progress, at);
            if next.set != at.set {
                at = next;
                continue;
            }
            at = next;
            let (workspace, campaign) = (self.campaign.workspace_id, self.campaign.id);
            let rows = self.cx.store().audience_rows(workspace, campaign, *set, at.piece, PIECES).await?;
            let is_last = rows.len() < PIECES;
            for row in rows {
                if row.piece != at.piece {
                    at = AudiencePosition { piece: row.piece, place: 0, ..at };
                }
                let mut places = row.bits.iter_from(at.place).peekable();
                while places.peek().is_some() {
                    let room = (self.limit - self.lines.len()).min(MAX_READ - read);
                    if room == 0 {
                        return Ok(Some(self.cx.cursor_in(AUDIENCE, at.bytes())));
                    }
                    let taken: Vec<u16> = places.by_ref().take(room).collect();
                    read += taken.len();
                    let numbers: Vec<_> = taken.iter().map(|place| number_at(row.piece, *place)).collect();
                    self.add_without_message(*set, progress, &numbers).await?;
                    match taken.last().and_then(|last| last.checked_add(1)) {
                        Some(next) => at.place = next,
                        None => break,
                    }
                }
                at = AudiencePosition { piece: row.piece + 1, place: 0, ..at };
            }
            if is_last {
                at = AudiencePosition { set: at.set + 1, ..AudiencePosition::default() };
            }
        }
        Ok(None)
    }

    /// Skips the part of a set to which the fan-out has given messages already; the next set if that is all of it.
    /// While the test group is given messages nothing is skipped, because contacts outside of the group have none yet.
    fn skip_fanned_out(set: AudienceSet, progress: &CampaignProgress, at: AudiencePosition) -> AudiencePosition {
        let reached = &progress.fan_out;
        let AudienceSet::Recipients(wave) = set else { return at };
        if reached.group == Group::Test {
            return at;
        }
        match wave.cmp(&reached.due_at.unwrap_or(progress.as_of)) {
            Ordering::Less => AudiencePosition { set: at.set + 1, ..AudiencePosition::default() },
            Ordering::Equal if (at.piece, at.place) < (reached.piece, reached.place) => {
                AudiencePosition { set: at.set, piece: reached.piece, place: reached.place }
            }
            Ordering::Equal | Ordering::Greater => at,
        }
    }

    async fn add_without_message(
        &mut self,
        set: AudienceSet,
        progress: &CampaignProgress,
        numbers: &[u64],
    ) -> Result<(), Error> {
        let Campaign { id, workspace_id, .. } = *self.campaign;
        let (verdict, at) = match set {
            AudienceSet::Left(verdict) => (verdict, Some(progress.as_of)),
            AudienceSet::Recipients(_) | AudienceSet::TestGroup if self.campaign.is_withdrawn() => {
                (AudienceVerdict::Recipient, self.campaign.completed_at)
            }
            AudienceSet::Recipients(_) | AudienceSet::TestGroup => (AudienceVerdict::Recipient, None),
        };
        let channel = self.campaign.plan.channel;
        let redactor = self.cx.redactor();
        let viber = self.cx.app.viber_service_for(workspace_id, channel).await?;
        for contact in self.cx.store().campaign_recipients(workspace_id, id, channel, viber, numbers).await? {
            let may_have_message = verdict == AudienceVerdict::Recipient;
            if may_have_message
                && self.cx.store().campaign_message_of(workspace_id, id, contact.contact_id).await?.is_some()
            {
                continue;
            }
            self.lines.push(RecipientView {
                contact_id: Some(contact.contact_id),
                to: contact.address.map(|address| redactor.address(channel, address)),
                message_id: None,
                variant: None,
                outcome: RecipientOutcome::without_message(verdict, self.campaign.is_withdrawn()),
                reason: None,
                at,
            });
        }
        Ok(())
    }
}

/// Most events of one kind that are read to find the first that a person, not a machine, caused.
const MAX_EVENTS: usize = 100;

/// The kind of event that has the time of an outcome, and the member of it that has the reason.
const fn event_of(outcome: RecipientOutcome) -> Option<(EventKind, Option<&'static str>)> {
    use RecipientOutcome as O;
    match outcome {
        O::Complained => Some((EventKind::Complaint, None)),
        O::Unsubscribed => Some((EventKind::Unsubscribe, None)),
        O::Clicked => Some((EventKind::Click, None)),
        O::Opened => Some((EventKind::Open, None)),
        O::Bounced => Some((EventKind::Bounce, Some("bounce_class"))),
        O::Failed => Some((EventKind::Failed, Some("reason"))),
        O::Suppressed => Some((EventKind::Suppressed, Some("reason"))),
        _ => None,
    }
}

/// Filter of the messages that may have an outcome; `None` for an outcome of contacts without a message.
fn wanted(outcome: Option<RecipientOutcome>) -> Option<CampaignMessageFilter> {
    use RecipientOutcome as O;
    let Some(outcome) = outcome else { return Some(CampaignMessageFilter::All) };
    if let Some(seen) = outcome.seen() {
        return Some(CampaignMessageFilter::Engaged(seen));
    }
    let statuses = MessageStatus::ALL.into_iter().enumerate();
    let of = |status| RecipientOutcome::of_message(status, EngagementFlags::default());
    let bits = statuses.filter(|(_, status)| of(*status) == outcome).fold(0, |bits, (place, _)| bits | 1 << place);
    match outcome {
        O::Excluded | O::NoAddress | O::NoConsent | O::Duplicate => None,
        _ => Some(CampaignMessageFilter::Statuses(bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_were_written() {
        for position in [
            AudiencePosition::default(),
            AudiencePosition { set: 7, piece: 1 << 40 | 3, place: u16::MAX },
            AudiencePosition { set: u16::MAX, piece: u64::MAX, place: 1 },
        ] {
            assert_eq!(AudiencePosition::read(position.bytes()), position);
        }
    }
}
