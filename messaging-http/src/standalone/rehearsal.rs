//! Trying automations out that are kept as files, without an installation.

use std::path::PathBuf;
use std::sync::Arc;

use messaging_core::ports::clock::{Entropy as _, SystemEntropy};
use messaging_engine::simulation;
pub use messaging_engine::simulation::{
    FilesFault, MAX_CONTACTS, PastContact, PastReport, Rehearsal, RehearsedContact,
};
use messaging_store::TemporaryDatabases;
use messaging_transport::{Dns, GuardedFetch};

/// Tries an automation out with each of the contacts. What it takes is in a directory of the system for temporary files,
/// which only the user can read and which is gone when this returns.
pub async fn rehearse(rehearsal: &Rehearsal) -> Result<Vec<RehearsedContact>, FilesFault> {
    let stores = Arc::new(TemporaryDatabases::new(directory()));
    simulation::rehearse(stores, Arc::new(fetch()), rehearsal).await
}

/// Goes through what contacts of a workspace did, in the same way.
pub async fn replay(rehearsal: Rehearsal, contacts: Vec<PastContact>) -> Result<PastReport, FilesFault> {
    let stores = Arc::new(TemporaryDatabases::new(directory()));
    simulation::replay(stores, Arc::new(fetch()), rehearsal, contacts).await
}

/// Says which addresses a server of its default settings would call; none is called.
fn fetch() -> GuardedFetch {
    GuardedFetch::builder(Dns::new(None)).build()
}

/// A place that nobody can have made before.
fn directory() -> PathBuf {
    let mut random = [0; 16];
    SystemEntropy::default().fill(&mut random);
    std::env::temp_dir().join(format!("messaging-simulation-{:032x}", u128::from_be_bytes(random)))
}
