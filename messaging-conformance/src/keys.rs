//! Cases about API keys.

use messaging_core::changes::{AccountWrite, Expect, Write};
use messaging_core::domain::security::api_key::ApiKey;
use messaging_core::domain::security::api_key::usage::OperationUse;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::{ApiKeyId, WorkspaceId};
use messaging_core::ports::store::Store;
use messaging_core::time::Timestamp;

use super::sample::{at, id, key};
use super::{all_pages, first, put, refuse};

fn add(key: &ApiKey) -> Write {
    Write::put(key.clone(), Expect::Absent)
}

/// A key is found with all its fields by secret and prefix, by id in its workspace, and by id alone.
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

/// A key is found only by a secret and a prefix that both belong to it.
pub async fn a_key_is_found_by_secret_and_prefix(store: &dyn Store) {
    let (one, other) = (key(id()), ApiKey { secret_digest: Digest::of("another"), ..key(id()) });
    put(store, [add(&one), add(&other)]).await;
    let found = async |secret: &str, prefix: &str| store.api_key_by_secret(&Digest::of(secret), prefix).await.unwrap();
    assert_eq!(found("another", &other.prefix).await, Some(other.clone()));
    assert_eq!(found("another", &one.prefix).await, None);
    assert_eq!(found("unknown", &one.prefix).await, None);
    assert_eq!(found("another", "mk_live_nothing").await, None);

    // After a change of the secret, only the new one is valid.
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

/// The latest use is listed, also when an earlier one is recorded after it.
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

fn used(key_id: ApiKeyId, operation: &str, used_at: Timestamp) -> OperationUse {
    let ip = used_at.as_millis().to_be_bytes()[7];
    let ip = Some([192, 0, 2, ip].into());
    OperationUse { key_id, operation: operation.to_owned(), first_at: used_at, used_at, ip }
}

fn note(uses: &[OperationUse]) -> Write {
    Write::Account(AccountWrite::NoteKeyUses(uses.to_vec()))
}

/// For each key and operation, the store keeps the first time, and the latest with its address, also when an earlier
/// use is recorded after it. For keys of other workspaces and unknown keys it returns no uses.
pub async fn uses_are_kept_by_operation(store: &dyn Store) {
    let (workspace, other) = (id(), id());
    let (one, two, foreign) = (key(workspace), key(workspace), key(other));
    put(store, [add(&one), add(&two), add(&foreign)]).await;
    let gone: ApiKeyId = id();
    put(store, [note(&[used(one.id, "a", at(50)), used(one.id, "b", at(60)), used(gone, "a", at(50))])]).await;
    put(store, [note(&[used(one.id, "a", at(90)), used(two.id, "a", at(70)), used(foreign.id, "a", at(70))])]).await;
    let nameless = OperationUse { ip: None, ..used(two.id, "a", at(95)) };
    put(store, [note(&[used(one.id, "a", at(80)), nameless])]).await;

    let mut found = store.api_key_uses(workspace, &[one.id, two.id, foreign.id, gone]).await.unwrap();
    found.sort_by(|one, other| (one.key_id, &one.operation).cmp(&(other.key_id, &other.operation)));
    let mut expected = [
        OperationUse { first_at: at(50), ..used(one.id, "a", at(90)) },
        used(one.id, "b", at(60)),
        OperationUse { first_at: at(70), ip: None, ..used(two.id, "a", at(95)) },
    ];
    expected.sort_by(|one, other| (one.key_id, &one.operation).cmp(&(other.key_id, &other.operation)));
    assert_eq!(found, expected);
    assert_eq!(store.api_key_uses(workspace, &[two.id]).await.unwrap().len(), 1);
    assert_eq!(store.api_key_uses(workspace, &[]).await.unwrap(), []);
    // A key that is added later under an id whose uses were recorded before has no uses.
    put(store, [add(&ApiKey { id: gone, ..key(workspace) })]).await;
    assert_eq!(store.api_key_uses(workspace, &[gone]).await.unwrap(), []);
}

/// Keys are found when their next warning is due, and by the span of time in which they end; revoked and replaced ones
/// are not.
pub async fn keys_are_found_before_they_end(store: &dyn Store) {
    const DAY: i64 = 24 * 3_600_000;
    let days = |n: i64| Timestamp::from_millis(n * DAY);
    // Times long before those of all other keys, because these reads cover all workspaces.
    let begin = -40_000;
    let ends = |n: i64| ApiKey {
        created_at: days(begin),
        expires_at: Some(days(begin + n)),
        revoked_at: None,
        replaced_by: None,
        warned_days: None,
        ..key(id())
    };
    let (first, second) = (ends(60), ends(70));
    let (revoked, replaced) =
        (ApiKey { revoked_at: Some(days(begin)), ..ends(60) }, ApiKey { replaced_by: Some(id()), ..ends(60) });
    put(store, [add(&first), add(&second), add(&revoked), add(&replaced)]).await;
    let due = async |n: i64| {
        let found = store.api_keys_to_warn_of(days(begin + n), 10).await.unwrap();
        found.into_iter().map(|stored| stored.record.id).collect::<Vec<_>>()
    };
    assert_eq!(due(45).await, []);
    assert_eq!(due(46).await, [first.id]);
    assert_eq!(due(56).await, [first.id, second.id]);
    assert_eq!(store.api_keys_to_warn_of(days(begin + 56), 1).await.unwrap().len(), 1);
    put(store, [Write::put(ApiKey { warned_days: Some(14), ..first.clone() }, Expect::Revision(1))]).await;
    assert_eq!(due(56).await, [second.id]);
    assert_eq!(due(57).await, [second.id, first.id]);

    let ending = async |after: i64, until: i64| {
        let found = store.api_keys_ending(days(begin + after), days(begin + until), 10).await.unwrap();
        found.into_iter().map(|key| key.id).collect::<Vec<_>>()
    };
    assert_eq!(ending(0, 59).await, []);
    assert_eq!(ending(59, 60).await, [first.id]);
    assert_eq!(ending(60, 70).await, [second.id]);
    assert_eq!(ending(0, 70).await, [first.id, second.id]);
}

/// A paged listing neither skips nor repeats a key while others are added.
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

/// A key is neither found nor changed through another workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    let key = key(mine);
    put(store, [add(&key)]).await;
    assert_eq!(store.api_key(other, key.id).await.unwrap(), None);
    assert_eq!(store.api_keys(other, first(10)).await.unwrap().items, []);
    refuse(store, [Write::put(ApiKey { workspace_id: other, ..key.clone() }, Expect::Revision(1))]).await;
    assert_eq!(store.api_key_anywhere(key.id).await.unwrap().unwrap().record, key);
}
