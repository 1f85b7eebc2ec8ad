//! Targets of redirected links.

use messaging_core::changes::Write;
use messaging_core::domain::link_token::UrlKey;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::put;
use super::sample::id;

const URL: &str = "https://acme.example/ü?a=1&b=2#c";

/// A target comes back by its key; storing it again changes nothing.
pub async fn urls_round_trip_and_are_stored_once(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let add = |url: &str| Write::PutUrl(workspace, url.to_owned());
    put(store, [add(URL), add(URL), add("https://acme.example/")]).await;
    put(store, [add(URL)]).await;
    for url in [URL, "https://acme.example/"] {
        assert_eq!(store.url(workspace, UrlKey::of(url)).await.unwrap().as_deref(), Some(url));
    }
    assert_eq!(store.url(workspace, UrlKey::of("https://acme.example/other")).await.unwrap(), None);
}

/// A target belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    put(store, [Write::PutUrl(mine, URL.to_owned())]).await;
    assert_eq!(store.url(other, UrlKey::of(URL)).await.unwrap(), None);
}
