//! Every page of help is checked in, so that a reviewer sees what a user will see.
//!
//! `UPDATE=1 cargo test -p messaging-cli --test it help` writes the pages anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::Command;

/// The width of the pages.
const WIDTH: usize = 110;

#[test]
fn pages_of_help_are_as_checked_in() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/help");
    let pages = pages();
    let is_update = std::env::var_os("UPDATE").is_some();
    let mut stale: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !pages.contains_key(name))
        .collect();
    if is_update {
        for name in stale.drain(..) {
            fs::remove_file(directory.join(name)).unwrap();
        }
        for (name, page) in &pages {
            fs::write(directory.join(name), page).unwrap();
        }
    }
    assert_eq!(stale, Vec::<String>::new(), "pages of commands that are gone; run with UPDATE=1");
    for (name, page) in &pages {
        let known = fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert!(known == *page, "{name} differs; run with UPDATE=1 and read the difference\n{page}");
    }
}

#[test]
fn every_operation_has_a_command_with_a_summary() {
    let root = root();
    for endpoint in messaging_engine::ops::all() {
        let mut command = &root;
        for word in endpoint.cli.split(' ') {
            command = command.find_subcommand(word).unwrap_or_else(|| panic!("no command {}", endpoint.cli));
        }
        if endpoint.id == "exportContact" {
            // Without an id it exports all contacts, and its help begins with that.
            continue;
        }
        assert_eq!(command.get_about().map(ToString::to_string).as_deref(), Some(endpoint.summary), "{}", endpoint.cli);
    }
}

#[test]
fn the_tree_is_sound() {
    messaging_cli::command::root().debug_assert();
}

/// One file for the first page, and one for each noun with all its verbs.
fn pages() -> BTreeMap<String, String> {
    let root = root();
    // One program for all pages: most of the time of a page goes into making it.
    let mut program = messaging_cli::command::root().term_width(WIDTH);
    let mut pages = BTreeMap::new();
    let mut first = String::new();
    add_page(&mut program, "messaging", &mut first);
    pages.insert("messaging.txt".to_owned(), first);
    for noun in root.get_subcommands() {
        let mut page = String::new();
        add_pages(&mut program, noun, &format!("messaging {}", noun.get_name()), &mut page);
        pages.insert(format!("{}.txt", noun.get_name()), page);
    }
    pages
}

fn add_pages(program: &mut Command, command: &Command, words: &str, page: &mut String) {
    add_page(program, words, page);
    for next in command.get_subcommands() {
        add_pages(program, next, &format!("{words} {}", next.get_name()), page);
    }
}

fn add_page(program: &mut Command, words: &str, page: &mut String) {
    let line = words.split(' ').chain(["--help"]);
    let help = program.try_get_matches_from_mut(line).unwrap_err();
    let help = help.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
    let _ = write!(page, "$ {words} --help\n{help}\n");
}

fn root() -> Command {
    let mut root = messaging_cli::command::root();
    root.build();
    root
}
