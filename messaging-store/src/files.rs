//! Files that only the owner may read, and writing them so that they survive a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use messaging_core::ports::clock::{Entropy as _, SystemEntropy};

/// Suffix of the name of a file that is still being written, or was when the power failed.
pub(crate) const UNFINISHED: &str = ".part";

/// The directory that a database is in.
pub(crate) fn database_directory(database: &Path) -> &Path {
    database.parent().unwrap_or(Path::new(""))
}

/// A file or directory beside a database.
pub(crate) fn beside(database: &Path, name: &str) -> PathBuf {
    database_directory(database).join(name)
}

/// Adds the path to the error of an operation on a file.
pub(crate) fn naming<T>(path: &Path, outcome: io::Result<T>) -> io::Result<T> {
    outcome.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// A random name, which nobody else uses.
pub(crate) fn random_name() -> String {
    let mut bytes = [0; 8];
    SystemEntropy::default().fill(&mut bytes);
    format!("{:016x}", u64::from_be_bytes(bytes))
}

/// Creates a directory that only the owner may enter.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let places = path.ancestors().take_while(|place| !place.as_os_str().is_empty() && !place.exists());
    let missing: Vec<_> = places.collect();
    builder.create(path)?;
    missing.into_iter().rev().try_for_each(hand_over_directory)
}

/// Opens a file that only the owner may read, or creates one, which belongs to the owner of its directory.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    // A new file is not a link that somebody put there to get a file of root.
    match options.clone().create_new(true).open(path) {
        Ok(file) => hand_over(&file, directory_above(path)).map(|()| file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => options.open(path),
        Err(error) => Err(error),
    }
}

/// Gives a file that was just created to the owner of another file or directory: the server has to be able to use files
/// that root creates beside it. Only root can; files created by others stay theirs.
#[cfg(unix)]
pub(crate) fn hand_over(made: &File, owner_of: &Path) -> io::Result<()> {
    match other_owner(&made.metadata()?, owner_of)? {
        Some((user, group)) => std::os::unix::fs::fchown(made, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// Gives a new directory the owner of the directory above it.
#[cfg(unix)]
fn hand_over_directory(made: &Path) -> io::Result<()> {
    match other_owner(&fs::symlink_metadata(made)?, directory_above(made))? {
        Some((user, group)) => std::os::unix::fs::lchown(made, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// User and group of a file or directory, if this process is root and the new file has others.
#[cfg(unix)]
fn other_owner(made: &fs::Metadata, owner_of: &Path) -> io::Result<Option<(u32, u32)>> {
    use std::os::unix::fs::MetadataExt as _;
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let wanted = fs::metadata(owner_of)?;
    let wanted = (wanted.uid(), wanted.gid());
    Ok(Some(wanted).filter(|wanted| *wanted != (made.uid(), made.gid())))
}

/// Gives a file away; other systems have no owners that matter here.
#[cfg(not(unix))]
pub(crate) fn hand_over(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn hand_over_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Names in a directory; none if it does not exist.
pub(crate) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<Bytes>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file that exists completely or not at all, also after a power cut.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = Path::new(&unfinished);
    write_synced(unfinished, bytes)?;
    fs::rename(unfinished, path)?;
    sync_directory(directory_above(path))
}

/// Writes a file whose content survives a power cut once this has returned. If the write fails, the file is removed: on
/// a full disk it would take the last of the space.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        in_directory(path, || open_private(OpenOptions::new().write(true).create(true).truncate(true), path))?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| sync_directory(directory_above(path)));
    if written.is_err() {
        // The error that matters is the first.
        let _ = fs::remove_file(path);
    }
    written
}

/// Runs an operation that needs the directory of a file; the directory is created if need be, because a concurrent
/// removal may take it away while it is still empty.
pub(crate) fn in_directory<T>(path: &Path, mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut attempts = 3;
    loop {
        attempts -= 1;
        make_directory_durably(directory_above(path))?;
        match work() {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts > 0 => {}
            outcome => return outcome,
        }
    }
}

/// The directory that a file is in.
pub(crate) fn directory_above(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a directory whose name survives a power cut.
pub(crate) fn make_directory_durably(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    make_directory(directory)?;
    // The names of new directories are in their parents; at most two levels are created here.
    for parent in directory.ancestors().skip(1).take(3) {
        sync_directory(parent)?;
    }
    Ok(())
}

/// Makes the names in a directory survive a power cut.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) && !directory.as_os_str().is_empty() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Removes a file; no error if it does not exist.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, chown};

    use super::*;

    #[test]
    fn what_root_makes_belongs_to_the_owner_of_the_directory() {
        const OWNER: u32 = 12345;
        let directory = tempfile::tempdir().unwrap();
        if chown(directory.path(), Some(OWNER), Some(OWNER)).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let at = |name: &str| directory.path().join(name);
        // A file that belongs to root is given back as well.
        fs::write(at("epoch"), "1").unwrap();
        write_durably(&at("epoch"), b"2").unwrap();
        write_synced(&at("a/b/c"), b"3").unwrap();
        open_private(OpenOptions::new().write(true).create(true), &at("lock")).unwrap();
        for name in ["epoch", "a", "a/b", "a/b/c", "lock"] {
            let found = fs::metadata(at(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (OWNER, OWNER), "{name}");
        }
        // An existing file keeps its owner.
        chown(at("lock"), Some(OWNER + 1), None).unwrap();
        open_private(OpenOptions::new().write(true).create(true), &at("lock")).unwrap();
        assert_eq!(fs::metadata(at("lock")).unwrap().uid(), OWNER + 1);
    }
}
