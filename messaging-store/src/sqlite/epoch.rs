//! Whether the database is a copy: the number of its latest start, kept in it and in a file beside it.
//!
//! Contract section 22. Every start and every orderly stop raises both. A database that was copied without the file, or
//! put back in the place of a later one, meets a file that is not there or tells another number.
//!
//! A process may end between two writes, so a start first says in the database that it is about to raise the number
//! ([`EPOCH_RAISED`]), then writes the file, then the database. Only while the database says so, the file may tell the
//! number that is to come. A rule such as "one apart is good enough" would accept an older database that was put back
//! after a single restart.

use std::path::Path;

use messaging_core::domain::fence::Fence;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use rusqlite::Connection;

use super::fault::Fault;
use super::installation_values::{EPOCH, EPOCH_RAISED, FENCE, get, remove, set};
use crate::files::{read, write_durably};

/// What database and file say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Epochs {
    /// The number in the database.
    stored: Option<u64>,
    /// The number that a start was about to raise it to.
    raised: Option<u64>,
    /// What the file says.
    file: EpochFile,
}

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EpochFile {
    /// There is none.
    Absent,
    /// Something else than a number.
    Unreadable,
    /// A number.
    Number(u64),
}

impl EpochFile {
    fn parse(bytes: &[u8]) -> Self {
        let number = std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok());
        number.map_or(Self::Unreadable, Self::Number)
    }

    const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

impl Epochs {
    fn read(connection: &Connection, file: &Path) -> Result<Self, Fault> {
        let number = |name| Ok::<_, Fault>(get(connection, name)?.and_then(|text| text.parse().ok()));
        let file = read(file)?.map_or(EpochFile::Absent, |bytes| EpochFile::parse(&bytes));
        Ok(Self { stored: number(EPOCH)?, raised: number(EPOCH_RAISED)?, file })
    }

    /// Whether the database is not the one that was started last beside this file. `is_new` is one that was made just
    /// now: there is nothing in it that could be sent twice.
    fn tell_of_a_copy(self, is_new: bool) -> bool {
        match (self.stored, self.file) {
            _ if is_new => false,
            // A database of a version that kept no number.
            (None, EpochFile::Absent) => false,
            (Some(_), EpochFile::Absent) | (_, EpochFile::Unreadable) => true,
            (stored, EpochFile::Number(file)) => stored != Some(file) && self.raised != Some(file),
        }
    }

    fn next(self) -> u64 {
        let largest = self.stored.max(self.raised).max(self.file.number());
        largest.unwrap_or(0).saturating_add(1)
    }
}

/// Fences the database if it is a copy, and raises the numbers. The caller is its only worker.
pub(super) fn begin(connection: &Connection, file: &Path, is_new: bool) -> Result<(), Fault> {
    let epochs = Epochs::read(connection, file)?;
    if epochs.tell_of_a_copy(is_new) && get(connection, FENCE)?.is_none() {
        set(connection, FENCE, &Fence::held(SystemClock.now()).to_text())?;
        tracing::warn!("the database is a copy of another: nothing is sent until `messaging admin resume`");
    }
    raise(connection, file, epochs)
}

/// Raises the numbers at an orderly stop.
pub(super) fn end(connection: &Connection, file: &Path) -> Result<(), Fault> {
    let epochs = Epochs::read(connection, file)?;
    if epochs.tell_of_a_copy(false) {
        // The file was replaced while we ran; the next start is to find out.
        return Ok(());
    }
    raise(connection, file, epochs)
}

/// Each step is durable before the next.
fn raise(connection: &Connection, file: &Path, epochs: Epochs) -> Result<(), Fault> {
    let next = epochs.next().to_string();
    set(connection, EPOCH_RAISED, &next)?;
    write_durably(file, format!("{next}\n").as_bytes())?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let written = set(connection, EPOCH, &next).and_then(|()| remove(connection, EPOCH_RAISED));
    connection.execute_batch(if written.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_told_from_a_move_from_a_crash_and_from_an_older_version() {
        let is_copy = |stored, raised, file| Epochs { stored, raised, file }.tell_of_a_copy(false);
        let (same, none) = (EpochFile::Number, EpochFile::Absent);
        // The whole directory, whatever its number.
        assert!(!is_copy(Some(7), None, same(7)));
        // Ended before the file was written, and after.
        assert!(!is_copy(Some(7), Some(8), same(7)));
        assert!(!is_copy(Some(7), Some(8), same(8)));
        // The very first start, ended before and after the file.
        assert!(!is_copy(None, Some(1), none));
        assert!(!is_copy(None, Some(1), same(1)));
        // A version that kept no number.
        assert!(!is_copy(None, None, none));
        // Without its file, with another's, with one that cannot be read.
        assert!(is_copy(Some(7), None, none));
        assert!(is_copy(Some(7), Some(8), none));
        assert!(is_copy(None, None, same(3)));
        assert!(is_copy(Some(7), None, EpochFile::Unreadable));
        // Put back after one restart or after many, or put beside an older file.
        for file in [1, 6, 8, 9] {
            assert!(is_copy(Some(7), None, same(file)), "{file}");
        }
        assert!(is_copy(Some(7), Some(8), same(9)));
        // Whatever is in the directory, what is new cannot have been sent.
        assert!(!Epochs { stored: None, raised: None, file: same(3) }.tell_of_a_copy(true));
    }

    #[test]
    fn numbers_never_come_again() {
        let none = EpochFile::Absent;
        let next = |stored, raised, file| Epochs { stored, raised, file }.next();
        assert_eq!(next(None, None, none), 1);
        assert_eq!(next(Some(7), Some(8), EpochFile::Number(8)), 9);
        assert_eq!(next(Some(7), None, EpochFile::Number(90)), 91);
    }
}
