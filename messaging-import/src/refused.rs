//! Rows that are not imported: counted, the first ones shown, all of them written to a file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use messaging_core::violation::Violations;
use serde_json::{Value, json};

use crate::error::Error;

/// Number of refused rows that are shown.
const SHOWN: usize = 10;

/// Reason why a row was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    /// Code of the error, for programs.
    pub(crate) code: String,
    /// Text of the error, for people, without the refused value.
    pub(crate) message: String,
}

impl Why {
    /// Returns the first rule that is broken.
    pub(crate) fn of_violations(violations: &Violations) -> Self {
        Self::of_fault(&violations.as_slice().first().map(|fault| json!(fault)).unwrap_or_default())
    }

    /// Returns the error of an answer or of an item.
    pub(crate) fn of_error(error: &Value) -> Self {
        match error["details"]["errors"].get(0) {
            Some(fault) => Self::of_fault(fault),
            None => Self::of(error, error["details"]["pointer"].as_str()),
        }
    }

    fn of_fault(fault: &Value) -> Self {
        Self::of(fault, fault["pointer"].as_str())
    }

    fn of(error: &Value, pointer: Option<&str>) -> Self {
        let text = |member: &str| error[member].as_str().unwrap_or_default();
        let place =
            pointer.map(|pointer| pointer.trim_start_matches('/').replace('/', ".")).filter(|place| !place.is_empty());
        let message = match (place, error["line"].as_u64()) {
            (Some(place), Some(line)) => format!("{place}, line {line}: {}", text("message")),
            (Some(place), None) => format!("{place}: {}", text("message")),
            (None, _) => text("message").to_owned(),
        };
        Self { code: text("code").to_owned(), message }
    }
}

/// Rows that were refused so far.
#[derive(Debug)]
pub struct Refused {
    count: u64,
    shown: Vec<Value>,
    file: Option<(PathBuf, BufWriter<File>)>,
}

impl Refused {
    /// Creates an empty list; rows are also written to the file, if one is named.
    pub fn new(path: Option<&Path>) -> Result<Self, Error> {
        let file = path.map(|path| {
            let mut file = BufWriter::new(File::create(path).map_err(|error| Error::unwritable(path, error))?);
            file.write_all(b"file,row,code,message\r\n").map_err(|error| Error::unwritable(path, error))?;
            Ok::<_, Error>((path.to_owned(), file))
        });
        Ok(Self { count: 0, shown: Vec::new(), file: file.transpose()? })
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, file: &str, row: u64, why: &Why) -> Result<(), Error> {
        self.count += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(json!({"file": file, "row": row, "code": why.code, "message": why.message}));
        }
        if let Some((path, out)) = &mut self.file {
            let line = format!("{},{row},{},{}\r\n", cell(file), cell(&why.code), cell(&why.message));
            out.write_all(line.as_bytes()).map_err(|error| Error::unwritable(path, error))?;
        }
        Ok(())
    }

    /// Returns the number of refused rows, and the first of them.
    pub fn finish(self) -> Result<(u64, Vec<Value>), Error> {
        if let Some((path, mut out)) = self.file {
            out.flush().map_err(|error| Error::unwritable(&path, error))?;
        }
        Ok((self.count, self.shown))
    }
}

/// Returns a CSV cell that no spreadsheet takes for a formula.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    if !is_formula && !text.contains([',', ';', '"', '\r', '\n']) {
        return text.to_owned();
    }
    format!("\"{}{}\"", if is_formula { "'" } else { "" }, text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_say_where() {
        for (error, expected) in [
            (
                json!({"code": "invalid_request", "message": "x", "details": {"errors": [{"pointer": "/attributes/a", "code": "too_long", "message": "long"}]}}),
                "too_long attributes.a: long",
            ),
            (
                json!({"code": "identifier_conflict", "message": "taken", "details": {"pointer": "/email", "contact_id": "con_1"}}),
                "identifier_conflict email: taken",
            ),
            (json!({"code": "not_found", "message": "gone"}), "not_found gone"),
        ] {
            let why = Why::of_error(&error);
            assert_eq!(format!("{} {}", why.code, why.message), expected);
        }
    }

    #[test]
    fn all_are_written_and_ten_are_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("refused.csv");
        let mut refused = Refused::new(Some(&path)).unwrap();
        for row in 0..12 {
            refused.add("=a,b.csv", row, &Why { code: "x".to_owned(), message: "say \"no\"".to_owned() }).unwrap();
        }
        let (count, shown) = refused.finish().unwrap();
        assert_eq!((count, shown.len()), (12, 10));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 13);
        assert!(text.starts_with("file,row,code,message\r\n\"'=a,b.csv\",0,x,\"say \"\"no\"\"\"\r\n"), "{text}");
    }
}
