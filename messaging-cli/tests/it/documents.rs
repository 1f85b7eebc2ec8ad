//! Every command in README and docs exists in the program, with flags that it has. Those that can run here are run by
//! the tests of their pages as well.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

/// Pages of all folders below `docs`, and README.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut found, mut folders) = (vec![root.join("README.md")], vec![root.join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The lines of a page's code, those that end with a backslash joined with the next.
fn code(page: &str) -> Vec<String> {
    let (mut lines, mut is_fenced, mut goes_on) = (Vec::<String>::new(), false, false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let Some(text) = (if is_fenced { Some(line) } else { line.strip_prefix("    ") }) else { continue };
        let (text, more) = text.strip_suffix('\\').map_or((text, false), |text| (text, true));
        match lines.last_mut() {
            Some(last) if goes_on => last.push_str(text),
            _ => lines.push(text.to_owned()),
        }
        goes_on = more;
    }
    lines
}

/// Words of a command as a shell reads them, up to the first operator or comment.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '|' | ';' | '>' | '<' | ')' | '&') => break,
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    // The number before a redirection, such as the 2 of `2>&1`, is no word of the command.
    words.extend(word.filter(|word| word != "2"));
    words.retain(|word| word != "…");
    words
}

/// The commands of a line, also those in `$(…)`.
fn commands(line: &str) -> Vec<Vec<String>> {
    let starts = line.match_indices("messaging ").filter(|(at, _)| {
        let before = line[..*at].trim_end_matches(' ');
        before.is_empty() || ["$", "$(", "&&", "|", ";", "sudo"].iter().any(|end| before.ends_with(end))
    });
    starts.map(|(at, name)| words(&line[at + name.len()..])).filter(|words| !words.is_empty()).collect()
}

#[test]
fn commands_of_a_line_are_found() {
    let list = |line: &str| commands(line).into_iter().map(|words| words.join("_")).collect::<Vec<_>>();
    assert_eq!(list("$ messaging message list --all | head"), ["message_list_--all"]);
    assert_eq!(list("id=$(messaging message send --text 'a b' -q)"), ["message_send_--text_a b_-q"]);
    assert_eq!(list("messaging serve … --log info 2>&1 # a comment"), ["serve_--log_info"]);
    assert_eq!(list(r#"messaging message send --text "a \"b\"""#), [r#"message_send_--text_a "b""#]);
    assert_eq!(list("apt install ./messaging_1.deb"), [""; 0]);
}

#[test]
fn every_command_of_a_document_exists() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut program = messaging_cli::command::root();
    for page in pages() {
        for line in code(&fs::read_to_string(&page).unwrap()) {
            for words in commands(&line) {
                seen += 1;
                // Asking for help ends a command once its words and flags are understood.
                let line = ["messaging"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
                let told = program.try_get_matches_from_mut(line).unwrap_err();
                let said = told.to_string().lines().next().unwrap_or_default().to_owned();
                // A variable of the shell has no value here, and a file of the reader is not there.
                let is_of_reader = said.contains("invalid value '$") || said.contains("cannot read ");
                if told.kind() != ErrorKind::DisplayHelp && !is_of_reader {
                    wrong.push(format!("{}: {}: {said}", page.display(), words.join(" ")));
                }
            }
        }
    }
    assert!(seen > 100, "{seen} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
