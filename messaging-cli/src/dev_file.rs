//! The file `dev.json` in the data directory, in which `messaging dev` tells other programs the URL and credentials of
//! its server.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the file in the data directory.
pub(crate) const FILE: &str = "dev.json";

/// Content of the file (contract section 22).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DevFile {
    pub(crate) base_url: String,
    pub(crate) workspace_id: String,
    pub(crate) api_key: String,
    pub(crate) console_email: String,
    pub(crate) console_password: String,
    pub(crate) from_email: String,
}

/// True if `dev` has prepared the data directory.
pub(crate) fn is_there(data: &Path) -> bool {
    data.join(FILE).exists()
}

/// The workspace of a data directory that `dev` has prepared.
pub(crate) fn workspace_of(data: &Path) -> Option<String> {
    read(&data.join(FILE)).map(|dev| dev.workspace_id)
}

/// Reads the file; `None` if it does not exist or is malformed.
pub(crate) fn read(file: &Path) -> Option<DevFile> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Replaces the file with JSON that only its owner may read. It is written beside and renamed, so that readers never
/// see half of it.
pub(crate) fn write(file: &Path, content: &impl Serialize) -> io::Result<()> {
    let aside = PathBuf::from(format!("{}.new.{}", file.display(), std::process::id()));
    let text = serde_json::to_string_pretty(content).map_err(io::Error::from)?;
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut out| out.write_all(format!("{text}\n").as_bytes()))
        .and_then(|()| fs::rename(&aside, file));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}
