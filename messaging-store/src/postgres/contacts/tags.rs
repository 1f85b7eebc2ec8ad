//! Tags of contacts: which contacts get or lose which tags.

use std::collections::BTreeSet;

use messaging_core::ids::{ContactId, WorkspaceId};

use super::super::transaction::Transaction;
use crate::sql::{Value, key, params};

/// Which contacts get tags that they do not have yet, and which lose some.
#[derive(Debug, Default)]
pub(super) struct TagMoves {
    added: Vec<(ContactId, String)>,
    removed: Vec<(ContactId, String)>,
}

impl TagMoves {
    pub(super) fn add<'t>(&mut self, contact: ContactId, tags: impl Iterator<Item = &'t String>) {
        self.added.extend(tags.map(|tag| (contact, tag.clone())));
    }

    pub(super) fn remove<'t>(&mut self, contact: ContactId, tags: impl Iterator<Item = &'t String>) {
        self.removed.extend(tags.map(|tag| (contact, tag.clone())));
    }

    /// Changes who has which tag, once the contacts are written. A tag that nobody has any more goes: it may say
    /// something about whoever had it.
    pub(super) fn write(self, transaction: &mut Transaction, workspace: WorkspaceId) {
        const REMOVE: &str = "DELETE FROM tag_members m
            USING unnest($2::uuid[], $3::text[]) AS given(contact, tag), workspace_numbers w, tags t, contacts c
            WHERE w.workspace = $1 AND t.workspace_number = w.number AND t.tag = given.tag
                AND c.workspace_number = w.number AND c.id = given.contact AND m.tag = t.n AND m.contact = c.n";
        const FORGET: &str = "SELECT forget_tags(number, $2::text[]) FROM workspace_numbers WHERE workspace = $1";
        if !self.removed.is_empty() {
            let (contacts, tags) = columns(&self.removed);
            transaction.run(REMOVE, params![key(workspace), contacts, tags]);
        }
        if !self.added.is_empty() {
            add(transaction, workspace, self.added);
        }
        if !self.removed.is_empty() {
            transaction.run(FORGET, params![key(workspace), distinct(&self.removed)]);
        }
    }
}

fn add(transaction: &mut Transaction, workspace: WorkspaceId, added: Vec<(ContactId, String)>) {
    const MAKE: &str = "INSERT INTO tags (workspace_number, tag)
        SELECT w.number, given.tag FROM workspace_numbers w CROSS JOIN unnest($2::text[]) AS given(tag)
        WHERE w.workspace = $1 AND NOT EXISTS (
            SELECT 1 FROM tags t WHERE t.workspace_number = w.number AND t.tag = given.tag)
        ORDER BY given.tag COLLATE \"C\" ON CONFLICT DO NOTHING";
    // Held, so that nobody removes a tag that somebody gets. One that went just now makes it a conflict.
    const ADD: &str = "WITH named AS MATERIALIZED (
            SELECT n, tag FROM tags
            WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND tag = ANY ($2)
            ORDER BY n FOR KEY SHARE
        )
        INSERT INTO tag_members (tag, contact)
        SELECT named.n, c.n FROM unnest($3::uuid[], $4::text[]) AS given(contact, tag)
        JOIN named ON named.tag = given.tag
        JOIN contacts c ON c.id = given.contact
            AND c.workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)
        ORDER BY named.n, c.n";
    let tags = distinct(&added);
    transaction.run(MAKE, params![key(workspace), tags.clone()]);
    let number = added.len();
    let (contacts, of_contacts) = columns(&added);
    transaction.run_exactly(number, ADD, params![key(workspace), tags, contacts, of_contacts]);
}

fn columns(moves: &[(ContactId, String)]) -> (Vec<Value>, Vec<String>) {
    moves.iter().map(|(contact, tag)| (key(*contact), tag.clone())).unzip()
}

fn distinct(moves: &[(ContactId, String)]) -> Vec<String> {
    let tags: BTreeSet<&String> = moves.iter().map(|(_, tag)| tag).collect();
    tags.into_iter().cloned().collect()
}

/// Takes all its tags from a contact that is about to go.
pub(super) fn remove_all(transaction: &mut Transaction, workspace_number: i64, contact: i64, tags: Vec<String>) {
    const REMOVE: &str = "DELETE FROM tag_members WHERE contact = $2
        AND tag IN (SELECT n FROM tags WHERE workspace_number = $1 AND tag = ANY ($3))";
    if !tags.is_empty() {
        transaction.run(REMOVE, params![workspace_number, contact, tags.clone()]);
        transaction.run("SELECT forget_tags($1, $2)", params![workspace_number, tags]);
    }
}
