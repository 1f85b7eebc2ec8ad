//! The command tree: a few commands written by hand, and one for each row of [`messaging_engine::ops::all`].

mod help;
pub(crate) mod operation;

use clap::Command;
use messaging_engine::ops::{self, Endpoint};

use crate::{admin, arguments, completions, dev, import, listen, send, serve, templates, watch};

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

/// The operation whose words a command line named.
pub(crate) fn endpoint(words: &[&str]) -> Option<&'static Endpoint> {
    ops::all().iter().find(|endpoint| endpoint.cli.split(' ').eq(words.iter().copied()))
}

/// A word of the operations' commands and what follows it.
pub(crate) struct Word {
    pub(crate) name: &'static str,
    endpoint: Option<&'static Endpoint>,
    /// Written by hand, below the same noun.
    convenience: Option<fn() -> Command>,
    pub(crate) next: Vec<Word>,
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

/// The entry for some words, made where it is missing.
fn place<'a>(level: &'a mut Vec<Word>, words: &[&'static str]) -> &'a mut Word {
    let (first, rest) = words.split_first().expect("a command has at least one word");
    let at = level.iter().position(|known| known.name == *first).unwrap_or_else(|| {
        level.push(Word { name: first, endpoint: None, convenience: None, next: Vec::new() });
        level.len() - 1
    });
    let entry = &mut level[at];
    if rest.is_empty() { entry } else { place(&mut entry.next, rest) }
}

impl Word {
    /// `send, get, list`: what can follow.
    pub(crate) fn verbs(&self) -> String {
        self.next.iter().map(|next| next.name).collect::<Vec<_>>().join(", ")
    }

    fn into_command(self) -> Command {
        let verbs = self.verbs();
        let mut command = match (self.endpoint, self.convenience) {
            (Some(endpoint), _) => {
                let command = operation::command(self.name, endpoint);
                if endpoint.id == send::OPERATION {
                    send::extend(command, &operation::route(endpoint))
                } else {
                    command
                }
            }
            (None, Some(convenience)) => convenience(),
            (None, None) => Command::new(self.name).about(verbs).subcommand_required(true).arg_required_else_help(true),
        };
        if !self.next.is_empty() {
            command = command.disable_help_subcommand(true).subcommand_negates_reqs(self.endpoint.is_some());
        }
        for next in self.next {
            command = command.subcommand(next.into_command());
        }
        command
    }
}
