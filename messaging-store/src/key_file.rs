//! The file that keeps the secret key of a database.
//!
//! It is made before the database holds anything that is sealed under it, and never again after: a new key
//! opens nothing that the old one sealed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use messaging_core::domain::secret_key::SecretKey;
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::store::{Store, StoreError, needs_its_key};

use crate::file_error::FileError;
use crate::files::private;

/// Why there is no key to start with.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file is not there, but the database holds what its key sealed.
    #[error(
        "the secret key {} is missing, and the database holds secrets that only it opens (DKIM keys, passwords of \
         providers, secrets of webhooks; links in mail that was sent need it too): restore the file from the backup, \
         or name where it is with --secret-key-file",
        .0.display()
    )]
    Missing(PathBuf),
    /// The file holds something else.
    #[error("the secret key {} must hold {} bytes; restore the file from the backup", .0.display(), SecretKey::LENGTH)]
    Malformed(PathBuf),
    /// The file cannot be read or made.
    #[error(transparent)]
    File(#[from] FileError),
    /// The database could not be asked whether it needs its key.
    #[error("failed to read whether the database has a secret key")]
    Store(#[from] StoreError),
}

/// The key in a file. For a database without secrets the file is made when it is not there, readable by its owner
/// alone; for one with secrets that is an error.
pub async fn open_or_create(path: &Path, store: &dyn Store) -> Result<SecretKey, KeyFileError> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    if needs_its_key(store).await? {
        return Err(KeyFileError::Missing(path.to_owned()));
    }
    create(path)
}

/// The key in a file; `None` when there is no such file.
pub fn read(path: &Path) -> Result<Option<SecretKey>, KeyFileError> {
    let mut bytes = Vec::with_capacity(SecretKey::LENGTH + 1);
    let opened = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::of("open the secret key", path)(error).into()),
    };
    // One byte more than a key tells that it is none.
    opened
        .take(SecretKey::LENGTH as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(FileError::of("read the secret key", path))?;
    let key = bytes.try_into().map_err(|_| KeyFileError::Malformed(path.to_owned()))?;
    Ok(Some(SecretKey::from_bytes(key)))
}

fn create(path: &Path) -> Result<SecretKey, KeyFileError> {
    let key = SecretKey::generate(&SystemEntropy::default());
    // Written aside and linked into place: it is there completely or not at all, and of two programs
    // that start at once both use the same.
    let aside = path.with_extension(format!("new.{}", std::process::id()));
    let written = private(OpenOptions::new().write(true).create(true).truncate(true))
        .open(&aside)
        .and_then(|mut file| file.write_all(key.as_bytes()).and_then(|()| file.sync_all()));
    let placed = written.and_then(|()| fs::hard_link(&aside, path));
    let _ = fs::remove_file(&aside);
    match placed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return read(path)?.ok_or_else(|| KeyFileError::Missing(path.to_owned()));
        }
        Err(error) => return Err(FileError::of("make the secret key", path)(error).into()),
    }
    // The name too must outlast a power cut, before anything is sealed.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(FileError::of("sync the directory of", path))?;
    Ok(key)
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
        for length in [0, 31, 33] {
            fs::write(&path, vec![b'x'; length]).unwrap();
            assert!(matches!(read(&path), Err(KeyFileError::Malformed(_))), "{length}");
        }
    }
}
