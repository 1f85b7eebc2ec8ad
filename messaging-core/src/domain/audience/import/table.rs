//! Splitting of a file's bytes into rows (RFC 4180), piece by piece.
//!
//! A file is never in memory as a whole: the caller passes the next bytes, and gets the number of those that were whole
//! rows. Empty lines are no rows.

use csv::{ByteRecord, ReaderBuilder};

/// Maximum length of a row, in bytes.
pub const MAX_ROW_BYTES: usize = 1 << 20;

/// Delimiters of cells, in the order in which they are tried.
pub const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Byte order mark that marks a file as UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Visits the whole rows at the beginning of some bytes, until `visit` returns `false`; `is_end` says that nothing
/// follows the bytes. Returns the number of bytes in the visited rows; with `is_end`, of all bytes once no row is left.
pub fn rows(bytes: &[u8], is_end: bool, delimiter: u8, mut visit: impl FnMut(&ByteRecord) -> bool) -> usize {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .buffer_capacity(bytes.len().clamp(64, 64 << 10))
        .from_reader(bytes);
    let (mut record, mut taken) = (ByteRecord::new(), 0);
    // Bytes in memory are read without errors, and rows may differ in length.
    while let Ok(true) = reader.read_byte_record(&mut record) {
        let end = usize::try_from(reader.position().byte()).unwrap_or(bytes.len());
        // A row at the end of the bytes may continue in the next ones.
        if end >= bytes.len() && !is_end {
            break;
        }
        taken = end;
        if !visit(&record) {
            return taken;
        }
    }
    if is_end { bytes.len() } else { taken }
}

/// True if the last row of a text, which starts at the beginning of a row, has a quotation mark that is not closed:
/// then the bytes after the text belong to the same row.
pub fn ends_open(bytes: &[u8], delimiter: u8) -> bool {
    let count = |bytes: &[u8], is_end| {
        let mut count = 0;
        rows(bytes, is_end, delimiter, |_| {
            count += 1;
            true
        });
        count
    };
    count(&[bytes, b"\nx"].concat(), false) < count(bytes, true)
}

/// Returns the cells of the first row, and its number of bytes; `None` if there is none or its end is not known yet.
pub fn first_row(bytes: &[u8], is_end: bool, delimiter: u8) -> Option<(Vec<Vec<u8>>, usize)> {
    let mut first = None;
    let taken = rows(bytes, is_end, delimiter, |record| {
        first = Some(record.iter().map(<[u8]>::to_vec).collect());
        false
    });
    first.map(|first| (first, taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text into rows, passing `step` bytes more at a time.
    fn cut(text: &str, delimiter: u8, step: usize) -> Vec<Vec<String>> {
        let (mut all, mut start, mut end) = (Vec::new(), 0, 0);
        loop {
            end = (end + step).min(text.len());
            let is_end = end == text.len();
            start += rows(&text.as_bytes()[start..end], is_end, delimiter, |record| {
                all.push(record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect());
                true
            });
            if is_end {
                assert_eq!(start, end);
                return all;
            }
        }
    }

    #[track_caller]
    fn check(text: &str, delimiter: u8, expected: &[&[&str]]) {
        for step in [text.len(), 7, 3, 2, 1] {
            assert_eq!(cut(text, delimiter, step), expected, "{step} bytes at a time");
        }
    }

    #[test]
    fn rows_are_the_same_however_they_arrive() {
        check("a,b\n1,2\n", b',', &[&["a", "b"], &["1", "2"]]);
        check("a,b\r\n1,2", b',', &[&["a", "b"], &["1", "2"]]);
        check("a\tb\r1\t2\r", b'\t', &[&["a", "b"], &["1", "2"]]);
        check("a;b\n\"x;\"\"y\"\"\r\nz\";2\n", b';', &[&["a", "b"], &["x;\"y\"\r\nz", "2"]]);
        check("\r\n\na,b\n\n\n1\n1,2,3\n\n", b',', &[&["a", "b"], &["1"], &["1", "2", "3"]]);
        check("ä,ö\n\"\",", b',', &[&["ä", "ö"], &["", ""]]);
    }

    #[test]
    fn who_has_seen_enough_goes_on_later() {
        let text = b"a\r\nb\r\nc\r\n";
        let mut seen = 0;
        let taken = rows(text, true, b',', |_| {
            seen += 1;
            seen < 2
        });
        assert_eq!(cut(std::str::from_utf8(&text[taken..]).unwrap(), b',', 100), [["c"]]);
    }

    #[test]
    fn a_quotation_mark_may_stay_open() {
        for text in ["", "a", "a\n", "a,b\r\n\"c\"", "\"a\"\n", "\"\"", "a\"b", "\"a\"\"\""] {
            assert!(!ends_open(text.as_bytes(), b','), "{text}");
        }
        for text in ["\"", "\"a", "a\n\"b\nc\n", "a,\"b\n", "\"a\"\"", "a\n\"b\r\n\r\n"] {
            assert!(ends_open(text.as_bytes(), b','), "{text}");
        }
    }

    #[test]
    fn a_first_row_without_an_end_is_none() {
        assert_eq!(first_row(b"a,b", false, b','), None);
        assert_eq!(first_row(b"\"a,b\n1,2\n", false, b','), None);
        assert_eq!(first_row(b"\n\n", true, b','), None);
        assert_eq!(first_row(b"a,b\n1", false, b','), Some((vec![b"a".to_vec(), b"b".to_vec()], 4)));
    }
}
