//! The settings of a running server, for commands beside it: a file in its data directory, which the server keeps
//! locked as long as it runs.
//!
//! By the lock a file left by a killed server is recognized.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Database, Settings, SettingsArgs};

/// The file, in the data directory.
pub(crate) const FILE: &str = "settings.json";

/// Time a server waits for commands that read the file at the same moment, and interval of its tries.
const PATIENCE: Duration = Duration::from_secs(1);
const TRY_EVERY: Duration = Duration::from_millis(5);

/// Content of the file, as JSON.
#[derive(Serialize, Deserialize)]
struct Written {
    settings: SettingsArgs,
    /// True if the database is named by a URL with a password, which is not written.
    hides_database: bool,
}

/// The settings of a running server.
#[derive(Debug)]
pub struct Running {
    /// The given settings, with absolute paths.
    pub settings: SettingsArgs,
    /// True if the server has a database that is left out here, because its URL has a password.
    pub hides_database: bool,
}

/// The file of this process, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct InForce {
    path: PathBuf,
    _locked: File,
}

impl InForce {
    /// Writes the settings. `None` if another server runs in the same directory.
    pub(crate) fn tell(settings: &Settings) -> io::Result<Option<Self>> {
        let path = settings.data.join(FILE);
        let Some(mut file) = locked(&path)? else { return Ok(None) };
        let mut given = settings.given.clone().with_absolute_paths();
        let hides_database = given.database.as_ref().is_some_and(|text| hides(&settings.database, text));
        if hides_database {
            given.database = None;
        }
        let text = serde_json::to_string_pretty(&Written { settings: given, hides_database })?;
        file.set_len(0)?;
        file.write_all(format!("{text}\n").as_bytes())?;
        Ok(Some(Self { path, _locked: file }))
    }
}

/// Opens the file and locks it; `None` if another server has locked it. Waits for commands that check the lock.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let began = Instant::now();
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            // A lock on a file that another server has removed meanwhile does not count.
            Ok(()) if is_at(&file, path)? => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_EVERY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Returns true if an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for InForce {
    fn drop(&mut self) {
        // A process that finds the file later finds it unlocked.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns true if a database is shown differently from its name: then the name has a password.
fn hides(database: &Database, named: &str) -> bool {
    database.file().is_none() && database.to_string() != named
}

/// The settings of the server that runs on a data directory; `None` if none does.
pub fn running(data: &Path) -> Option<Running> {
    let mut file = File::open(data.join(FILE)).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let Written { settings, hides_database } = serde_json::from_str(&text).ok()?;
    Some(Running { settings, hides_database })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(data: &Path, more: &str) -> Settings {
        let text = format!("data = {data:?}\n{more}");
        toml::from_str::<SettingsArgs>(&text).unwrap().complete().unwrap()
    }

    #[test]
    fn settings_are_told_as_long_as_the_server_runs() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        assert!(running(data).is_none());
        let given = settings(data, "hostname = \"mx.test\"\ntrusted_proxy = [\"10.0.0.0/8\"]\nlog_format = \"json\"");
        let told = InForce::tell(&given).unwrap().unwrap();
        let found = running(data).unwrap();
        assert_eq!(found.settings, given.given);
        assert!(!found.hides_database);
        assert!(InForce::tell(&given).unwrap().is_none(), "another server in the same directory");
        drop(told);
        assert!(running(data).is_none());
        // A file left by a killed server.
        fs::write(data.join(FILE), "{\"settings\":{},\"hides_database\":false}").unwrap();
        assert!(running(data).is_none());
    }

    #[test]
    fn a_command_that_looks_at_the_file_does_not_keep_a_server_from_writing_it() {
        let directory = tempfile::tempdir().unwrap();
        let given = settings(directory.path(), "");
        let looking = File::create(directory.path().join(FILE)).unwrap();
        looking.lock_shared().unwrap();
        let told = std::thread::scope(|scope| {
            let server = scope.spawn(|| InForce::tell(&given));
            // The thread waits, or has not tried yet: both end well.
            std::thread::yield_now();
            drop(looking);
            server.join().unwrap()
        });
        assert!(told.unwrap().is_some());
    }

    #[test]
    fn a_file_that_was_removed_is_not_the_one_at_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let file = File::create(&path).unwrap();
        assert!(is_at(&file, &path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        fs::write(&path, "").unwrap();
        assert!(!is_at(&file, &path).unwrap());
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_password_in_a_url_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let given = settings(directory.path(), "database = \"postgres://me:s3cret@db.test/messaging\"");
        let _told = InForce::tell(&given).unwrap().unwrap();
        let found = running(directory.path()).unwrap();
        assert!(found.hides_database && found.settings.database.is_none());
        assert!(!fs::read_to_string(directory.path().join(FILE)).unwrap().contains("s3cret"));
        let open = settings(directory.path(), "database = \"postgres://me@db.test/messaging\"");
        assert!(!hides(&open.database, "postgres://me@db.test/messaging"));
    }
}
