//! `site list`: limits of mailbox providers, by the built-in rules or those of a file.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};
use messaging_core::domain::delivery::site::SiteRules;
use messaging_http::read_site_rules;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::Output;
use crate::{arguments, serve};

/// The word of the command.
pub(crate) const WORD: &str = "site";

const RULES: &str = "site-rules";

const EXAMPLES: &str = "\
A site is the operator of the mail exchangers of a domain. The limits apply to one source: connections at once, messages after which \
a connection is closed, messages a minute, and the warm-up allowance as a multiple of that of an unknown site. The last row applies \
to every site that has no row. The command opens nothing but the file.

Examples:
  messaging site list
  messaging site list --site-rules /etc/messaging/site-rules.toml --json | jq '.data[] | select(.name == \"gmail\")'";

/// The command.
pub(crate) fn command() -> Command {
    let rules = Arg::new(RULES)
        .long(RULES)
        .env("MESSAGING_SITE_RULES")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("TOML file of further rules, as the server is given [default: the rules that are built in]");
    let list = Command::new("list")
        .about("Show the sites that the rules name, and what each allows")
        .after_help(EXAMPLES)
        .arg(rules)
        .arg(arguments::json());
    Command::new(WORD)
        .about("Look at the rules for mailbox providers")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(list)
}

/// Carries it out.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let (_, matches) = matches.subcommand().expect("required");
    let rules = match matches.get_one::<PathBuf>(RULES) {
        Some(path) => Arc::new(read_site_rules(path).map_err(serve::unusable)?),
        None => SiteRules::embedded(),
    };
    output.resource(&json!({ "data": rows(&rules), "next_cursor": null }))
}

fn rows(rules: &SiteRules) -> Vec<Value> {
    let mut unknown = json!(rules.unknown());
    unknown["name"] = "*".into();
    unknown["exchangers"] = json!([]);
    rules.sites().iter().map(|site| json!(site)).chain([unknown]).collect()
}
