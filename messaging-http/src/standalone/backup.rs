//! Backups of the installation that the settings name, and restores.

use std::path::{Path, PathBuf};

use messaging_store::backup::{self, BackupOptions};
pub use messaging_store::backup::{
    BackupError, BackupReport, Progress, RestoreError, RestoreReport, VerifyReport, verify,
};

use super::data_directory;
use crate::settings::Settings;

/// Copies the installation that the settings name into one file, also while a server works on it. Blocks.
pub fn back_up(
    settings: &Settings,
    file: PathBuf,
    overwrite: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<BackupReport, BackupError> {
    let secret_key = settings.secret_key_file.clone();
    let Some(database) = settings.database.file().map(Path::to_owned) else { return Err(BackupError::NotAFile) };
    backup::back_up(&BackupOptions { database, secret_key, file, overwrite }, progress)
}

/// Puts an installation back into a data directory without one. Blocks.
pub fn restore(file: &Path, data: &Path, progress: &mut dyn FnMut(Progress)) -> Result<RestoreReport, RestoreError> {
    if data.is_dir() {
        data_directory::refuse_foreign_directory(data, None, &data.join("secret.key"))?;
    }
    let report = backup::restore(file, data, progress)?;
    data_directory::make_private(data, Some(&data.join("messaging.db")), &data.join("secret.key"))?;
    Ok(report)
}
