//! `automation push`, `pull` and `simulate`: automations as files, so that people keep them in version control and try
//! them out there.
//!
//! A file is an automation: the body of `POST …/automations`, in JSON or TOML. Automations are matched by name; the API
//! reports errors in them, and this module knows no rule.

mod file;
mod names;
mod simulate;

use std::path::PathBuf;

use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use self::file::{Format, Named};
use self::names::Names;
use crate::failure::Failure;
use crate::output::Output;
use crate::resources::{self, Resources};
use crate::target::Target;
use crate::{arguments, files};

/// The words of a command, and the function that makes it.
type Entry = (&'static [&'static str], fn() -> Command);

/// The commands by their words.
pub(crate) const COMMANDS: &[Entry] = &[
    (&["automation", "push"], push),
    (&["automation", "pull"], pull),
    (&["automation", "simulate"], simulate::command),
];

/// Returns true if `words` are those of a command of this module.
pub(crate) fn is_ours(words: &[&str]) -> bool {
    COMMANDS.iter().any(|(known, _)| *known == words)
}

fn push() -> Command {
    Command::new("push")
        .about("Create and change automations as the files in a directory say")
        .after_help(
            "Each file of DIR that ends in .json or .toml is an automation:
  welcome.json   name, trigger, graph, re_entry, re_entry_key: the body that `automation create` takes
  cart.toml      the same in TOML; a name that is left out is the file's

Templates, lists, segments, campaigns and automations that a file names may stand there with their name or \
their id: \"template_id\": \"Welcome\". A name that nothing has, or several have, is refused before anything is changed.

An automation with the same name is changed, otherwise a draft is created. Nothing is deleted, activated or \
paused: an active automation stays active, and whoever is in it finishes on the version they entered with.

Examples:
  messaging automation push automations/
  messaging automation push automations/ --json | jq -r '.data[] | select(.result != \"unchanged\") | .id'",
        )
        .arg(files::directory_argument("The directory with a file for each automation"))
        .args(arguments::target())
        .arg(arguments::json())
}

fn pull() -> Command {
    Command::new("pull")
        .about("Write the automations into files of a directory")
        .after_help(
            "Writes what `automation push` reads. An automation that has a file already keeps it and its format; \
             a new file is JSON. What it needs is written with its name, and with its id where several have that name.",
        )
        .arg(files::directory_argument("The directory; made when it is not there"))
        .args(arguments::target())
        .arg(arguments::json())
}

/// Carries out one of the commands.
pub(crate) async fn run(words: &[&str], matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    if words == ["automation", "simulate"] {
        return simulate::run(matches, output).await;
    }
    let directory = files::directory(matches)?;
    let target = Target::choose(matches, resources::endpoint("automation", "list")?.access).await?;
    let automations = Resources { noun: "automation", target };
    match words {
        [_, "push"] => push_all(&automations, directory, output).await,
        _ => pull_all(&automations, directory, output).await,
    }
}

async fn push_all(automations: &Resources, directory: PathBuf, output: Output) -> Result<(), Failure> {
    // Everything is read before anything is changed.
    let mut sent = file::read_all(&directory)?;
    let mut names = Names::new(automations);
    for Named { name, body, .. } in &mut sent {
        names.put_ids(name, body).await?;
    }
    let known = automations.list().await?;
    let mut rows = Vec::new();
    for Named { name, body, .. } in sent {
        let matching: Vec<_> = known.iter().filter(|automation| automation["name"] == body["name"]).collect();
        let (saved, result) = automations.save(&name, &matching, body).await?;
        rows.push(row(&name, &saved, result));
    }
    output.resource(&json!({"data": rows, "next_cursor": null}))
}

async fn pull_all(automations: &Resources, directory: PathBuf, output: Output) -> Result<(), Failure> {
    let mut there = if directory.is_dir() { file::read_all(&directory)? } else { Vec::new() };
    std::fs::create_dir_all(&directory).map_err(|error| files::unwritable(&directory, error))?;
    let mut rows = Vec::new();
    let mut names = Names::new(automations);
    for summary in automations.list().await? {
        let Some(id) = summary["id"].as_str() else { continue };
        let automation = automations.call("get", Some(id), &[], Value::Null).await?;
        let title = automation["name"].as_str().unwrap_or_default();
        // Each file is for one automation.
        let (name, format) = match there.iter().position(|file| file.body["name"] == automation["name"]) {
            Some(at) => {
                let file = there.swap_remove(at);
                (file.name, file.format)
            }
            None => (files::free_name(&directory, title, id, Format::Json.suffix()), Format::Json),
        };
        let path = directory.join(&name);
        // What means the same is left as it is written: with its order, spaces, comments, names and ids.
        let is_same = match file::read_there(&path, format) {
            Some(mut there) => names.put_ids(&name, &mut there).await.is_ok() && file::is_same(&there, &automation),
            None => false,
        };
        if !is_same {
            let mut named = automation.clone();
            names.put_names(&mut named).await?;
            file::write(&path, format, &named)?;
        }
        rows.push(row(&name, &automation, if is_same { "unchanged" } else { "written" }));
    }
    output.resource(&json!({"data": rows, "next_cursor": null}))
}

fn row(file: &str, automation: &Value, result: &str) -> Value {
    let (id, name, version) = (&automation["id"], &automation["name"], &automation["version"]);
    json!({"file": file, "id": id, "name": name, "status": automation["status"], "version": version, "result": result})
}
