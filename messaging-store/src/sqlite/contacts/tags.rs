//! Tags of contacts: their numbers, and which contacts get or lose them.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, params};

use super::super::fault::Fault;
use super::super::query::one;

/// The number of a tag.
pub(super) fn number(connection: &Connection, workspace_number: i64, tag: &str) -> Result<Option<i64>, Fault> {
    let sql = "SELECT n FROM tags WHERE workspace_number = ?1 AND tag = ?2";
    one(connection, sql, params![workspace_number, tag], |row| Ok(row.get(0)?))
}

/// Changes who has which tag, in one workspace. Numbers that were looked up are remembered.
pub(super) struct Tags<'a> {
    connection: &'a Connection,
    workspace_number: i64,
    numbers: HashMap<String, i64>,
    addition: CachedStatement<'a>,
}

impl<'a> Tags<'a> {
    pub(super) fn new(connection: &'a Connection, workspace_number: i64) -> Result<Self, Fault> {
        let addition = connection.prepare_cached("INSERT INTO tag_members (tag, contact) VALUES (?1, ?2)")?;
        Ok(Self { connection, workspace_number, numbers: HashMap::new(), addition })
    }

    /// Adds a contact to tags that it does not have yet.
    pub(super) fn add<'t>(&mut self, contact: i64, tags: impl Iterator<Item = &'t String>) -> Result<(), Fault> {
        for tag in tags {
            let number = self.make(tag)?;
            self.addition.execute([number, contact])?;
        }
        Ok(())
    }

    /// The number of a tag, given to it when it has none.
    fn make(&mut self, tag: &str) -> Result<i64, Fault> {
        if let Some(number) = self.numbers.get(tag) {
            return Ok(*number);
        }
        let number = match number(self.connection, self.workspace_number, tag)? {
            Some(number) => number,
            None => self
                .connection
                .prepare_cached("INSERT INTO tags (workspace_number, tag) VALUES (?1, ?2) RETURNING n")?
                .query_row(params![self.workspace_number, tag], |row| row.get(0))?,
        };
        self.numbers.insert(tag.to_owned(), number);
        Ok(number)
    }

    /// Takes tags from a contact. A tag that nobody has any more goes: it may say something about whoever
    /// had it.
    pub(super) fn remove<'t>(&mut self, contact: i64, tags: impl Iterator<Item = &'t String>) -> Result<(), Fault> {
        for tag in tags {
            let Some(number) = number(self.connection, self.workspace_number, tag)? else { continue };
            self.connection
                .prepare_cached("DELETE FROM tag_members WHERE tag = ?1 AND contact = ?2")?
                .execute([number, contact])?;
            let gone = self
                .connection
                .prepare_cached(
                    "DELETE FROM tags WHERE n = ?1 AND NOT EXISTS (SELECT 1 FROM tag_members WHERE tag = ?1)",
                )?
                .execute([number])?;
            if gone == 1 {
                self.numbers.remove(tag);
            }
        }
        Ok(())
    }
}
