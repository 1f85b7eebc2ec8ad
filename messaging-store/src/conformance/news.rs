//! What is told of commits.

use messaging_core::changes::{Expect, Write};
use messaging_core::ports::store::{News, Store, Topic, Topics};
use tokio::sync::watch;

use super::sample::{domain, id, user, webhook, workspace};
use super::{put, refuse};

/// What was told since the last call.
fn heard(news: &mut watch::Receiver<News>, before: &mut News) -> Topics {
    let now = *news.borrow_and_update();
    now.since(&std::mem::replace(before, now))
}

/// Whoever listens has heard of a commit when it returns; of several at once, if they were several.
pub async fn commits_are_told_by_topic(store: &dyn Store) {
    let mut news = store.news();
    let mut before = *news.borrow_and_update();
    put(store, [Write::PutUser(user(), Expect::Absent)]).await;
    assert!(heard(&mut news, &mut before).contains(Topic::Credentials));
    put(store, [Write::PutDomain(domain(id(), "a.example"), Expect::Absent)]).await;
    put(store, [Write::PutWebhook(Box::new(webhook(id())), Expect::Absent)]).await;
    let told = heard(&mut news, &mut before);
    assert!(told.contains(Topic::Domains) && told.contains(Topic::Listeners));
    // Somebody who begins to listen hears of what comes, and a commit that is refused is none.
    let mut late = store.news();
    let mut since = *late.borrow_and_update();
    let workspace = workspace();
    refuse(store, [Write::PutWorkspace(workspace.clone(), Expect::Revision(1))]).await;
    put(store, [Write::PutWorkspace(workspace, Expect::Absent)]).await;
    assert!(heard(&mut late, &mut since).contains(Topic::Workspaces));
}
