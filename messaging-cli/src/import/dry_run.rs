//! `contact import --dry-run`: shows how each column would be imported and the first rows as contacts; imports nothing.

use std::path::Path;

use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::domain::audience::import::columns::{ColumnTarget, Header};
use messaging_core::domain::audience::import::row;
use serde_json::{Value, json};

use super::columns::{Columns, name_of};
use super::rows;
use crate::failure::Failure;
use crate::output::Output;

/// Data rows of the file that are shown.
const MAX_ROWS: usize = 5;

/// Prints the columns, those that are left out, and the first rows. A file that cannot be read is a failure; a faulty
/// row is printed with its faults.
pub(super) fn show(file: &Path, columns: &Columns, declared: FieldTypes, output: Output) -> Result<(), Failure> {
    let Some(header) = &columns.header else {
        let why = "no column was recognized as external_id, email or phone, or the first row does not name the columns; give \
                   the field of each column with --map COLUMN=FIELD";
        return Err(Failure::Failed(why.to_owned()));
    };
    let types = columns.types(declared);
    let rows = first_rows(file, header, &types)?;
    output.resource(&json!({
        "columns": header.columns.iter().map(|column| {
            let kind = match &column.target {
                ColumnTarget::Attribute(key) => types.get(key).map_or_else(|| "string".to_owned(), |kind| name_of(*kind)),
                _ => String::new(),
            };
            let guess = columns.declarable().find(|one| one.column == column.header).map(|one| name_of(one.guess));
            json!({"column": column.header, "becomes": String::from(column.target.clone()), "type": kind, "guess": guess})
        }).collect::<Vec<_>>(),
        "not_imported": columns.left_out,
        "rows": rows,
    }))
}

/// The first rows as contacts, each with its faults.
fn first_rows(file: &Path, header: &Header, types: &FieldTypes) -> Result<Vec<Value>, Failure> {
    let mut shown = Vec::new();
    rows::each(file, header, |number, record| {
        let (contact, faults) = match row::read(record, header, types) {
            Ok((contact, faults)) => (serde_json::to_value(&contact).unwrap_or_default(), faults),
            Err(faults) => (Value::Null, faults),
        };
        shown.push(json!({"row": number, "contact": contact, "errors": faults.as_slice()}));
        shown.len() < MAX_ROWS
    })?;
    Ok(shown)
}
