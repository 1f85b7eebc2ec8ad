//! All items of a listing, page after page: printed as they come, one page in memory at a time.
//!
//! With `--json` that is still one document, in the shape of a page, each item on a separate line. If a page cannot be
//! read, the document is closed all the same, with the cursor at which to continue and the error.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::node::Node;
use super::table::Sheet;
use super::{Form, Output, note, note_hidden, raw, show_items, terminal_width};
use crate::failure::Failure;

/// A listing while it is printed.
pub(crate) struct Rows {
    output: Output,
    printed: u64,
    has_masked: bool,
    sheet: Sheet,
}

impl Rows {
    /// Nothing is printed yet.
    pub(crate) fn new(output: Output) -> Self {
        Self { output, printed: 0, has_masked: false, sheet: Sheet::new(terminal_width()) }
    }

    /// Prints the items of a page.
    pub(crate) fn add<T: Serialize>(&mut self, items: &[T]) -> Result<(), Failure> {
        let texts: Result<Vec<_>, _> = items.iter().map(serde_json::value::to_raw_value).collect();
        self.add_raw(&texts.map_err(std::io::Error::from)?)
    }

    /// Prints the items of a page as they came.
    pub(crate) fn add_raw(&mut self, items: &[Box<RawValue>]) -> Result<(), Failure> {
        if items.is_empty() {
            return Ok(());
        }
        match self.output.form {
            Form::Json => self.add_to_document(items),
            Form::Ids | Form::Lines => {
                self.printed += items.len() as u64;
                let values: Vec<Value> = parsed(items)?;
                self.output.items(&values.iter().collect::<Vec<_>>())
            }
            Form::Tables => self.add_to_table(items),
        }
    }

    fn add_to_document(&mut self, items: &[Box<RawValue>]) -> Result<(), Failure> {
        let mut text = String::new();
        for item in items {
            text.push_str(if self.printed == 0 { "{\"data\":[\n" } else { ",\n" });
            text.push_str(item.get());
            self.printed += 1;
        }
        raw(text.as_bytes())
    }

    fn add_to_table(&mut self, items: &[Box<RawValue>]) -> Result<(), Failure> {
        // Blocks have an empty line between them; a table continues without one.
        if self.printed > 0 && !self.sheet.is_begun() {
            raw(b"\n")?;
        }
        self.printed += items.len() as u64;
        self.has_masked |= show_items(&parsed::<Node>(items)?, &mut self.sheet)?;
        Ok(())
    }

    /// Ends the listing.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match (self.output.form, self.printed) {
            (Form::Json, 0) => return raw(b"{\"data\":[],\"next_cursor\":null}\n"),
            (Form::Json, _) => return raw(b"\n],\"next_cursor\":null}\n"),
            (Form::Ids | Form::Lines, _) => {}
            (Form::Tables, 0) => note("nothing"),
            (Form::Tables, _) => {
                if self.has_masked {
                    note(super::MASKED);
                }
                note_hidden(&self.sheet);
            }
        }
        Ok(())
    }

    /// Ends the listing early; returns the failure of the command.
    pub(crate) fn cut(self, cursor: Option<&str>, failure: Failure) -> Failure {
        if self.printed == 0 {
            return failure;
        }
        if !self.output.is_json() {
            if let Some(cursor) = cursor {
                note(&format!("the rest is missing; it begins at --cursor {cursor}"));
            }
            return failure;
        }
        let end = json!({"next_cursor": cursor, "error": {"code": failure.code(), "message": failure.to_string()}});
        let text = format!("\n],{}\n", end.to_string().trim_start_matches('{'));
        match raw(text.as_bytes()) {
            Ok(()) => Failure::Cut(Box::new(failure)),
            Err(unwritable) => unwritable,
        }
    }
}

/// The items of a page, read.
fn parsed<T: DeserializeOwned>(items: &[Box<RawValue>]) -> Result<Vec<T>, Failure> {
    let read: Result<Vec<T>, _> = items.iter().map(|item| serde_json::from_str(item.get())).collect();
    Ok(read.map_err(std::io::Error::from)?)
}
