//! Rows for the tests of readers.

use std::path::PathBuf;

use serde_json::Value;

use super::directory::Entry;
use super::plan::{ImportRecord, ReadRow, Reader, Source};
use super::row;

fn source(list: Option<&str>) -> Source {
    let entry = Entry { path: PathBuf::new(), name: "file".to_owned() };
    Source::new(&entry, "rows", Reader::Json { read: |_, _, _| {} }).of_list(list.map(ToOwned::to_owned))
}

/// Returns the records in the rows of a CSV file.
pub(crate) fn rows_of(text: &str, read: ReadRow, list: Option<&str>) -> Vec<ImportRecord> {
    let (file, source) = (tempfile::NamedTempFile::new().unwrap(), source(list));
    std::fs::write(file.path(), text).unwrap();
    let mut found = Vec::new();
    row::csv_rows(file.path(), |_, row| {
        read(&row, &source, &mut found);
        true
    })
    .unwrap();
    found
}

/// Returns the records in an object of a JSON document.
pub(crate) fn json_row(item: &Value, read: fn(&Value, &Source, &mut Vec<ImportRecord>)) -> Vec<ImportRecord> {
    let mut found = Vec::new();
    read(item, &source(None), &mut found);
    found
}
