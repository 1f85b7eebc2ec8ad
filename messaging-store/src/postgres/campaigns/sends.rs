//! When marketing messages to contacts began.

use messaging_core::changes::{ContactSends, Expect};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::ports::store::{StoreError, Stored};

use super::super::fault::Fault;
use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{self, number, revision_param, small, uuid};
use super::super::transaction::Transaction;
use crate::send_times::{from_bytes, seconds, to_bytes};

pub(in super::super) fn put(transaction: &mut Transaction, sends: &ContactSends, expect: Expect) {
    let (workspace, contact) = (uuid(sends.workspace_id), uuid(sends.contact_id));
    let channel = number(&Channel::ALL, &sends.channel);
    let times: Vec<u32> = sends.times.iter().copied().map(seconds).collect();
    let (last, bytes) = (times.last().copied(), to_bytes(&times));
    let last_at = last.map_or(0, i64::from);
    match expect {
        // The first revision is a time, so that a row that was let go and came again is not taken for the one that was
        // read before.
        Expect::Absent => transaction.run_one(
            "INSERT INTO contact_sends (contact, channel, revision, times, last_at)
             SELECT n, $3::bigint, $4, $5, $6 FROM contacts
             WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2
             FOR KEY SHARE",
            params![workspace, contact, channel, revision_param(last.unwrap_or(1)), bytes, last_at],
        ),
        // A row without times stays until it is let go, for the same reason.
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE contact_sends SET revision = (revision + 1) & 4294967295, times = $5, last_at = $6
             WHERE contact = (SELECT n FROM contacts WHERE id = $2
                     AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                 AND channel = $3::bigint AND revision = $4",
            params![workspace, contact, channel, revision_param(revision), bytes, last_at],
        ),
    }
}

pub(super) async fn get(
    reads: &Reads,
    workspace: WorkspaceId,
    contact: ContactId,
    channel: Channel,
) -> Result<Option<Stored<ContactSends>>, StoreError> {
    const SQL: &str = "SELECT revision, times FROM contact_sends
        WHERE contact = (SELECT n FROM contacts WHERE id = $2
                AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
            AND channel = $3::bigint";
    let key = params![uuid(workspace), uuid(contact), number(&Channel::ALL, &channel)];
    reads
        .one(SQL, key, |row| {
            let times = from_bytes(row::get(row, 1)?).ok_or(Fault::Malformed("times of sends are of four bytes"))?;
            let record = ContactSends { workspace_id: workspace, contact_id: contact, channel, times };
            Ok(Stored { record, revision: small(row, 0)? })
        })
        .await
}

/// Lets go what is known of a contact that is removed, by its number.
pub(in super::super) fn delete_of(transaction: &mut Transaction, contact: i64) {
    transaction.run("DELETE FROM contact_sends WHERE contact = $1", params![contact]);
}
