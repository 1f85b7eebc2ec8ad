//! Which file imports which: nothing from above it, and no circle.
//!
//! Imports are read from the source text. A `pub use` passes a name on and is no import: a file that imports the name
//! imports the file that defines it. Files of tests may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates from the lowest up. Each may depend on those of the lines before it, except that stores and transports
/// depend neither on each other nor on the engine.
const CRATES: &[(&str, &[&str])] = &[
    ("messaging-derive", &[]),
    ("messaging-core", &["messaging-derive"]),
    ("messaging-engine", &["messaging-core"]),
    ("messaging-store", &["messaging-core"]),
    ("messaging-transport", &["messaging-core"]),
    ("messaging-testing", &["messaging-core", "messaging-transport"]),
    ("messaging-import", &["messaging-core"]),
    ("messaging-http", &["messaging-core", "messaging-engine", "messaging-store", "messaging-transport"]),
    ("messaging", &["messaging-core", "messaging-engine", "messaging-http", "messaging-store", "messaging-transport"]),
    (
        "messaging-cli",
        &[
            "messaging-core",
            "messaging-engine",
            "messaging-http",
            "messaging-import",
            "messaging-store",
            "messaging-testing",
            "messaging-transport",
        ],
    ),
];

/// The layers of a crate from below: a file may import from its own layer and from those before it. `dispatch`, which
/// calls operations, and `admin` stand beside jobs.
const LAYERS: &[(&str, &[&[&str]])] = &[
    (
        "messaging-core",
        &[
            &["cursor", "entropy", "error", "ids", "patch", "revision", "scope", "time", "validate", "violation"],
            &["domain", "input"],
            &["changes"],
            &["ports"],
        ],
    ),
    (
        "messaging-engine",
        &[
            &["error", "caller", "fair_semaphore", "vault", "jobs", "spans"],
            &["app"],
            &["services"],
            &["ops", "work"],
            &["dispatch", "admin", "dry_run"],
        ],
    ),
];

/// The modules of a crate: their text without comments and inner tests, by path (`domain::channel::address`, empty for
/// the root).
type Modules = BTreeMap<String, String>;

/// A path of names.
type Names = Vec<String>;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn modules(source: &Path) -> Modules {
    let mut found = Modules::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(source).expect("below").with_extension("");
                let name = below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("::");
                let is_of_tests = name.rsplit("::").next().is_some_and(|last| last.ends_with("tests"));
                if !is_of_tests {
                    let name = if name == "lib" { String::new() } else { name };
                    found.insert(name, code(&fs::read_to_string(&path).expect("a source file")));
                }
            }
        }
    }
    found
}

/// The text without comments and without the tests at its end. Who may see a name is no import.
fn code(text: &str) -> String {
    let text = text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(before, _)| before);
    text.lines()
        .map(|line| line.split_once("//").map_or(line, |(before, _)| before))
        .collect::<Vec<_>>()
        .join("\n")
        .replace("pub(in super::super)", "pub")
}

/// The statements `use …;` of a text: true if it is a `pub use`, and the tree of names.
fn uses(text: &str) -> Vec<(bool, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default().trim_start();
        let is_statement = line.is_empty() || (line.starts_with("pub") && line.ends_with(' '));
        if is_statement && let Some((tree, _)) = text[at + 4..].split_once(';') {
            found.push((line.starts_with("pub"), tree));
        }
    }
    found
}

/// The paths of a tree of names, each with the name that it is known by.
fn paths(prefix: &[String], tree: &str) -> Vec<(Names, String)> {
    let tree = tree.trim();
    if let Some((before, inner)) = tree.split_once('{') {
        let inner = inner.strip_suffix('}').unwrap_or(inner);
        let prefix: Names = prefix.iter().cloned().chain(names(before)).collect();
        let (mut depth, mut from, mut found) = (0_u32, 0, Vec::new());
        for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !inner[from..at].trim().is_empty() {
                        found.extend(paths(&prefix, &inner[from..at]));
                    }
                    from = at + 1;
                }
                _ => {}
            }
        }
        return found;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let path: Names = prefix.iter().cloned().chain(names(path)).collect();
    let known_by = alias.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
    vec![(path, known_by)]
}

fn names(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(ToOwned::to_owned)
}

/// Paths that stand in the text itself: after `start`.
fn mentioned<'t>(text: &'t str, start: &'t str) -> impl Iterator<Item = Names> + 't {
    text.match_indices(start).filter_map(move |(at, _)| {
        let is_word = text[..at]
            .chars()
            .next_back()
            .is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != ':');
        let path: String = text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
        is_word.then(|| names(&path).collect())
    })
}

/// A path from the root of the crate; `None` for one of another crate.
fn absolute(module: &str, path: &[String], modules: &Modules) -> Option<Names> {
    let own: Names = names(module).collect();
    match path.first().map(String::as_str)? {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some(own.into_iter().chain(path[1..].iter().cloned()).collect()),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            let kept = own.len().saturating_sub(up);
            Some(own.into_iter().take(kept).chain(path[up..].iter().cloned()).collect())
        }
        first => {
            let child = if module.is_empty() { first.to_owned() } else { format!("{module}::{first}") };
            modules.contains_key(&child).then(|| own.into_iter().chain(path.iter().cloned()).collect())
        }
    }
}

/// For each file the files that it imports.
fn imports(modules: &Modules) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut passed_on: BTreeMap<(&str, String), Names> = BTreeMap::new();
    for (module, text) in modules {
        for (_, tree) in uses(text).into_iter().filter(|(is_passed_on, _)| *is_passed_on) {
            for (path, known_by) in paths(&[], tree) {
                if let Some(path) = absolute(module, &path, modules) {
                    passed_on.insert((module, known_by), path);
                }
            }
        }
    }
    let mut edges = BTreeMap::new();
    for (module, text) in modules {
        let used =
            uses(text).into_iter().filter(|(is_passed_on, _)| !is_passed_on).flat_map(|(_, tree)| paths(&[], tree));
        let mut all: Vec<Names> = used.map(|(path, _)| path).collect();
        let rest = uses(text).into_iter().fold(text.clone(), |rest, (_, tree)| rest.replace(tree, ""));
        all.extend(mentioned(&rest, "crate::"));
        all.extend(mentioned(&rest, "super::"));
        let children = modules.keys().filter_map(|name| {
            let rest = if module.is_empty() { name } else { name.strip_prefix(module.as_str())?.strip_prefix("::")? };
            (!rest.is_empty() && !rest.contains("::")).then_some(rest)
        });
        for child in children {
            all.extend(mentioned(&rest, &format!("{child}::")));
        }
        let mut targets = BTreeSet::new();
        for path in all {
            let Some(path) = absolute(module, &path, modules) else { continue };
            if let Some(target) = defining(path, modules, &passed_on)
                && target != module
            {
                targets.insert(target);
            }
        }
        edges.insert(module.as_str(), targets);
    }
    edges
}

/// The file that defines the item at a path.
fn defining<'m>(mut path: Names, modules: &'m Modules, passed_on: &BTreeMap<(&str, String), Names>) -> Option<&'m str> {
    for _ in 0..8 {
        let (length, module) = (0..=path.len()).rev().find_map(|length| {
            let (module, _) = modules.get_key_value(&path[..length].join("::"))?;
            Some((length, module.as_str()))
        })?;
        let next = path.get(length).and_then(|name| passed_on.get(&(module, name.clone())));
        match next {
            Some(onward) => path = onward.iter().chain(&path[length + 1..]).cloned().collect(),
            None => return Some(module),
        }
    }
    None
}

/// The files that can be reached from one, without itself unless a circle leads back.
fn reachable<'m>(from: &str, edges: &BTreeMap<&'m str, BTreeSet<&'m str>>) -> BTreeSet<&'m str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = edges[from].iter().copied().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(&edges[module]);
        }
    }
    found
}

#[test]
fn no_circle_of_files() {
    for (name, _) in CRATES {
        let modules = modules(&root().join(name).join("src"));
        assert!(!modules.is_empty(), "{name} was not found");
        let edges = imports(&modules);
        let of_a_circle: Vec<_> = edges.keys().filter(|module| reachable(module, &edges).contains(*module)).collect();
        let shown = |module: &&&str| {
            let on: Vec<_> = edges[**module].iter().filter(|to| of_a_circle.contains(to)).collect();
            format!("\n  {module} -> {on:?}")
        };
        assert!(
            of_a_circle.is_empty(),
            "files of {name} import one another:{}",
            of_a_circle.iter().map(shown).collect::<String>()
        );
    }
}

#[test]
fn nothing_is_imported_from_above() {
    for (name, layers) in LAYERS {
        let modules = modules(&root().join(name).join("src"));
        let edges = imports(&modules);
        let layer_of = |module: &str| {
            let top = module.split("::").next().unwrap_or_default();
            layers.iter().position(|layer| layer.contains(&top))
        };
        for (module, targets) in edges.iter().filter(|(module, _)| !module.is_empty()) {
            let own = layer_of(module).unwrap_or_else(|| panic!("{name}: {module} has no layer"));
            for target in targets {
                // Nothing may be imported from the root: it only names the modules.
                let other = layer_of(target).unwrap_or_else(|| panic!("{name}: {module} imports {target:?}"));
                assert!(other <= own, "{name}: {module} imports {target}, which is above it");
            }
        }
    }
}

#[test]
fn crates_depend_on_those_below() {
    let all: Vec<&str> = CRATES.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in CRATES {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).and_then(|rest| rest.split("\n[").next());
        for line in dependencies.expect("dependencies").lines() {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            assert!(
                !all.contains(&dependency) || allowed.contains(&dependency),
                "{name} depends on {dependency}, which is not below it"
            );
        }
    }
}

/// All files of the project below a folder, with their paths.
pub(crate) fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                files(&path, found);
            }
        } else {
            found.push(path.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn files_that_the_architecture_names_are_there() {
    let (mut all, mut pages) = (Vec::new(), Vec::new());
    files(&root(), &mut all);
    files(&root().join("docs/design"), &mut pages);
    pages.push(root().join("ARCHITECTURE.md").to_string_lossy().into_owned());
    let mut count = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page of design");
        let is_source = |code: &&str| Path::new(code).extension().is_some_and(|extension| extension == "rs");
        for name in text.split('`').skip(1).step_by(2).filter(is_source) {
            count += 1;
            assert!(
                all.iter().any(|path| path.ends_with(&format!("/{name}"))),
                "{page} names {name}, which is not there"
            );
        }
    }
    assert!(count > 100, "only {count} files are named");
}
