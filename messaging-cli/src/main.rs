//! The program `messaging`; everything is in the library beside it.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Gives the memory of large bodies back to the system; the C library's allocator comes to keep it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    messaging_cli::run(std::env::args_os())
}
