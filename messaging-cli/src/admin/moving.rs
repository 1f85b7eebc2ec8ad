//! `admin move`: moves an installation from SQLite to PostgreSQL.

use clap::Args;
use messaging_core::error::Chain;
use messaging_http::standalone::moving::{self, MoveError};

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};

/// Help text of `move`, printed below its flags.
pub(super) const HELP: &str = "\
Both sides must be idle: stop the server first. --to is an empty database whose user may create \
tables. One transaction copies everything, including ids, keys, sessions, cursors and attachments; \
then all is read back and compared. If the command fails, --to stays empty and --from unchanged. At \
the end --from is fenced: a server that is started on it by mistake accepts requests and sends nothing.

The secret key file is not moved, but the moved data needs it: keep it, and copy it to every machine \
whose server works on the new database.

  systemctl stop messaging
  messaging backup before.tar --data /var/lib/messaging
  messaging admin move --from sqlite:///var/lib/messaging/messaging.db \\
    --to postgres://messaging@db.internal/messaging
  messaging serve --data /var/lib/messaging \\
    --database postgres://messaging@db.internal/messaging --public-url URL

Prints the number of rows of each table, and the number and bytes of attachments. Exit code 3: a \
side is in use or cannot be reached, or --to is not empty.";

#[derive(Debug, Args)]
pub(super) struct Move {
    /// The database to move, a path or `sqlite://…`; attachments and uploads are beside it
    #[arg(long, value_name = "DATABASE")]
    from: String,
    /// The empty database that gets everything, `postgres://…`
    #[arg(long, value_name = "URL")]
    to: String,
}

/// Moves an installation, with a progress bar for each table, and prints the counts of rows and attachments.
pub(super) async fn carry_out(flags: &Move, output: Output) -> Result<(), Failure> {
    let asked = moving::Move::parse(&flags.from, &flags.to).map_err(|error| Failure::usage(error.to_string()))?;
    let bar = Progress::new("", Unit::Items);
    let moved = asked.carry_out(|told| {
        bar.message(told.table);
        bar.set(told.done as u64, told.total as u64);
    });
    let moved = moved.await;
    bar.end();
    let report = moved.map_err(failure)?;
    if !output.is_json() {
        output::note(
            "now start the server with --database and the new URL; it needs the same secret key file; the old database is \
             fenced",
        );
    }
    output.resource(&report)
}

/// Maps an error of the move to the failure that sets the exit code.
fn failure(error: MoveError) -> Failure {
    let text = Chain(&error).to_string();
    match error {
        MoveError::NoDatabase(_) => Failure::Usage(text),
        MoveError::Source(_) | MoveError::Target(_) => Failure::Unreachable(text),
        error if error.is_not_ready() => Failure::Unreachable(text),
        _ => Failure::Failed(text),
    }
}
