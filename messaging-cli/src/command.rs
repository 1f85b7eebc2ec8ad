//! The command tree: a few commands written by hand, and one for each row of [`messaging_engine::ops::all`].

pub(crate) mod flags;
mod help;
pub(crate) mod operation;
pub(crate) mod part;
pub(crate) mod spoken;
mod word;

use std::ffi::OsString;

use clap::Command;
use messaging_engine::ops;

use self::word::{Word, find_or_add};
use crate::{
    admin, arguments, automations, backup, campaign_watch, completions, config, console, dev, doctor, export, import,
    import_from, listen, login, man, raw, resend, serve, sites, templates, watch,
};

/// The words of the commands that run a server.
const SERVERS: [&str; 3] = ["dev", "serve", "worker"];

/// What a command line is parsed by: the whole tree, unless it runs a server. The options of operations are made of
/// their schemas, and a server would keep what that takes for as long as it runs.
pub(crate) fn root_for(arguments: &[OsString]) -> Command {
    if arguments.get(1).is_some_and(|word| SERVERS.iter().any(|server| word == server)) {
        return program().subcommands([dev::command(), serve::command(), serve::worker_command()]);
    }
    root()
}

/// The whole command line.
pub fn root() -> Command {
    let servers = [dev::command(), serve::command(), serve::worker_command(), admin::command()];
    let mut root = program().subcommands(servers).subcommands([
        doctor::command(),
        config::command(),
        backup::backup_command(),
        backup::verify_command(),
        backup::restore_command(),
        import_from::command(),
    ]);
    let groups = tree();
    let others = [
        login::command(),
        raw::command(),
        sites::command(),
        console::command(),
        completions::command(),
        man::command(),
    ];
    let help = help::top(&root, &groups, &others);
    for noun in groups {
        root = root.subcommand(noun.into_command());
    }
    root.subcommands(others).help_template(help)
}

/// The program without its commands.
fn program() -> Command {
    Command::new("messaging")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Self-hosted transactional email and campaigns: the server, and a command for everything it can do")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .infer_long_args(false)
        .max_term_width(110)
        .disable_help_subcommand(true)
        .args(arguments::anywhere())
}

/// The operations by their words, in the order of the contract.
fn tree() -> Vec<Word> {
    let mut nouns = Vec::new();
    for endpoint in ops::all() {
        let words: Vec<_> = endpoint.cli.split(' ').collect();
        find_or_add(&mut nouns, &words).endpoint = Some(endpoint);
    }
    find_or_add(&mut nouns, watch::WORDS).convenience = Some(watch::command);
    find_or_add(&mut nouns, campaign_watch::WORDS).convenience = Some(campaign_watch::command);
    find_or_add(&mut nouns, import::WORDS).convenience = Some(import::command);
    find_or_add(&mut nouns, resend::WORDS).convenience = Some(resend::command);
    for (words, command) in templates::COMMANDS.iter().chain(automations::COMMANDS).chain(export::COMMANDS) {
        find_or_add(&mut nouns, words).convenience = Some(*command);
    }
    find_or_add(&mut nouns, listen::WORDS).convenience = Some(listen::command);
    nouns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_parsed_alike_without_the_operations() {
        for server in SERVERS {
            let line = ["messaging", server, "--listen", "127.0.0.1:0"].map(OsString::from);
            let small = root_for(&line);
            assert_eq!(small.get_subcommands().count(), SERVERS.len());
            for mut command in [small, root()] {
                let matches = command.try_get_matches_from_mut(&line).unwrap();
                assert_eq!(matches.subcommand_name(), Some(server));
                let refusal = command.try_get_matches_from_mut(["messaging", server, "--no"]).unwrap_err();
                assert!(refusal.to_string().contains(&format!("Usage: messaging {server}")), "{refusal}");
            }
        }
        let other = ["messaging", "--json", "serve"].map(OsString::from);
        assert!(root_for(&other).find_subcommand("message").is_some());
    }
}
