//! Messages of campaigns: those that wait to be released, and all by their outcome.

use messaging_core::changes::{
    AttributeMessage, Condition, Engagement, MoveMessage, NewWaiting, RedactMessage, WaitingKey, Write,
};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{EngagementFlags, Milestones};
use messaging_core::domain::message::{Message, MessageFilter, MessageStatus};
use messaging_core::ids::{CampaignId, MessageId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::ports::store::campaigns::CampaignMessageFilter;
use messaging_core::time::Timestamp;

use super::sample::{at, bare_message, campaign, create_campaign as create, id, insert, message};
use super::{all_pages, first, put, refuse};

/// A new message of a campaign.
pub(super) fn new_waiting(campaign: &Campaign, track: u8, due: i64) -> NewWaiting {
    let hold = Some(Hold { reason: HoldReason::ByTimezone, until: Some(at(due)), since: at(0) });
    let message = Message {
        campaign_id: Some(campaign.id),
        automation_id: None,
        hold,
        milestones: Milestones::default(),
        ..message(campaign.workspace_id)
    };
    NewWaiting { message, track, due_at: at(due) }
}

pub(super) fn key(new: &NewWaiting) -> WaitingKey {
    WaitingKey { track: new.track, due_at: new.due_at, message_id: new.message.id }
}

/// Creates a campaign with messages that wait.
pub(super) async fn with_waiting(store: &dyn Store, tracks_and_dues: &[(u8, i64)]) -> (Campaign, Vec<NewWaiting>) {
    let campaign = campaign(id());
    let waiting: Vec<_> = tracks_and_dues.iter().map(|(track, due)| new_waiting(&campaign, *track, *due)).collect();
    put(store, [create(&campaign)]).await;
    put(store, [Write::InsertWaiting(campaign.workspace_id, campaign.id, waiting.clone())]).await;
    (campaign, waiting)
}

async fn due(store: &dyn Store, campaign: &Campaign, track: u8, now: i64, limit: usize) -> Vec<MessageId> {
    let found = store.due_messages(campaign.workspace_id, campaign.id, track, at(now), limit).await.unwrap();
    assert!(found.iter().all(|key| key.track == track && key.due_at <= at(now)), "{found:?}");
    found.into_iter().map(|key| key.message_id).collect()
}

async fn tracks(store: &dyn Store, campaign: &Campaign) -> Vec<(u8, Timestamp)> {
    store.waiting_tracks(campaign.workspace_id, campaign.id).await.unwrap()
}

/// Messages wait by track, the longest due first, and are stored without a content of their own.
pub async fn messages_wait_in_the_order_of_their_time(store: &dyn Store) {
    let (campaign, waiting) = with_waiting(store, &[(7, 30), (7, 10), (255, 20), (7, 20), (0, 40), (7, 20)]).await;
    let ids: Vec<_> = waiting.iter().map(|new| new.message.id).collect();
    assert_eq!(due(store, &campaign, 7, 9, 9).await, []);
    assert_eq!(due(store, &campaign, 7, 20, 9).await, [ids[1], ids[3], ids[5]]);
    assert_eq!(due(store, &campaign, 7, 30, 2).await, [ids[1], ids[3]]);
    assert_eq!(due(store, &campaign, 7, 1_000, 9).await, [ids[1], ids[3], ids[5], ids[0]]);
    assert_eq!(due(store, &campaign, 8, 1_000, 9).await, []);
    assert_eq!(tracks(store, &campaign).await, [(0, at(40)), (7, at(10)), (255, at(20))]);
    assert_eq!(store.waiting_tracks(campaign.workspace_id, id()).await.unwrap(), []);
    for new in &waiting {
        let (found, content) =
            store.message_with_content(campaign.workspace_id, new.message.id).await.unwrap().unwrap();
        assert_eq!((found, content), (new.message.clone(), None));
        let (_, length) = store.message_with_length(campaign.workspace_id, new.message.id).await.unwrap().unwrap();
        assert_eq!(length, None);
    }
    assert_eq!(store.job_count().await.unwrap(), 0);
    put(store, [Write::InsertWaiting(campaign.workspace_id, campaign.id, Vec::new())]).await;
}

/// A message is released once, and may wait again.
pub async fn a_waiting_message_is_taken_once(store: &dyn Store) {
    let (campaign, waiting) = with_waiting(store, &[(1, 10), (1, 10), (2, 10)]).await;
    let keys: Vec<_> = waiting.iter().map(key).collect();
    let take = |keys: &[WaitingKey]| Write::TakeWaiting(campaign.workspace_id, campaign.id, keys.to_vec());
    let again = |key| Write::PutWaiting(campaign.workspace_id, campaign.id, key);
    put(store, [take(&keys[..2])]).await;
    refuse(store, [take(&keys[1..])]).await;
    assert_eq!(tracks(store, &campaign).await, [(2, at(10))]);
    refuse(store, [take(&[WaitingKey { due_at: at(11), ..keys[2] }])]).await;
    refuse(store, [take(&[WaitingKey { track: 3, ..keys[2] }])]).await;
    refuse(store, [take(&[keys[2], keys[2]])]).await;
    refuse(store, [again(keys[2])]).await;
    let later = WaitingKey { due_at: at(50), ..keys[0] };
    put(store, [again(later)]).await;
    refuse(store, [again(later)]).await;
    assert_eq!(due(store, &campaign, 1, 50, 9).await, [later.message_id]);
    put(store, [take(&[later, keys[2]])]).await;
    assert_eq!(tracks(store, &campaign).await, []);
    put(store, [take(&[])]).await;
}

/// A page of new messages is stored whole or not at all.
pub async fn a_page_of_messages_is_one_write(store: &dyn Store) {
    let (campaign, waiting) = with_waiting(store, &[(1, 10)]).await;
    let (workspace, of) = (campaign.workspace_id, campaign.id);
    let page: Vec<_> = (0_u16..1_000).map(|n| new_waiting(&campaign, n.to_be_bytes()[1], i64::from(n % 10))).collect();
    let with_one_that_is_there = page.iter().chain(&waiting).cloned().collect();
    refuse(store, [Write::InsertWaiting(workspace, of, with_one_that_is_there)]).await;
    refuse(
        store,
        [Write::InsertWaiting(workspace, of, page.clone()), Write::Expect(Condition::Message(workspace, id(), 1))],
    )
    .await;
    let all =
        async || store.campaign_messages(workspace, of, CampaignMessageFilter::All, first(2_000)).await.unwrap().items;
    assert_eq!(all().await.len(), 1);
    assert_eq!(tracks(store, &campaign).await.len(), 1);
    put(store, [Write::InsertWaiting(workspace, of, page.clone())]).await;
    let expected: Vec<_> = page.iter().rev().chain(&waiting).map(|new| new.message.clone()).collect();
    assert!(all().await == expected);
    assert_eq!(tracks(store, &campaign).await.len(), 256);
}

/// A message without content of its own has none to remove: it is swept, redacted and read like others.
pub async fn messages_without_content_are_like_others(store: &dyn Store) {
    let (campaign, waiting) = with_waiting(store, &[(1, 10)]).await;
    let workspace = campaign.workspace_id;
    let settled = insert(&Message { status: MessageStatus::Sent, ..bare_message(workspace) });
    put(store, [settled]).await;
    assert_eq!(store.forget_contents(at(1_000), 9).await.unwrap(), 1);
    let held = &waiting[0].message;
    let redaction = RedactMessage {
        workspace_id: workspace,
        message_id: held.id,
        revision: 1,
        status: MessageStatus::Cancelled,
        updated_at: at(70),
        tags: Vec::new(),
        events: Vec::new(),
    };
    put(store, [Write::RedactMessage(Box::new(redaction))]).await;
    let (left, content) = store.message_with_content(workspace, held.id).await.unwrap().unwrap();
    assert!(left.is_redacted() && content.is_none());
    assert_eq!((left.hold, left.campaign_id, left.variant), (None, Some(campaign.id), held.variant));
    let cancelled = CampaignMessageFilter::Statuses(bit(MessageStatus::Cancelled));
    assert_eq!(store.campaign_messages(workspace, campaign.id, cancelled, first(9)).await.unwrap().items, [left]);
}

/// Bit of a status in [`CampaignMessageFilter::Statuses`].
fn bit(status: MessageStatus) -> u16 {
    let place = MessageStatus::ALL.iter().position(|one| *one == status).expect("ALL lists every status");
    1 << place
}

/// Messages of a campaign are listed newest first, by every outcome, page after page.
pub async fn messages_are_found_by_outcome(store: &dyn Store) {
    let campaign = campaign(id());
    let other = Campaign { id: id(), ..campaign.clone() };
    put(store, [create(&campaign), create(&other)]).await;
    let mut all: Vec<Message> = Vec::new();
    for n in 0..30 {
        let seen = EngagementFlags::from_bits([0, 1, 3, 0b1_0110, 0b1000][n % 5]);
        for campaign in [&campaign, &other] {
            let before = new_waiting(campaign, 0, 0).message;
            let milestones = Milestones { seen, ..Milestones::default() };
            let after = Message { milestones, ..before.moved(MessageStatus::ALL[n % 10], at(5)) };
            let mut writes = vec![insert(&before), Write::MoveMessage(MoveMessage::new(&before, &after))];
            // Noted twice, which is no conflict.
            for seen in seen.iter().chain(seen.iter()) {
                let (workspace_id, message_id) = (after.workspace_id, after.id);
                let note = Engagement { workspace_id, campaign_id: campaign.id, seen, message_id, at: at(5) };
                writes.push(Write::NoteEngagement(note));
            }
            put(store, writes).await;
            if campaign.id != other.id {
                all.insert(0, after);
            }
        }
    }
    let listed = async |wanted, limit| {
        let page = async |page| store.campaign_messages(campaign.workspace_id, campaign.id, wanted, page).await;
        all_pages(limit, page, async || ()).await
    };
    let expected = |matches: &dyn Fn(&Message) -> bool| -> Vec<Message> {
        all.iter().filter(|message| matches(message)).cloned().collect()
    };
    assert!(listed(CampaignMessageFilter::All, 7).await == all);
    let ends = [MessageStatus::Bounced, MessageStatus::Failed, MessageStatus::Suppressed].map(bit);
    let sets = MessageStatus::ALL.map(bit).into_iter().chain([ends.iter().sum(), ends[0] | 1, 0, (1 << 10) - 1]);
    for set in sets {
        let expected = expected(&|message| set & bit(message.status) != 0);
        for limit in [1, 2, 100] {
            let wanted = CampaignMessageFilter::Statuses(set);
            assert!(listed(wanted, limit).await == expected, "statuses {set:b}, {limit} a page");
        }
    }
    for bits in [0, 1, 0b10, 0b100, 0b1000, 0b1_0000, 0b11, 0b1_0100, 0b1_1000] {
        let seen = EngagementFlags::from_bits(bits);
        let expected = expected(&|message| message.milestones.seen.has(seen));
        for limit in [1, 4, 100] {
            let wanted = CampaignMessageFilter::Engaged(seen);
            assert!(listed(wanted, limit).await == expected, "seen {bits:b}, {limit} a page");
        }
    }
}

/// A listing is exact while messages of the campaign are created and change.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let (campaign, waiting) = with_waiting(store, &[(0, 0); 9]).await;
    let (workspace, of) = (campaign.workspace_id, campaign.id);
    let expected: Vec<_> = waiting.iter().rev().map(|new| new.message.id).collect();
    let more = async || {
        put(store, [Write::InsertWaiting(workspace, of, vec![new_waiting(&campaign, 0, 0)])]).await;
    };
    let page = async |page| store.campaign_messages(workspace, of, CampaignMessageFilter::All, page).await;
    let listed: Vec<_> = all_pages(2, page, more).await.into_iter().map(|message| message.id).collect();
    assert_eq!(listed, expected);
}

/// The message of a campaign to a contact is found; after a merge, under the contact that it passed to.
pub async fn the_message_to_a_contact_is_found(store: &dyn Store) {
    let (campaign, waiting) = with_waiting(store, &[(0, 0), (0, 0)]).await;
    let (workspace, of) = (campaign.workspace_id, campaign.id);
    let find = async |contact| store.campaign_message_of(workspace, of, contact).await.unwrap();
    let contacts: Vec<_> = waiting.iter().map(|new| new.message.contact_id.unwrap()).collect();
    // Other messages to the same contact.
    put(store, [insert(&Message { contact_id: Some(contacts[0]), ..bare_message(workspace) })]).await;
    put(store, [insert(&Message { contact_id: Some(contacts[0]), ..message(workspace) })]).await;
    for (contact, new) in contacts.iter().zip(&waiting) {
        assert_eq!(find(*contact).await, Some(new.message.id));
    }
    assert_eq!(find(id()).await, None);
    assert_eq!(store.campaign_message_of(workspace, id(), contacts[0]).await.unwrap(), None);
    let (message_id, to) = (waiting[1].message.id, id());
    let merge = AttributeMessage { workspace_id: workspace, message_id, from: contacts[1], to };
    put(store, [Write::AttributeMessage(merge)]).await;
    assert_eq!((find(contacts[1]).await, find(to).await), (None, Some(message_id)));
}

/// Messages of a campaign belong to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (campaign, waiting) = with_waiting(store, &[(1, 10)]).await;
    let (mine, of): (WorkspaceId, CampaignId) = (campaign.workspace_id, campaign.id);
    let other: WorkspaceId = id();
    let one = &waiting[0];
    let seen = EngagementFlags::OPENED;
    let note = |workspace_id| {
        let message_id = one.message.id;
        Write::NoteEngagement(Engagement { workspace_id, campaign_id: of, seen, message_id, at: at(1) })
    };
    put(store, [note(other)]).await;
    let engaged = CampaignMessageFilter::Engaged(seen);
    assert_eq!(store.campaign_messages(mine, of, engaged, first(9)).await.unwrap().items, []);
    put(store, [note(mine)]).await;
    assert_eq!(store.due_messages(other, of, 1, at(99), 9).await.unwrap(), []);
    assert_eq!(store.waiting_tracks(other, of).await.unwrap(), []);
    for wanted in [
        CampaignMessageFilter::All,
        engaged,
        CampaignMessageFilter::Statuses(u16::MAX),
        CampaignMessageFilter::Statuses(1 << 5),
    ] {
        assert_eq!(store.campaign_messages(other, of, wanted, first(9)).await.unwrap().items, []);
    }
    assert_eq!(store.campaign_message_of(other, of, one.message.contact_id.unwrap()).await.unwrap(), None);
    refuse(store, [Write::TakeWaiting(other, of, vec![key(one)])]).await;
    refuse(store, [Write::PutWaiting(other, of, WaitingKey { due_at: at(1), ..key(one) })]).await;
    let mut stolen = new_waiting(&campaign, 1, 1);
    stolen.message.workspace_id = other;
    refuse(store, [Write::InsertWaiting(other, of, vec![stolen])]).await;
    assert_eq!(due(store, &campaign, 1, 99, 9).await, [one.message.id]);
    let filter = MessageFilter { campaign_id: Some(of), ..MessageFilter::default() };
    assert_eq!(store.messages(other, &filter, first(9)).await.unwrap().items, []);
    assert_eq!(store.messages(mine, &filter, first(9)).await.unwrap().items.len(), 1);
}
