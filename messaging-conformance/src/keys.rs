//! API keys.

use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::api_key::ApiKey;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{at, id, key};
use super::{all_pages, first, put, refuse};

fn add(key: &ApiKey) -> Write {
    Write::put(key.clone(), Expect::Absent)
}

/// A key is found by prefix, in its workspace and anywhere, with all fields.
pub async fn keys_round_trip(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let complete = key(workspace);
    let bare =
        ApiKey { scopes: Vec::new(), ip_allowlist: Vec::new(), expires_at: None, revoked_at: None, ..key(workspace) };
    put(store, [add(&complete), add(&bare)]).await;
    for key in [&complete, &bare] {
        assert_eq!(store.api_key_by_secret(&key.secret_digest, &key.prefix).await.unwrap().as_ref(), Some(key));
        let found = store.api_key(workspace, key.id).await.unwrap().unwrap();
        assert_eq!((&found.record, found.revision), (key, 1));
        assert_eq!(store.api_key_anywhere(key.id).await.unwrap(), Some(found));
    }
    assert_eq!(store.api_key_anywhere(id()).await.unwrap(), None);

    let renamed = ApiKey { name: "renamed".to_owned(), ..complete };
    put(store, [Write::put(renamed.clone(), Expect::Revision(1))]).await;
    let found = store.api_key(workspace, renamed.id).await.unwrap().unwrap();
    assert_eq!((found.record, found.revision), (renamed, 2));
}

/// Secret and prefix must be those of one key.
pub async fn a_key_is_found_by_secret_and_prefix(store: &dyn Store) {
    let (one, other) = (key(id()), ApiKey { secret_digest: Digest::of("another"), ..key(id()) });
    put(store, [add(&one), add(&other)]).await;
    let found = async |secret: &str, prefix: &str| store.api_key_by_secret(&Digest::of(secret), prefix).await.unwrap();
    assert_eq!(found("another", &other.prefix).await, Some(other.clone()));
    assert_eq!(found("another", &one.prefix).await, None);
    assert_eq!(found("unknown", &one.prefix).await, None);
    assert_eq!(found("another", "mk_live_nothing").await, None);

    // A changed secret is the only one that counts.
    let changed = ApiKey { secret_digest: Digest::of("changed"), ..other };
    put(store, [Write::put(changed.clone(), Expect::Revision(1))]).await;
    assert_eq!(found("another", &changed.prefix).await, None);
    assert_eq!(found("changed", &changed.prefix).await, Some(changed.clone()));
}

/// A prefix names one key in the whole installation.
pub async fn prefix_is_unique(store: &dyn Store) {
    let one = key(id());
    put(store, [add(&one)]).await;
    let twin = ApiKey { prefix: one.prefix.clone(), ..key(id()) };
    refuse(store, [add(&twin)]).await;
    assert_eq!(store.api_key_anywhere(twin.id).await.unwrap(), None);
}

/// The latest use is listed, also when an earlier one is noted after it.
pub async fn last_use_is_listed(store: &dyn Store) {
    let workspace = id();
    let (unused, used) = (key(workspace), key(workspace));
    put(store, [add(&unused), add(&used), Write::Account(AccountWrite::TouchApiKey(used.id, at(50)))]).await;
    put(store, [Write::Account(AccountWrite::TouchApiKey(used.id, at(90)))]).await;
    put(store, [Write::Account(AccountWrite::TouchApiKey(used.id, at(70)))]).await;
    let listed = store.api_keys(workspace, first(10)).await.unwrap().items;
    assert_eq!(listed, [(used.clone(), Some(at(90))), (unused.clone(), None)]);
    for (key, last_used) in listed {
        assert_eq!(store.api_key_last_used(workspace, key.id).await.unwrap(), last_used);
    }
    assert_eq!(store.api_key_last_used(id(), used.id).await.unwrap(), None);
    assert_eq!(store.api_key(workspace, used.id).await.unwrap().unwrap().revision, 1);
}

/// Pages neither skip nor repeat.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let mut expected = Vec::new();
    for _ in 0..5 {
        let key = key(workspace);
        put(store, [add(&key)]).await;
        expected.insert(0, (key, None));
    }
    let add_more = async || put(store, [add(&key(workspace))]).await;
    let listed = all_pages(2, async |page| store.api_keys(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// A key belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    let key = key(mine);
    put(store, [add(&key)]).await;
    assert_eq!(store.api_key(other, key.id).await.unwrap(), None);
    assert_eq!(store.api_keys(other, first(10)).await.unwrap().items, []);
    refuse(store, [Write::put(ApiKey { workspace_id: other, ..key.clone() }, Expect::Revision(1))]).await;
    assert_eq!(store.api_key_anywhere(key.id).await.unwrap().unwrap().record, key);
}
