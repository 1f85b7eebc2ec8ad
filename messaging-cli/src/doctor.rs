//! `doctor`: checks everything that mail needs to arrive, and says how to fix each fault.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_core::domain::installation::checkup::{CheckReport, CheckStatus};
use messaging_http::Settings;
use messaging_http::settings::running;
use messaging_http::standalone::doctor::{Examination, MAX_BLOCKLISTS, examine};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{arguments, serve, target};

const PROBE: &str = "probe";
const BLOCKLISTS: &str = "blocklists";

const EXAMPLES: &str = "\
Checks the name, addresses and DNS records of this machine, connections out and in, clock, disk and files, and the records of \
every sending domain. Changes nothing. If a server runs on the data directory, its settings are used: --data is enough. Otherwise \
give the settings that the server will have, by the same --config, environment or flags. Exit code 1 if a check finds a fault.

Examples:
  messaging doctor --data /var/lib/messaging --hostname mx.example.org --probe gmail.com
  messaging doctor --config /etc/messaging.toml --blocklists zen.spamhaus.org,bl.spamcop.net
  messaging doctor --json | jq '.checks[] | select(.status == \"fault\") | .cure'";

/// The definition of the command: its arguments and help.
pub(crate) fn command() -> Command {
    let about = "Check everything that mail needs to arrive: names, DNS, ports, TLS, clock, disk, files, domains";
    serve::with_settings(Command::new("doctor").after_help(EXAMPLES), about)
        .arg(
            Arg::new(PROBE)
                .long("probe")
                .value_name("DOMAIN")
                .help("Connect to the mail server of this domain, to see whether mail can leave; nothing is sent"),
        )
        .arg(
            Arg::new(BLOCKLISTS)
                .long("blocklists")
                .value_name("ZONE,…")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("Ask these blocklists for the addresses of this machine"),
        )
        .arg(arguments::json())
}

/// Runs the checks and prints them; ends with [`Failure::Unsuccessful`] if one of them is a fault.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let settings = settings(matches)?;
    let zones = matches.get_many::<String>(BLOCKLISTS).into_iter().flatten();
    let examination = Examination {
        probe: arguments::text(matches, PROBE).map(|domain| name_of("--probe", domain)).transpose()?,
        blocklists: zones.map(|zone| name_of("--blocklists", zone)).collect::<Result<_, _>>()?,
    };
    if examination.blocklists.len() > MAX_BLOCKLISTS {
        return Err(Failure::usage(format!("--blocklists takes at most {MAX_BLOCKLISTS} zones")));
    }
    let checks = target::block_on(examine(&settings, &examination))?;
    let faults = checks.iter().filter(|check| check.is_fault()).count();
    if output.is_json() {
        output.resource(&json!({"ok": faults == 0, "checks": checks}))?;
    } else {
        output::raw(table(&checks).as_bytes())?;
    }
    match faults {
        0 => Ok(()),
        1 => Err(Failure::Unsuccessful("1 fault".to_owned())),
        several => Err(Failure::Unsuccessful(format!("{several} faults"))),
    }
}

/// The settings of the server that runs on the data directory, completed by the given ones; the given ones alone if
/// none runs. A note on standard error names the given settings that are not used.
fn settings(matches: &ArgMatches) -> Result<Settings, Failure> {
    let given = serve::given(matches)?.with_file().map_err(serve::unusable)?;
    let Some(running) = running(given.data_directory()) else {
        return given.complete().map_err(serve::unusable);
    };
    let data = given.data_directory().display().to_string();
    let given = given.with_absolute_paths();
    if running.hides_database && given.database.is_none() {
        return Err(Failure::usage(
            "the URL of the running server's database has a password, which is written nowhere: give the same --database or \
             MESSAGING_DATABASE",
        ));
    }
    let own = given.given();
    let whole = running.settings.or(given.clone());
    let differing = whole.differing(&given).into_iter().filter(|name| own.contains(name));
    let differing: Vec<_> = differing.map(|name| format!("--{}", name.replace('_', "-"))).collect();
    output::note(&format!(
        "a server runs on {data}: its settings are checked{}",
        if differing.is_empty() { String::new() } else { format!(", not the {} given here", differing.join(", ")) }
    ));
    whole.complete().map_err(serve::unusable)
}

/// A domain name in the form of DNS queries: ASCII, lowercase, without a final dot. Fails for anything else.
fn name_of(flag: &str, text: &str) -> Result<String, Failure> {
    let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if name.len() <= 200 && name.split('.').all(is_label) {
        return Ok(name);
    }
    Err(Failure::usage(format!("{flag} is not a domain name: give it in ASCII, such as example.org")))
}

/// The checks as text: status, id and subject on one line, finding and cure below, and the number of each status at the
/// end.
fn table(checks: &[CheckReport]) -> String {
    let rows: Vec<_> = checks
        .iter()
        .map(|check| {
            (
                check,
                output::plain_text(&check.subject),
                output::plain_text(&check.text),
                output::plain_text(&check.cure),
            )
        })
        .collect();
    let id_width = rows.iter().map(|(check, ..)| check.id.as_str().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (check, subject, told, cure) in &rows {
        let (status, id) = (check.status.as_str(), check.id.as_str());
        let _ = writeln!(text, "{status:<8} {id:<id_width$}  {subject}\n         {:id_width$}  {told}", "");
        if !cure.is_empty() {
            let word = if check.status == CheckStatus::Ok { "then" } else { "cure" };
            let _ = writeln!(text, "         {:id_width$}  {word}: {cure}", "");
        }
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for check in checks {
        *counts.entry(check.status.as_str()).or_default() += 1;
    }
    let told: Vec<_> = counts.into_iter().map(|(status, count)| counted(status, count)).collect();
    let _ = writeln!(text, "\n{}", told.join(", "));
    text
}

/// A count with its status: `1 fault`, `2 faults`. Statuses that are not nouns have no plural: `9 ok`.
fn counted(status: &str, count: usize) -> String {
    let is_noun = [CheckStatus::Warning, CheckStatus::Fault].iter().any(|noun| noun.as_str() == status);
    format!("{count} {status}{}", if is_noun && count != 1 { "s" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_english() {
        let told = [("fault", 3), ("fault", 1), ("warning", 2), ("ok", 9), ("skipped", 2)];
        let told = told.map(|(status, count)| counted(status, count));
        assert_eq!(told, ["3 faults", "1 fault", "2 warnings", "9 ok", "2 skipped"]);
    }

    #[test]
    fn names_are_checked_before_they_are_looked_up() {
        assert_eq!(name_of("--probe", " Example.ORG. ").unwrap(), "example.org");
        for bad in ["", "a b", "a..b", "http://x", "bücher.example", "x\u{1b}"] {
            assert!(name_of("--probe", bad).is_err(), "{bad}");
        }
    }
}
