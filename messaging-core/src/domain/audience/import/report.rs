//! Report of an import's refused rows, as CSV: `row,column,code,message`.
//!
//! No cell of the imported file is repeated, so that nothing has to be masked, and no data of an erased contact stays.

use std::fmt::Write as _;

#[cfg(feature = "imports")]
use serde_json::Value;

use super::columns::Header;
use crate::error::DomainError;
use crate::ids::{ImportId, WorkspaceId};
use crate::violation::At;

/// The first line of the report.
pub const HEADER: &str = "row,column,code,message\r\n";

/// Maximum number of faults of one row in the report.
const MAX_FAULTS: usize = 10;
/// Maximum length of a column's header in the report, in characters.
const MAX_COLUMN: usize = 64;

/// Maximum number of rows in a piece of the report.
pub const PIECE_ROWS: usize = 1000;

/// Maximum size of a report in one answer, in bytes; about 200 000 lines.
const MAX_REPORT: usize = 16 << 20;

/// A report in one answer, which may be a part of the whole.
#[derive(Debug)]
pub struct Report {
    text: String,
    after: u64,
    last: u64,
}

impl Report {
    /// Returns an empty report on the rows after a row.
    pub fn after(row: u64) -> Self {
        Self { text: HEADER.to_owned(), after: row, last: row }
    }

    /// Adds a piece; pieces come in the order of their rows. Returns true if there is room for more.
    pub fn add(&mut self, piece: &RowErrors) -> bool {
        for line in piece.lines.split_inclusive("\r\n") {
            let row = line.split(',').next().and_then(|row| row.parse().ok()).unwrap_or(piece.first_row);
            if row > self.after {
                self.text.push_str(line);
                self.last = row;
            }
        }
        self.text.len() < MAX_REPORT
    }

    /// Returns the report, which is complete.
    pub fn finish(self) -> String {
        self.text
    }

    /// Returns the report as far as there was room, and a last line that says how to get the rest.
    pub fn cut(mut self) -> String {
        // Writing to a string does not fail.
        let _ = write!(
            self.text,
            ",,{MORE},{}\r\n",
            cell(&format!("more rows were refused: ask with ?after_row={}", self.last))
        );
        self.text
    }
}

/// Code of the line that ends a part of a report.
const MORE: &str = "more";

/// Returns the row after which a report continues, if this is a part of one.
pub fn goes_on_after(report: &[u8]) -> Option<u64> {
    let last = report.strip_suffix(b"\r\n")?.rsplit(|byte| *byte == b'\n').next()?;
    let row = std::str::from_utf8(last).ok()?.strip_prefix(",,more,")?.rsplit('=').next()?;
    row.trim_end_matches('"').parse().ok()
}

/// Returns the length of a part of a report without its last line.
pub fn without_end(report: &[u8]) -> usize {
    let last = report.strip_suffix(b"\r\n").unwrap_or(report).iter().rposition(|byte| *byte == b'\n');
    last.map_or(report.len(), |at| at + 1)
}

/// Consecutive refused rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowErrors {
    /// Workspace that owns the import.
    pub workspace_id: WorkspaceId,
    /// The import.
    pub import_id: ImportId,
    /// Number of the first of these rows.
    pub first_row: u64,
    /// Lines of these rows in the report.
    pub lines: String,
}

/// Adds the lines of a refused row: one for each fault, at most ten.
pub fn add(lines: &mut String, row: u64, error: &DomainError, header: &Header) {
    match error {
        DomainError::Invalid(violations) => {
            for violation in violations.as_slice().iter().take(MAX_FAULTS) {
                let At::Pointer(pointer) = &violation.at else { continue };
                let code = serde_json::to_value(violation.code).unwrap_or_default();
                add_line(lines, row, header.column_of(pointer), code.as_str().unwrap_or_default(), &violation.message);
            }
        }
        DomainError::IdentifierConflict { pointer, contact_id } => {
            let message = format!("{error}: {contact_id}");
            add_line(lines, row, header.column_of(pointer), error.code(), &message);
        }
        other => add_line(lines, row, "", other.code(), &other.to_string()),
    }
}

fn add_line(lines: &mut String, row: u64, column: &str, code: &str, message: &str) {
    // Cells contain no line breaks, because each line is one fault.
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    let column: String = column.chars().take(MAX_COLUMN).map(shown).collect();
    // Writing to a string does not fail.
    let _ = write!(lines, "{row},{},{},{}\r\n", cell(&column), cell(code), cell(message));
}

/// Returns a cell, quoted if necessary. One that a spreadsheet would take for a formula gets an apostrophe first, so
/// that it stays a text.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !is_formula && !text.contains([',', ';', '"', '\r', '\n', '\t']) {
        return text.to_owned();
    }
    format!("\"{}{}\"", if is_formula { "'" } else { "" }, text.replace('"', "\"\""))
}

/// Returns the first `limit` lines as JSON objects, for programs that show them.
#[cfg(feature = "imports")]
pub fn parse(report: &[u8], limit: usize) -> Vec<Value> {
    let mut all = Vec::new();
    super::table::rows(report, true, b',', |record| {
        let text = |index| String::from_utf8_lossy(record.get(index).unwrap_or_default()).into_owned();
        if let Ok(row) = text(0).parse::<u64>() {
            all.push(serde_json::json!({"row": row, "column": text(1), "code": text(2), "message": text(3)}));
        }
        all.len() < limit
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::audience::contact::fields::ContactField;
    use crate::domain::audience::import::columns::{ColumnTarget, Mapping};
    use crate::violation::{FieldCode, Violations};

    #[test]
    fn cells_are_quoted_and_formulas_disarmed() {
        for (text, expected) in [
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=cmd()", "\"'=cmd()\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@a", "\"'@a\""),
            ("\tx", "\"'\tx\""),
            ("\rx", "\"'\rx\""),
            ("a=b", "a=b"),
            ("two\nlines", "\"two\nlines\""),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_report_comes_in_parts() {
        let piece = |first_row: u64| {
            let lines =
                (first_row..first_row + 1000).map(|row| format!("{row},email,invalid_format,{}\r\n", "x".repeat(1000)));
            let (workspace_id, import_id) =
                ("wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(), "imp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap());
            RowErrors { workspace_id, import_id, first_row, lines: lines.collect() }
        };
        let mut report = Report::after(500);
        let room = (0..20).position(|n| !report.add(&piece(2 + n * 1000))).unwrap() as u64;
        let text = report.cut();
        assert!(text.len() < 18 << 20);
        let last = 1 + (room + 1) * 1000;
        assert_eq!(goes_on_after(text.as_bytes()), Some(last));
        assert!(text[..without_end(text.as_bytes())].ends_with("x\r\n"));
        let rows: Vec<u64> =
            parse(text.as_bytes(), usize::MAX).iter().map(|line| line["row"].as_u64().unwrap()).collect();
        assert_eq!(rows, (501..=last).collect::<Vec<_>>());
        let mut rest = Report::after(last);
        assert!(rest.add(&piece(last - 10)));
        let rest = rest.finish();
        assert_eq!((goes_on_after(rest.as_bytes()), rest.lines().count()), (None, 1 + 989));
        assert_eq!(goes_on_after(HEADER.as_bytes()), None);
    }

    #[test]
    fn rows_name_their_columns() {
        let header = Header::read(
            b"=email,tags",
            true,
            &Mapping::from([("=email".to_owned(), Some(ColumnTarget::Field(ContactField::Email)))]),
        )
        .unwrap();
        let mut violations = Violations::new();
        violations.add("/email", FieldCode::InvalidFormat, "not an email address");
        violations.add("/tags/0", FieldCode::TooLong, "must have at most 64 characters");
        violations.add("", FieldCode::Required, "one of external_id, email, phone is required");
        let mut lines = String::new();
        add(&mut lines, 2, &violations.into(), &header);
        let contact_id = "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        add(&mut lines, 3, &DomainError::IdentifierConflict { pointer: "/email", contact_id }, &header);
        assert_eq!(
            lines,
            "2,\"'=email\",invalid_format,not an email address\r\n2,tags,too_long,must have at most 64 characters\r\n\
             2,,required,\"one of external_id, email, phone is required\"\r\n\
             3,\"'=email\",identifier_conflict,another contact has this identifier: con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH\r\n"
        );
        let parsed = parse(format!("{HEADER}{lines}").as_bytes(), 3);
        assert_eq!(parsed.len(), 3);
        assert_eq!(parsed[2]["message"], "one of external_id, email, phone is required");
    }
}
