//! The rows of a file of contacts, a piece at a time.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use csv::ByteRecord;
use messaging_core::domain::audience::import::columns::Header;
use messaging_core::domain::audience::import::table::{self, MAX_ROW_BYTES};

use crate::failure::Failure;
use crate::files;

/// Bytes that are read at a time.
const PIECE: u64 = 256 << 10;

/// What a file may begin with to say that it is UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The beginning of a file.
pub(super) struct Head {
    /// A header is in here as a whole, or is too long.
    pub(super) bytes: Vec<u8>,
    /// True if the rows were read to the end of the file.
    pub(super) is_whole: bool,
}

impl Head {
    pub(super) fn of(file: &Path) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        let most = MAX_ROW_BYTES as u64 + 1;
        let read = File::open(file).and_then(|open| open.take(most).read_to_end(&mut bytes));
        let read = read.map_err(|error| files::unreadable(file, error))?;
        Ok(Self { bytes, is_whole: (read as u64) < most })
    }

    /// The headers of all columns, known or not.
    pub(super) fn names(&self, delimiter: u8) -> Vec<String> {
        let text = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.bytes);
        let (cells, _) = table::first_row(text, self.is_whole, delimiter).unwrap_or_default();
        cells.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect()
    }

    /// The same for a header that cannot be read: as the delimiter makes most of.
    pub(super) fn likely_names(&self) -> Vec<String> {
        let all = table::DELIMITERS.map(|delimiter| self.names(delimiter));
        all.into_iter().max_by_key(Vec::len).unwrap_or_default()
    }
}

/// Shows the rows below the header with their numbers, of which the header has the first, until `visit` answers `false`.
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
        // Of a row without an end the API says what is wrong.
        goes_on &= !is_end && buffer.len() <= MAX_ROW_BYTES;
    }
    Ok(())
}
