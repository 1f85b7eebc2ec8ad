//! A database in a file that many tests begin with: made once, and copied.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The file of a database without a row, as the first test of the process made it. Making a schema takes longer than many a
/// test does.
#[derive(Debug, Default)]
pub struct FreshFile(OnceLock<Vec<u8>>);

impl FreshFile {
    /// Without a file, which the first test makes.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Puts the file where a test wants its database. `make` makes it there if it is the first one, and closes it.
    pub fn put_at(&self, path: &Path, make: impl FnOnce(&Path)) {
        let mut is_made = false;
        let content = self.0.get_or_init(|| {
            make(path);
            is_made = true;
            let mut log = path.as_os_str().to_owned();
            log.push("-wal");
            let logged = fs::metadata(log).map_or(0, |log| log.len());
            assert_eq!(logged, 0, "a database that is closed has all of its rows in its file");
            fs::read(path).expect("the database was made")
        });
        if !is_made {
            assert!(!path.exists(), "the database of a test is a new one");
            fs::write(path, content).expect("the test may write where it wants its database");
        }
    }
}
