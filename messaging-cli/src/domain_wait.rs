//! Flag `--wait` of `domain verify`: checks again until the domain is verified.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_engine::ops::sending_domains::verification::VerifySendingDomain;
use messaging_engine::ops::{Endpoint, Operation as _};
use serde_json::Value;
use tokio::time::Instant;

use crate::arguments;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::request::Request;
use crate::target::Target;

const WAIT: &str = "wait";
const TIMEOUT: &str = "timeout";

/// The first pause between two looks; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Returns true if the operation is the one that has `--wait`.
pub(crate) fn is_ours(endpoint: &Endpoint) -> bool {
    endpoint.id == VerifySendingDomain::ID
}

/// Adds the flags.
pub(crate) fn extend(command: Command) -> Command {
    command
        .arg(
            Arg::new(WAIT)
                .long("wait")
                .action(ArgAction::SetTrue)
                .conflicts_with(arguments::IDEMPOTENCY_KEY)
                .help_heading("Waiting")
                .help("Look again until the domain is verified; exit code 1 when it is not by then"),
        )
        .arg(
            Arg::new(TIMEOUT)
                .long("timeout")
                .value_name("SECONDS")
                .requires(WAIT)
                .default_value("600")
                .value_parser(clap::value_parser!(u32).range(0..=86_400))
                .help_heading("Waiting")
                .help("Time to wait; 0 checks once"),
        )
}

/// True if `--wait` was given: the command waits until the domain is verified.
pub(crate) fn is_wanted(matches: &ArgMatches) -> bool {
    arguments::is_set(matches, WAIT)
}

/// Checks repeatedly, and prints the domain as it was last.
pub(crate) async fn run(
    target: &Target,
    request: &Request,
    matches: &ArgMatches,
    output: Output,
) -> Result<(), Failure> {
    let patience = Duration::from_secs(matches.get_one::<u32>(TIMEOUT).copied().unwrap_or_default().into());
    let until = Instant::now() + patience;
    let (mut pause, mut told) = (FIRST_PAUSE, String::new());
    loop {
        let reply = target.call(request).await?;
        if !reply.status.is_success() {
            return output.reply(reply);
        }
        let domain: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        if domain["status"] == "verified" {
            return output.reply(reply);
        }
        let lacking = lacking(&domain);
        let now = Instant::now();
        if now >= until {
            let name = domain["domain"].as_str().unwrap_or("the domain").to_owned();
            let status = domain["status"].as_str().unwrap_or("pending").to_owned();
            output.reply(reply)?;
            return Err(Failure::Unsuccessful(output::plain_text(&format!("{name} is {status}: {lacking}"))));
        }
        if lacking != told {
            output::note(&output::plain_text(&format!("waiting: {lacking}")));
            told = lacking;
        }
        tokio::time::sleep(pause.min(until - now)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Records that keep the domain from being verified: it needs SPF and one verified DKIM key.
fn lacking(domain: &Value) -> String {
    let keys = domain["dkim"].as_array().map(Vec::as_slice).unwrap_or_default();
    let dkim = if keys.iter().any(|key| key["status"] == "verified") { None } else { keys.first() };
    let spf = Some(&domain["spf"]).filter(|spf| spf["status"] != "verified");
    let told = dkim.into_iter().chain(spf).map(|record| {
        let text = |member: &str| record[member].as_str().unwrap_or_default();
        format!("{} {}: {}", text("type"), text("host"), text("detail"))
    });
    told.collect::<Vec<_>>().join(" ")
}
