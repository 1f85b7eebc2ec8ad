//! Hashing of passwords: off the threads that serve requests, a few at a time, in turns between callers.

use std::net::IpAddr;

use messaging_core::domain::security::caller_network::CallerNetwork;
use messaging_core::domain::security::password;

use crate::app::App;
use crate::error::Error;
use crate::fair_semaphore::{Cap, Overloaded, Owner, Permit, Share};

/// Turn to hash one password.
#[derive(Debug)]
pub(crate) struct PasswordTurn {
    _permit: Permit,
}

impl App {
    /// Waits for the turn to hash a password for a caller; without an address for the process itself.
    ///
    /// A network with too many waiting calls gets [`Error::RateLimited`]; if there are too many altogether the error is
    /// [`Error::Unavailable`].
    pub(crate) async fn password_turn(&self, client: Option<IpAddr>) -> Result<PasswordTurn, Error> {
        let owner = client.map_or(Owner::Process, |address| Owner::Network(CallerNetwork::of(address)));
        // A turn ends by itself, so the whole limit may be taken: others are next.
        let turn = self.passwords().acquire(vec![Share { owner, cap: Cap::All }], 1).await;
        turn.map(|permit| PasswordTurn { _permit: permit }).map_err(|overloaded| match overloaded {
            Overloaded::Owner => Error::RateLimited { retry_after: 1 },
            Overloaded::All => Error::Unavailable { retry_after: 1 },
        })
    }

    /// Hashes a password for storage.
    pub(crate) async fn hash_password(&self, password: String) -> Result<String, Error> {
        let turn = self.password_turn(None).await?;
        self.hash_password_in(turn, password).await
    }

    /// Hashes a password for storage, in a turn that the caller waited for.
    pub(crate) async fn hash_password_in(&self, turn: PasswordTurn, password: String) -> Result<String, Error> {
        let mut salt = [0; 16];
        self.entropy().fill(&mut salt);
        let hashed = off_thread(turn, move || password::hash(&password, salt)).await?;
        hashed.map_err(|error| Error::internal(error.to_string()))
    }

    /// Returns true if a password matches `hash`. Without a hash the result is false, and takes as long.
    pub(crate) async fn password_matches(
        turn: PasswordTurn,
        password: String,
        hash: Option<String>,
    ) -> Result<bool, Error> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| password::NOBODYS.to_owned());
        let matches = off_thread(turn, move || password::matches(&password, &hash)).await?;
        Ok(matches && known)
    }
}

async fn off_thread<T: Send + 'static>(
    turn: PasswordTurn,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let work = move || {
        // The thread holds the turn until it is done, even if the caller gives up.
        let _turn = turn;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}
