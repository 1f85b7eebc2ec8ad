//! `config check`: the settings in force, and the source of each.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command};
use messaging_core::error::Chain;
use messaging_http::{SettingsArgs, logging};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output::Output;
use crate::{arguments, serve};

/// The word of the command.
pub(crate) const WORD: &str = "config";

const EXAMPLES: &str = "\
Reads flags, environment and file as `serve` does, and prints each setting in force with its origin: flag, environment, file or \
default. Passwords in URLs are hidden. Opens and changes nothing. Exit code 2 if a setting is invalid, with the line of the file.

Examples:
  messaging config check --config /etc/messaging/messaging.toml
  messaging config check --json | jq '.settings.public_url'";

/// The command.
pub(crate) fn command() -> Command {
    let check = serve::with_settings(
        Command::new("check").after_help(EXAMPLES),
        "Check the settings, and show each one in force with its origin",
    );
    Command::new(WORD)
        .about("Look at the settings of a server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(check.arg(arguments::json()))
}

/// Carries it out.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let (_, matches) = matches.subcommand().expect("required");
    let whole = serve::given(matches)?.with_file().map_err(serve::unusable)?;
    let settings = whole.clone().complete().map_err(serve::unusable)?;
    logging::check(&settings.log).map_err(|error| Failure::usage(Chain(&error).to_string()))?;
    let mut shown = Vec::new();
    let defaults = SettingsArgs::augment_args(Command::new(""));
    let given = values(&whole)?;
    for argument in defaults.get_arguments() {
        let name = argument.get_id().as_str();
        let about = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
        let (value, from) = match (given.get(name), matches.value_source(name)) {
            (None, _) => (default_in(&about), "default"),
            (Some(_), source) if name == "database" => (settings.database.to_string().into(), origin(source)),
            (Some(value), source) => (value.clone(), origin(source)),
        };
        shown.push((name.to_owned(), value, from));
    }
    if output.is_json() {
        let row = |(name, value, from)| (name, json!({"value": value, "from": from}));
        let settings: Map<_, _> = shown.into_iter().map(row).collect();
        return output.resource(&json!({ "settings": settings }));
    }
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let rows: Vec<_> = shown.into_iter().map(|(name, value, from)| (name, text(value), from)).collect();
    let width = |of: fn(&(String, String, &'static str)) -> usize| rows.iter().map(of).max().unwrap_or_default();
    let (names, values) = (width(|row| row.0.len()), width(|row| row.1.len().min(60)));
    let lines = rows.iter().map(|(name, value, from)| format!("{name:names$}  {value:values$}  {from}\n"));
    crate::output::raw(lines.collect::<String>().as_bytes())
}

/// The settings that are given, as the file would have them.
fn values(whole: &SettingsArgs) -> Result<Map<String, Value>, Failure> {
    let values = serde_json::to_value(whole).map_err(|error| Failure::usage(error.to_string()))?;
    let Value::Object(mut values) = values else { return Ok(Map::new()) };
    values.retain(|_, value| !value.is_null());
    // A settings file cannot name another one, so `config` is not serialized: it is added here.
    if let Some(config) = &whole.config {
        values.insert("config".to_owned(), config.display().to_string().into());
    }
    Ok(values)
}

/// Source of a setting that is given.
const fn origin(source: Option<ValueSource>) -> &'static str {
    match source {
        Some(ValueSource::CommandLine) => "flag",
        Some(ValueSource::EnvVariable) => "environment",
        _ => "file",
    }
}

/// Reads the default from the description of a setting, `[default: …]`.
fn default_in(about: &str) -> Value {
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = about.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
    let default = found.map_or("", |(default, _)| default);
    // Numbers and booleans are JSON, everything else is a text.
    serde_json::from_str(default).unwrap_or_else(|_| default.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_says_its_default() {
        let defaults = SettingsArgs::augment_args(Command::new(""));
        for argument in defaults.get_arguments().filter(|argument| argument.get_id() != "config") {
            let about = argument.get_help().unwrap().to_string();
            assert_ne!(default_in(&about), "", "{}: {about}", argument.get_id());
        }
    }
}
