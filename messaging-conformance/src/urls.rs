//! Targets of redirected links.

use messaging_core::changes::{DocumentKey, Write};
use messaging_core::domain::audience::contact::erasure::Names;
use messaging_core::domain::mail::link_token::UrlKey;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::id;
use super::{all_pages, first, put};

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

/// Targets that name somebody are found, as they are or escaped, page by page, and can be removed.
pub async fn targets_that_name_somebody_are_removed(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let names = Names::new(["ann+x@example.com".to_owned(), "user-17".to_owned()]);
    let of = |n: usize| match n % 4 {
        0 => format!("https://acme.example/{n}?m=Ann+X@example.com"),
        1 => format!("https://acme.example/{n}?m=ann%2Bx%40example.com"),
        2 => format!("https://acme.example/{n}/USER-17"),
        _ => format!("https://acme.example/{n}?m=bob@example.com"),
    };
    let add = |url: String| Write::PutUrl(workspace, url);
    put(store, (0..20).map(of).map(add)).await;
    put(store, [Write::PutUrl(id(), of(0))]).await;
    let fetch = async |page| store.urls_naming(workspace, &names, page).await;
    let found = all_pages(4, fetch, async || {}).await;
    let mut expected: Vec<_> = (0..20).filter(|n| n % 4 != 3).map(|n| UrlKey::of(&of(n))).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    put(store, found.iter().map(|key| Write::Delete(DocumentKey::Url(workspace, *key))).collect::<Vec<_>>()).await;
    put(store, [Write::Delete(DocumentKey::Url(workspace, found[0]))]).await;
    assert_eq!(store.url(workspace, found[0]).await.unwrap(), None);
    assert_eq!(store.url(workspace, UrlKey::of(&of(3))).await.unwrap(), Some(of(3)));
    assert_eq!(store.urls_naming(workspace, &names, first(1)).await.unwrap().items, []);
}

/// A target belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    put(store, [Write::PutUrl(mine, URL.to_owned())]).await;
    assert_eq!(store.url(other, UrlKey::of(URL)).await.unwrap(), None);
}
