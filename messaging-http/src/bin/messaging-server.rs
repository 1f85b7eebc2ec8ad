//! The server without the rest of the command line.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use messaging_core::error::Chain;
use messaging_http::settings::Reload;
use messaging_http::{SettingsArgs, logging, standalone};
use mimalloc::MiMalloc;

/// Gives the memory of large bodies back to the system; the C library's allocator comes to keep it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A self-hosted platform for transactional email and campaigns: the server.
///
/// Every setting is a flag, an environment variable and a key of the file named by --config.
#[derive(Debug, Parser)]
#[command(name = "messaging-server", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Exit code for wrong usage, the same as clap's.
const WRONG_USAGE: u8 = 2;

/// No database, or no address to listen at.
const CANNOT_START: u8 = 3;

fn main() -> ExitCode {
    let given = Arguments::parse().settings;
    let read = given.clone().with_file().and_then(|whole| Ok((whole.clone(), whole.complete()?)));
    let (whole, settings) = match read {
        Ok(read) => read,
        Err(error) => return fail(WRONG_USAGE, &error),
    };
    let log = match logging::start(&settings.log, settings.log_format) {
        Ok(guard) => guard,
        Err(error) => return fail(WRONG_USAGE, &error),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("http")
        .thread_stack_size(standalone::THREAD_STACK)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(CANNOT_START, &error),
    };
    let reload = Arc::new(Reload::new(whole, log));
    let served = runtime.block_on(async {
        standalone::reload_on_hangup(&reload, given)?;
        standalone::serve(&settings).await
    });
    runtime.shutdown_background();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(if error.is_usage() { WRONG_USAGE } else { CANNOT_START }, &error),
    }
}

fn fail(code: u8, error: &(dyn std::error::Error + 'static)) -> ExitCode {
    eprintln!("messaging-server: {}", Chain(error));
    ExitCode::from(code)
}
