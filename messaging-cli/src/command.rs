//! The command tree: a few commands written by hand, and one for each row of [`messaging_engine::ops::all`].

mod help;
pub(crate) mod operation;
mod word;

use clap::Command;
use messaging_engine::ops;

use self::word::{Word, place};
use crate::{admin, arguments, completions, dev, import, listen, serve, templates, watch};

/// The whole command line.
pub fn root() -> Command {
    let mut root = Command::new("messaging")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Self-hosted transactional email and campaigns: the server, and a command for everything it can do")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .infer_long_args(false)
        .max_term_width(110)
        .disable_help_subcommand(true)
        .args(arguments::anywhere())
        .subcommands([dev::command(), serve::command(), admin::command()]);
    let groups = tree();
    let help = help::top(&root, &groups, &completions::command());
    for noun in groups {
        root = root.subcommand(noun.into_command());
    }
    root.subcommand(completions::command()).help_template(help)
}

/// The operations by their words, in the order of the contract.
fn tree() -> Vec<Word> {
    let mut nouns = Vec::new();
    for endpoint in ops::all() {
        let words: Vec<_> = endpoint.cli.split(' ').collect();
        place(&mut nouns, &words).endpoint = Some(endpoint);
    }
    place(&mut nouns, watch::WORDS).convenience = Some(watch::command);
    place(&mut nouns, import::WORDS).convenience = Some(import::command);
    for (words, command) in templates::COMMANDS {
        place(&mut nouns, words).convenience = Some(*command);
    }
    place(&mut nouns, listen::WORDS).convenience = Some(listen::command);
    nouns
}
