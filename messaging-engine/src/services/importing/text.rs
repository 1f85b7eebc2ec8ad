//! Text of an uploaded file, read from the store a chunk at a time.

use csv::ByteRecord;
use messaging_core::domain::audience::import::columns::{Header, Mapping};
use messaging_core::domain::audience::import::table::{self, MAX_ROW_BYTES};
use messaging_core::domain::audience::import::{Cursor, MAX_ROWS, Unreadable};
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::ports::uploads::UploadFile;

use crate::app::App;

/// Reason why a turn of reading an import ended early.
#[derive(Debug)]
pub(super) enum ImportInterruption {
    /// The file is at fault.
    File(Unreadable),
    /// The store failed.
    Store(CommitError),
}

impl From<Unreadable> for ImportInterruption {
    fn from(why: Unreadable) -> Self {
        Self::File(why)
    }
}

impl From<StoreError> for ImportInterruption {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl From<CommitError> for ImportInterruption {
    fn from(error: CommitError) -> Self {
        Self::Store(error)
    }
}

/// Bytes that are read at a time.
const CHUNK: usize = 512 << 10;

/// A file that is read from a position on.
pub(super) struct Text<'a> {
    app: &'a App,
    file: UploadFile,
    size: u64,
    cursor: Cursor,
    /// Bytes that were read already; the text at `cursor` begins at `start`.
    buffer: Vec<u8>,
    start: usize,
    /// True if the last row was read, and opens a quotation mark that is not closed.
    ends_open: bool,
}

impl<'a> Text<'a> {
    pub(super) const fn new(app: &'a App, file: UploadFile, size: u64) -> Self {
        Self { app, file, size, cursor: Cursor { offset: 0, row: 0 }, buffer: Vec::new(), start: 0, ends_open: false }
    }

    /// Continues at a position where a row ended.
    pub(super) fn seek(&mut self, cursor: Cursor) {
        self.cursor = cursor;
        self.buffer.clear();
        self.start = 0;
        self.ends_open = false;
    }

    pub(super) const fn cursor(&self) -> Cursor {
        self.cursor
    }

    pub(super) const fn ends_open(&self) -> bool {
        self.ends_open
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.cursor.offset == self.size
    }

    /// Reads the header; the text has to be at its beginning.
    pub(super) async fn header(&mut self, mapping: &Mapping) -> Result<Header, ImportInterruption> {
        loop {
            let is_whole = self.is_whole();
            let header = Header::read(&self.buffer, is_whole, mapping);
            // A header without an end in the buffer may end in the bytes that follow.
            let may_grow = !is_whole && self.buffer.len() < MAX_ROW_BYTES;
            match header {
                Err(Unreadable::NoHeader | Unreadable::NoUsableColumn) if may_grow => self.read_on().await?,
                header => return Ok(header?),
            }
        }
    }

    /// Counts the rows to the end of the file, and refuses a file that is not UTF-8.
    pub(super) async fn count(&mut self, delimiter: u8) -> Result<u64, ImportInterruption> {
        let mut total = 0;
        while !self.is_at_end() {
            let bytes = &self.buffer[self.start..];
            let mut is_short = true;
            let taken = table::rows(bytes, self.is_whole(), delimiter, |record| {
                total += 1;
                is_short = record.as_slice().len() <= MAX_ROW_BYTES;
                is_short
            });
            if !is_short {
                return Err(Unreadable::RowTooLong(total + 1).into());
            }
            // Rows end with a character of one byte, so no character is cut in two.
            if std::str::from_utf8(&bytes[..taken]).is_err() {
                return Err(Unreadable::NotUtf8.into());
            }
            if total > MAX_ROWS {
                return Err(Unreadable::TooManyRows.into());
            }
            self.pass(taken, 0);
            if !self.is_at_end() {
                self.read_on_after(total + 1).await?;
            }
        }
        Ok(total)
    }

    /// Passes on the next rows, up to a number of rows and of bytes, but one at least.
    pub(super) async fn rows(
        &mut self,
        delimiter: u8,
        most_rows: usize,
        most_bytes: usize,
        mut visit: impl FnMut(&ByteRecord),
    ) -> Result<(), ImportInterruption> {
        let (mut rows, mut bytes) = (0, 0);
        while !self.is_at_end() {
            let before = rows;
            let text = &self.buffer[self.start..];
            let taken = table::rows(text, self.is_whole(), delimiter, |record| {
                visit(record);
                rows += 1;
                bytes += record.as_slice().len();
                rows < most_rows && bytes < most_bytes
            });
            self.ends_open = self.is_whole() && taken == text.len() && table::ends_open(text, delimiter);
            self.pass(taken, (rows - before) as u64);
            if rows >= most_rows || bytes >= most_bytes {
                break;
            }
            if !self.is_at_end() {
                self.read_on_after(self.cursor.row).await?;
            }
        }
        Ok(())
    }

    /// Returns true if the buffer reaches the end of the file.
    fn is_whole(&self) -> bool {
        self.cursor.offset + (self.buffer.len() - self.start) as u64 == self.size
    }

    fn pass(&mut self, bytes: usize, rows: u64) {
        self.start += bytes;
        self.cursor.offset += bytes as u64;
        self.cursor.row += rows;
    }

    async fn read_on_after(&mut self, row: u64) -> Result<(), ImportInterruption> {
        if self.buffer.len() - self.start >= MAX_ROW_BYTES {
            return Err(Unreadable::RowTooLong(row + 1).into());
        }
        self.read_on().await
    }

    async fn read_on(&mut self) -> Result<(), ImportInterruption> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let at = self.cursor.offset + self.buffer.len() as u64;
        let read = self.app.uploads().read_upload(self.file, at, CHUNK).await?;
        match read {
            Some(bytes) if !bytes.is_empty() => self.buffer.extend_from_slice(&bytes),
            _ => return Err(Unreadable::Missing.into()),
        }
        Ok(())
    }
}
