//! `template push`, `pull` and `render`: templates as files, so that people keep them in version control.
//!
//! A folder holds a template: `template.toml` with the short members, and `template.html`, `template.mjml` and
//! `template.txt` with the long ones. The HTML made from MJML is not a file, because it is made anew. Templates are
//! matched by name; the API reports errors in them, and this module knows no rule.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_import::folder::{self, Folder};
use serde_json::{Map, Value, json};

use crate::command::flags;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::resources::{self, Resources};
use crate::target::Target;
use crate::{arguments, files};

/// The words of a command, and the function that makes it.
type Entry = (&'static [&'static str], fn() -> Command);

/// The commands by their words.
pub(crate) const COMMANDS: &[Entry] =
    &[(&["template", "push"], push), (&["template", "pull"], pull), (&["template", "render"], render)];

const NAME: &str = "name";
const VARS: &str = "vars";
const CONTACT: &str = "contact";
const PART: &str = "part";
const OPEN: &str = "open";

/// Returns true if `words` are those of a command of this module.
pub(crate) fn is_ours(words: &[&str]) -> bool {
    COMMANDS.iter().any(|(known, _)| *known == words)
}

fn push() -> Command {
    Command::new("push")
        .about("Create and change templates as the folders in a directory say")
        .after_help(
            "Each folder of DIR with a template.toml is a template:
  order/template.toml   name, channel, subject, preheader, from_name, from_email, reply_to, variables, inline_css
  order/template.html   or template.mjml; and template.txt

A template with the same name and channel is changed, otherwise one is created. Nothing is deleted.",
        )
        .arg(files::directory_argument("The directory with a folder for each template"))
        .args(arguments::target())
        .arg(arguments::json())
}

fn pull() -> Command {
    Command::new("pull")
        .about("Write the templates into folders of a directory")
        .after_help("Writes what `template push` reads. A template that has a folder already keeps it.")
        .arg(files::directory_argument("The directory; made when it is not there"))
        .args(arguments::target())
        .arg(arguments::json())
}

fn render() -> Command {
    Command::new("render")
        .about("Show what a template says with some values")
        .arg(Arg::new(NAME).value_name("NAME").required(true).help("Its name, or its id"))
        .arg(
            Arg::new(VARS)
                .long("vars")
                .value_name("JSON")
                .alias("variables")
                .value_parser(ValueParser::new(values))
                .help("Values for the template, a JSON object (`@FILE` or FILE reads it from a file)"),
        )
        .arg(Arg::new(CONTACT).long("contact-id").value_name("CONTACT_ID").help("A contact whose data is used"))
        .arg(
            Arg::new(PART)
                .long("part")
                .value_name("WORD")
                .value_parser(PossibleValuesParser::new(["subject", "preheader", "html", "text"]))
                .help("What to print [default: html, or text where there is none]"),
        )
        .arg(
            Arg::new(OPEN)
                .long("open")
                .action(ArgAction::SetTrue)
                .help("Show it in the browser instead of printing it"),
        )
        .args(arguments::target())
        .arg(arguments::json())
}

/// Values for a template: JSON, or a file of it.
fn values(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with(['{', '@']) { flags::json(text) } else { flags::json(&format!("@{text}")) }
}

/// Carries out one of the commands.
pub(crate) async fn run(words: &[&str], matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let target = Target::choose(matches, resources::endpoint("template", "list")?.access).await?;
    let api = Api { templates: Resources { noun: "template", target } };
    match words {
        [_, "push"] => api.push(files::directory(matches)?, output).await,
        [_, "pull"] => api.pull(files::directory(matches)?, output).await,
        _ => api.render(matches, output).await,
    }
}

struct Api {
    templates: Resources,
}

impl Api {
    async fn push(&self, directory: PathBuf, output: Output) -> Result<(), Failure> {
        // Everything is read before anything is changed.
        let folders = folder::read_all(&directory)?;
        let known = self.templates.list().await?;
        let mut rows = Vec::new();
        for Folder { name, body, .. } in folders {
            let same = |template: &&Value| template["name"] == body["name"] && template["channel"] == body["channel"];
            let matching: Vec<_> = known.iter().filter(same).collect();
            let (saved, result) = self.templates.save(&name, &matching, body).await?;
            for warning in saved["warnings"].as_array().into_iter().flatten() {
                output::note(&format!("{name}: {}", warning["message"].as_str().unwrap_or_default()));
            }
            let (id, version) = (&saved["id"], &saved["version"]);
            rows.push(json!({"folder": name, "id": id, "name": saved["name"], "version": version, "result": result}));
        }
        output.resource(&json!({"data": rows, "next_cursor": null}))
    }

    async fn pull(&self, directory: PathBuf, output: Output) -> Result<(), Failure> {
        let mut folders = if directory.is_dir() { folder::read_all(&directory)? } else { Vec::new() };
        let mut rows = Vec::new();
        for head in self.templates.list().await? {
            let Some(id) = head["id"].as_str() else { continue };
            let template = self.templates.call("get", Some(id), &[], Value::Null).await?;
            let same = |folder: &Folder| {
                folder.body["name"] == template["name"] && folder.body["channel"] == template["channel"]
            };
            // Each folder is for one template.
            let name = match folders.iter().position(same) {
                Some(at) => folders.swap_remove(at).name,
                None => files::free_name(&directory, template["name"].as_str().unwrap_or_default(), id, ""),
            };
            folder::write(&directory.join(&name), &template)?;
            rows.push(json!({"folder": name, "id": id, "name": template["name"], "version": template["version"]}));
        }
        output.resource(&json!({"data": rows, "next_cursor": null}))
    }

    async fn render(&self, matches: &ArgMatches, output: Output) -> Result<(), Failure> {
        let name = arguments::text(matches, NAME).unwrap_or_default();
        let mut body = Map::new();
        if let Some(values) = matches.get_one::<Value>(VARS) {
            body.insert("variables".to_owned(), values.clone());
        }
        if let Some(contact) = arguments::text(matches, CONTACT) {
            body.insert("contact_id".to_owned(), json!(contact));
        }
        let id = if name.starts_with("tpl_") { name.to_owned() } else { self.named(name).await? };
        let preview = self.templates.call("preview", Some(&id), &[], Value::Object(body)).await?;
        for missing in preview["missing_variables"].as_array().into_iter().flatten() {
            output::note(&format!("there is no value for {}", missing.as_str().unwrap_or_default()));
        }
        let part = arguments::text(matches, PART)
            .or_else(|| ["html", "text"].into_iter().find(|part| !preview[*part].is_null()));
        let part = part.unwrap_or("text");
        let text = preview[part].as_str().unwrap_or_default();
        if matches.get_flag(OPEN) {
            return open(&id, part, text);
        }
        output.line(&preview, text.strip_suffix('\n').unwrap_or(text))
    }

    async fn named(&self, name: &str) -> Result<String, Failure> {
        let all = self.templates.list().await?;
        let ids: Vec<_> =
            all.iter().filter(|template| template["name"] == name).filter_map(|one| one["id"].as_str()).collect();
        match ids.as_slice() {
            [only] => Ok((*only).to_owned()),
            [] => Err(Failure::usage(format!("no template is called {name}"))),
            several => {
                Err(Failure::usage(format!("several templates are called {name}; give one of {}", several.join(", "))))
            }
        }
    }
}

/// Shows a text in the program that the desktop has for it.
fn open(id: &str, part: &str, text: &str) -> Result<(), Failure> {
    let suffix = if part == "html" { "html" } else { "txt" };
    let path = std::env::temp_dir().join(format!("messaging-{id}.{suffix}"));
    fs::write(&path, text).map_err(|error| files::unwritable(&path, error))?;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened = std::process::Command::new(opener).arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    match opened {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("cannot run {opener}: {error}; the page is in {}", path.display()))),
    }
}
