//! `source set IP --warmed`: the state of a source as a flag, instead of `--status`. `--status` offers only the states
//! of sources and paths that an operator can set; the API also accepts states that it set itself.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_engine::ops::sources::{UpdatePath, UpdateSource};
use messaging_engine::ops::{Endpoint, Operation as _};
use serde_json::{Map, Value, json};

use crate::arguments;
use crate::command::part::Part;

/// The member of the body.
const MEMBER: &str = "status";

/// Flags, the values of the member that they set, and their help texts.
const FLAGS: [(&str, &str, &str); 3] = [
    ("warmed", "warm", "Receivers know the address already: no warm-up bounds it"),
    ("warming", "warming", "Its paths warm up, each from where it is"),
    ("stopped", "stopped", "Nothing leaves from it until another state is set"),
];

/// The states of a path that can be set.
const OF_PATHS: [&str; 2] = ["ok", "stopped"];

/// Returns true if the operation sets the state of a source or a path.
pub(crate) fn is_ours(endpoint: &Endpoint) -> bool {
    [UpdateSource::ID, UpdatePath::ID].contains(&endpoint.id)
}

/// Adds the flags.
pub(crate) fn extend(command: Command, endpoint: &Endpoint) -> Command {
    if endpoint.id == UpdatePath::ID {
        return offering(command, &OF_PATHS);
    }
    let command = offering(command, &FLAGS.map(|(_, state, _)| state));
    let flag = |(long, _, help): (&'static str, &'static str, &'static str)| {
        let others = FLAGS.iter().map(|(other, ..)| *other).filter(move |other| *other != long);
        Arg::new(long)
            .long(long)
            .action(ArgAction::SetTrue)
            .conflicts_with_all(others)
            .conflicts_with(Part::Body.id(MEMBER))
            .help_heading("Body")
            .help(help)
    };
    command.args(FLAGS.map(flag))
}

/// The command with these states as the values of `--status`.
fn offering(command: Command, states: &[&'static str]) -> Command {
    command.mut_arg(Part::Body.id(MEMBER), |status| status.value_parser(PossibleValuesParser::new(states)))
}

/// Fills the member of a body from the flags.
pub(crate) fn add(matches: &ArgMatches, body: &mut Map<String, Value>) {
    if let Some((_, status, _)) = FLAGS.iter().find(|(long, ..)| arguments::is_set(matches, long)) {
        body.insert(MEMBER.to_owned(), json!(status));
    }
}
