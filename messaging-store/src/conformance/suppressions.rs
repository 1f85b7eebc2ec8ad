//! The suppression list.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::suppression::{Suppression, SuppressionReason};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{id, suppression};
use super::{put, refuse};

fn addresses(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// Of the addresses asked for, those on the channel's list are answered.
pub async fn suppressions_round_trip(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let complete = suppression(workspace, Channel::Email, "a@example.org");
    let bare = Suppression { detail: None, ..suppression(workspace, Channel::Email, "b@example.org") };
    let sms = suppression(workspace, Channel::Sms, "+37120000000");
    put(store, [&complete, &bare, &sms].map(|one| Write::PutSuppression(one.clone(), Expect::Absent))).await;

    let asked = addresses(&["a@example.org", "c@example.org", "b@example.org", "+37120000000"]);
    let mut found = store.suppressed(workspace, Channel::Email, &asked).await.unwrap();
    found.sort_by(|one, other| one.record.address.cmp(&other.record.address));
    assert_eq!(found.iter().map(|one| &one.record).collect::<Vec<_>>(), [&complete, &bare]);
    assert!(found.iter().all(|one| one.revision == 1));
    assert_eq!(store.suppressed(workspace, Channel::Email, &[]).await.unwrap(), []);
    assert_eq!(store.suppressed(workspace, Channel::Viber, &asked).await.unwrap(), []);

    let raised = Suppression { reason: SuppressionReason::Complaint, ..complete };
    put(store, [Write::PutSuppression(raised.clone(), Expect::Revision(1))]).await;
    let found = store.suppressed(workspace, Channel::Email, &asked[..1]).await.unwrap();
    assert_eq!((&found[0].record, found[0].revision), (&raised, 2));
}

/// Addresses of several channels are looked up at once, each on the list of its channel.
pub async fn addresses_of_several_channels_are_looked_up(store: &dyn Store) {
    let workspace = id();
    let email = suppression(workspace, Channel::Email, "a@example.org");
    let viber = suppression(workspace, Channel::Viber, "+37120000000");
    put(store, [&email, &viber].map(|one| Write::PutSuppression(one.clone(), Expect::Absent))).await;
    let asked = [
        (Channel::Email, "a@example.org".to_owned()),
        (Channel::Email, "b@example.org".to_owned()),
        (Channel::Sms, "+37120000000".to_owned()),
        (Channel::Viber, "+37120000000".to_owned()),
    ];
    let mut found = store.suppressed_anywhere(workspace, &asked).await.unwrap();
    found.sort_by_key(|one| one.channel);
    assert_eq!(found, [email, viber]);
    assert_eq!(store.suppressed_anywhere(id(), &asked).await.unwrap(), []);
    assert_eq!(store.suppressed_anywhere(workspace, &[]).await.unwrap(), []);
}

/// An address is on a channel's list once; every channel has its own list.
pub async fn address_is_unique_per_channel(store: &dyn Store) {
    let workspace = id();
    let add = |channel| Write::PutSuppression(suppression(workspace, channel, "+37120000000"), Expect::Absent);
    put(store, [add(Channel::Sms)]).await;
    refuse(store, [add(Channel::Sms)]).await;
    put(store, [add(Channel::Viber)]).await;
}

/// A list belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    put(store, [Write::PutSuppression(suppression(mine, Channel::Email, "a@example.org"), Expect::Absent)]).await;
    assert_eq!(store.suppressed(other, Channel::Email, &addresses(&["a@example.org"])).await.unwrap(), []);
}
