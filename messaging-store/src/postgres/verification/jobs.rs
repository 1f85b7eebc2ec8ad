//! Jobs against the messages that they deliver.

use std::collections::HashSet;

use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::verification::{MessageOfJob, Verified};
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::query::{many, one, params};
use super::super::reads::Snapshot;
use super::super::row::{count, get, id, uuid};
use crate::comparing::Part;

/// How many messages are looked for at a time.
const LOOKED_FOR: usize = 10_000;

/// Each message that is not settled has a job or waits to be released, and each job names a message that is there.
pub(super) async fn verify(on: &mut Snapshot, kind: &str, message_of: MessageOfJob) -> Result<Verified, Fault> {
    const COUNT: &str = "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM campaign_waiting)";
    const JOBS: &str = "SELECT payload FROM jobs WHERE kind = $1";
    const WAITING: &str = "SELECT message FROM campaign_waiting";
    const UNSETTLED: &str = "SELECT id FROM messages WHERE status IN (0, 1, 4)";
    let mut verified = Verified::default();
    for part in Part::all(one(on, COUNT, params![], |row| count(row, 0)).await?.unwrap_or(0)) {
        let mut jobs: Vec<(WorkspaceId, MessageId)> = Vec::new();
        on.each(JOBS, params![kind.to_owned()], |row| {
            jobs.extend(message_of(get(row, 0)?).filter(|(_, message)| part.has(*message)));
            Ok(())
        })
        .await?;
        are_there(on, &jobs, &mut verified).await?;
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

/// Looks for the messages that jobs name.
async fn are_there(on: &mut Snapshot, jobs: &[(WorkspaceId, MessageId)], verified: &mut Verified) -> Result<(), Fault> {
    const SQL: &str = "SELECT workspace, id FROM messages
        JOIN unnest($1::uuid[], $2::uuid[]) AS named (workspace, id) USING (workspace, id)";
    for some in jobs.chunks(LOOKED_FOR) {
        let (workspaces, messages): (Vec<Uuid>, Vec<Uuid>) =
            some.iter().map(|(workspace, message)| (uuid(*workspace), uuid(*message))).unzip();
        let found = many(on, SQL, params![workspaces, messages], |row| Ok((id(row, 0)?, id(row, 1)?))).await?;
        let found: HashSet<(WorkspaceId, MessageId)> = found.into_iter().collect();
        for job in some {
            let is_there = found.contains(job);
            verified.compare(|| format!("{}: a job for a message that is gone", job.1), 1, is_there.into());
        }
    }
    Ok(())
}
