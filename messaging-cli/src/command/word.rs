//! The tree of words that commands consist of: `message send` is a noun and a verb; some have a word in between.

use clap::Command;
use messaging_engine::ops::Endpoint;

use super::operation;
use crate::{audience, domain_wait, request_follow, send, source_order};

/// A node of the tree: one word of a command, with the words that may follow it.
pub(super) struct Word {
    pub(super) name: &'static str,
    /// API operation of the command that ends with this word. `None` for a noun, and for a command that is no operation
    /// of the API.
    pub(super) endpoint: Option<&'static Endpoint>,
    /// Builds a command that is no operation of the API, such as `message watch`.
    pub(super) convenience: Option<fn() -> Command>,
    /// The words that may follow.
    pub(super) next: Vec<Word>,
}

/// The node of a command, added where it is missing.
pub(super) fn find_or_add<'a>(level: &'a mut Vec<Word>, words: &[&'static str]) -> &'a mut Word {
    let (first, rest) = words.split_first().expect("a command has at least one word");
    let at = level.iter().position(|known| known.name == *first).unwrap_or_else(|| {
        level.push(Word { name: first, endpoint: None, convenience: None, next: Vec::new() });
        level.len() - 1
    });
    let entry = &mut level[at];
    if rest.is_empty() { entry } else { find_or_add(&mut entry.next, rest) }
}

impl Word {
    /// The words that may follow, as `send, get, list`.
    pub(super) fn verbs(&self) -> String {
        self.next.iter().map(|next| next.name).collect::<Vec<_>>().join(", ")
    }

    /// The line of the word in the help: the words that may follow, or the summary of a command of one word.
    pub(super) fn about(&self) -> String {
        match self.endpoint {
            Some(endpoint) if self.next.is_empty() => endpoint.summary.to_owned(),
            _ => self.verbs(),
        }
    }

    /// The clap command of the word, with those of the words that may follow.
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
