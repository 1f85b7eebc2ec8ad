//! Trying automations out that are kept as files, without an installation.

use std::path::PathBuf;
use std::sync::Arc;

use messaging_core::ports::clock::{Entropy as _, SystemEntropy};
use messaging_engine::dry_run;
pub use messaging_engine::dry_run::{ContactReport, DryRunFiles, FilesFault, MAX_CONTACTS, PastContact, PastReport};
use messaging_store::TemporaryDatabases;
use messaging_transport::{Dns, GuardedFetch};

/// Simulates an automation with each of the contacts. Its databases are in a temporary directory of the system, which
/// only the user can read and which is removed before this returns.
pub async fn rehearse(files: &DryRunFiles) -> Result<Vec<ContactReport>, FilesFault> {
    let stores = Arc::new(TemporaryDatabases::new(directory()));
    dry_run::run_each(stores, Arc::new(fetch()), files).await
}

/// Replays past events of a workspace's contacts, in the same way.
pub async fn replay(files: DryRunFiles, contacts: Vec<PastContact>) -> Result<PastReport, FilesFault> {
    let stores = Arc::new(TemporaryDatabases::new(directory()));
    dry_run::replay(stores, Arc::new(fetch()), files, contacts).await
}

/// Says which addresses a server of its default settings would call; none is called.
fn fetch() -> GuardedFetch {
    GuardedFetch::builder(Dns::new(None)).build()
}

/// A path with a random name, so that nobody can have created it before.
fn directory() -> PathBuf {
    let mut random = [0; 16];
    SystemEntropy::default().fill(&mut random);
    std::env::temp_dir().join(format!("messaging-simulation-{:032x}", u128::from_be_bytes(random)))
}
