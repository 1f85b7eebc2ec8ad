//! Jobs against the messages that they deliver.

use std::collections::HashSet;

use messaging_core::ids::{Id as _, MessageId};
use messaging_core::ports::store::verification::{MessageOfJob, Verified};
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::query::one;
use super::super::row::{count, id};
use crate::comparing::Part;

/// Each message that is not settled has a job or waits to be released, and each job names a message that is there.
pub(super) fn verify(connection: &Connection, kind: &str, message_of: MessageOfJob) -> Result<Verified, Fault> {
    const COUNT: &str = "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM campaign_waiting)";
    const JOBS: &str = "SELECT id, payload FROM jobs WHERE kind = ?1";
    const WAITING: &str = "SELECT message FROM campaign_waiting";
    const UNSETTLED: &str = "SELECT id FROM messages NOT INDEXED WHERE status IN (0, 1, 4)";
    const MESSAGE: &str = "SELECT 1 FROM messages WHERE workspace = ?1 AND id = ?2";
    let mut verified = Verified::default();
    for part in Part::all(one(connection, COUNT, [], |row| count(row, 0))?.unwrap_or(0)) {
        let mut named: HashSet<MessageId> = HashSet::new();
        let mut statement = connection.prepare_cached(JOBS)?;
        let mut rows = statement.query([kind])?;
        while let Some(row) = rows.next()? {
            let payload = row.get_ref(1)?.as_bytes().map_err(|_| Fault::Malformed("a payload is a number"))?;
            let Some((workspace, message)) = message_of(payload).filter(|(_, message)| part.has(*message)) else {
                continue;
            };
            let is_there =
                connection.prepare_cached(MESSAGE)?.exists(params![workspace.to_bytes(), message.to_bytes()])?;
            verified.compare(|| format!("{message}: a job for a message that is gone"), 1, is_there.into());
            named.insert(message);
        }
        let mut statement = connection.prepare_cached(WAITING)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let message = id(row, 0)?;
            if part.has(message) {
                named.insert(message);
            }
        }
        let mut statement = connection.prepare_cached(UNSETTLED)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let message = id(row, 0)?;
            if part.has(message) {
                let is_named = named.contains(&message);
                verified.compare(|| format!("{message}: jobs that deliver it"), is_named.into(), 1);
            }
        }
    }
    Ok(verified)
}
