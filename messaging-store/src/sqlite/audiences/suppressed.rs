//! Membership tests of very many addresses in the suppression list.
//!
//! Looking up an address costs about a microsecond, as much as all other work for its contact. Reading the suppression
//! list once costs a fifth of that for each of its addresses, and it is usually much smaller than a piece of an
//! audience. So the first addresses are looked up; then the list is read, and only addresses that seem to be on it are
//! looked up.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use messaging_core::domain::channel::Channel;
use messaging_core::ids::{Id as _, WorkspaceId};
use rusqlite::{CachedStatement, Connection, params};

use super::super::address_digest::digest;
use super::super::fault::Fault;
use super::super::row::number;

/// Number of addresses that are looked up before the list is read.
const FEW: usize = 1000;
/// Length above which a list is not read to its end: looking up all addresses of a piece costs less.
const LONGEST: usize = 200_000;

/// The suppression list of a channel, in the snapshot of the connection's transaction.
pub(super) struct Suppressed<'c> {
    connection: &'c Connection,
    workspace: [u8; 16],
    channel: i64,
    look_up: CachedStatement<'c>,
    known: SuppressionCache,
    longest: usize,
}

enum SuppressionCache {
    /// Not read yet; the number of addresses that were looked up.
    Nothing(usize),
    /// Hashes of all addresses. Other addresses may have the same hash.
    Hashes(HashSet<u64, Hashing>),
    /// The list is too long to be read.
    TooLong,
}

type Hashing = BuildHasherDefault<DefaultHasher>;

impl<'c> Suppressed<'c> {
    pub(super) fn new(connection: &'c Connection, workspace: WorkspaceId, channel: Channel) -> Result<Self, Fault> {
        let sql = "SELECT 1 FROM suppressions WHERE workspace = ?1 AND channel = ?2 AND digest = ?3";
        Ok(Self {
            connection,
            workspace: workspace.to_bytes(),
            channel: number(&Channel::ALL, &channel),
            look_up: connection.prepare_cached(sql)?,
            known: SuppressionCache::Nothing(0),
            longest: LONGEST,
        })
    }

    /// Returns true if an address, in the spelling of the list, is on it.
    pub(super) fn contains(&mut self, address: &str) -> Result<bool, Fault> {
        if let SuppressionCache::Nothing(looked_up) = &mut self.known {
            *looked_up += 1;
            if *looked_up > FEW {
                self.known = self.read()?;
            }
        }
        match &self.known {
            SuppressionCache::Hashes(hashes) if !hashes.contains(&hash(address)) => Ok(false),
            _ => Ok(self.look_up.exists(params![self.workspace, self.channel, digest(address)])?),
        }
    }

    fn read(&self) -> Result<SuppressionCache, Fault> {
        let sql = "SELECT address FROM suppressions WHERE workspace = ?1 AND channel = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.workspace, self.channel])?;
        let mut hashes = HashSet::default();
        while let Some(row) = rows.next()? {
            if hashes.len() == self.longest {
                return Ok(SuppressionCache::TooLong);
            }
            let address = row.get_ref(0)?.as_str().map_err(|_| Fault::Malformed("an address is not text"))?;
            hashes.insert(hash(address));
        }
        Ok(SuppressionCache::Hashes(hashes))
    }
}

fn hash(address: &str) -> u64 {
    Hashing::default().hash_one(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_on_the_list_or_not_however_many_are_asked_for() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE TABLE suppressions (workspace BLOB, channel INTEGER, digest BLOB, address TEXT,
                     PRIMARY KEY (workspace, channel, digest)) WITHOUT ROWID",
            )
            .unwrap();
        let [home, away] = [1, 2].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let address = |n: usize| format!("{n}@example.org");
        let put = |workspace: WorkspaceId, channel: i64, address: String| {
            let sql = "INSERT INTO suppressions VALUES (?1, ?2, ?3, ?4)";
            connection.execute(sql, params![workspace.to_bytes(), channel, digest(&address), address]).unwrap();
        };
        for n in (0..3 * FEW).step_by(7) {
            put(home, 0, address(n));
            put(away, 0, address(n + 1));
            put(home, 1, address(n + 2));
        }
        for longest in [0, 1, 3 * FEW / 7, LONGEST] {
            let mut suppressed = Suppressed::new(&connection, home, Channel::Email).unwrap();
            suppressed.longest = longest;
            for n in 0..3 * FEW {
                assert_eq!(suppressed.contains(&address(n)).unwrap(), n % 7 == 0, "{n}");
            }
            assert_eq!(matches!(suppressed.known, SuppressionCache::Hashes(_)), longest == LONGEST, "{longest}");
        }
    }
}
