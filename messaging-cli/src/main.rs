//! The program `messaging`; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    messaging_cli::run(std::env::args_os())
}
