//! Who has which tag.

use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::query::one;

/// The number of a tag.
pub(super) fn number(connection: &Connection, audience: i64, tag: &str) -> Result<Option<i64>, Fault> {
    let sql = "SELECT n FROM tags WHERE audience = ?1 AND tag = ?2";
    one(connection, sql, params![audience, tag], |row| Ok(row.get(0)?))
}

/// Adds a contact to tags that it does not have yet.
pub(super) fn add<'a>(
    connection: &Connection,
    audience: i64,
    contact: i64,
    tags: impl Iterator<Item = &'a String>,
) -> Result<(), Fault> {
    for tag in tags {
        let number = match number(connection, audience, tag)? {
            Some(number) => number,
            None => connection
                .prepare_cached("INSERT INTO tags (audience, tag) VALUES (?1, ?2) RETURNING n")?
                .query_row(params![audience, tag], |row| row.get(0))?,
        };
        connection
            .prepare_cached("INSERT INTO tag_members (tag, contact) VALUES (?1, ?2)")?
            .execute([number, contact])?;
    }
    Ok(())
}

/// Takes tags from a contact. A tag that nobody has any more goes: it may say something about whoever
/// had it.
pub(super) fn remove<'a>(
    connection: &Connection,
    audience: i64,
    contact: i64,
    tags: impl Iterator<Item = &'a String>,
) -> Result<(), Fault> {
    for tag in tags {
        let Some(number) = number(connection, audience, tag)? else { continue };
        connection
            .prepare_cached("DELETE FROM tag_members WHERE tag = ?1 AND contact = ?2")?
            .execute([number, contact])?;
        connection
            .prepare_cached("DELETE FROM tags WHERE n = ?1 AND NOT EXISTS (SELECT 1 FROM tag_members WHERE tag = ?1)")?
            .execute([number])?;
    }
    Ok(())
}
