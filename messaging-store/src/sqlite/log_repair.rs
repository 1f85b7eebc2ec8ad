//! Repair of the write-ahead log after a failed sync.
//!
//! When a sync fails, the system may have dropped pages that were waiting to be written: they look right to readers of
//! the file now, are on no disk, and the next sync succeeds. Frames after such a hole are lost with the next power cut,
//! because SQLite reads the log up to the first frame whose checksum is wrong. Moving the log into the database at once
//! would be worse: the sync before it succeeds, pages from after the hole reach the database, and a cut in between
//! leaves a mixture.
//!
//! So the frames are written again in place, which makes their pages wait for the disk again, and the log is synced.
//! While they are read, their checksums are verified, because a dropped page may also have been read anew from the
//! disk, in its former state. Only then is the log moved into the database and emptied.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rusqlite::Connection;

use super::fault::Fault;

/// Length of the log's header in bytes; the first frame follows.
const HEADER: usize = 32;
/// Length of a frame's header in bytes; the page follows.
const FRAME_HEADER: usize = 24;
/// Approximate number of bytes in one write.
const CHUNK: usize = 1 << 20;
/// Magic number of the log; its lowest bit is the byte order of checksums.
const MAGIC: u32 = 0x377f_0682;

/// Reason why the log could not be repaired.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unrepaired {
    /// The disk still fails; a later try may work.
    #[error("the log could not be written again")]
    Failed(#[from] Fault),
    /// Frames of finished commits cannot be read any more. The data on the disk counts, and only a new process reads it
    /// from there.
    #[error("the log has lost {0} frames")]
    Lost(u64),
}

impl From<rusqlite::Error> for Unrepaired {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Writes the frames of the log again and syncs them. Nothing else may be written meanwhile by this process;
/// other programs are kept out by the write lock.
pub(super) fn rewrite(connection: &Connection, log: &Path) -> Result<(), Unrepaired> {
    // Number of frames according to the log's index, and number of those that are in the database already.
    let (frames, moved): (i64, i64) =
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    // A process that ended normally has emptied the log.
    if fs::metadata(log).map_or(0, |metadata| metadata.len()) <= HEADER as u64 {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let outcome = OpenOptions::new().read(true).write(true).open(log).and_then(|file| {
        let intact = rewrite_frames(&file)?;
        file.sync_all()?;
        Ok(intact)
    });
    connection.execute_batch("ROLLBACK")?;
    let intact = outcome.map_err(Fault::from)?;
    let (frames, moved) = (frames.max(0).unsigned_abs(), moved.max(0).unsigned_abs());
    if frames > moved && intact < frames {
        return Err(Unrepaired::Lost(frames - intact));
    }
    Ok(())
}

/// Writes the frames again in place, up to the first whose checksum is wrong; returns their number.
fn rewrite_frames(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut header = [0; HEADER];
    if length < HEADER as u64 {
        return Ok(0);
    }
    file.read_exact_at(&mut header, 0)?;
    let Some(mut chain) = Chain::begin(&header) else { return Ok(0) };
    file.write_all_at(&header, 0)?;
    let frame = FRAME_HEADER + chain.page_size;
    let mut chunk = vec![0; frame * (CHUNK / frame).max(1)];
    let mut intact = 0;
    loop {
        let at = HEADER as u64 + intact * frame as u64;
        let left = usize::try_from((length - at) / frame as u64).unwrap_or(usize::MAX);
        let chunk = &mut chunk[..];
        let wanted = left.min(chunk.len() / frame) * frame;
        let chunk = &mut chunk[..wanted];
        file.read_exact_at(chunk, at)?;
        let good = chunk.chunks_exact(frame).take_while(|frame| chain.follow(frame)).count();
        file.write_all_at(&chunk[..good * frame], at)?;
        intact += good as u64;
        if wanted == 0 || good * frame < wanted {
            return Ok(intact);
        }
    }
}

/// Cumulative checksum over the header and the frames of the log.
struct Chain {
    page_size: usize,
    salts: [u8; 8],
    is_big_endian: bool,
    sums: (u32, u32),
}

impl Chain {
    /// Begins with the header; `None` if the log is empty or its header is wrong.
    fn begin(header: &[u8; HEADER]) -> Option<Self> {
        let magic = big_endian(header, 0);
        let page_size = match big_endian(header, 8) {
            1 => 65_536,
            size if (512..=32_768).contains(&size) && size.is_power_of_two() => size as usize,
            _ => return None,
        };
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        let mut chain = Self { page_size, salts, is_big_endian: magic & 1 == 1, sums: (0, 0) };
        chain.add(&header[..24]);
        (magic & !1 == MAGIC && chain.sums == (big_endian(header, 24), big_endian(header, 28))).then_some(chain)
    }

    /// Returns true if the frame belongs to the log and is the next one.
    fn follow(&mut self, frame: &[u8]) -> bool {
        let (head, page) = frame.split_at(FRAME_HEADER);
        if head[8..16] != self.salts {
            return false;
        }
        self.add(&head[..8]);
        self.add(page);
        self.sums == (big_endian(head, 16), big_endian(head, 20))
    }

    fn add(&mut self, bytes: &[u8]) {
        let word = |four: &[u8]| {
            let four = [four[0], four[1], four[2], four[3]];
            if self.is_big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        let (mut first, mut second) = self.sums;
        for eight in bytes.chunks_exact(8) {
            first = first.wrapping_add(word(&eight[..4])).wrapping_add(second);
            second = second.wrapping_add(word(&eight[4..])).wrapping_add(first);
        }
        self.sums = (first, second);
    }
}

fn big_endian(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::sqlite::connection::log_path;

    fn database() -> (tempfile::TempDir, Connection, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER, x BLOB);",
            )
            .unwrap();
        for n in 0..50 {
            connection.execute("INSERT INTO t VALUES (?1, randomblob(20000))", [n]).unwrap();
        }
        let log = log_path(&path);
        (place, connection, log)
    }

    #[test]
    fn a_sound_log_stays_byte_for_byte_what_it_was() {
        let (_place, connection, log) = database();
        let before = std::fs::read(&log).unwrap();
        rewrite(&connection, &log).unwrap();
        assert!(std::fs::read(&log).unwrap() == before);
        let frames: u64 = (before.len() as u64 - 32) / (4096 + 24);
        assert_eq!(rewrite_frames(&OpenOptions::new().read(true).write(true).open(&log).unwrap()).unwrap(), frames);
    }

    #[test]
    fn a_log_that_lost_a_page_is_found_out() {
        let (_place, connection, log) = database();
        let mut bytes = std::fs::read(&log).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4096].fill(0);
        // In place, because the connection has the file open.
        OpenOptions::new().write(true).open(&log).unwrap().write_all_at(&bytes, 0).unwrap();
        let error = rewrite(&connection, &log).unwrap_err();
        assert!(matches!(error, Unrepaired::Lost(lost) if lost > 10), "{error:?}");
    }

    #[test]
    fn a_log_that_is_in_the_database_already_cannot_lose_anything() {
        let (_place, connection, log) = database();
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
        OpenOptions::new().write(true).open(&log).unwrap().write_all_at(&[0; 4096], 8192).unwrap();
        rewrite(&connection, &log).unwrap();
    }
}
