//! All items of a listing, page after page: printed as they come, one page in memory at a time.
//!
//! With `--json` that is still one document, in the shape of a page, each item on a line of its own. When a page cannot
//! be had, the document ends all the same, with the cursor at which to go on and the error.

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::node::Node;
use super::{Output, note, raw, show_items};
use crate::failure::Failure;

/// A listing while it is printed.
pub(crate) struct Rows {
    output: Output,
    printed: u64,
    has_masked: bool,
}

impl Rows {
    /// Nothing is printed yet.
    pub(crate) const fn new(output: Output) -> Self {
        Self { output, printed: 0, has_masked: false }
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
        if self.output.is_json() {
            let mut text = String::new();
            for item in items {
                text.push_str(if self.printed == 0 { "{\"data\":[\n" } else { ",\n" });
                text.push_str(item.get());
                self.printed += 1;
            }
            return raw(text.as_bytes());
        }
        let nodes: Result<Vec<Node>, _> = items.iter().map(|item| serde_json::from_str(item.get())).collect();
        if self.printed > 0 {
            raw(b"\n")?;
        }
        self.printed += items.len() as u64;
        self.has_masked |= show_items(&nodes.map_err(std::io::Error::from)?)?;
        Ok(())
    }

    /// Ends the listing.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match (self.output.is_json(), self.printed) {
            (true, 0) => raw(b"{\"data\":[],\"next_cursor\":null}\n"),
            (true, _) => raw(b"\n],\"next_cursor\":null}\n"),
            (false, 0) => {
                note("nothing");
                Ok(())
            }
            (false, _) => {
                if self.has_masked {
                    note(super::MASKED);
                }
                Ok(())
            }
        }
    }

    /// Ends the listing before its end; answers the failure of the command.
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
