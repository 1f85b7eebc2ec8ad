//! Channel settings.

use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;
use serde_json::Map;

use super::sample::{id, settings};
use super::{put, refuse};

/// Settings are kept per workspace and channel, and can be removed, also twice.
pub async fn settings_come_and_go(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let email = settings(mine, Channel::Email);
    let bare = ChannelSettings { config: Map::new(), ..settings(mine, Channel::Viber) };
    let theirs = settings(other, Channel::Email);
    put(store, [&email, &bare, &theirs].map(|settings| Write::put(settings.clone(), Expect::Absent))).await;

    let found = store.channel(mine, Channel::Email).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&email, 1));
    assert_eq!(store.channel(mine, Channel::Viber).await.unwrap().unwrap().record, bare);
    assert_eq!(store.channel(mine, Channel::Sms).await.unwrap(), None);
    let mut listed = store.channels(mine).await.unwrap();
    listed.sort_by_key(|settings| settings.channel);
    assert_eq!(listed, [email.clone(), bare]);

    refuse(store, [Write::put(email.clone(), Expect::Absent)]).await;
    let changed = ChannelSettings { provider: "sandbox".to_owned(), ..email };
    put(store, [Write::put(changed.clone(), Expect::Revision(1))]).await;
    assert_eq!(store.channel(mine, Channel::Email).await.unwrap().unwrap().record, changed);

    for _ in 0..2 {
        put(store, [Write::Delete(DocumentKey::Channel(mine, Channel::Email))]).await;
        assert_eq!(store.channel(mine, Channel::Email).await.unwrap(), None);
    }
    assert_eq!(store.channel(other, Channel::Email).await.unwrap().unwrap().record, theirs);
}
