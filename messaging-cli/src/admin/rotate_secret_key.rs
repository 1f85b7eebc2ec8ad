//! `admin rotate-secret-key`: another secret key, while servers run or not.

use std::path::PathBuf;

use clap::{ArgMatches, Args};
use messaging_core::error::Chain;
use messaging_http::standalone::key_rotation::{self, RotationError};

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target;

pub(super) const HELP: &str = "\
The command puts the new key before the others in the secret key file. The older keys stay, because \
they verify links and return addresses in sent mail. Once every server and worker of the database \
has the new key, all of them change to it, and stored secrets (DKIM keys, settings of providers, \
secrets of webhooks) are encrypted with it. No server has to be restarted.

Several nodes: the command changes the file of its own machine, and names the nodes that do not have \
the new key yet. Copy the file to each of them, where it is noticed within seconds, and run the \
command again: it continues. It also continues if it was killed.

Make a backup afterwards, because earlier backups contain only the older keys.

Exit code 1: not all nodes hold the new key. Exit code 3: the file or the database cannot be used.";

/// The arguments.
#[derive(Debug, Args)]
pub(super) struct RotateSecretKey {
    /// A file with the new key, 32 random bytes [default: a key is made]
    #[arg(long, value_name = "NEW")]
    file: Option<PathBuf>,
}

/// Rotates the key.
pub(super) async fn carry_out(matches: &ArgMatches, flags: &RotateSecretKey, output: Output) -> Result<(), Failure> {
    let file = target::existing(matches)?.secret_key_file;
    let (app, _) = target::open_to_work(matches).await?;
    let rotated = key_rotation::rotate(&app, &file, flags.file.as_deref()).await;
    app.store().close().await;
    let report = rotated.map_err(failure)?;
    if !output.is_json() {
        if report.resumed {
            output::note("this completed an earlier rotation; no new key was made");
        }
        if report.resealed.unreadable > 0 {
            output::note(
                "some secrets cannot be decrypted with any of the keys and were not changed; enter them again",
            );
        }
        output::note(&format!(
            "make a backup now, and keep the older keys in {}: links and return addresses in mail that was sent, uploads \
             and callbacks are verified with them, so none may be removed",
            file.display()
        ));
    }
    output.resource(&report)
}

fn failure(error: RotationError) -> Failure {
    let text = Chain(&error).to_string();
    match error {
        RotationError::NotAKey(_) | RotationError::InUse(_) => Failure::Usage(text),
        RotationError::NotHeld { .. } | RotationError::NotChanged | RotationError::Full(_) => Failure::Failed(text),
        _ => Failure::Unreachable(text),
    }
}
