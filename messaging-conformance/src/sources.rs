//! Cases for sources of mail and their paths.

use messaging_core::changes::{Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::source::{NamedSource, PathRow, SourceAddress, SourceRow, SourceStatus};
use messaging_core::ports::store::{Store, Stored};

use super::sample::{at, ip};
use super::{put, refuse};

fn source(n: u8) -> SourceAddress {
    ip(n).into()
}

fn path(ip: SourceAddress, site: &str, day: i64, sent_today: u64) -> PathRow {
    let state = format!(r#"{{"site":"{site}","sent":{sent_today}}}"#);
    PathRow { ip, site: site.to_owned(), state, sent_today, day, is_stopped: false, updated_at: at(day) }
}

fn put_path(path: &PathRow, expect: Expect) -> Write {
    Write::Source(SourceWrite::PutPath(Box::new(path.clone()), expect))
}

/// Announces sources twice, so that each handle does so if the calls alternate between two.
async fn announce(store: &dyn Store, sources: &[NamedSource]) {
    for _ in 0..2 {
        store.announce_sources(sources).await.unwrap();
    }
}

/// The sources that a node announced are returned in the order of its announcement, and a later one replaces them.
pub async fn sources_of_a_node_are_told_while_it_lives(store: &dyn Store) {
    assert_eq!(store.live_sources().await.unwrap(), []);
    let named = |ip, name: &str| NamedSource { ip, name: name.to_owned() };
    let two = [named(source(2), "b.example.org"), named(source(1), "a.example.org")];
    announce(store, &two).await;
    let live = store.live_sources().await.unwrap();
    // Over two handles there may be two nodes, each with both sources.
    assert!(live.len() == 2 || live.len() == 4, "{live:?}");
    for of_node in live.chunks(2) {
        assert_eq!(of_node.iter().map(|live| &live.source).collect::<Vec<_>>(), two.iter().collect::<Vec<_>>());
        assert!(!of_node[0].node.is_empty() && of_node[0].node == of_node[1].node);
        assert_eq!(of_node[0].joined, of_node[1].joined);
    }
    assert!(live.is_sorted_by_key(|live| live.joined), "{live:?}");
    announce(store, &[named(SourceAddress::Default, "c.example.org")]).await;
    let live = store.live_sources().await.unwrap();
    assert!(!live.is_empty() && live.iter().all(|live| live.source.ip == SourceAddress::Default), "{live:?}");
    announce(store, &[]).await;
    assert_eq!(store.live_sources().await.unwrap(), []);
}

/// Sources are read with all fields as they were written, listed by address, and only replaced at their revision.
pub async fn what_is_kept_of_sources_comes_back(store: &dyn Store) {
    let warm = SourceRow {
        status: SourceStatus::Warm,
        level: 22,
        last_used_at: Some(at(5)),
        ..SourceRow::new(source(1), at(6))
    };
    let new = SourceRow::new(SourceAddress::Default, at(1));
    let write = |row: &SourceRow, expect| Write::Source(SourceWrite::PutSource(row.clone(), expect));
    put(store, [write(&new, Expect::Absent), write(&warm, Expect::Absent)]).await;
    refuse(store, [write(&warm, Expect::Absent)]).await;
    assert_eq!(store.source_row(source(1)).await.unwrap(), Some(Stored { record: warm.clone(), revision: 1 }));
    assert_eq!(store.source_row(source(2)).await.unwrap(), None);
    let stopped = SourceRow { status: SourceStatus::Stopped, ..warm };
    put(store, [Write::Source(SourceWrite::OrderSource(stopped.clone(), Expect::Revision(1)))]).await;
    refuse(store, [write(&stopped, Expect::Revision(1))]).await;
    let all = [Stored { record: stopped, revision: 2 }, Stored { record: new, revision: 1 }];
    assert_eq!(store.source_rows(None, 9).await.unwrap(), all);
    assert_eq!(store.source_rows(None, 1).await.unwrap(), all[..1]);
    assert_eq!(store.source_rows(Some(source(1)), 9).await.unwrap(), all[1..]);
}

/// Paths are read with all fields as they were written, listed by site, and only replaced at their revision.
pub async fn paths_round_trip(store: &dyn Store) {
    let gmail = PathRow { is_stopped: true, ..path(source(1), "gmail", 20_000, 50) };
    let other = path(source(1), "example.org", 20_000, 7);
    let of_another = path(source(2), "gmail", 20_000, 9);
    put(store, [&gmail, &other, &of_another].map(|path| put_path(path, Expect::Absent))).await;
    refuse(store, [put_path(&gmail, Expect::Absent)]).await;
    assert_eq!(store.path_row(source(1), "gmail").await.unwrap(), Some(Stored { record: gmail.clone(), revision: 1 }));
    assert_eq!(store.path_row(source(2), "example.org").await.unwrap(), None);
    let released = PathRow { is_stopped: false, state: "{}".to_owned(), updated_at: at(7), ..gmail };
    put(store, [Write::Source(SourceWrite::OrderPath(Box::new(released.clone()), Expect::Revision(1)))]).await;
    // If one of several paths in a commit has another revision, none is written.
    let more = PathRow { sent_today: 8, ..other.clone() };
    refuse(store, [put_path(&more, Expect::Revision(1)), put_path(&released, Expect::Revision(1))]).await;
    let all = [Stored { record: other, revision: 1 }, Stored { record: released, revision: 2 }];
    assert_eq!(store.path_rows(source(1), None, 9).await.unwrap(), all);
    assert_eq!(store.path_rows(source(1), None, 1).await.unwrap(), all[..1]);
    assert_eq!(store.path_rows(source(1), Some("example.org"), 9).await.unwrap(), all[1..]);
}

/// The busiest paths of a day come first; messages sent on another day do not count.
pub async fn the_busiest_paths_of_a_day_come_first(store: &dyn Store) {
    let (today, yesterday) = (20_000, 19_999);
    let paths = [
        path(source(1), "b.example", today, 5),
        path(source(1), "a.example", yesterday, 900),
        path(source(1), "gmail", today, 80),
        path(source(1), "c.example", today, 5),
        path(source(2), "gmail", today, 999),
    ];
    put(store, paths.iter().map(|path| put_path(path, Expect::Absent)).collect::<Vec<_>>()).await;
    let sites = async |limit| {
        let found = store.busiest_paths(source(1), today, limit).await.unwrap();
        found.into_iter().map(|path| path.site).collect::<Vec<_>>()
    };
    assert_eq!(sites(9).await, ["gmail", "b.example", "c.example", "a.example"]);
    assert_eq!(sites(2).await, ["gmail", "b.example"]);
}

/// Paths that were not used for long are removed, a few at a time; stopped paths stay.
pub async fn old_paths_are_forgotten_unless_they_are_stopped(store: &dyn Store) {
    let old = |site: &str| PathRow { updated_at: at(1), ..path(source(1), site, 1, 1) };
    let stopped = PathRow { is_stopped: true, ..old("stopped") };
    let used = PathRow { updated_at: at(10), ..old("used") };
    let all = [old("a"), old("b"), old("c"), stopped, used];
    put(store, all.iter().map(|path| put_path(path, Expect::Absent)).collect::<Vec<_>>()).await;
    assert_eq!(store.forget_paths(at(1), 9).await.unwrap(), 0);
    assert_eq!(store.forget_paths(at(10), 2).await.unwrap(), 2);
    assert_eq!(store.forget_paths(at(10), 9).await.unwrap(), 1);
    let left = store.path_rows(source(1), None, 9).await.unwrap();
    assert_eq!(left.iter().map(|stored| stored.record.site.as_str()).collect::<Vec<_>>(), ["stopped", "used"]);
}
