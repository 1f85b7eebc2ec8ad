//! Rows of the files, read one at a time however long a file is.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use messaging_core::domain::audience::import::table::{self, MAX_ROW_BYTES};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Delimiters of CSV cells; the first row decides which one a file has.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Byte order mark at the beginning of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Members of JSON documents that hold the objects, in the APIs of listmonk and SendGrid.
const CONTAINERS: [&str; 6] = ["data", "results", "result", "templates", "contacts", "recipient_errors"];

/// Maximum nesting of objects above the rows.
const MAX_CONTAINERS: usize = 4;

/// Reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("it is not UTF-8 (row {0}); save it as CSV in UTF-8")]
    NotUtf8(u64),
    #[error("it is UTF-16; save it as CSV in UTF-8")]
    Utf16,
    #[error("it is empty: the first row is to name the columns")]
    NoHeader,
    #[error("it has no column {0}; its columns are: {1}")]
    NoColumn(String, String),
    #[error("row {0} is longer than 1 MiB; is a quotation mark not closed?")]
    RowTooLong(u64),
    #[error("a quotation mark in row {0} is not closed")]
    Unclosed(u64),
    #[error("it is not the JSON that is expected: {0}")]
    Json(#[from] serde_json::Error),
}

/// A row of a CSV file.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The columns as the file names them.
    pub(crate) header: Arc<Vec<String>>,
    /// The cells; there may be fewer than columns.
    pub(crate) cells: Vec<String>,
}

impl Row {
    /// Returns the cell of the first column of this name, in any case, without spaces around it; empty if there is
    /// none.
    pub(crate) fn get(&self, column: &str) -> &str {
        let at = self.header.iter().position(|name| name.eq_ignore_ascii_case(column));
        at.and_then(|at| self.cells.get(at)).map_or("", |cell| cell.trim())
    }

    /// Returns the first of several columns that is not empty.
    pub(crate) fn first(&self, columns: &[&str]) -> &str {
        columns.iter().map(|column| self.get(column)).find(|cell| !cell.is_empty()).unwrap_or_default()
    }

    /// Returns the columns and their cells, without empty ones.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (&str, &str)> {
        self.header
            .iter()
            .zip(&self.cells)
            .map(|(name, cell)| (name.as_str(), cell.trim()))
            .filter(|(_, cell)| !cell.is_empty())
    }

    /// Returns true if the row has more cells than columns.
    pub(crate) fn is_too_wide(&self) -> bool {
        self.cells.iter().skip(self.header.len()).any(|cell| !cell.trim().is_empty())
    }
}

/// Returns the columns of a CSV file.
pub(crate) fn header(path: &Path) -> Result<Vec<String>, Unreadable> {
    let mut found = None;
    let read = csv_rows(path, |_, row| {
        found = Some(row.header.to_vec());
        false
    });
    match (read, found) {
        (_, Some(header)) => Ok(header),
        (Err(error), None) => Err(error),
        (Ok(header), None) => Ok(header.to_vec()),
    }
}

/// Passes the rows of a CSV file to `visit`, with their numbers, until that returns `false`. The first row is 1 and
/// names the columns; empty lines are not counted. Returns the columns.
pub(crate) fn csv_rows(path: &Path, mut visit: impl FnMut(u64, Row) -> bool) -> Result<Arc<Vec<String>>, Unreadable> {
    let mut file = File::open(path)?;
    let mut buffer = Vec::new();
    let (mut delimiter, mut header, mut number, mut goes_on) = (None, Arc::new(Vec::new()), 0, true);
    loop {
        let start = buffer.len();
        file.by_ref().take(PIECE as u64).read_to_end(&mut buffer)?;
        let is_end = buffer.len() == start;
        if delimiter.is_none() {
            if buffer.starts_with(b"\xFF\xFE") || buffer.starts_with(b"\xFE\xFF") {
                return Err(Unreadable::Utf16);
            }
            if buffer.starts_with(BYTE_ORDER_MARK) {
                buffer.drain(..BYTE_ORDER_MARK.len());
            }
        }
        let by = *delimiter.get_or_insert_with(|| delimiter_of(&buffer));
        let mut failure = None;
        let taken = table::rows(&buffer, is_end, by, |record| {
            number += 1;
            let cells: Result<Vec<_>, _> =
                record.iter().map(|cell| std::str::from_utf8(cell).map(ToOwned::to_owned)).collect();
            match cells {
                Err(_) => failure = Some(Unreadable::NotUtf8(number)),
                Ok(cells) if number == 1 => {
                    header = Arc::new(cells.into_iter().map(|cell| cell.trim().to_owned()).collect());
                }
                Ok(cells) => goes_on = visit(number, Row { header: Arc::clone(&header), cells }),
            }
            goes_on && failure.is_none()
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        if is_end && goes_on && table::ends_open(&buffer, by) {
            return Err(Unreadable::Unclosed(number));
        }
        buffer.drain(..taken.min(buffer.len()));
        if is_end || !goes_on {
            break;
        }
        if buffer.len() > MAX_ROW_BYTES {
            return Err(Unreadable::RowTooLong(number + 1));
        }
    }
    if header.iter().all(String::is_empty) { Err(Unreadable::NoHeader) } else { Ok(header) }
}

/// Returns the delimiter that gives the first row the most cells.
fn delimiter_of(bytes: &[u8]) -> u8 {
    let width = |delimiter: u8| table::first_row(bytes, true, delimiter).map_or(0, |(cells, _)| cells.len());
    // `max_by_key` returns the last of equals, and a comma is likelier than a tab.
    DELIMITERS.into_iter().rev().max_by_key(|delimiter| width(*delimiter)).unwrap_or(b',')
}

/// Passes the objects of a JSON document to `visit`, with their numbers from 1, until that returns `false`.
pub(crate) fn json_items(path: &Path, mut visit: impl FnMut(u64, Value) -> bool) -> Result<(), Unreadable> {
    let mut reader = BufReader::with_capacity(PIECE, File::open(path)?);
    let mut start = [0; 3];
    let read = std::io::BufRead::fill_buf(&mut reader)?;
    let length = read.len().min(3);
    start[..length].copy_from_slice(&read[..length]);
    if start == *BYTE_ORDER_MARK {
        std::io::BufRead::consume(&mut reader, 3);
    }
    let (mut number, mut goes_on) = (0, true);
    let mut each = |value| {
        number += 1;
        goes_on = visit(number, value);
        goes_on
    };
    let mut document = serde_json::Deserializer::from_reader(reader);
    let walked = Walk { each: &mut each, depth: 0 }.deserialize(&mut document).and_then(|()| document.end());
    match walked {
        Err(_) if !goes_on => Ok(()),
        walked => Ok(walked?),
    }
}

/// Walks a document down to its rows without keeping it in memory.
struct Walk<'a> {
    each: &'a mut dyn FnMut(Value) -> bool,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of objects, or an object with one in `data` or `results`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Value>()? {
            if !(self.each)(item) {
                return Err(A::Error::custom("enough"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            if self.depth < MAX_CONTAINERS && CONTAINERS.contains(&name.as_str()) {
                members.next_value_seed(Walk { each: &mut *self.each, depth: self.depth + 1 })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    fn read(bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        let read = csv_rows(file(bytes).path(), |number, row| {
            all.push(format!("{number} {}", row.cells.join("|")));
            true
        });
        read.map(|header| [vec![header.join("|")], all].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_of_all_kinds_of_files_are_read() {
        for (bytes, expected) in [
            (&b"a,b\n1,2\n"[..], &["a|b", "2 1|2"][..]),
            ("\u{feff}a;b\r\n\"x;\"\"y\"\"\r\nz\";ö\r\n".as_bytes(), &["a|b", "2 x;\"y\"\r\nz|ö"]),
            (b"a\tb\n1\t\n\n3\t4", &["a|b", "2 1|", "3 3|4"]),
            (b"email\nx@example.com\n", &["email", "2 x@example.com"]),
        ] {
            assert_eq!(read(bytes).unwrap(), expected);
        }
        for (bytes, expected) in [
            (&b"a,b\n1,\xFF\n"[..], "it is not UTF-8 (row 2); save it as CSV in UTF-8"),
            (b"\xFF\xFEa\0", "it is UTF-16; save it as CSV in UTF-8"),
            (b"", "it is empty: the first row is to name the columns"),
            (b"a,b\n1,\"2\n3,4\n", "a quotation mark in row 2 is not closed"),
        ] {
            assert_eq!(read(bytes).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_long_file_is_read_in_pieces_and_a_row_without_end_is_refused() {
        let mut text = String::from("email,name\n");
        for n in 0..60_000 {
            writeln!(text, "user-{n}@example.com,\"Name, {n}\"").unwrap();
        }
        let rows = read(text.as_bytes()).unwrap();
        assert_eq!(rows.len(), 60_001);
        assert_eq!(rows[60_000], "60001 user-59999@example.com|Name, 59999");
        let open = format!("email\n\"{}", "x".repeat(3 << 20));
        assert_eq!(read(open.as_bytes()).unwrap_err(), "row 2 is longer than 1 MiB; is a quotation mark not closed?");
    }

    #[test]
    fn objects_of_documents_are_found_where_they_are() {
        let items = |text: &str| {
            let mut all = Vec::new();
            let read = json_items(file(text.as_bytes()).path(), |number, item| {
                all.push(format!("{number}{}", item["a"]));
                all.len() < 2
            });
            read.map(|()| all.join(" ")).map_err(|error| error.to_string())
        };
        for text in [
            r#"[{"a":1},{"a":2},{"a":3}]"#,
            r#"{"data":{"total":9,"results":[{"a":1},{"a":2}],"query":""}}"#,
            r#"{"data":[{"a":1},{"a":2}]}"#,
            "\u{feff}{\"result\":[{\"a\":1},{\"a\":2}],\"_metadata\":{}}",
        ] {
            assert_eq!(items(text).unwrap(), "11 22", "{text}");
        }
        assert_eq!(items(r#"{"data":null}"#).unwrap(), "");
        assert!(items(r#"{"data":[{"a":1},"#).unwrap_err().starts_with("it is not the JSON that is expected: EOF"));
        assert!(items("7").unwrap_err().contains("expected an array of objects"));
    }
}
