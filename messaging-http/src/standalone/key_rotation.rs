//! Rotation of the installation's secret key, with or without running servers.
//!
//! The order of its steps makes it safe to be killed anywhere: the new key is in the key file before any process holds
//! it, all processes hold it before one of them seals with it, and the older keys stay in the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use messaging_core::domain::security::secret_key::{KeyRing, SecretKey};
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::ports::store::{KeyHolder, StoreError};
use messaging_engine::admin::{self, ResealReport};
use messaging_engine::{App, Error, KeyRefused};
use messaging_store::key_file::{self, KeyFileError};
use serde::Serialize;
use tokio::time::Instant;

/// Longest time for which the rotation waits until all processes have read their key file again or are declared dead.
const ROTATION_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval at which the database is asked which keys the processes hold.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Reason for which the key was not rotated, or not to the end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotationError {
    /// The key file cannot be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The file that should hold the new key holds something else.
    #[error("--file {} must hold a key of 32 random bytes", .0.display())]
    NotAKey(PathBuf),
    /// The given key is among those of the key file already.
    #[error("the key of --file {} is in use already; name a file with a new one", .0.display())]
    InUse(PathBuf),
    /// The key file holds [`KeyRing::MAX_KEYS`] keys already.
    #[error(
        "{} holds {} keys already, and no more are possible: copy the file to a safe place and cut its last 32 bytes off, \
         the oldest key. Links, pixels and return addresses in mail of the time of that key no longer work then, addresses \
         that providers call since that time have to be entered again, and erasing a person no longer finds messages of that \
         time that copied them",
        .0.display(), KeyRing::MAX_KEYS
    )]
    Full(PathBuf),
    /// Some processes do not hold the new key.
    #[error(
        "the new key is in {}, and these nodes do not hold it: {nodes}; copy the file over that of each, which takes it \
         within seconds, and run the command again. Until then nothing changes",
        file.display()
    )]
    NotHeld {
        /// The key file.
        file: PathBuf,
        /// Names of the processes, separated by commas.
        nodes: String,
    },
    /// Some processes still seal under the previous key.
    #[error("a node has not changed to the new key yet; run the command again")]
    NotChanged,
    /// The keys of the file do not open the secrets of the database, or that could not be checked.
    #[error("failed to take the keys of the file")]
    Refused(#[from] KeyRefused),
    /// The database cannot be used.
    #[error("failed to use the database")]
    Store(#[from] StoreError),
    /// Some secrets could not be encrypted with the new key.
    #[error("failed to encrypt the stored secrets with the new key; run the command again")]
    Reseal(#[from] Error),
}

/// Result of a rotation, as the command prints it.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct RotationReport {
    /// Id of the key that secrets are sealed under now.
    pub key: String,
    /// Number of keys in the file: this one and the older ones.
    pub keys_in_file: usize,
    /// True if this call finished an earlier rotation that was cut off; then no further key was added.
    pub resumed: bool,
    /// Numbers of secrets that were encrypted again, by kind.
    pub resealed: ResealReport,
}

/// Changes to the key in the file `given`, or to a generated one, and puts it in front of the keys in `file`.
///
/// A rotation that was cut off is finished instead: when the first key of `file` is not yet the one that this process
/// seals under, or when something is still sealed under an older key. `given` is not read then.
pub async fn rotate(app: &App, file: &Path, given: Option<&Path>) -> Result<RotationReport, RotationError> {
    let _lock = key_file::lock(file)?;
    let mut ring = key_file::read(file)?.ok_or_else(|| KeyFileError::Missing(file.to_owned()))?;
    app.take_secret_keys(&ring).await?;
    let current = *app.secret_keys().first();
    let mut resealed = ResealReport::default();
    let mut resumed = *ring.first() != current;
    if !resumed && ring.keys().len() > 1 {
        resumed = reseal_all(app, &mut resealed).await?;
    }
    if !resumed {
        ring = extended(&ring, given, file)?;
        app.take_secret_keys(&ring).await?;
    }
    let new = ring.first();
    switch_all_processes(app, new, file).await?;
    reseal_all(app, &mut resealed).await?;
    Ok(RotationReport { key: new.id(), keys_in_file: ring.keys().len(), resumed, resealed })
}

/// Puts the key in `given`, or a generated one, in front of the keys and replaces the key file; returns the new content
/// of the file.
fn extended(ring: &KeyRing, given: Option<&Path>, file: &Path) -> Result<KeyRing, RotationError> {
    let new = match given {
        None => SecretKey::generate(&SystemEntropy::default()),
        Some(given) => new_key(given, ring)?,
    };
    let ring = ring.with_first(new).ok_or_else(|| RotationError::Full(file.to_owned()))?;
    key_file::replace(file, &ring)?;
    Ok(ring)
}

/// Reads the new key from a file that the operator made; the file must hold it alone, and `ring` must not hold it.
fn new_key(file: &Path, ring: &KeyRing) -> Result<SecretKey, RotationError> {
    match key_file::read(file) {
        Ok(Some(given)) if ring.keys().contains(given.first()) => Err(RotationError::InUse(file.to_owned())),
        Ok(Some(given)) if given.keys().len() == 1 => Ok(*given.first()),
        Ok(_) | Err(KeyFileError::Malformed(_)) => Err(RotationError::NotAKey(file.to_owned())),
        Err(error) => Err(error.into()),
    }
}

/// Makes all processes seal and sign with a key: waits until all of them hold it, switches the database to it, and
/// waits until all of them seal under it. Fails with [`RotationError::NotHeld`] before the switch, and with
/// [`RotationError::NotChanged`] after it, if some of them do not follow within [`ROTATION_TIMEOUT`].
async fn switch_all_processes(app: &App, key: &SecretKey, file: &Path) -> Result<(), RotationError> {
    let id = key.id();
    let mut without_key = wait_until_all(app, |holder| holder.holds(&id)).await?;
    if without_key.is_empty() && !admin::switch_secret_key(app, key).await? {
        without_key = holders_not_matching(app, |holder| holder.holds(&id)).await?;
    }
    if !without_key.is_empty() {
        return Err(RotationError::NotHeld { file: file.to_owned(), nodes: names(&without_key) });
    }
    // A process that still encrypts with the previous key may store further secrets, so it is too early to encrypt them
    // again.
    let not_sealing = wait_until_all(app, |holder| holder.seals_under(&id)).await?;
    if not_sealing.is_empty() { Ok(()) } else { Err(RotationError::NotChanged) }
}

/// Encrypts secrets again, pass by pass, until a pass finds none under an older key; adds each pass to `all`. Returns
/// true if any record of `all` was encrypted again.
async fn reseal_all(app: &App, all: &mut ResealReport) -> Result<bool, RotationError> {
    loop {
        let pass = admin::reseal(app).await?;
        all.add(&pass);
        if pass.records() == 0 {
            return Ok(all.records() > 0);
        }
    }
}

/// Waits until all processes fulfil a condition, for [`ROTATION_TIMEOUT`] at most; returns those that do not fulfil it
/// by then.
async fn wait_until_all(
    app: &App,
    is: impl Fn(&KeyHolder) -> bool + Send + Sync,
) -> Result<Vec<KeyHolder>, StoreError> {
    let since = Instant::now();
    loop {
        let others = holders_not_matching(app, &is).await?;
        if others.is_empty() || since.elapsed() > ROTATION_TIMEOUT {
            return Ok(others);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The processes that do not fulfil a condition.
async fn holders_not_matching(app: &App, is: impl Fn(&KeyHolder) -> bool + Send) -> Result<Vec<KeyHolder>, StoreError> {
    let holders = app.store().key_holders().await?;
    Ok(holders.into_iter().filter(|holder| !is(holder)).collect())
}

/// The names of processes, separated by commas, with a note if a process has not reported its keys.
fn names(holders: &[KeyHolder]) -> String {
    let name = |holder: &KeyHolder| match holder.keys {
        Some(_) => holder.name.clone(),
        None => format!("{} (has not said yet which keys it holds)", holder.name),
    };
    holders.iter().map(name).collect::<Vec<_>>().join(", ")
}
