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

/// Parser for a command line: it has the commands of the first word alone, or the whole tree if there is no such word.
/// The options of operations are made from their schemas; making all of them takes longer than most commands run, and a
/// server would keep their memory for as long as it runs.
pub(crate) fn root_for(arguments: &[OsString]) -> Command {
    let Some(word) = arguments.get(1).and_then(|word| word.to_str()) else { return root() };
    if SERVERS.contains(&word) {
        return program().subcommands([dev::command(), serve::command(), serve::worker_command()]);
    }
    if let Some(noun) = tree().into_iter().find(|noun| noun.name == word) {
        return program().subcommand(noun.into_command());
    }
    match ours().into_iter().chain(tools()).find(|command| command.get_name() == word) {
        Some(command) => program().subcommand(command),
        None => root(),
    }
}

/// The whole command line.
pub fn root() -> Command {
    let mut root = program().subcommands(ours());
    let (groups, others) = (tree(), tools());
    let help = help::top(&root, &groups, &others);
    for noun in groups {
        root = root.subcommand(noun.into_command());
    }
    root.subcommands(others).help_template(help)
}

/// The commands that run a server, and those on its database and its settings.
fn ours() -> [Command; 10] {
    [
        dev::command(),
        serve::command(),
        serve::worker_command(),
        admin::command(),
        doctor::command(),
        config::command(),
        backup::backup_command(),
        backup::verify_command(),
        backup::restore_command(),
        import_from::command(),
    ]
}

/// The commands that are no operations and need no database.
fn tools() -> [Command; 6] {
    [login::command(), raw::command(), sites::command(), console::command(), completions::command(), man::command()]
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

    #[test]
    fn every_command_is_parsed_alike_without_the_others() {
        let whole = root();
        for command in whole.get_subcommands() {
            let name = command.get_name();
            assert_eq!(command.get_all_aliases().count(), 0, "{name} is looked for by its name alone");
            let small = root_for(&["messaging", name, "--help"].map(OsString::from));
            let found = small.find_subcommand(name).unwrap_or_else(|| panic!("{name} is missing"));
            assert!(small.get_subcommands().count() <= SERVERS.len(), "{name}");
            let words = |command: &Command| {
                let names = command.get_subcommands().map(|next| next.get_name().to_owned());
                let options = command.get_arguments().map(|argument| argument.get_id().to_string());
                names.chain(options).collect::<Vec<_>>()
            };
            assert_eq!(words(found), words(command), "{name}");
        }
        for line in [&["messaging"][..], &["messaging", "--help"], &["messaging", "mesage", "list"]] {
            let line: Vec<_> = line.iter().map(OsString::from).collect();
            assert_eq!(root_for(&line).get_subcommands().count(), whole.get_subcommands().count(), "{line:?}");
        }
    }

    #[test]
    fn a_wrong_command_of_a_noun_is_refused_alike_without_the_others() {
        for line in
            [["messaging", "message", "sned"], ["messaging", "contact", "--no"], ["messaging", "admin", "--help"]]
        {
            let line = line.map(OsString::from);
            let refusal = |command: Command| command.try_get_matches_from(&line).unwrap_err().to_string();
            assert_eq!(refusal(root_for(&line)), refusal(root()));
        }
    }
}
