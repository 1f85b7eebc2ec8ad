//! The data directory: created, or made private to its owner.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use messaging_core::domain::security::secret_key::SecretKey;
use messaging_store::FileError;

use crate::settings::IN_FORCE;

/// The file with the address that the server listens at.
pub(super) const LISTEN: &str = "listen";

/// The file with the address for returned mail.
pub(super) const SMTP_LISTEN: &str = "smtp-listen";

/// The file with the address for submissions.
pub(super) const SUBMISSION_LISTEN: &str = "submission-listen";

/// The file with the address of the metrics page.
pub(super) const METRICS_LISTEN: &str = "metrics-listen";

/// The file with the number of the latest start, by which a copy of the database is recognized.
pub(super) const EPOCH: &str = "epoch";

/// Creates the data directory, or makes an existing one and the installation's files in it private to its owner.
///
/// Fails if a file cannot be made private: it may hold addresses and keys. Fails also for a directory of another
/// purpose, which others may need: a mistyped path such as `/etc` stays unchanged.
pub(super) fn make_private(path: &Path, database: Option<&Path>, secret_key: &Path) -> Result<(), FileError> {
    if path.is_dir() {
        refuse_foreign_directory(path, database, secret_key)?;
    } else {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(FileError::of("make the directory", path))?;
    }
    let is_foreign =
        |place: &Path| place == secret_key && !is_key(place) || database == Some(place) && !is_database(place);
    for (place, mode) in private_places(path, database, secret_key) {
        // The reader of the file reports what is wrong with it.
        if !is_foreign(&place) {
            close_to_others(&place, mode)?;
        }
    }
    Ok(())
}

/// Refuses a directory that others may use and that has files, but none of an installation.
pub(super) fn refuse_foreign_directory(
    path: &Path,
    database: Option<&Path>,
    secret_key: &Path,
) -> Result<(), FileError> {
    let mode = fs::metadata(path).map_err(FileError::of("look at", path))?.permissions().mode();
    let is_open = mode & 0o077 != 0;
    if !is_open {
        return Ok(());
    }
    let ours = FILES.iter().chain(&[CONFIG]).map(|name| path.join(name)).chain([secret_key.to_owned()]);
    if ours.chain(database.map(Path::to_owned)).any(|file| file.starts_with(path) && file.is_file()) {
        return Ok(());
    }
    let mut found = fs::read_dir(path).map_err(FileError::of("read the directory", path))?.flatten();
    // Every new file system has the first, and a killed restore leaves the other.
    let is_empty = |name: &str| name == "lost+found" || name.starts_with(".restor");
    if found.all(|entry| is_empty(&entry.file_name().to_string_lossy())) {
        return Ok(());
    }
    let cause = "others may use it, and it holds files but no installation: name a directory that is new or empty with \
                 --data, or close this one with `chmod 700` if it is meant";
    Err(FileError::of("use the directory", path)(io::Error::other(cause)))
}

/// Returns true if a file can be one of secret keys, by its length.
fn is_key(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0 && found.len().is_multiple_of(KEY_BYTES))
}

/// Returns true if a file is a SQLite database, or empty.
fn is_database(path: &Path) -> bool {
    let mut start = Vec::with_capacity(SQLITE.len());
    let read = fs::File::open(path).and_then(|file| file.take(SQLITE.len() as u64).read_to_end(&mut start));
    read.is_ok() && (start.is_empty() || start == SQLITE)
}

/// Length of a secret key.
const KEY_BYTES: u64 = SecretKey::LENGTH as u64;

/// First bytes of a SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Private files and directories, with the permissions that they may have at most. The files in the directories were
/// created private, and cannot be reached through them.
pub(super) fn private_places(path: &Path, database: Option<&Path>, secret_key: &Path) -> Vec<(PathBuf, u32)> {
    let of_database = database.into_iter().flat_map(|database| {
        ["", "-wal", "-shm", ".lock"].map(|suffix| {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        })
    });
    let directories = DIRECTORIES.iter().map(|name| path.join(name)).chain([path.to_owned()]);
    let files = FILES.iter().map(|name| path.join(name)).chain([secret_key.to_owned()]).chain(of_database);
    directories.map(|place| (place, 0o700)).chain(files.map(|place| (place, 0o600))).collect()
}

/// Directories in the data directory.
const DIRECTORIES: [&str; 2] = ["attachments", "uploads"];

/// The settings file, by its name in the documentation. It may be in the directory before the first start.
const CONFIG: &str = "messaging.toml";

/// Files in the data directory, besides the key and those of the database.
const FILES: [&str; 7] = [LISTEN, SMTP_LISTEN, SUBMISSION_LISTEN, METRICS_LISTEN, EPOCH, IN_FORCE, "dev.json"];

/// Removes the permissions of group and others from a file or directory, if there are any.
fn close_to_others(path: &Path, mode: u32) -> Result<(), FileError> {
    let is_open = || match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.permissions().mode() & 0o077 != 0),
        // Another program removed it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::of("look at", path)(error)),
    };
    if !is_open()? {
        return Ok(());
    }
    match fs::set_permissions(path, fs::Permissions::from_mode(mode)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        changed => changed.map_err(FileError::of("take from others the permission to use", path))?,
    }
    // Some file systems report success and change nothing.
    if is_open()? {
        let cause = io::Error::new(io::ErrorKind::PermissionDenied, "its file system keeps no permissions");
        return Err(FileError::of("take from others the permission to use", path)(cause));
    }
    tracing::warn!(path = %path.display(), "others could use this; it is closed to them now");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn an_open_data_directory_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        fs::create_dir_all(data.join("attachments")).unwrap();
        fs::write(data.join("messaging.db"), "").unwrap();
        fs::write(data.join("notes.txt"), "").unwrap();
        for (path, open) in [("", 0o755), ("attachments", 0o775), ("messaging.db", 0o644), ("notes.txt", 0o644)] {
            fs::set_permissions(data.join(path), fs::Permissions::from_mode(open)).unwrap();
        }
        make_private(&data, Some(&data.join("messaging.db")), &data.join("secret.key")).unwrap();
        let modes = ["", "attachments", "messaging.db", "notes.txt"].map(|path| mode(&data.join(path)));
        assert_eq!(modes, [0o700, 0o700, 0o600, 0o644], "all of ours and nothing else");
        // Stricter permissions set by the owner stay.
        fs::set_permissions(&data, fs::Permissions::from_mode(0o500)).unwrap();
        make_private(&data, Some(&data.join("messaging.db")), &data.join("secret.key")).unwrap();
        assert_eq!(mode(&data), 0o500);
    }

    #[test]
    fn what_is_not_ours_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let (etc, new) = (place.path().join("etc"), place.path().join("new"));
        let passwd = etc.join("passwd");
        fs::create_dir(&etc).unwrap();
        fs::write(&passwd, "root:x:0:0:root:/root:/bin/sh\n").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&etc, 0o755);
        set(&passwd, 0o644);
        let refused = make_private(&etc, Some(&etc.join("messaging.db")), &etc.join("secret.key")).unwrap_err();
        assert!(refused.source.to_string().contains("--data"), "{refused}");
        // As the database, or as the key, of a directory of an installation.
        make_private(&new, Some(&etc), &etc).unwrap();
        make_private(&new, Some(&passwd), &passwd).unwrap();
        assert_eq!((mode(&etc), mode(&passwd), mode(&new)), (0o755, 0o644, 0o700));
        // A new disk is empty except for this.
        let disk = place.path().join("disk");
        fs::create_dir_all(disk.join("lost+found")).unwrap();
        set(&disk, 0o755);
        make_private(&disk, Some(&disk.join("messaging.db")), &disk.join("secret.key")).unwrap();
        assert_eq!(mode(&disk), 0o700);
    }
}
