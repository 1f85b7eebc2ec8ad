//! Hashing of passwords: off the threads that serve requests, and only a few at a time.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::app::App;
use crate::domain::password;
use crate::error::Error;

/// Hashes at a time; each takes 19 MiB and a processor.
const AT_A_TIME: usize = 2;
/// Calls that may wait for their turn; further ones are told to come back.
const WAITING: usize = 64;

/// The queue for password hashing.
#[derive(Debug)]
pub(super) struct PasswordWork {
    working: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Default for PasswordWork {
    fn default() -> Self {
        Self { working: Arc::new(Semaphore::new(AT_A_TIME)), waiting: Semaphore::new(AT_A_TIME + WAITING) }
    }
}

impl PasswordWork {
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let _place = self.waiting.try_acquire().map_err(|_| Error::Unavailable { retry_after: 1 })?;
        let turn = Arc::clone(&self.working).acquire_owned().await.map_err(Error::internal)?;
        let work = move || {
            // The thread holds the turn: it goes on when the caller gives up.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }
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
