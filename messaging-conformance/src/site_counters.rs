//! Counters of email by site.

use messaging_core::changes::{CountSites, Expect, Write};
use messaging_core::domain::analytics::site_tally::SiteCounts;
use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Store;

use super::sample::{campaign, id};
use super::{put, refuse};

/// The latest possible quarter.
const END: Quarter = Quarter(i32::MAX);

/// Counts of a site in a quarter: `accepted` messages, and `later` in the last bucket of times.
fn numbers(accepted: i64, later: i64) -> SiteCounts {
    let mut numbers = [0; SiteCounts::NAMES.len()];
    (numbers[0], numbers[SiteCounts::NAMES.len() - 1]) = (accepted, later);
    SiteCounts::from_numbers(numbers)
}

fn count(workspace_id: WorkspaceId, counts: &[(&str, i32, SiteCounts)]) -> Write {
    let named = |(site, quarter, counts): &(&str, i32, SiteCounts)| {
        (SiteName::parse(site).unwrap(), Quarter(*quarter), *counts)
    };
    Write::CountSites(Box::new(CountSites { workspace_id, counts: counts.iter().map(named).collect() }))
}

async fn found(store: &dyn Store, workspace: WorkspaceId, from: i32, to: Quarter) -> Vec<(String, i64, i64)> {
    let found = store.site_activity(workspace, Quarter(from), to, 100).await.unwrap();
    let ends = |counts: &SiteCounts| (counts.numbers()[0], *counts.numbers().last().unwrap());
    found.iter().map(|(site, counts)| (site.clone(), ends(counts).0, ends(counts).1)).collect()
}

/// Counts are sums by site and span, those with most messages first; those of other workspaces are not included.
pub async fn counts_of_a_site_add_up(store: &dyn Store) {
    let (workspace, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let all = [("gmail", 10, numbers(1, 1)), ("example.org", 10, numbers(5, 0)), ("gmail", 11, numbers(2, 0))];
    put(store, [count(workspace, &all)]).await;
    put(store, [count(workspace, &[("gmail", 11, numbers(7, -1))]), count(workspace, &all[..1])]).await;
    put(store, [count(other, &[("yahoo", 10, numbers(1, 1))])]).await;
    let everything = [("gmail".to_owned(), 11, 1), ("example.org".to_owned(), 5, 0)];
    assert_eq!(found(store, workspace, 0, END).await, everything);
    assert_eq!(found(store, workspace, 11, END).await, [("gmail".to_owned(), 9, -1)]);
    assert_eq!(
        found(store, workspace, 0, Quarter(11)).await,
        [("example.org".to_owned(), 5, 0), ("gmail".to_owned(), 2, 2)]
    );
    assert_eq!(found(store, workspace, 12, END).await, []);
    assert_eq!(store.site_activity(workspace, Quarter(0), END, 1).await.unwrap().len(), 1);
    assert_eq!(found(store, other, 0, END).await, [("yahoo".to_owned(), 1, 1)]);
    assert_eq!(found(store, id(), 0, END).await, []);
}

/// Counts before a quarter are removed, a limited number at a time.
pub async fn old_counts_of_sites_are_forgotten(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    // Before all quarters that other cases count in.
    let old = [-30, -20, -10].map(|quarter| ("gmail", quarter, numbers(1, 0)));
    put(store, [count(workspace, &old)]).await;
    assert_eq!(store.forget_site_activity(Quarter(-30), 100).await.unwrap(), 0);
    assert_eq!(store.forget_site_activity(Quarter(-10), 1).await.unwrap(), 1);
    assert_eq!(found(store, workspace, -40, Quarter(0)).await, [("gmail".to_owned(), 2, 0)]);
    assert_eq!(store.forget_site_activity(Quarter(-10), 100).await.unwrap(), 1);
    assert_eq!(found(store, workspace, -40, Quarter(0)).await, [("gmail".to_owned(), 1, 0)]);
}

/// A refused commit counts nothing.
pub async fn a_refused_commit_counts_nothing(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let campaign = campaign(workspace);
    put(store, [Write::put(Box::new(campaign.clone()), Expect::Absent)]).await;
    let counted = count(workspace, &[("gmail", 10, numbers(1, 0))]);
    let again = Write::put(Box::new(campaign), Expect::Absent);
    refuse(store, [counted, again]).await;
    assert_eq!(found(store, workspace, 0, END).await, []);
}
