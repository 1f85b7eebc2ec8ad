//! One command for every operation: read the arguments, carry the request out, print the answer.

use clap::ArgMatches;

use crate::automations;
use crate::campaign_watch;
use crate::command::operation;
use crate::failure::Failure;
use crate::import;
use crate::listen;
use crate::output::Output;
use crate::request::Request;
use crate::target::{self, Target};
use crate::{templates, watch};

/// Carries out the operation that the command line names.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let mut words = Vec::new();
    let mut matches = matches;
    while let Some((word, inner)) = matches.subcommand() {
        words.push(word);
        matches = inner;
    }
    if words == watch::WORDS {
        return target::block_on(watch::run(matches, output))?;
    }
    if words == campaign_watch::WORDS {
        return target::block_on(campaign_watch::run(matches, output))?;
    }
    if words == import::WORDS {
        return target::block_on(import::run(matches, output))?;
    }
    if automations::is_ours(&words) {
        return target::block_on(automations::run(&words, matches, output))?;
    }
    if templates::is_ours(&words) {
        return target::block_on(templates::run(&words, matches, output))?;
    }
    if words == listen::WORDS {
        return target::block_on(listen::run(matches, output))?;
    }
    let endpoint = operation::endpoint(&words).expect("the tree is made of the operations");
    let request = Request::read(endpoint, matches)?;
    target::block_on(async {
        let target = Target::choose(matches, endpoint.access).await?;
        let reply = target.call(&request).await?;
        output.reply(reply)
    })?
}
