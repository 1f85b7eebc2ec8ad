//! The words that commands are made of: a noun, a verb, sometimes one in between.

use clap::Command;
use messaging_engine::ops::Endpoint;

use super::operation;
use crate::{audience, domain_wait, request_follow, send, source_order};

/// A word of the operations' commands and what follows it.
pub(super) struct Word {
    pub(super) name: &'static str,
    pub(super) endpoint: Option<&'static Endpoint>,
    /// Written by hand, below the same noun.
    pub(super) convenience: Option<fn() -> Command>,
    pub(super) next: Vec<Word>,
}

/// The entry for some words, made where it is missing.
pub(super) fn place<'a>(level: &'a mut Vec<Word>, words: &[&'static str]) -> &'a mut Word {
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
    pub(super) fn verbs(&self) -> String {
        self.next.iter().map(|next| next.name).collect::<Vec<_>>().join(", ")
    }

    /// What can follow; of a command of one word what it does.
    pub(super) fn about(&self) -> String {
        match self.endpoint {
            Some(endpoint) if self.next.is_empty() => endpoint.summary.to_owned(),
            _ => self.verbs(),
        }
    }

    /// The command of the word, with those that follow.
    pub(super) fn into_command(self) -> Command {
        let verbs = self.verbs();
        let mut command = match (self.endpoint, self.convenience) {
            (Some(endpoint), None) => {
                let command = operation::command(self.name, endpoint);
                if endpoint.id == send::OPERATION {
                    send::extend(command, &operation::route(endpoint))
                } else if audience::is_ours(endpoint) {
                    audience::extend(command)
                } else if domain_wait::is_ours(endpoint) {
                    domain_wait::extend(command)
                } else if request_follow::is_ours(endpoint) {
                    request_follow::extend(command)
                } else if source_order::is_ours(endpoint) {
                    source_order::extend(command, endpoint)
                } else {
                    command
                }
            }
            (_, Some(convenience)) => convenience(),
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
