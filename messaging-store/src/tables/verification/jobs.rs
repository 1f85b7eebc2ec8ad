//! Comparing jobs with the messages that they deliver.

use std::collections::HashSet;

use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::verification::{MessageOfJob, Verified};

use crate::comparing::Part;
use crate::database::Query;
use crate::database::open_commit::{Answers, Snapshot};
use crate::fault::Fault;
use crate::row::{count, get, id};
use crate::sql::{Sql, key, params, sql};

/// Number of messages that are looked for at a time.
const CHUNK: usize = 10_000;

/// Compares jobs of a kind with messages: each message that is not settled must have a job or wait to be released, and
/// each job must name a message that exists. `message_of` reads the message from the payload of a job. The rows are
/// read once for each part of the messages, so that memory holds only the ids of one part.
pub(crate) async fn verify(
    on: &mut impl Snapshot,
    kind: &'static str,
    message_of: MessageOfJob,
) -> Result<Verified, Fault> {
    const COUNT: Sql = sql!("SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM campaign_waiting)");
    const JOBS: Sql = sql!("SELECT payload FROM jobs WHERE kind = $1");
    const WAITING: Sql = sql!("SELECT message FROM campaign_waiting");
    // The statuses queued, sending and deferred.
    const UNSETTLED: Sql = sql!("SELECT id FROM messages {NOT INDEXED} WHERE status IN (0, 1, 4)");
    let mut verified = Verified::default();
    for part in Part::all(on.one(Query::new(COUNT, params![], |row| count(row, 0))).await?.unwrap_or(0)) {
        let mut jobs: Vec<(WorkspaceId, MessageId)> = Vec::new();
        on.each(JOBS, params![kind], |row| {
            jobs.extend(message_of(get(row, 0)?).filter(|(_, message)| part.has(*message)));
            Ok(())
        })
        .await?;
        verify_messages_exist(on, &jobs, &mut verified).await?;
        let mut named: HashSet<MessageId> = jobs.into_iter().map(|(_, message)| message).collect();
        on.each(WAITING, params![], |row| {
            named.extend(Some(id(row, 0)?).filter(|message| part.has(*message)));
            Ok(())
        })
        .await?;
        on.each(UNSETTLED, params![], |row| {
            let message = id(row, 0)?;
            if part.has(message) {
                let is_named = named.contains(&message);
                verified.compare(|| format!("{message}: jobs that deliver it"), is_named.into(), 1);
            }
            Ok(())
        })
        .await?;
    }
    Ok(verified)
}

/// Looks for the messages that jobs name; each that does not exist is a difference in `verified`.
async fn verify_messages_exist(
    on: &mut impl Answers,
    jobs: &[(WorkspaceId, MessageId)],
    verified: &mut Verified,
) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "SELECT workspace, id FROM messages WHERE workspace = $1 AND id = $2",
        postgres: "SELECT workspace, id FROM messages
            JOIN unnest($1::uuid[], $2::uuid[]) AS named (workspace, id) USING (workspace, id)",
    );
    for some in jobs.chunks(CHUNK) {
        let keys = some.iter().map(|(workspace, message)| params![key(*workspace), key(*message)]).collect();
        let found = Query::new(SQL, params![], |row| Ok((id(row, 0)?, id(row, 1)?)));
        let found: HashSet<(WorkspaceId, MessageId)> = on.gathered(found, keys).await?.into_iter().collect();
        for job in some {
            let is_there = found.contains(job);
            verified.compare(|| format!("{}: a job for a message that is gone", job.1), 1, is_there.into());
        }
    }
    Ok(())
}
