//! Reads the rows of a CSV file of contacts without holding the file in memory.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use csv::ByteRecord;
use messaging_core::domain::audience::import::columns::Header;
use messaging_core::domain::audience::import::table::{self, MAX_ROW_BYTES};

use crate::failure::Failure;
use crate::files;

/// Bytes that are read from the file at a time.
const PIECE: u64 = 256 << 10;

/// UTF-8 byte order mark, which a file may begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The beginning of a file, long enough for every header that an import accepts.
pub(super) struct Head {
    /// Up to [`MAX_ROW_BYTES`] bytes and one more.
    pub(super) bytes: Vec<u8>,
    /// True if these are all bytes of the file.
    pub(super) is_whole: bool,
}

impl Head {
    /// Reads the beginning of a file.
    pub(super) fn of(file: &Path) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        let most = MAX_ROW_BYTES as u64 + 1;
        let read = File::open(file).and_then(|open| open.take(most).read_to_end(&mut bytes));
        let read = read.map_err(|error| files::unreadable(file, error))?;
        Ok(Self { bytes, is_whole: (read as u64) < most })
    }

    /// The names of all columns for a delimiter, including those that no import knows.
    pub(super) fn names(&self, delimiter: u8) -> Vec<String> {
        let text = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.bytes);
        let (cells, _) = table::first_row(text, self.is_whole, delimiter).unwrap_or_default();
        cells.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect()
    }

    /// The names of the columns if the delimiter is not known: for the delimiter that yields the most columns.
    pub(super) fn likely_names(&self) -> Vec<String> {
        let all = table::DELIMITERS.map(|delimiter| self.names(delimiter));
        all.into_iter().max_by_key(Vec::len).unwrap_or_default()
    }
}

/// Calls `visit` with each row below the header and its number, until it answers `false`. The header is row 1, so the
/// first call has number 2. Reading ends without an error at a row longer than [`MAX_ROW_BYTES`].
pub(super) fn each(
    file: &Path,
    header: &Header,
    mut visit: impl FnMut(u64, &ByteRecord) -> bool,
) -> Result<(), Failure> {
    let unreadable = |error| files::unreadable(file, error);
    let mut open = File::open(file).map_err(unreadable)?;
    open.seek(SeekFrom::Start(header.rows_at as u64)).map_err(unreadable)?;
    let (mut buffer, mut number, mut goes_on) = (Vec::new(), 1, true);
    while goes_on {
        let read = (&mut open).take(PIECE).read_to_end(&mut buffer).map_err(unreadable)?;
        let is_end = read == 0;
        let taken = table::rows(&buffer, is_end, header.delimiter, |record| {
            number += 1;
            goes_on = visit(number, record);
            goes_on
        });
        buffer.drain(..taken.min(buffer.len()));
        // The API reports a row that is too long.
        goes_on &= !is_end && buffer.len() <= MAX_ROW_BYTES;
    }
    Ok(())
}
