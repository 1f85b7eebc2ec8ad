//! Hashing of passwords.

use crate::app::App;
use crate::app::heavy_work::HeavyWork;
use crate::domain::password;
use crate::error::Error;

/// Hashes at a time; each takes 19 MiB and a processor.
const AT_A_TIME: usize = 2;
/// Calls that may wait for their turn.
const WAITING: usize = 64;

/// The queue for password hashing.
pub(super) fn queue() -> HeavyWork {
    HeavyWork::new(AT_A_TIME, WAITING)
}

impl App {
    /// The stored form of a password.
    pub(crate) async fn hash_password(&self, password: String) -> Result<String, Error> {
        let mut salt = [0; 16];
        self.entropy().fill(&mut salt);
        let hashed = self.passwords().run(move || password::hash(&password, salt)).await?;
        hashed.map_err(|error| Error::internal(error.to_string()))
    }

    /// Whether a password is the one that `hash` was made of. Without a hash the answer is no, and takes
    /// as long.
    pub(crate) async fn password_matches(&self, password: String, hash: Option<String>) -> Result<bool, Error> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| password::NOBODYS.to_owned());
        let matches = self.passwords().run(move || password::matches(&password, &hash)).await?;
        Ok(matches && known)
    }
}
