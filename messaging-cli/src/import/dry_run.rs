//! `contact import --dry-run`: what would become of the columns and of the first rows.

use std::path::Path;

use messaging_core::domain::audience::custom_field::FieldTypes;
use messaging_core::domain::audience::import::columns::{ColumnTarget, Header};
use messaging_core::domain::audience::import::row;
use messaging_core::violation::Violations;
use serde_json::{Value, json};

use super::columns::{Columns, name_of};
use super::rows;
use crate::failure::Failure;
use crate::output::Output;

/// Rows that are shown.
const SHOWN: usize = 5;

/// Shows it; a file that cannot be read is a failure, faults of rows are not.
pub(super) fn show(file: &Path, columns: &Columns, declared: FieldTypes, output: Output) -> Result<(), Failure> {
    let Some(header) = &columns.header else {
        let why = "no column is known as external_id, email or phone, or the first row does not name the columns; say what \
                   columns are with --map COLUMN=FIELD";
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

/// The first rows as contacts, with what is wrong with each.
fn first_rows(file: &Path, header: &Header, types: &FieldTypes) -> Result<Vec<Value>, Failure> {
    let mut shown = Vec::new();
    rows::each(file, header, |number, record| {
        let (contact, faults) = match row::read(record, header, types) {
            Ok((contact, faults)) => (serde_json::to_value(&contact).unwrap_or_default(), faults),
            Err(faults) => (Value::Null, faults),
        };
        shown.push(json!({"row": number, "contact": contact, "errors": told(&faults)}));
        shown.len() < SHOWN
    })?;
    Ok(shown)
}

fn told(faults: &Violations) -> Value {
    json!(faults.as_slice())
}
