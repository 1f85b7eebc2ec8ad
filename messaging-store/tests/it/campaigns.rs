//! Campaigns of many messages on SQLite.

use messaging_conformance::sample::{at, bare_message, campaign, id};
use messaging_conformance::{first, put};
use messaging_core::changes::{Expect, NewWaiting, Write};
use messaging_core::domain::message::{Message, MessageFilter, MessageStatus};
use messaging_core::ports::store::campaigns::CampaignMessageFilter;
use messaging_core::ports::store::{Campaigns as _, Messages as _, PageRequest};
use messaging_store::{SqliteOptions, SqliteStore};

/// Bit of a status in [`CampaignMessageFilter::Statuses`].
fn bit(status: MessageStatus) -> u16 {
    1 << MessageStatus::ALL.iter().position(|one| *one == status).unwrap()
}

/// The oldest of more messages than a page reads has bounced; all others went well.
#[tokio::test]
async fn what_went_wrong_with_a_large_campaign_is_found_at_once() {
    let place = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(SqliteOptions::new(place.path().join("messaging.db"))).unwrap();
    let campaign = campaign(id());
    let (workspace, of) = (campaign.workspace_id, campaign.id);
    put(&store, [Write::put(Box::new(campaign), Expect::Absent)]).await;
    let new = |status| {
        let message = Message { status, campaign_id: Some(of), variant: Some(0), ..bare_message(workspace) };
        NewWaiting { message, track: 0, due_at: at(0) }
    };
    let bounced = new(MessageStatus::Bounced);
    put(&store, [Write::InsertWaiting(workspace, of, vec![bounced.clone()])]).await;
    for _ in 0..21 {
        let page = (0..1_000).map(|_| new(MessageStatus::Delivered)).collect();
        put(&store, [Write::InsertWaiting(workspace, of, page)]).await;
    }

    let ends = CampaignMessageFilter::Statuses(bit(MessageStatus::Bounced) | bit(MessageStatus::Failed));
    let found = store.campaign_messages(workspace, of, ends, first(10)).await.unwrap();
    assert_eq!((found.items.as_slice(), found.next), (&[bounced.message.clone()][..], None));
    let filter =
        MessageFilter { campaign_id: Some(of), statuses: vec![MessageStatus::Bounced], ..MessageFilter::default() };
    let found = store.messages(workspace, &filter, first(10)).await.unwrap();
    assert_eq!((found.items.as_slice(), found.next), (&[bounced.message][..], None));

    // Other states are searched for among all messages, a limited number at a time.
    let deferred = CampaignMessageFilter::Statuses(bit(MessageStatus::Deferred));
    let begun = store.campaign_messages(workspace, of, deferred, first(10)).await.unwrap();
    assert!(begun.items.is_empty() && begun.next.is_some());
    let rest = PageRequest { after: begun.next, limit: 10 };
    let ended = store.campaign_messages(workspace, of, deferred, rest).await.unwrap();
    assert_eq!((ended.items.len(), ended.next), (0, None));
}
