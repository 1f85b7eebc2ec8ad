//! The file that keeps the secret keys of a database: 32 bytes each, one after the other, the newest first.
//!
//! It is created, with one key, before the database holds anything that is sealed under it, and never again: a new key
//! opens nothing that the old one sealed. A rotation puts a new key in front; the older ones stay, because links and
//! return addresses in sent mail are verified with them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use messaging_core::domain::security::secret_key::{KeyRing, SecretKey};
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::store::{Store, StoreError, needs_its_key};

use crate::file_error::FileError;
use crate::files::{directory_above, hand_over, open_private, sync_directory};

/// Reason why there is no key to start with.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file does not exist, but the database holds secrets that its key sealed.
    #[error(
        "the secret key {} is missing, and the database holds secrets that only it opens (DKIM keys, passwords of \
         providers, secrets of webhooks; links in mail that was sent need it too): restore the file from the backup, \
         or name where it is with --secret-key-file",
        .0.display()
    )]
    Missing(PathBuf),
    /// The file holds something else.
    #[error(
        "the secret key {} must hold {} bytes, or as many for each of its keys, {} at most; restore the file from the backup",
        .0.display(), SecretKey::LENGTH, KeyRing::MAX_KEYS
    )]
    Malformed(PathBuf),
    /// Another rotation is under way.
    #[error("the secret key {} is being rotated by another command; wait until that has ended", .0.display())]
    Rotating(PathBuf),
    /// The file cannot be read or created.
    #[error(transparent)]
    File(#[from] FileError),
    /// The database could not be asked whether it needs its key.
    #[error("failed to read whether the database has a secret key")]
    Store(#[from] StoreError),
}

/// Reads the keys in a file. For a database without secrets a missing file is created, readable by its owner alone; for
/// one with secrets that is an error.
pub async fn open_or_create(path: &Path, store: &dyn Store) -> Result<KeyRing, KeyFileError> {
    if let Some(ring) = read(path)? {
        return Ok(ring);
    }
    if needs_its_key(store).await? {
        return Err(KeyFileError::Missing(path.to_owned()));
    }
    create(path)
}

/// Reads the keys in a file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<KeyRing>, KeyFileError> {
    const MOST: usize = SecretKey::LENGTH * KeyRing::MAX_KEYS;
    let mut bytes = Vec::with_capacity(SecretKey::LENGTH + 1);
    let opened = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::of("open the secret key", path)(error).into()),
    };
    // One byte more than the longest file has: the content is then no keys.
    opened.take(MOST as u64 + 1).read_to_end(&mut bytes).map_err(FileError::of("read the secret key", path))?;
    let (keys, rest) = bytes.as_chunks();
    let ring = KeyRing::new(keys.iter().map(|key| SecretKey::from_bytes(*key))).filter(|_| rest.is_empty());
    ring.map(Some).ok_or_else(|| KeyFileError::Malformed(path.to_owned()))
}

/// Lock that keeps others from rotating the keys of a file until it is dropped.
#[derive(Debug)]
pub struct RotationLock {
    _file: File,
}

/// Takes the lock of a rotation, which ends with the process that holds it. The lock file is beside the key file
/// itself, whatever links lead there.
pub fn lock(path: &Path) -> Result<RotationLock, KeyFileError> {
    let beside = found(path)?.with_extension("rotation");
    let file = open_private(OpenOptions::new().write(true).create(true).truncate(false), &beside)
        .map_err(FileError::of("open the lock", &beside))?;
    match file.try_lock() {
        Ok(()) => Ok(RotationLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(KeyFileError::Rotating(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(FileError::of("take the lock", &beside)(error).into()),
    }
}

/// The key file that a path leads to.
fn found(path: &Path) -> Result<PathBuf, KeyFileError> {
    fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => KeyFileError::Missing(path.to_owned()),
        _ => FileError::of("find the secret key", path)(error).into(),
    })
}

/// Replaces the keys in a file: its readers see either all of the former or all of the new ones, also after a power
/// cut. The file keeps its owner and its permissions.
pub fn replace(path: &Path, ring: &KeyRing) -> Result<(), KeyFileError> {
    // The target of a link is replaced, and not the link.
    let path = found(path)?;
    remove_left_aside(&path);
    let aside = aside(&path);
    let placed = write_aside(&aside, ring)
        .and_then(|file| keep_owner(&path, &file))
        .and_then(|()| fs::rename(&aside, &path))
        .and_then(|()| sync_directory(directory_above(&path)));
    if placed.is_err() {
        let _ = fs::remove_file(&aside);
    }
    Ok(placed.map_err(FileError::of("replace the secret key", &path))?)
}

fn create(path: &Path) -> Result<KeyRing, KeyFileError> {
    let ring = KeyRing::from(SecretKey::generate(&SystemEntropy::default()));
    // Written aside and linked into place: the file exists completely or not at all, and two programs that start at
    // once use the same key.
    let aside = aside(path);
    let placed = write_aside(&aside, &ring).and_then(|_| fs::hard_link(&aside, path));
    let _ = fs::remove_file(&aside);
    match placed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return read(path)?.ok_or_else(|| KeyFileError::Missing(path.to_owned()));
        }
        Err(error) => return Err(FileError::of("make the secret key", path)(error).into()),
    }
    sync_directory(directory_above(path)).map_err(FileError::of("sync the directory of", path))?;
    Ok(ring)
}

/// Path at which a key file is written before it gets its name.
fn aside(path: &Path) -> PathBuf {
    path.with_extension(format!("new.{}", std::process::id()))
}

/// Removes the unfinished files of rotations that were killed: nobody else writes while the lock is held.
fn remove_left_aside(path: &Path) {
    let start = path.with_extension("new.");
    let entries = path.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_beginning(&start, &entry.path())) {
        let _ = fs::remove_file(entry.path());
    }
}

/// Returns true if the text of `path` begins with that of `start`.
fn is_beginning(start: &Path, path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(start.as_os_str().as_encoded_bytes())
}

fn write_aside(aside: &Path, ring: &KeyRing) -> io::Result<File> {
    let mut file = open_private(OpenOptions::new().write(true).create(true).truncate(true), aside)?;
    for key in ring.keys() {
        file.write_all(key.as_bytes())?;
    }
    file.sync_all()?;
    Ok(file)
}

/// Gives a file the owner and the permissions of the one that it replaces.
fn keep_owner(of: &Path, file: &File) -> io::Result<()> {
    hand_over(file, of)?;
    file.set_permissions(fs::metadata(of)?.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret.key");
        assert_eq!(read(&path).unwrap(), None);
        let key = create(&path).unwrap();
        assert_eq!(create(&path).unwrap(), key, "of two programs both use the same");
        assert_eq!(read(&path).unwrap(), Some(key));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        for length in [0, 31, 33, 63, 65, 33 * 32] {
            fs::write(&path, vec![b'x'; length]).unwrap();
            assert!(matches!(read(&path), Err(KeyFileError::Malformed(_))), "{length}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_rotation_replaces_the_file_at_once_and_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("secret.key"), directory.path().join("link.key"));
        let ring = create(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let lock_of_one = lock(&path).unwrap();
        for same in [&path, &link] {
            assert!(matches!(lock(same), Err(KeyFileError::Rotating(_))));
        }
        drop(lock_of_one);
        lock(&path).unwrap();
        assert!(matches!(lock(&directory.path().join("none")), Err(KeyFileError::Missing(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        // The file that a killed rotation leaves.
        fs::write(directory.path().join("secret.new.1"), "half").unwrap();
        let more = ring.with_first(SecretKey::from_bytes([7; 32])).unwrap();
        replace(&link, &more).unwrap();
        assert_eq!(read(&path).unwrap(), Some(more));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o400, "as it was");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "the key, the link and the lock");
    }
}
