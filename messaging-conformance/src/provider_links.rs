//! Names that providers give to messages.

use std::time::Duration;

use messaging_core::changes::Write;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::InboundKey;
use messaging_core::domain::channel::provider_link::{KEPT, ProviderLink};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::time::Timestamp;

use super::sample::{at, id};
use super::{put, refuse};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn link(workspace_id: WorkspaceId, name: &str, at: Timestamp) -> ProviderLink {
    ProviderLink {
        workspace_id,
        channel: Channel::Sms,
        provider: "twilio".to_owned(),
        provider_message_id: name.to_owned(),
        message_id: id(),
        at,
    }
}

fn keep(link: &ProviderLink) -> Write {
    Write::PutProviderLink(Box::new(link.clone()))
}

async fn found(store: &dyn Store, workspace: WorkspaceId, name: &str) -> Option<MessageId> {
    store.message_of_provider(workspace, Channel::Sms, "twilio", name).await.unwrap()
}

/// A name leads to its message, and if it is given again, to the newer one.
pub async fn a_name_leads_to_its_message(store: &dyn Store) {
    let workspace = id();
    let (first, second) = (link(workspace, "SM1", NOW), link(workspace, "SM1", NOW));
    assert_eq!(found(store, workspace, "SM1").await, None);
    put(store, [keep(&first)]).await;
    assert_eq!(found(store, workspace, "SM1").await, Some(first.message_id));
    put(store, [keep(&second)]).await;
    assert_eq!(found(store, workspace, "SM1").await, Some(second.message_id));
    assert_eq!(found(store, workspace, "sm1").await, None, "names are compared as they are");
}

/// Several names at once lead to their messages, each once, within their account.
pub async fn several_names_lead_to_their_messages(store: &dyn Store) {
    let workspace = id();
    let (first, second) = (link(workspace, "1F3A", NOW), link(workspace, "0000007994", NOW));
    let again = ProviderLink { provider_message_id: "1f3a".to_owned(), ..first.clone() };
    put(store, [keep(&first), keep(&second), keep(&again), keep(&link(id(), "7994", NOW))]).await;
    let found = async |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut found = store.messages_of_provider(workspace, Channel::Sms, "twilio", &names).await.unwrap();
        found.sort_unstable();
        found
    };
    assert_eq!(found(&["7994", "1F3A", "1f3a"]).await, [first.message_id]);
    let mut both = [first.message_id, second.message_id];
    both.sort_unstable();
    assert_eq!(found(&["1F3A", "0000007994"]).await, both);
    assert_eq!(found(&["7994", "it's"]).await, []);
    assert_eq!(found(&[]).await, []);
    let names = ["1F3A".to_owned()];
    assert_eq!(store.messages_of_provider(workspace, Channel::Sms, "vonage", &names).await.unwrap(), []);
}

/// A message that was handed to a provider in several attempts has the newest of its names, within its workspace.
pub async fn a_message_has_the_newest_of_its_names(store: &dyn Store) {
    let workspace = id();
    let newer = link(workspace, "SM2", NOW + Duration::from_mins(1));
    let older = ProviderLink { message_id: newer.message_id, ..link(workspace, "SM1", NOW) };
    let other = link(workspace, "SM3", NOW + Duration::from_secs(90));
    put(store, [keep(&newer), keep(&older), keep(&other)]).await;
    assert_eq!(store.provider_of_message(workspace, newer.message_id).await.unwrap(), Some(newer.clone()));
    assert_eq!(store.provider_of_message(workspace, other.message_id).await.unwrap(), Some(other));
    assert_eq!(store.provider_of_message(id(), newer.message_id).await.unwrap(), None);
    assert_eq!(store.provider_of_message(workspace, id()).await.unwrap(), None);
}

/// A name belongs to an account: a workspace, a channel, a provider.
pub async fn other_accounts_are_not_there(store: &dyn Store) {
    let workspace = id();
    put(store, [keep(&link(workspace, "SM1", NOW))]).await;
    assert_eq!(found(store, id(), "SM1").await, None);
    assert_eq!(store.message_of_provider(workspace, Channel::Viber, "twilio", "SM1").await.unwrap(), None);
    assert_eq!(store.message_of_provider(workspace, Channel::Sms, "vonage", "SM1").await.unwrap(), None);
}

/// Names older than a month are removed when new ones are added.
pub async fn old_names_go_when_new_ones_come(store: &dyn Store) {
    let workspace = id();
    for number in 0..4 {
        put(store, [keep(&link(workspace, &format!("old{number}"), NOW))]).await;
    }
    let later = NOW + KEPT + Duration::from_secs(1);
    for number in 0..2 {
        put(store, [keep(&link(workspace, &format!("new{number}"), later))]).await;
    }
    for number in 0..4 {
        assert_eq!(found(store, workspace, &format!("old{number}")).await, None);
    }
    assert!(found(store, workspace, "new0").await.is_some());
}

/// An inbound message is noted once for a workspace and a channel; the note is removed some time after it may be
/// repeated.
pub async fn what_came_in_is_noted_once(store: &dyn Store) {
    let [mine, other]: [WorkspaceId; 2] = [id(), id()];
    let (key, another) = (InboundKey::of("bot_api", "1:17"), InboundKey::of("bot_api", "1:18"));
    let note = |workspace, channel, key, millis| Write::NoteInbound(workspace, channel, key, at(millis));
    let is_noted = async |workspace, channel, key| store.is_inbound_noted(workspace, channel, key).await.unwrap();
    put(store, [note(mine, Channel::Telegram, key, 10)]).await;
    refuse(store, [note(mine, Channel::Telegram, key, 11)]).await;
    assert!(is_noted(mine, Channel::Telegram, key).await);
    for (workspace, channel, key) in
        [(other, Channel::Telegram, key), (mine, Channel::Viber, key), (mine, Channel::Telegram, another)]
    {
        assert!(!is_noted(workspace, channel, key).await, "{channel}");
        put(store, [note(workspace, channel, key, 12)]).await;
    }
    let kept = i64::try_from(InboundKey::KEPT.as_millis()).unwrap();
    let later = |number: u8| note(mine, Channel::Sms, InboundKey([number; 16]), 13 + kept);
    put(store, [later(1)]).await;
    put(store, [later(2)]).await;
    assert!(!is_noted(mine, Channel::Telegram, key).await);
    assert!(is_noted(mine, Channel::Sms, InboundKey([1; 16])).await);
}
