//! The suppression list.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::suppression::{Suppression, SuppressionFilter, SuppressionReason};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{at, id, suppression};
use super::{all_pages, first, put, refuse};

fn addresses(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// A look-up returns the suppressions of those addresses that are on the channel's list, as they were last written.
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

/// A suppression is found by its id until it is deleted; deleting again is no conflict.
pub async fn suppressions_are_found_by_id_and_deleted(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let listed = suppression(workspace, Channel::Email, "a@example.org");
    let other = suppression(workspace, Channel::Sms, "+37120000000");
    put(store, [&listed, &other].map(|one| Write::PutSuppression(one.clone(), Expect::Absent))).await;
    let found = store.suppression(workspace, listed.id).await.unwrap().expect("it is there");
    assert_eq!((&found.record, found.revision), (&listed, 1));
    assert_eq!(store.suppression(workspace, id()).await.unwrap(), None);

    for _ in 0..2 {
        put(store, [Write::DeleteSuppression(workspace, listed.id, at(0))]).await;
        assert_eq!(store.suppression(workspace, listed.id).await.unwrap(), None);
        assert_eq!(store.suppressed(workspace, Channel::Email, &addresses(&["a@example.org"])).await.unwrap(), []);
    }
    assert!(store.suppression(workspace, other.id).await.unwrap().is_some());
    // The address can be listed again.
    put(store, [Write::PutSuppression(Suppression { id: id(), ..listed }, Expect::Absent)]).await;
}

/// Channel, address and reason narrow a listing, alone and together; an address is compared in the spelling of its
/// channel.
pub async fn every_filter_narrows(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let with = |channel, address: &str, reason| Suppression { reason, ..suppression(workspace, channel, address) };
    let all = [
        with(Channel::Email, "a@example.org", SuppressionReason::Manual),
        with(Channel::Email, "b@example.org", SuppressionReason::Bounce),
        with(Channel::Sms, "+37120000000", SuppressionReason::Manual),
        with(Channel::Viber, "+37120000000", SuppressionReason::Bounce),
    ];
    put(store, all.clone().map(|one| Write::PutSuppression(one, Expect::Absent))).await;
    let check = async |filter: SuppressionFilter, expected: &[usize]| {
        let found = store.suppressions(workspace, &filter, first(10)).await.unwrap();
        let expected: Vec<_> = expected.iter().map(|place| all[*place].clone()).collect();
        assert_eq!((found.items, found.next), (expected, None), "{filter:?}");
    };
    let channel = |channel| SuppressionFilter { channel: Some(channel), ..SuppressionFilter::default() };
    let address = |text: &str| SuppressionFilter { address: Some(text.to_owned()), ..SuppressionFilter::default() };
    let reason = |reason| SuppressionFilter { reason: Some(reason), ..SuppressionFilter::default() };
    check(SuppressionFilter::default(), &[3, 2, 1, 0]).await;
    check(channel(Channel::Email), &[1, 0]).await;
    check(channel(Channel::Push), &[]).await;
    check(reason(SuppressionReason::Manual), &[2, 0]).await;
    check(address("A@Example.org"), &[0]).await;
    check(address("+37120000000"), &[3, 2]).await;
    check(address("nobody@example.org"), &[]).await;
    check(SuppressionFilter { channel: Some(Channel::Viber), ..address("+37120000000") }, &[3]).await;
    check(SuppressionFilter { channel: Some(Channel::Email), ..reason(SuppressionReason::Bounce) }, &[1]).await;
    check(SuppressionFilter { reason: Some(SuppressionReason::Bounce), ..address("a@example.org") }, &[]).await;
}

/// Pages of a listing neither skip nor repeat suppressions while others are added, with and without a filter.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let mut expected = Vec::new();
    for number in 0..5 {
        let one = suppression(workspace, Channel::Email, &format!("{number}@example.org"));
        put(store, [Write::PutSuppression(one.clone(), Expect::Absent)]).await;
        expected.insert(0, one);
    }
    let email = SuppressionFilter { channel: Some(Channel::Email), ..SuppressionFilter::default() };
    for filter in [SuppressionFilter::default(), email] {
        let add_more = async || {
            let address = id::<messaging_core::ids::MessageId>().to_string();
            let more = suppression(workspace, Channel::Push, &address);
            put(store, [Write::PutSuppression(more, Expect::Absent)]).await;
        };
        let listed = all_pages(2, async |page| store.suppressions(workspace, &filter, page).await, add_more).await;
        let of_email: Vec<_> = listed.into_iter().filter(|one| one.channel == Channel::Email).collect();
        assert_eq!(of_email, expected);
    }
    let phone = SuppressionFilter { address: Some("+37120000000".to_owned()), ..SuppressionFilter::default() };
    let both = [Channel::Sms, Channel::Viber].map(|channel| suppression(workspace, channel, "+37120000000"));
    put(store, both.clone().map(|one| Write::PutSuppression(one, Expect::Absent))).await;
    let listed = all_pages(1, async |page| store.suppressions(workspace, &phone, page).await, async || ()).await;
    let [sms, viber] = both;
    assert_eq!(listed, [viber, sms]);
}

/// Suppressions are neither read nor deleted through another workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    let listed = suppression(mine, Channel::Email, "a@example.org");
    put(store, [Write::PutSuppression(listed.clone(), Expect::Absent)]).await;
    assert_eq!(store.suppression(other, listed.id).await.unwrap(), None);
    let address = SuppressionFilter { address: Some("a@example.org".to_owned()), ..SuppressionFilter::default() };
    for filter in [SuppressionFilter::default(), address] {
        assert_eq!(store.suppressions(other, &filter, first(10)).await.unwrap().items, []);
    }
    put(store, [Write::DeleteSuppression(other, listed.id, at(0))]).await;
    assert!(store.suppression(mine, listed.id).await.unwrap().is_some());
    assert_eq!(store.suppressed(other, Channel::Email, &addresses(&["a@example.org"])).await.unwrap(), []);
}
