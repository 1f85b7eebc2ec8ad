//! `admin rotate-secret-key`: another secret key, while servers run or not.

use std::path::PathBuf;

use clap::{ArgMatches, Args};
use messaging_core::error::Chain;
use messaging_http::standalone::key_rotation::{self, RotationError};

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target;

pub(super) const HELP: &str = "\
The new key is put in front of those in the secret key file; the older ones stay, because links and \
return addresses in mail that was sent are verified with them. Once every server and worker of the \
database holds the new key, they all change to it; what is stored sealed (DKIM keys, settings of \
providers, secrets of webhooks) is then sealed anew. Nothing has to be stopped or started.

Several nodes: this command changes the file of the machine that it runs on. It names the nodes that \
do not hold the new key yet. Copy the file over theirs, each sees it within seconds, and run the \
command again: it goes on where it ended. So it does after it was killed.

Take a backup afterwards: one from before holds the older keys alone.

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
