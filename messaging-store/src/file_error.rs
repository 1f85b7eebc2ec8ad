//! A file or directory that cannot be used.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::files::directory_above;

/// Error of an operation on a file, with the operation and its cause.
#[derive(Debug, thiserror::Error)]
#[error("failed to {attempt} {}{}", path.display(), cure(path, source, elsewhere))]
pub struct FileError {
    /// Attempted operation: a verb and its object, which the path follows.
    pub attempt: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The error of the system.
    #[source]
    pub source: io::Error,
    /// Advice for choosing another place, put after "or".
    elsewhere: &'static str,
}

impl FileError {
    /// For `map_err`: makes the system's error that of an attempt on a path of an installation.
    pub fn of(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::with_advice(attempt, path, "name another place with --data")
    }

    /// Like `of`, for a path that the command line names, which `--data` does not move.
    pub fn of_named(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::with_advice(attempt, path, "name another place for it")
    }

    fn with_advice(attempt: &'static str, path: &Path, elsewhere: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { attempt, path, source, elsewhere }
    }
}

/// Advice for errors with a known remedy, else empty.
fn cure(path: &Path, error: &io::Error, elsewhere: &str) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => owner_of(path).map_or_else(String::new, |(place, owner)| {
            format!(" ({} belongs to the user {owner}: run this as that user, or {elsewhere})", place.display())
        }),
        ErrorKind::ReadOnlyFilesystem => {
            format!(" (its file system is mounted read-only: mount it for writing, or {elsewhere})")
        }
        ErrorKind::NotFound => directory_above(path)
            .ancestors()
            .find(|above| !above.as_os_str().is_empty() && !above.exists())
            .map_or_else(String::new, |above| format!(" (there is no directory {})", above.display())),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => " (make room on its disk)".to_owned(),
        _ => String::new(),
    }
}

/// Owner of a path, or of the nearest directory above it whose metadata can be read; `None` if that is the user of this
/// process.
#[cfg(unix)]
fn owner_of(path: &Path) -> Option<(PathBuf, String)> {
    use std::os::unix::fs::MetadataExt as _;
    let path = std::path::absolute(path).ok()?;
    let (place, owner) = path.ancestors().find_map(|place| Some((place, fs::metadata(place).ok()?.uid())))?;
    (owner != rustix::process::geteuid().as_raw()).then(|| (place.to_owned(), name_of(owner)))
}

/// Owner of a path; unknown on this system.
#[cfg(not(unix))]
fn owner_of(_: &Path) -> Option<(PathBuf, String)> {
    None
}

/// Name of a user in the system's own list, or else the number.
#[cfg(unix)]
fn name_of(user: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| user.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let of = |path: &str, kind: ErrorKind| FileError::of("open", Path::new(path))(kind.into()).to_string();
        assert!(of("/data/x", ErrorKind::StorageFull).ends_with("(make room on its disk)"));
        assert!(of("/data/x", ErrorKind::ReadOnlyFilesystem).contains("read-only"));
        assert_eq!(of("/x", ErrorKind::NotFound), "failed to open /x");
        assert!(of("/nowhere/x", ErrorKind::NotFound).ends_with("(there is no directory /nowhere)"));
        let named = FileError::of_named("write", Path::new("/x.tar"))(ErrorKind::ReadOnlyFilesystem.into()).to_string();
        assert!(named.ends_with("or name another place for it)"), "{named}");
        #[cfg(unix)]
        {
            assert_eq!(name_of(0), "root");
            assert_eq!(name_of(4_000_000_000), "4000000000");
            let own = tempfile::tempdir().unwrap();
            let told = of(own.path().join("x").to_str().unwrap(), ErrorKind::PermissionDenied);
            assert!(!told.contains("belongs to"), "{told}");
        }
    }
}
