//! What an export holds, the same for every product: files that are read row by row, and templates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use messaging_core::domain::audience::import::columns::Header;
use serde_json::{Map, Value, json};

use super::directory::Entry;
use super::refused::Why;
use super::row::Row;

/// What is to be brought over.
#[derive(Debug, Default)]
pub struct ImportPlan {
    /// The files with people, in the order in which they are read.
    pub sources: Vec<Source>,
    /// The templates.
    pub templates: Vec<Template>,
    /// What people should know, such as files that nobody reads.
    pub notes: Vec<String>,
}

/// A file that is read row by row.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path of the file on the disk.
    pub(crate) path: PathBuf,
    /// Its name within the directory, as people are told.
    pub name: String,
    /// What it holds, in a word.
    pub kind: &'static str,
    /// The list that everybody in it is a member of.
    pub list: Option<String>,
    /// What its columns mean, where they are those of `contact import`.
    pub(crate) columns: Option<Arc<Header>>,
    /// The format of its rows, and the function that reads them.
    pub(crate) reader: Reader,
}

/// What a row of a file holds.
pub(crate) type ReadRow = fn(&Row, &Source, &mut Vec<ImportRecord>);

/// How the rows of a file are understood.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reader {
    /// CSV with one of these columns (in any case), without which no row says anything.
    Csv { needs: &'static [&'static str], read: ReadRow },
    /// JSON with objects in an array, at the top or below members like `data` and `results`.
    Json { read: fn(&Value, &Source, &mut Vec<ImportRecord>) },
}

impl Source {
    /// A file of a directory.
    pub(crate) fn new(entry: &Entry, kind: &'static str, reader: Reader) -> Self {
        Self { path: entry.path.clone(), name: entry.name.clone(), kind, list: None, columns: None, reader }
    }

    /// Makes all contacts of the file members of a list.
    pub(crate) fn of_list(self, list: Option<String>) -> Self {
        Self { list, ..self }
    }
}

/// One thing that a row of a file holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ImportRecord {
    /// A contact: a body of `POST /contacts/bulk`, and the names of its lists.
    Contact { body: Map<String, Value>, lists: Vec<String> },
    /// A list without members.
    List(String),
    /// An address that must not be sent to.
    Suppression { channel: String, address: String, reason: String },
    /// Something that has no place here, in words that fit behind a number.
    Left(&'static str),
    /// A row that says nothing that could be brought over.
    Refused(Why),
}

impl ImportPlan {
    /// Says that nobody reads a file.
    pub(crate) fn leave(&mut self, entry: &Entry, why: &str) {
        self.notes.push(format!("{} is not read: {why}", entry.name));
    }
}

impl ImportRecord {
    /// An email address that must not be sent to.
    pub(crate) fn suppressed(address: &str, reason: &str) -> Self {
        Self::Suppression { channel: "email".to_owned(), address: address.to_owned(), reason: reason.to_owned() }
    }

    /// A row without an address.
    pub(crate) fn no_email() -> Self {
        Self::refused("required", "there is no email address")
    }

    /// A row that is not brought over.
    pub(crate) fn refused(code: &str, message: &str) -> Self {
        Self::Refused(Why { code: code.to_owned(), message: message.to_owned() })
    }
}

/// A template of the export.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The file it is from.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The body that creates it, or why it is not brought over.
    pub body: Result<Value, String>,
    /// Notes for the report.
    pub notes: BTreeSet<&'static str>,
}

impl Template {
    /// The template with what became of it, and why where it is not brought over: for want of a body it says so itself.
    pub fn outcome(&self, result: &str, id: Option<&str>, reason: Option<&str>) -> Value {
        let reason = self.body.as_ref().err().map(String::as_str).or(reason);
        json!({"file": self.file, "name": self.name, "id": id, "result": result, "reason": reason})
    }
}

/// What is known beside the directory.
#[derive(Debug, Default)]
pub struct ReadOptions {
    /// Texts that stand in for tags of templates, by the tag.
    pub texts: BTreeMap<String, String>,
}
