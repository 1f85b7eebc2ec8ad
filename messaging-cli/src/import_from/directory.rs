//! The files of an export.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::files;

/// Files that are looked at.
const MAX_FILES: usize = 10_000;

/// Folders within one another.
const MAX_DEPTH: usize = 3;

/// A file of the directory.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its name within the directory, with `/` between folders.
    pub(super) name: String,
}

impl Entry {
    /// The folder it is in, empty for the directory itself.
    pub(super) fn folder(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Its own name in lower case.
    pub(super) fn file(&self) -> String {
        self.name.rsplit('/').next().unwrap_or_default().to_lowercase()
    }

    /// Its own name without what stands behind the last dot.
    pub(super) fn stem(&self) -> String {
        self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether its name ends so, in any case.
    pub(super) fn is(&self, suffix: &str) -> bool {
        self.file().ends_with(suffix)
    }

    /// The list that it is of: `lists/NAME.csv`.
    pub(super) fn list(&self) -> Option<String> {
        (self.folder() == "lists").then(|| self.stem())
    }
}

/// All files of a directory and its folders, by name; hidden ones are left out.
pub(super) fn entries(directory: &Path) -> Result<Vec<Entry>, Failure> {
    let mut all = Vec::new();
    add(directory, "", 0, &mut all)?;
    all.sort_by(|one: &Entry, other| one.name.cmp(&other.name));
    Ok(all)
}

fn add(directory: &Path, prefix: &str, depth: usize, all: &mut Vec<Entry>) -> Result<(), Failure> {
    for entry in fs::read_dir(directory).map_err(|error| files::unreadable(directory, error))? {
        let path = entry.map_err(|error| files::unreadable(directory, error))?.path();
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
            return Err(Failure::usage(format!("{} has more than {MAX_FILES} files", directory.display())));
        }
        all.push(Entry { path, name });
    }
    Ok(())
}
