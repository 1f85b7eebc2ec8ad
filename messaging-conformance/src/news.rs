//! Tests that every commit is reported under the topics that it changes.

use std::time::Duration;

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::automation::note::EntrySubscription;
use messaging_core::ports::store::{News, Store, Topic};
use tokio::sync::watch;

use super::automation_samples::{entered_by, lanes};
use super::put;
use super::sample::{automation, contact, domain, enqueue, id, product_event, user, webhook, workspace};
use super::segments::add_contact;

/// Waits until a topic was told of since `before`, which is now from then on.
async fn heard(news: &mut watch::Receiver<News>, before: &mut News, topic: Topic) {
    let heard = async {
        loop {
            let now = *news.borrow_and_update();
            if now.since(before).contains(topic) {
                *before = now;
                return;
            }
            news.changed().await.expect("the store is open");
        }
    };
    tokio::time::timeout(Duration::from_mins(1), heard)
        .await
        .unwrap_or_else(|_| panic!("nothing is told of {topic:?}"));
}

/// Whoever listens hears of commits, also when they were several.
pub async fn commits_are_told_by_topic(store: &dyn Store) {
    let mut news = store.news();
    let mut before = *news.borrow_and_update();
    put(store, [Write::put(user(), Expect::Absent)]).await;
    heard(&mut news, &mut before, Topic::Credentials).await;
    let seen = before;
    put(store, [Write::put(domain(id(), "a.example"), Expect::Absent)]).await;
    put(store, [Write::put(Box::new(webhook(id())), Expect::Absent)]).await;
    for topic in [Topic::Listeners, Topic::Domains] {
        let mut before = seen;
        heard(&mut news, &mut before, topic).await;
    }
    // Somebody who begins to listen hears of what comes.
    let mut late = store.news();
    let mut since = *late.borrow_and_update();
    put(store, [Write::put(workspace(), Expect::Absent)]).await;
    heard(&mut late, &mut since, Topic::Workspaces).await;
}

/// A job that becomes due by what an automation listens for is told of: no write of the commit names it.
pub async fn work_that_notes_make_due_is_told(store: &dyn Store) {
    let automation = automation(id());
    let ann = contact(automation.workspace_id);
    put(store, [entered_by(&automation, EntrySubscription::Event("bought".to_owned())), add_contact(&ann)]).await;
    // They rest until long after.
    put(store, lanes(&automation).into_iter().map(|lane| enqueue(lane.as_str(), 1_000_000_000_000_000))).await;
    let mut news = store.news();
    let mut before = *news.borrow_and_update();
    put(store, [Write::AppendProductEvents(vec![product_event(&ann, "bought")])]).await;
    heard(&mut news, &mut before, Topic::Work).await;
}
