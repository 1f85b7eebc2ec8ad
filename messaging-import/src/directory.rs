//! The files of an export.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Maximum number of files that are read.
const MAX_FILES: usize = 10_000;

/// Maximum nesting of folders.
const MAX_DEPTH: usize = 3;

/// A file of the directory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The path of the file on the disk.
    pub(crate) path: PathBuf,
    /// Its name within the directory, with `/` between folders.
    pub(crate) name: String,
}

impl Entry {
    /// Returns the folder it is in, empty for the directory itself.
    pub(crate) fn folder(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns its file name in lower case.
    pub(crate) fn file(&self) -> String {
        self.name.rsplit('/').next().unwrap_or_default().to_lowercase()
    }

    /// Returns its file name without the extension.
    pub(crate) fn stem(&self) -> String {
        self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Returns true if its name ends with this suffix, in any case.
    pub(crate) fn is(&self, suffix: &str) -> bool {
        self.file().ends_with(suffix)
    }

    /// Returns the list that the file belongs to: `lists/NAME.csv`.
    pub(crate) fn list(&self) -> Option<String> {
        (self.folder() == "lists").then(|| self.stem())
    }
}

/// Returns all files of a directory and its folders, by name; hidden ones are left out.
pub(crate) fn entries(directory: &Path) -> Result<Vec<Entry>, Error> {
    let mut all = Vec::new();
    add(directory, "", 0, &mut all)?;
    all.sort_by(|one: &Entry, other| one.name.cmp(&other.name));
    Ok(all)
}

fn add(directory: &Path, prefix: &str, depth: usize, all: &mut Vec<Entry>) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(|error| Error::unreadable(directory, error))? {
        let path = entry.map_err(|error| Error::unreadable(directory, error))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            if depth < MAX_DEPTH {
                add(&path, &format!("{name}/"), depth + 1, all)?;
            }
            continue;
        }
        if all.len() == MAX_FILES {
            return Err(Error::too_many(directory.display(), MAX_FILES, "files"));
        }
        all.push(Entry { path, name });
    }
    Ok(())
}
