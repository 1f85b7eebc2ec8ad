//! The flags `--list`, `--segment` and `--exclude-list`, which fill the audience of a campaign in place of JSON.

use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_engine::ops::Endpoint;
use serde_json::{Map, Value, json};

/// Member of the request body that holds the audience.
pub(crate) const MEMBER: &str = "audience";

/// Ids of the operations whose body has an audience.
const OPERATIONS: &[&str] = &["createCampaign", "updateCampaign", "previewAudience"];

/// Each flag with the member of the audience that it fills and its help text.
const FLAGS: [(&str, &str, &str); 3] = [
    ("list", "list_ids", "A list whose members get it, by name or id; may be repeated"),
    ("segment", "segment_ids", "A segment whose members get it, by name or id; may be repeated"),
    ("exclude-list", "exclude_list_ids", "A list whose members do not get it, by name or id; may be repeated"),
];

/// True for the operations that have the flags of an audience.
pub(crate) fn is_ours(endpoint: &Endpoint) -> bool {
    OPERATIONS.contains(&endpoint.id)
}

/// Adds the flags to the command of an operation.
pub(crate) fn extend(command: Command) -> Command {
    let flag = |(long, member, help): (&'static str, &'static str, &'static str)| {
        Arg::new(id(member))
            .long(long)
            .value_name("NAME,…")
            .value_delimiter(',')
            .action(ArgAction::Append)
            .help_heading("Body")
            .help(help)
    };
    command.args(FLAGS.map(flag))
}

/// Adds the values of the flags to the audience of a body. They extend lists that the body has already.
pub(crate) fn add(matches: &ArgMatches, body: &mut Map<String, Value>) {
    for (_, member, _) in FLAGS {
        let Some(given) = matches.try_get_many::<String>(&id(member)).ok().flatten() else { continue };
        let given = given.map(|name| json!(name));
        let audience = body.entry(MEMBER).or_insert_with(|| json!({}));
        match audience.get_mut(member) {
            Some(Value::Array(items)) => items.extend(given),
            _ => audience[member] = given.collect(),
        }
    }
}

/// True if at least one flag of an audience was given.
pub(crate) fn is_given(matches: &ArgMatches) -> bool {
    FLAGS.iter().any(|(_, member, _)| matches!(matches.try_contains_id(&id(member)), Ok(true)))
}

/// The id of the argument that fills a member.
fn id(member: &str) -> String {
    format!("audience.{member}")
}
