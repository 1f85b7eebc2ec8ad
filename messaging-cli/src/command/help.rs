//! The first page of help: all commands, in groups, with examples.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Style};

use super::word::Word;

/// The column where descriptions begin.
const INDENT: usize = 18;

const ENVIRONMENT: &[(&str, &str)] = &[
    ("MESSAGING_URL", "The server that API commands talk to, as --url"),
    ("MESSAGING_API_KEY", "The API key for it, as --api-key"),
    ("MESSAGING_PROFILE", "The server and key that `messaging login` has saved, as --profile"),
    ("MESSAGING_DATA", "The data directory of dev, serve, admin, and of API commands without a server, as --data"),
    ("MESSAGING_DATABASE", "The database, as --database"),
    ("MESSAGING_SECRET_KEY_FILE", "The file with the key that encrypts secrets in the database, as --secret-key-file"),
    ("MESSAGING_WORKSPACE", "The workspace, as --workspace; needed only without an API key"),
];

const EXAMPLES: &[(&str, &str)] = &[
    ("A server to try things out; it says what to do next", "messaging dev"),
    ("Send an email through a server", "messaging message send --to ann@example.com --subject Hello --text 'It works'"),
    (
        "The same on the data directory, without a server",
        "messaging message list --data ./messaging-data --workspace wsp_…",
    ),
    (
        "The whole body as JSON, the answer as JSON",
        "messaging message send --json-body message.json --json | jq -r .message_id",
    ),
    ("Watch what becomes of messages", "messaging message watch"),
    ("All flags of one command", "messaging message send --help"),
];

const EXIT_CODES: &str = "0 done · 1 refused by the API · 2 wrong usage · 3 cannot reach server or database";

/// The template of the first page. Only the options at its end are filled in by clap.
pub(super) fn top(root: &Command, nouns: &[Word], others: &[Command]) -> StyledStr {
    let heading = AnsiColor::Green.on_default().bold().underline();
    let word = Style::new().bold();
    let mut page = String::from("{about-with-newline}\n{usage-heading} messaging <COMMAND>\n");
    let mut section = |title: &str, rows: &[(String, String)]| {
        let _ = writeln!(page, "\n{heading}{title}:{heading:#}");
        for (name, about) in rows {
            let gap = INDENT.saturating_sub(name.len() + 2).max(1);
            let _ = writeln!(page, "  {word}{name}{word:#}{:gap$}{about}", "");
        }
    };
    let described = |command: &Command| {
        (command.get_name().to_owned(), command.get_about().map(ToString::to_string).unwrap_or_default())
    };
    section("Server", &root.get_subcommands().map(described).collect::<Vec<_>>());
    section(
        "API, one command for each operation",
        &nouns.iter().map(|noun| (noun.name.to_owned(), noun.about())).collect::<Vec<_>>(),
    );
    section("Tools", &others.iter().map(described).collect::<Vec<_>>());
    page.push('\n');
    let _ = writeln!(page, "{heading}Options:{heading:#}\n{{options}}\n");
    let _ = writeln!(page, "{heading}Environment:{heading:#}");
    let widest = ENVIRONMENT.iter().map(|(name, _)| name.len()).max().unwrap_or_default() + 2;
    for (name, about) in ENVIRONMENT {
        let _ = writeln!(page, "  {word}{name:<widest$}{word:#}{about}");
    }
    let _ = writeln!(page, "\n{heading}Examples:{heading:#}");
    for (about, example) in EXAMPLES {
        let _ = writeln!(page, "  {about}:\n    {word}{example}{word:#}");
    }
    let _ = write!(page, "\n{heading}Exit codes:{heading:#} {EXIT_CODES}");
    StyledStr::from(page)
}
