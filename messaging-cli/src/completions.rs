//! `completions`: the script that lets a shell complete commands and flags.

use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "Examples:
  bash:  messaging completions bash > ~/.local/share/bash-completion/completions/messaging
  zsh:   messaging completions zsh > \"${fpath[1]}/_messaging\"
  fish:  messaging completions fish > ~/.config/fish/completions/messaging.fish";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("completions").about("Print the completion script for a shell").after_help(EXAMPLES).arg(
        Arg::new("shell").value_name("SHELL").required(true).value_parser(clap::value_parser!(Shell)).help("The shell"),
    )
}

/// Carries it out for the whole command line.
pub(crate) fn run(matches: &ArgMatches, mut root: Command) -> Result<(), Failure> {
    let shell = *matches.get_one::<Shell>("shell").expect("required");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut root, "messaging", &mut script);
    output::raw(&script)
}
