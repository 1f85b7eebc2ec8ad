//! Cases for audit logs and their chains.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::security::audit::changes::AuditChange;
use messaging_core::domain::security::audit::{
    Actor, ActorKind, AuditEntry, AuditFilter, AuditRow, Chain, ChainCheck, Resource, StoredRow,
};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;
use serde_json::json;

use super::commit::at_once;
use super::sample::{at, id, user};
use super::{all_pages, commit, first, put, refuse};

/// More rows than a log has.
const ALL: usize = 100;

/// An entry with everything set that was recorded at a time.
pub fn entry(millis: i64) -> AuditEntry {
    let change =
        AuditChange {
            pointer: "/name".to_owned(), before: json!("Ä"), after: json!({"b": [1, null], "a": "•••"})
        };
    AuditEntry {
        id: id(),
        at: at(millis),
        actor: Actor { kind: ActorKind::User, id: Some("usr_1".to_owned()), name: Some("Ада".to_owned()) },
        operation: "updateTemplate".to_owned(),
        resource: Resource { kind: "template".to_owned(), id: Some("tpl_1".to_owned()), name: Some("Hi".to_owned()) },
        changes: vec![change],
        ip: Some("2001:db8::1".parse().unwrap()),
        request_id: Some("req_1".to_owned()),
    }
}

/// The write that records an entry.
pub fn record(workspace_id: Option<WorkspaceId>, entry: &AuditEntry) -> Write {
    Write::Audit(Box::new(AuditRow { workspace_id, entry: entry.clone() }))
}

async fn listed(store: &dyn Store, log: Option<WorkspaceId>, filter: AuditFilter) -> Vec<AuditEntry> {
    store.audit_entries(log, &filter, first(ALL)).await.unwrap().items
}

/// The rows of a log, and whether each follows and the chain ends.
async fn check(store: &dyn Store, log: Option<WorkspaceId>) -> (Vec<StoredRow>, bool) {
    let Some(chain) = store.audit_chain(log).await.unwrap() else { return (Vec::new(), true) };
    let rows = store.audit_rows(log, chain.anchor, ALL).await.unwrap();
    let is_whole = is_whole(log, &chain, &rows);
    (rows, is_whole)
}

fn is_whole(log: Option<WorkspaceId>, chain: &Chain, rows: &[StoredRow]) -> bool {
    let mut check = ChainCheck::begin(log, chain);
    let follow = rows.iter().filter(|row| check.follows(row)).count() == rows.len();
    follow && check.ends(chain)
}

/// Entries come back whole, newest first, in the order in which they were recorded, whatever they are dated.
pub async fn entries_round_trip(store: &dyn Store) {
    let home = Some(id());
    assert_eq!(listed(store, home, AuditFilter::default()).await, []);
    assert_eq!(store.audit_chain(home).await.unwrap(), None);
    let bare = AuditEntry {
        actor: Actor::unnamed(ActorKind::System),
        resource: Resource { kind: "installation".to_owned(), id: None, name: None },
        changes: Vec::new(),
        ip: None,
        request_id: None,
        ..entry(1)
    };
    let (one, two) = (entry(5), entry(3));
    put(store, [record(home, &one), record(home, &bare)]).await;
    put(store, [record(home, &two)]).await;
    assert_eq!(listed(store, home, AuditFilter::default()).await, [two, bare, one]);
}

/// Each workspace has a chain, and so has the installation.
pub async fn each_log_is_a_chain_of_its_own(store: &dyn Store) {
    let (one, two) = (Some(id::<WorkspaceId>()), Some(id::<WorkspaceId>()));
    for (log, count) in [(one, 3), (two, 2), (None, 4)] {
        for n in 0..count {
            put(store, [record(log, &entry(n))]).await;
        }
    }
    for (log, count) in [(one, 3), (two, 2), (None, 4)] {
        let (rows, is_whole) = check(store, log).await;
        let numbers: Vec<_> = rows.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
        assert!(is_whole);
    }
}

/// A row that is not as it was recorded does not fit.
pub async fn a_changed_row_is_found(store: &dyn Store) {
    let home = Some(id());
    put(store, [record(home, &entry(0)), record(home, &entry(1)), record(home, &entry(2))]).await;
    let chain = store.audit_chain(home).await.unwrap().unwrap();
    let (rows, whole) = check(store, home).await;
    assert!(whole);
    let mut changed = rows.clone();
    changed[1].text = changed[1].text.replace("updateTemplate", "deleteTemplate");
    assert!(!is_whole(home, &chain, &changed));
    assert!(!is_whole(home, &chain, &rows[..2]));
    assert!(!is_whole(Some(id()), &chain, &rows));
}

/// Each filter lets through what it says.
pub async fn every_filter_narrows(store: &dyn Store) {
    let home = Some(id());
    let other = AuditEntry {
        actor: Actor { kind: ActorKind::Key, id: Some("key_1".to_owned()), name: None },
        operation: "createWebhook".to_owned(),
        resource: Resource { kind: "webhook".to_owned(), id: Some("whk_1".to_owned()), name: None },
        ..entry(10)
    };
    let one = entry(5);
    put(store, [record(home, &one), record(home, &other)]).await;
    let text = |text: &str| Some(text.to_owned());
    let of = AuditFilter::default;
    for (filter, expected) in [
        (AuditFilter { actor: text("usr_1"), ..of() }, &one),
        (AuditFilter { actor: text("key"), ..of() }, &other),
        (AuditFilter { operation: text("updateTemplate"), ..of() }, &one),
        (AuditFilter { resource: text("whk_1"), ..of() }, &other),
        (AuditFilter { resource: text("template"), ..of() }, &one),
        (AuditFilter { since: Some(at(6)), ..of() }, &other),
        (AuditFilter { until: Some(at(10)), ..of() }, &one),
        (AuditFilter { since: Some(at(10)), until: Some(at(11)), ..of() }, &other),
    ] {
        assert_eq!(listed(store, home, filter.clone()).await, std::slice::from_ref(expected), "{filter:?}");
    }
    for filter in [
        AuditFilter { actor: text("user"), operation: text("createWebhook"), ..of() },
        AuditFilter { since: Some(at(11)), ..of() },
        AuditFilter { resource: text(""), ..of() },
    ] {
        assert_eq!(listed(store, home, filter.clone()).await, [], "{filter:?}");
    }
}

/// A listing that goes on while entries are added has each of those that there were at its beginning, once.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let home = Some(id());
    let entries: Vec<_> = (0..7).map(entry).collect();
    for entry in &entries {
        put(store, [record(home, entry)]).await;
    }
    let filter = AuditFilter::default();
    let found = all_pages(
        2,
        |page| store.audit_entries(home, &filter, page),
        async || put(store, [record(home, &entry(99))]).await,
    )
    .await;
    assert_eq!(found, entries.into_iter().rev().collect::<Vec<_>>());
}

/// Commits at the same moment make one chain, not a fork.
pub async fn a_crowd_makes_one_chain(store: &dyn Store) {
    let (one, two) = (Some(id::<WorkspaceId>()), Some(id::<WorkspaceId>()));
    let commits = (0..40).map(|n| {
        // Some add to two logs, in either order.
        let writes = match n % 4 {
            0 => vec![record(one, &entry(n)), record(two, &entry(n))],
            1 => vec![record(two, &entry(n)), record(one, &entry(n))],
            2 => vec![record(one, &entry(n)), record(one, &entry(n))],
            _ => vec![Write::put(user(), Expect::Absent), record(one, &entry(n)), record(None, &entry(n))],
        };
        commit(store, writes)
    });
    for outcome in at_once(commits.map(Box::pin).collect()).await {
        outcome.unwrap();
    }
    for (log, count) in [(one, 50), (two, 20), (None, 10)] {
        let (rows, is_whole) = check(store, log).await;
        assert_eq!((rows.len(), is_whole), (count, true), "{log:?}");
    }
}

/// Rows that are old enough go from the beginning, and the chain goes on after the last of them.
pub async fn old_rows_go_and_leave_an_anchor(store: &dyn Store) {
    let home = Some(id());
    // The third was recorded while the clock was wrong: it goes when the second goes, not before.
    for millis in [1, 9, 2, 10, 11] {
        put(store, [record(home, &entry(millis))]).await;
    }
    assert_eq!(store.expired_audit_rows(at(1), ALL).await.unwrap(), None);
    assert_eq!(store.expired_audit_rows(at(5), ALL).await.unwrap(), Some((home, 1)));
    put(store, [Write::TrimAudit(home, 1)]).await;
    refuse(store, [Write::TrimAudit(home, 1)]).await;
    assert_eq!(store.expired_audit_rows(at(5), ALL).await.unwrap(), None);
    assert_eq!(store.expired_audit_rows(at(10), 2).await.unwrap(), Some((home, 3)));
    put(store, [Write::TrimAudit(home, 3)]).await;

    let (rows, is_whole) = check(store, home).await;
    assert_eq!((rows.len(), is_whole), (2, true));
    put(store, [record(home, &entry(12))]).await;
    let (rows, is_whole) = check(store, home).await;
    assert_eq!((rows.last().unwrap().number, is_whole), (6, true));

    // Also when nothing is left.
    put(store, [Write::TrimAudit(home, 6)]).await;
    let (rows, is_whole) = check(store, home).await;
    assert_eq!((rows.len(), is_whole), (0, true));
    put(store, [record(home, &entry(13))]).await;
    let (rows, is_whole) = check(store, home).await;
    assert_eq!((rows[0].number, is_whole), (7, true));

    // The log of the installation, too.
    put(store, [record(None, &entry(1))]).await;
    assert_eq!(store.expired_audit_rows(at(5), ALL).await.unwrap(), Some((None, 1)));
}

/// An entry of a commit that is refused is not there, and leaves no gap.
pub async fn a_refused_commit_records_nothing(store: &dyn Store) {
    let home = Some(id());
    let known = user();
    put(store, [Write::put(known.clone(), Expect::Absent), record(home, &entry(0))]).await;
    refuse(store, [record(home, &entry(1)), Write::put(known.clone(), Expect::Absent)]).await;
    refuse(store, [Write::put(known, Expect::Absent), record(home, &entry(2))]).await;
    put(store, [record(home, &entry(3))]).await;
    let (rows, is_whole) = check(store, home).await;
    assert_eq!((rows.len(), rows[1].number, is_whole), (2, 2, true));
}
