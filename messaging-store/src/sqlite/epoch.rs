//! Detection of a copied database: the number of its latest start, kept in it and in a file beside it.
//!
//! Contract section 22. Every start and every orderly stop raises both numbers. A database that was copied without the
//! file, or restored in the place of a later one, finds no file, or another number in it. A database has a name of its
//! own, drawn at its first start, and the file has a line for each name: so several databases in one directory are kept
//! apart.
//!
//! A process may end between two writes, so a start first marks in the database that it is about to raise the number
//! ([`EPOCH_RAISED`]), then writes the file, then the database. Only while that mark is set, the file may have the next
//! number. A rule such as "one apart is good enough" would accept an older database that was restored after a single
//! restart.

use std::fs::File;
use std::path::Path;

use messaging_core::domain::installation::fence::Fence;
use messaging_core::error::Chain;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_core::ports::store::StoreHealth;
use rusqlite::Connection;

use super::fault::Fault;
use super::installation_values::{EPOCH, EPOCH_OF, EPOCH_RAISED, FENCE, get, remove, set};
use crate::files::{random_name, read, write_durably};

/// Maximum number of lines of other databases that are kept; the latest ones.
const MAX_OTHERS: usize = 64;

/// The start numbers of one database, as kept in it and in the file beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Epochs {
    /// The number in the database.
    stored: Option<u64>,
    /// The number that a start was about to raise it to.
    raised: Option<u64>,
    /// The number in the file beside the database.
    file: InFile,
}

/// The entry of a database in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFile {
    /// No entry, or no file.
    Absent,
    /// Not a number.
    Unreadable,
    /// A number.
    Number(u64),
}

impl InFile {
    const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

/// The file: a line for each database that was started beside it, `NUMBER NAME`.
#[derive(Debug, Default, PartialEq, Eq)]
struct EpochFile {
    lines: Vec<(u64, String)>,
    is_unreadable: bool,
}

impl EpochFile {
    fn parse(bytes: &[u8]) -> Self {
        let line = |line: &str| {
            let (number, name) = line.split_once(' ')?;
            Some((number.parse().ok()?, name.to_owned()))
        };
        let lines = std::str::from_utf8(bytes).ok().and_then(|text| text.trim().lines().map(line).collect());
        lines.map_or(Self { lines: Vec::new(), is_unreadable: true }, |lines| Self { lines, is_unreadable: false })
    }

    fn says_of(&self, name: &str) -> InFile {
        match self.lines.iter().rfind(|(_, known)| known == name) {
            Some((number, _)) => InFile::Number(*number),
            None if self.is_unreadable => InFile::Unreadable,
            None => InFile::Absent,
        }
    }

    /// Text of the file with the next number of a database.
    fn with(mut self, name: &str, next: u64) -> String {
        self.lines.retain(|(_, known)| known != name);
        self.lines.drain(..self.lines.len().saturating_sub(MAX_OTHERS));
        self.lines.push((next, name.to_owned()));
        self.lines.iter().map(|(number, name)| format!("{number} {name}\n")).collect()
    }
}

/// The file, locked against other processes.
struct Locked<'a> {
    path: &'a Path,
    _directory: File,
    file: EpochFile,
}

impl<'a> Locked<'a> {
    fn open(path: &'a Path) -> Result<Self, Fault> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = File::open(directory)?;
        directory.lock()?;
        let file = read(path)?.map_or_else(EpochFile::default, |bytes| EpochFile::parse(&bytes));
        Ok(Self { path, _directory: directory, file })
    }
}

impl Epochs {
    fn read(connection: &Connection, file: &EpochFile, name: &str) -> Result<Self, Fault> {
        let number = |name| Ok::<_, Fault>(get(connection, name)?.and_then(|text| text.parse().ok()));
        Ok(Self { stored: number(EPOCH)?, raised: number(EPOCH_RAISED)?, file: file.says_of(name) })
    }

    /// Returns true if the database is not the one that was started last beside this file. `is_new`: it was created
    /// just now, so nothing in it could be sent twice.
    fn tell_of_a_copy(self, is_new: bool) -> bool {
        match (self.stored, self.file) {
            _ if is_new => false,
            // No start has kept a number so far.
            (None, InFile::Absent) => false,
            (Some(_), InFile::Absent) | (_, InFile::Unreadable) => true,
            (stored, InFile::Number(file)) => stored != Some(file) && self.raised != Some(file),
        }
    }

    fn next(self) -> u64 {
        let largest = self.stored.max(self.raised).max(self.file.number());
        largest.unwrap_or(0).saturating_add(1)
    }
}

/// Fences the database if it is a copy, and raises the numbers. The caller is its only worker.
pub(super) fn begin(connection: &Connection, file: &Path, is_new: bool) -> Result<(), Fault> {
    let name = if let Some(name) = get(connection, EPOCH_OF)? {
        name
    } else {
        let name = random_name();
        set(connection, EPOCH_OF, &name)?;
        name
    };
    let locked = Locked::open(file)?;
    let epochs = Epochs::read(connection, &locked.file, &name)?;
    if epochs.tell_of_a_copy(is_new) && get(connection, FENCE)?.is_none() {
        set(connection, FENCE, &Fence::held(SystemClock.now()).to_text())?;
    }
    match raise(connection, locked, &name, epochs) {
        // Database and file have the same number or the next one, so it is no copy, and reading goes on. A copy that is
        // made now and restored later is not noticed until a start has raised the number.
        Err(fault) if fault.trouble() == Some(StoreHealth::Full) => {
            tracing::warn!(error = %Chain(&fault), "the disk is full: the number of this start cannot be kept");
            // A commit that found no space leaves its transaction open.
            if connection.is_autocommit() { Ok(()) } else { Ok(connection.execute_batch("ROLLBACK")?) }
        }
        raised => raised,
    }
}

/// Raises the numbers at an orderly stop.
pub(super) fn end(connection: &Connection, file: &Path) -> Result<(), Fault> {
    let Some(name) = get(connection, EPOCH_OF)? else { return Ok(()) };
    let locked = Locked::open(file)?;
    let epochs = Epochs::read(connection, &locked.file, &name)?;
    if epochs.tell_of_a_copy(false) {
        // The file was replaced while this process ran; the next start is to find out.
        return Ok(());
    }
    raise(connection, locked, &name, epochs)
}

/// Raises the numbers; each step is durable before the next.
fn raise(connection: &Connection, locked: Locked<'_>, name: &str, epochs: Epochs) -> Result<(), Fault> {
    let next = epochs.next();
    set(connection, EPOCH_RAISED, &next.to_string())?;
    write_durably(locked.path, locked.file.with(name, next).as_bytes())?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let written = set(connection, EPOCH, &next.to_string()).and_then(|()| remove(connection, EPOCH_RAISED));
    connection.execute_batch(if written.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_told_from_a_move_and_from_a_crash() {
        let is_copy = |stored, raised, file| Epochs { stored, raised, file }.tell_of_a_copy(false);
        let (same, none) = (InFile::Number, InFile::Absent);
        // The whole directory, whatever its number.
        assert!(!is_copy(Some(7), None, same(7)));
        // Ended before the file was written, and after.
        assert!(!is_copy(Some(7), Some(8), same(7)));
        assert!(!is_copy(Some(7), Some(8), same(8)));
        // The very first start, ended before and after the file.
        assert!(!is_copy(None, Some(1), none));
        assert!(!is_copy(None, Some(1), same(1)));
        // Started without a file so far.
        assert!(!is_copy(None, None, none));
        // Without its file, with another's, with one that cannot be read.
        assert!(is_copy(Some(7), None, none));
        assert!(is_copy(Some(7), Some(8), none));
        assert!(is_copy(None, None, same(3)));
        assert!(is_copy(Some(7), None, InFile::Unreadable));
        // Put back after one restart or after many, or put beside an older file.
        for file in [1, 6, 8, 9] {
            assert!(is_copy(Some(7), None, same(file)), "{file}");
        }
        assert!(is_copy(Some(7), Some(8), same(9)));
        // A new database has sent nothing yet, whatever else is in the directory.
        assert!(!Epochs { stored: None, raised: None, file: same(3) }.tell_of_a_copy(true));
    }

    #[test]
    fn each_database_has_a_line_of_its_own() {
        let file = |text: &str| EpochFile::parse(text.as_bytes());
        let two = file("7 a\n3 b\n");
        assert_eq!((two.says_of("a"), two.says_of("b")), (InFile::Number(7), InFile::Number(3)));
        assert_eq!(two.says_of("c"), InFile::Absent);
        assert_eq!(two.with("a", 8), "3 b\n8 a\n");
        assert_eq!(file("").says_of("a"), InFile::Absent);
        for nonsense in ["nonsense", "7\n", "x a\n"] {
            assert_eq!(file(nonsense).says_of("a"), InFile::Unreadable, "{nonsense}");
            assert_eq!(file(nonsense).with("a", 1), "1 a\n");
        }
        let many: String = (0..200).map(|n| format!("{n} {n}\n")).collect();
        assert_eq!(file(&many).with("a", 1).lines().count(), MAX_OTHERS + 1);
    }

    #[test]
    fn numbers_never_come_again() {
        let none = InFile::Absent;
        let next = |stored, raised, file| Epochs { stored, raised, file }.next();
        assert_eq!(next(None, None, none), 1);
        assert_eq!(next(Some(7), Some(8), InFile::Number(8)), 9);
        assert_eq!(next(Some(7), None, InFile::Number(90)), 91);
    }
}
