//! Imports of contacts.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::import::report::RowErrors;
use messaging_core::domain::audience::import::{Cursor, Import, ImportState};
use messaging_core::ids::{ImportId, WorkspaceId};
use messaging_core::ports::store::Store;

use super::sample::{at, id, id_at, import};
use super::{all_pages, first, put, refuse};

fn add(import: &Import) -> Write {
    Write::put(Box::new(import.clone()), Expect::Absent)
}

fn errors(workspace_id: WorkspaceId, import_id: ImportId, first_row: u64) -> RowErrors {
    RowErrors { workspace_id, import_id, first_row, lines: format!("{first_row},email,invalid_format,\"a, b\"\r\n") }
}

/// An import comes back with all members, and changes with its revision.
pub async fn imports_round_trip(store: &dyn Store) {
    let workspace = id();
    let asked_for = import(workspace);
    put(store, [add(&asked_for)]).await;
    refuse(store, [add(&asked_for)]).await;
    let found = store.import(workspace, asked_for.id).await.unwrap().unwrap();
    assert_eq!((&found.record, found.revision), (&asked_for, 1));
    let cursor = Cursor { offset: 100_000, row: 501 };
    let states = [
        ImportState::Processing { upload: id(), cursor },
        ImportState::Completed { at: at(5) },
        ImportState::Failed { at: at(6), reason: "the file is not UTF-8".to_owned() },
        ImportState::Expired,
    ];
    for (revision, state) in (1..).zip(states) {
        let next = Import { state, total_rows: Some(7), created: 3, updated: 2, failed: 1, ..asked_for.clone() };
        let write = || Write::put(Box::new(next.clone()), Expect::Revision(revision));
        put(store, [write()]).await;
        refuse(store, [write()]).await;
        let found = store.import(workspace, next.id).await.unwrap().unwrap();
        assert_eq!((found.record, found.revision), (next, revision + 1));
    }
}

/// Refused rows are stored by import and in the order of the rows, whatever order they came in.
pub async fn refused_rows_come_back_in_order(store: &dyn Store) {
    let (workspace, one, other) = (id(), id(), id());
    let pieces = [2, 1002, 30_002].map(|row| errors(workspace, one, row));
    for piece in [&pieces[1], &pieces[0], &pieces[2], &errors(workspace, other, 5)] {
        put(store, [Write::AppendRowErrors(piece.clone())]).await;
    }
    assert_eq!(store.row_errors(workspace, one, 0, 10).await.unwrap(), pieces);
    assert_eq!(store.row_errors(workspace, one, 0, 2).await.unwrap(), pieces[..2]);
    assert_eq!(store.row_errors(workspace, one, 1002, 2).await.unwrap(), pieces[2..]);
    assert_eq!(store.row_errors(workspace, one, 30_002, 2).await.unwrap(), []);
    // The same piece twice would mean a slice that is applied twice.
    refuse(store, [Write::AppendRowErrors(pieces[0].clone())]).await;
}

/// The report is removed by the age of the import, a few pieces at a time.
pub async fn old_refused_rows_are_forgotten(store: &dyn Store) {
    let workspace = id();
    let (old, young): (ImportId, ImportId) = (id_at(1_000), id_at(9_000));
    for row in 2..7 {
        put(store, [old, young].map(|import| Write::AppendRowErrors(errors(workspace, import, row)))).await;
    }
    assert_eq!(store.forget_row_errors(at(1_000), 10).await.unwrap(), 0);
    assert_eq!(store.forget_row_errors(at(5_000), 3).await.unwrap(), 3);
    let left = store.row_errors(workspace, old, 0, 10).await.unwrap();
    assert_eq!(left.iter().map(|piece| piece.first_row).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(store.forget_row_errors(at(5_000), 3).await.unwrap(), 2);
    assert_eq!(store.forget_row_errors(at(5_000), 3).await.unwrap(), 0);
    assert_eq!(store.row_errors(workspace, young, 0, 10).await.unwrap().len(), 5);
}

/// Pages neither skip nor repeat.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let mut expected = Vec::new();
    for _ in 0..5 {
        let import = import(workspace);
        put(store, [add(&import)]).await;
        expected.insert(0, import);
    }
    let add_more = async || put(store, [add(&import(workspace))]).await;
    let listed = all_pages(2, async |page| store.imports(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// An import belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let other = id();
    let import = import(id());
    put(store, [add(&import), Write::AppendRowErrors(errors(import.workspace_id, import.id, 2))]).await;
    assert_eq!(store.import(other, import.id).await.unwrap(), None);
    assert_eq!(store.imports(other, first(10)).await.unwrap().items, []);
    assert_eq!(store.row_errors(other, import.id, 0, 10).await.unwrap(), []);
    let moved = Import { workspace_id: other, ..import.clone() };
    refuse(store, [Write::put(Box::new(moved), Expect::Revision(1))]).await;
}
