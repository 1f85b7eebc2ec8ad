//! Pinned files, which are kept while a backup is made, and cleaning up after a backup that was killed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::parts::{BackupError, DIRECTORIES, create_new, remove_directory};
use crate::file_error::FileError;
use crate::files::{UNFINISHED, beside, make_directory, names, random_name};

/// Prefix of the name of the directory of the links, beside the database.
const PINS: &str = ".backup-";
/// Prefixes of the names of directories that a backup or a restore may leave behind.
const LEFT: [&str; 2] = [PINS, ".restor"];
/// Depth of files below their directory.
const DEPTH: usize = 2;
/// Directory of blobs before the commit that names them; pinned first, because blobs move from there to their place.
const PENDING: &str = "pending";

/// The files beside a database, linked or copied into a directory of their own. Removed when dropped.
#[derive(Debug)]
pub(super) struct Pinned {
    root: PathBuf,
    _lock: File,
    bytes: u64,
}

impl Pinned {
    /// Creates an empty directory for the files beside a database.
    pub(super) fn new(database: &Path) -> Result<Self, BackupError> {
        let root = beside(database, &format!("{PINS}{}", random_name()));
        match make_locked(&root) {
            Ok(lock) => Ok(Self { root, _lock: lock, bytes: 0 }),
            Err(error) => {
                let _ = remove_directory(&root);
                Err(FileError::of("make the directory", &root)(error).into())
            }
        }
    }

    /// Pins the files that exist now; files pinned before stay.
    pub(super) fn pin(&mut self, database: &Path) -> Result<(), BackupError> {
        for directory in DIRECTORIES {
            self.pin_directory(&beside(database, directory), &self.root.join(directory), 0)?;
        }
        Ok(())
    }

    fn pin_directory(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), BackupError> {
        let mut found = names(from).map_err(FileError::of("read the directory", from))?;
        found.sort_unstable_by_key(|name| (name != PENDING, name.clone()));
        for name in found.iter().filter(|name| is_plain(name) && !name.ends_with(UNFINISHED)) {
            let (source, target) = (from.join(name), to.join(name));
            let is_directory = match source.symlink_metadata() {
                // The file was removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                metadata => metadata.map_err(FileError::of("look at", &source))?.is_dir(),
            };
            if is_directory {
                if depth < DEPTH {
                    self.pin_directory(&source, &target, depth + 1)?;
                }
                continue;
            }
            let pinned = make_directory(to).and_then(|()| pin_file(&source, &target));
            self.bytes += pinned.map_err(FileError::of("make a link to", &source))?;
        }
        Ok(())
    }

    /// Returns true if a file beside the database is pinned.
    pub(super) fn has(&self, name: &Path) -> bool {
        self.root.join(name).is_file()
    }

    /// Number of bytes of the files that are pinned so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Calls `with` for each file, with its name in an archive and its path.
    pub(super) fn each(&self, with: &mut dyn FnMut(&str, &Path) -> Result<(), BackupError>) -> Result<(), BackupError> {
        DIRECTORIES.iter().try_for_each(|directory| each_in(&self.root.join(directory), directory, with))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Err(error) = remove_directory(&self.root) {
            tracing::warn!(directory = %self.root.display(), %error, "the links of a backup could not be removed");
        }
    }
}

fn each_in(
    directory: &Path,
    prefix: &str,
    with: &mut dyn FnMut(&str, &Path) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut found = names(directory).map_err(FileError::of("read the directory", directory))?;
    found.sort_unstable();
    for name in found {
        let (path, name) = (directory.join(&name), format!("{prefix}/{name}"));
        if path.is_dir() { each_in(&path, &name, with)? } else { with(&name, &path)? }
    }
    Ok(())
}

/// Links a file, or copies it if links cannot be made; returns its length, or 0 if it is gone or pinned already.
fn pin_file(source: &Path, target: &Path) -> io::Result<u64> {
    let pinned = match fs::hard_link(source, target) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => Err(error),
        Err(_) => fs::copy(source, target).map(drop),
        Ok(()) => Ok(()),
    };
    match pinned.and_then(|()| target.metadata()) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Returns true if a file name is of the kind that the store gives; an archive may contain no other.
pub(super) fn is_plain(name: &str) -> bool {
    !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Removes what backups and restores that were killed left beside a database: links keep files that people want erased.
pub(crate) fn remove_left_behind(directory: &Path) {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    for name in
        names(directory).unwrap_or_default().iter().filter(|name| LEFT.iter().any(|start| name.starts_with(start)))
    {
        let left = directory.join(name);
        if is_abandoned(&left)
            && let Err(error) = remove_directory(&left)
        {
            tracing::warn!(directory = %left.display(), %error, "what a backup left behind could not be removed");
        }
    }
}

/// Creates a directory that does not count as left behind while the returned lock is held.
pub(super) fn make_locked(path: &Path) -> io::Result<File> {
    make_directory(path)?;
    let lock = File::open(path)?;
    lock.try_lock()?;
    Ok(lock)
}

/// Returns true if a directory exists and no process holds its lock.
pub(super) fn is_abandoned(path: &Path) -> bool {
    File::open(path).is_ok_and(|lock| lock.try_lock().is_ok())
}

/// A file that is not finished, beside the one it is to become. Removed when dropped.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    path: PathBuf,
    /// Locked, so that other processes do not remove it as left behind.
    file: File,
}

impl UnfinishedFile {
    pub(super) fn create(directory: &Path, name: &str, kind: &str) -> io::Result<Self> {
        let path = directory.join(format!(".{name}.{}.{kind}{UNFINISHED}", random_name()));
        let file = create_new(&path)?;
        file.try_lock()?;
        Ok(Self { path, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name; an existing file of that name is replaced only if `overwrite`.
    pub(super) fn place(self, name: &Path, overwrite: bool) -> io::Result<()> {
        if overwrite {
            return fs::rename(&self.path, name);
        }
        // If two create the same file, one is refused.
        match fs::hard_link(&self.path, name) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists && name.symlink_metadata().is_err() => {
                fs::rename(&self.path, name)
            }
            linked => linked,
        }
    }

    /// Removes the unfinished files of backups that no process works on any more, of any name.
    pub(super) fn remove_left_behind(directory: &Path) {
        let is_ours = |found: &&String| {
            let Some(rest) = found.strip_prefix('.').and_then(|rest| rest.strip_suffix(UNFINISHED)) else {
                return false;
            };
            let mut parts = rest.rsplit('.');
            let (kind, random) = (parts.next(), parts.next().unwrap_or_default());
            matches!(kind, Some("db" | "tar"))
                && !random.is_empty()
                && random.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        for found in names(directory).unwrap_or_default().iter().filter(is_ours) {
            let path = directory.join(found);
            if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
