//! Custom fields.

use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::audience::custom_field::CustomField;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{custom_field, id};
use super::{all_pages, first, put, refuse};

fn add(field: &CustomField) -> Write {
    Write::put(field.clone(), Expect::Absent)
}

/// A field comes back with all members, changes with its revision, and goes.
pub async fn fields_round_trip(store: &dyn Store) {
    let workspace = id();
    let (complete, bare) =
        (custom_field(workspace, "plan"), CustomField { label: None, ..custom_field(workspace, "age") });
    put(store, [add(&complete), add(&bare)]).await;
    for field in [&complete, &bare] {
        let found = store.custom_field(workspace, field.id).await.unwrap().unwrap();
        assert_eq!((&found.record, found.revision), (field, 1));
    }
    let changed = CustomField { label: Some("Tariff".to_owned()), ..complete };
    put(store, [Write::put(changed.clone(), Expect::Revision(1))]).await;
    refuse(store, [Write::put(changed.clone(), Expect::Revision(1))]).await;
    assert_eq!(store.custom_field(workspace, changed.id).await.unwrap().unwrap().record, changed);
    put(store, [Write::Delete(DocumentKey::Field(workspace, changed.id))]).await;
    put(store, [Write::Delete(DocumentKey::Field(workspace, changed.id))]).await;
    assert_eq!(store.custom_field(workspace, changed.id).await.unwrap(), None);
    put(store, [add(&custom_field(workspace, "plan"))]).await;
}

/// A workspace has a key once; two workspaces may both have it.
pub async fn key_is_unique_in_its_workspace(store: &dyn Store) {
    let (mine, other) = (id(), id());
    put(store, [add(&custom_field(mine, "plan"))]).await;
    refuse(store, [add(&custom_field(mine, "plan"))]).await;
    put(store, [add(&custom_field(mine, "Plan")), add(&custom_field(other, "plan"))]).await;
}

/// Pages neither skip nor repeat.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace = id();
    let new = || {
        let key: WorkspaceId = id();
        custom_field(workspace, &format!("k{key}"))
    };
    let mut expected = Vec::new();
    for _ in 0..5 {
        let field = new();
        put(store, [add(&field)]).await;
        expected.insert(0, field);
    }
    let add_more = async || put(store, [add(&new())]).await;
    let listed = all_pages(2, async |page| store.custom_fields(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// A field belongs to its workspace.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let other = id();
    let field = custom_field(id(), "plan");
    put(store, [add(&field)]).await;
    assert_eq!(store.custom_field(other, field.id).await.unwrap(), None);
    assert_eq!(store.custom_fields(other, first(10)).await.unwrap().items, []);
    let moved = CustomField { workspace_id: other, ..field.clone() };
    refuse(store, [Write::put(moved, Expect::Revision(1))]).await;
    put(store, [Write::Delete(DocumentKey::Field(other, field.id))]).await;
    assert_eq!(store.custom_field(field.workspace_id, field.id).await.unwrap().unwrap().record, field);
}
