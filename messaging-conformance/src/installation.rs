//! Values that apply to the whole database.

use messaging_core::changes::{Expect, SwitchSecretKey, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::installation::quarantine::{KEPT, Quarantined};
use messaging_core::domain::mail::auto_dns::{DnsProviderName, KeptDnsAccount};
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::mail::sending_domain::{Check, DkimKey, SendingDomain};
use messaging_core::domain::security::secret_key;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{CommitError, SealedSecret, Store, needs_its_key};
use serde_json::json;

use super::sample::{self, at, domain, id};
use super::{commit, put, refuse};

/// The first check value stays.
pub async fn the_check_value_of_the_key_is_kept_once(store: &dyn Store) {
    assert_eq!(store.key_check().await.unwrap(), None);
    assert!(!needs_its_key(store).await.unwrap());
    put(store, [Write::PutKeyCheck("one".to_owned())]).await;
    let again = commit(store, [Write::PutKeyCheck("two".to_owned())]).await;
    assert!(matches!(again, Err(CommitError::Conflict)), "{again:?}");
    assert_eq!(store.key_check().await.unwrap().as_deref(), Some("one"));
    assert!(needs_its_key(store).await.unwrap());
}

/// The secret key is switched once all processes hold the new one, by a caller that knows the former check value.
pub async fn a_secret_key_is_switched_to_once_all_hold_it(store: &dyn Store) {
    let switch = |before: &str, after: &str, key: &str| {
        let (before, after, key) = (before.to_owned(), after.to_owned(), key.to_owned());
        [Write::SwitchSecretKey(Box::new(SwitchSecretKey { before, after, key }))]
    };
    put(store, [Write::PutKeyCheck("one".to_owned())]).await;
    // No process has announced its keys.
    assert!(store.key_holders().await.unwrap().iter().all(|holder| holder.keys.is_none()));
    refuse(store, switch("one", "two", "b")).await;
    announce(store, &["a"]).await;
    refuse(store, switch("one", "two", "b")).await;
    announce(store, &["a", "b"]).await;
    let holders = store.key_holders().await.unwrap();
    assert!(!holders.is_empty() && holders.iter().all(|holder| holder.seals_under("a") && holder.holds("b")));
    assert!(holders.iter().all(|holder| !holder.seals_under("b") && !holder.holds("c")));
    refuse(store, switch("other", "two", "b")).await;
    refuse(store, switch("one", "two", "ab")).await;
    assert_eq!(store.key_check().await.unwrap().as_deref(), Some("one"));
    put(store, switch("one", "two", "b")).await;
    assert_eq!(store.key_check().await.unwrap().as_deref(), Some("two"));
    refuse(store, switch("one", "two", "b")).await;
    put(store, switch("two", "three", "a")).await;
    assert_eq!(store.key_check().await.unwrap().as_deref(), Some("three"));
}

/// Announces the keys that are held, through both handles if there are two.
async fn announce(store: &dyn Store, keys: &[&str]) {
    let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
    for _ in 0..2 {
        store.announce_keys(&keys).await.unwrap();
    }
}

/// The name of the installation is changed by a caller that knows the former one.
pub async fn the_name_is_changed_by_whoever_knows_it(store: &dyn Store) {
    let name =
        |name: &str, before: Option<&str>| [Write::PutInstallationName(name.to_owned(), before.map(ToOwned::to_owned))];
    assert_eq!(store.installation_name().await.unwrap(), None);
    refuse(store, name("a.example", Some("b.example"))).await;
    put(store, name("a.example", None)).await;
    refuse(store, name("b.example", None)).await;
    refuse(store, name("b.example", Some("c.example"))).await;
    assert_eq!(store.installation_name().await.unwrap().as_deref(), Some("a.example"));
    put(store, name("b.example", Some("a.example"))).await;
    assert_eq!(store.installation_name().await.unwrap().as_deref(), Some("b.example"));
}

/// The newest quarantined records are listed, and only a limited number is kept.
pub async fn the_newest_of_what_was_put_aside_is_kept(store: &dyn Store) {
    assert_eq!(store.quarantined(5).await.unwrap(), (0, Vec::new()));
    let mut all: Vec<_> = (0..KEPT + 3)
        .map(|n| Quarantined::new((id(), at(7)), Some(id()), "deliver_message", n.to_string(), "too large"))
        .collect();
    for some in all.chunks(100) {
        put(store, some.iter().map(|one| Write::Quarantine(Box::new(one.clone()))).collect::<Vec<_>>()).await;
    }
    all.reverse();
    all.truncate(5);
    assert_eq!(store.quarantined(5).await.unwrap(), (KEPT as u64, all.clone()));
    let forgotten = all.remove(1);
    put(store, [Write::ForgetQuarantined(forgotten.id)]).await;
    refuse(store, [Write::ForgetQuarantined(forgotten.id)]).await;
    assert_eq!(store.quarantined(4).await.unwrap(), (KEPT as u64 - 1, all));
}

/// A fence is set and removed by a caller that knows the present one.
pub async fn a_fence_is_moved_by_whoever_knows_it(store: &dyn Store) {
    let held = Fence::held(at(5));
    assert_eq!(store.fence().await.unwrap(), None);
    refuse(store, [Write::PutFence(None, Some(held))]).await;
    put(store, [Write::PutFence(Some(held), None)]).await;
    refuse(store, [Write::PutFence(Some(held), None)]).await;
    refuse(store, [Write::PutFence(None, Some(Fence::held(at(6))))]).await;
    assert_eq!(store.fence().await.unwrap(), Some(held));
    put(store, [Write::PutFence(Some(held.cancelling()), Some(held))]).await;
    refuse(store, [Write::PutFence(None, Some(held))]).await;
    put(store, [Write::PutFence(None, Some(held.cancelling()))]).await;
    assert_eq!(store.fence().await.unwrap(), None);
}

/// Keys of domains, secrets of webhooks and of channels are found, with the records they were sealed for.
pub async fn sealed_secrets_are_found_with_their_places(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    put(store, [Write::put(domain(workspace, "bare.example"), Expect::Absent)]).await;
    assert_eq!(store.sealed_secrets(9).await.unwrap(), []);
    let key = DkimKey {
        selector: "mk01".to_owned(),
        algorithm: Algorithm::RsaSha256,
        public: "MIIB".to_owned(),
        sealed: "sealed:1:AAAA".to_owned(),
        check: Check::default(),
        created_at: at(1),
        verified_at: None,
    };
    let account =
        KeptDnsAccount { provider: DnsProviderName::Hetzner, sealed: "sealed:1:EEEE".to_owned(), retired: Vec::new() };
    let with_key = SendingDomain { dkim: vec![key], dns_account: Some(account), ..domain(workspace, "mail.example") };
    let webhook = sample::webhook(workspace);
    let config = json!({"service_account": "sealed:1:CCCC", "routes": {"apns": {"private_key": "sealed:1:DDDD"}}});
    let channel = ChannelSettings {
        provider: "fcm".to_owned(),
        config: sample::object(&config),
        ..sample::settings(workspace, Channel::Push)
    };
    let place = |provider, member| secret_key::channel_secret_place(workspace, Channel::Push, provider, member);
    let writes = [
        Write::put(with_key.clone(), Expect::Absent),
        Write::put(Box::new(webhook.clone()), Expect::Absent),
        Write::put(channel.clone(), Expect::Absent),
    ];
    put(store, writes).await;
    let mut found = store.sealed_secrets(9).await.unwrap();
    found.sort_by(|one, other| one.place.cmp(&other.place));
    let secret = |place: String, sealed: &str| SealedSecret { place, sealed: sealed.to_owned() };
    let mut expected = [
        secret(DkimKey::place(with_key.id, "mk01"), "sealed:1:AAAA"),
        secret(KeptDnsAccount::place(with_key.id), "sealed:1:EEEE"),
        secret(webhook.secret_place(), &webhook.secret),
        secret(place("fcm", "service_account"), "sealed:1:CCCC"),
        secret(place("apns", "private_key"), "sealed:1:DDDD"),
    ];
    expected.sort_by(|one, other| one.place.cmp(&other.place));
    assert_eq!(found, expected);
    assert_eq!(store.sealed_secrets(2).await.unwrap().len(), 2);
    assert!(needs_its_key(store).await.unwrap());
}
