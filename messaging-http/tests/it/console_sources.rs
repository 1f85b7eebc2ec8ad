//! Rules for the console's own scripts. They need no browser.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use messaging_engine::ops;

/// Third-party files. `vendor/preact.js` has `innerHTML` and `dangerouslySetInnerHTML`, which it sets only if it is
/// told to; the policy of the page would refuse that.
const VENDOR: &str = "vendor/";

/// Files generated from the table of operations.
const GENERATED: [&str; 3] = ["operations.js", "schemas.js", "providers.js"];

/// The quotes of strings in a script.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Functions whose first argument is the id of an operation.
const CALLS: [&str; 9] = ["allowed", "call", "missing", "needs", "pathOf", "request", "schemaOf", "urlOf", "useCall"];

/// Names that would turn a text into a part of a page, or into a script.
const OF_TEXT: [&str; 10] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "dangerouslySetInnerHTML",
    "createContextualFragment",
    "setHTMLUnsafe",
    "srcdoc",
    "eval(",
    "new Function",
];

/// The scripts below a folder, with their sources.
fn scripts(folder: &Path, below: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = format!("{below}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(scripts(&entry.path(), &format!("{path}/")));
        } else if entry.path().extension().is_some_and(|extension| extension == "js") {
            found.push((path, fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found
}

/// The scripts of this project that the browser runs.
fn own() -> Vec<(String, String)> {
    let mut scripts = scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("console"), "");
    scripts.retain(|(path, _)| {
        !path.starts_with(VENDOR) && !path.starts_with("tests/") && !GENERATED.contains(&path.as_str())
    });
    assert!(scripts.iter().any(|(path, _)| path == "app.js"));
    scripts
}

/// The operation ids in a script: the first arguments of calls, members of the table, and every other text that
/// consists of a verb of the operations and a noun, because screens pass ids on.
fn ids<'s>(script: &'s str, verbs: &BTreeSet<&str>) -> BTreeSet<&'s str> {
    let word = |text: &'s str| {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        text.split_at(end)
    };
    let mut found = BTreeSet::new();
    for (at, open) in script.match_indices(['(', '[']) {
        let name = script[..at].rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let is_call = if open == "(" { CALLS.contains(&name) } else { name == "operations" };
        let argument = script[at + 1..].trim_start();
        if is_call && argument.starts_with(QUOTES) {
            let (quote, argument) = argument.split_at(1);
            let (id, rest) = word(argument);
            if rest.starts_with(quote) {
                found.insert(id);
            }
        }
    }
    for (at, table) in script.match_indices("operations.") {
        let (member, _) = word(&script[at + table.len()..]);
        // The file itself.
        if !member.is_empty() && member != "js" {
            found.insert(member);
        }
    }
    for (at, quote) in script.match_indices(QUOTES) {
        let (text, rest) = word(&script[at + 1..]);
        if rest.starts_with(quote) && verb(text).is_some_and(|verb| verbs.contains(verb)) {
            found.insert(text);
        }
    }
    found
}

/// The beginning of an id: `create` of `createTemplate`.
fn verb(id: &str) -> Option<&str> {
    id.find(|c: char| c.is_ascii_uppercase()).map(|end| &id[..end]).filter(|verb| !verb.is_empty())
}

/// The verbs of all operations.
fn verbs() -> BTreeSet<&'static str> {
    ops::all().iter().filter_map(|endpoint| verb(endpoint.id)).collect()
}

#[test]
fn ids_are_found_in_scripts() {
    let script = "import { operations } from \"./operations.js\"; await call(\"a\", {}); useCall(\n  'b'); operations.c.path; \
        operations[\"d\"]; recall(\"no\"); call(id); showAs(call(`e`)); calls(\"no\"); request(`no.${id}`); <${List} id=\"listMessages\" />; \
        allowed(\"f\") && \"getNothing\"; \"list\"; \"lists\"; \"onClick\"; \"get a Thing\"";
    assert_eq!(ids(script, &verbs()).into_iter().collect::<String>(), "abcdefgetNothinglistMessages");
}

#[test]
fn every_id_is_that_of_an_operation() {
    let known: BTreeSet<_> = ops::all().iter().map(|endpoint| endpoint.id).collect();
    let verbs = verbs();
    for (path, script) in own() {
        for id in ids(&script, &verbs) {
            assert!(known.contains(id), "console/{path} names {id:?}, and no operation has this id");
        }
    }
}

#[test]
fn paths_come_from_the_table() {
    for (path, script) in own() {
        for (number, line) in script.lines().enumerate() {
            let names_path = ["\"/v1", "'/v1", "`/v1", "/workspaces"].iter().any(|text| line.contains(text));
            assert!(!names_path, "console/{path}:{} has a path; `operations.js` names it", number + 1);
        }
    }
}

#[test]
fn no_text_becomes_a_part_of_a_page() {
    for (path, script) in own() {
        for (number, line) in script.lines().enumerate() {
            let found = OF_TEXT.iter().find(|text| line.contains(**text));
            assert_eq!(found, None, "console/{path}:{}", number + 1);
        }
    }
}
