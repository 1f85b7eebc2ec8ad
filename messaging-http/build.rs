//! Puts the console into the program: lists the files below `console/`, compresses each, names the set by its contents,
//! and fills in `index.html`.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folder of the files.
const FOLDER: &str = "console";
/// The page of the console. It is not part of the set, because it names the set.
const INDEX: &str = "index.html";
/// Placeholder in the page for the folder of the set.
const PLACEHOLDER: &str = "__SET__";
/// The script that the page runs.
const FIRST_SCRIPT: &str = "app.js";

/// Files by their path below the folder, with `/`.
type Files = BTreeMap<String, Vec<u8>>;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={FOLDER}");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo names no package")?).join(FOLDER);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no place for what is made")?);
    let mut files = Files::new();
    read(&folder, "", &mut files)?;
    let index = files.get(INDEX).ok_or("console/index.html is missing")?;
    let set = name_of(&files);
    let page = filled_in(std::str::from_utf8(index)?, &set, &loaded_at_once(&files))?;

    let mut table = format!("pub(super) const SET: &str = {set:?};\n");
    let gzip = compress(page.as_bytes(), &out, "", INDEX)?;
    writeln!(table, "pub(super) static INDEX: Embedded = Embedded {{ path: {INDEX:?}, gzip: {gzip} }};")?;
    writeln!(table, "pub(super) static FILES: &[Embedded] = &[")?;
    for (path, bytes) in &files {
        let gzip = compress(&without_comments(path, bytes), &out, "files/", path)?;
        writeln!(table, "    Embedded {{ path: {path:?}, gzip: {gzip} }},")?;
    }
    writeln!(table, "];")?;
    fs::write(out.join("console.rs"), table)?;
    Ok(())
}

/// Reads the files below a folder, without files for authors of the console and files left by editors.
fn read(folder: &Path, below: &str, files: &mut Files) -> Result<(), Box<dyn Error>> {
    let list = fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    for entry in list {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| "a file of the console has a name that is no text")?;
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        let path = format!("{below}{name}");
        if !is_plain || name.starts_with('.') || name == "README.md" || path == "tests" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            read(&entry.path(), &format!("{path}/"), files)?;
        } else {
            files.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// The name of a set: different whenever a file is, because browsers keep the files under it for ever.
fn name_of(files: &Files) -> String {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The page with the name of the set, and with the modules that the first script needs, so that a browser requests all
/// of them at once instead of finding one after the other.
fn filled_in(page: &str, set: &str, modules: &[String]) -> Result<String, Box<dyn Error>> {
    if !page.contains(PLACEHOLDER) {
        return Err(format!("console/{INDEX} does not name {PLACEHOLDER}").into());
    }
    let mut links = String::new();
    for module in modules {
        writeln!(links, "<link rel=\"modulepreload\" href=\"{PLACEHOLDER}/{module}\">")?;
    }
    let end = page.find("</head>").ok_or("console/index.html has no </head>")?;
    let (head, rest) = page.split_at(end);
    Ok(format!("{head}{links}{rest}").replace(PLACEHOLDER, set))
}

/// The modules that the first script imports, directly and indirectly, nearest first.
fn loaded_at_once(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    let mut queue = VecDeque::from([FIRST_SCRIPT.to_owned()]);
    while let Some(path) = queue.pop_front() {
        let text = files.get(&path).map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
        for import in imports(&text) {
            let module = resolve(&path, import);
            if module != FIRST_SCRIPT && files.contains_key(&module) && !found.contains(&module) {
                found.push(module.clone());
                queue.push_back(module);
            }
        }
    }
    found
}

/// Modules that a module imports before it runs: `from "./x.js"` and `import "./x.js"`, but not `import("./x.js")`.
fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for word in ["from", "import"] {
        for (at, _) in text.match_indices(word) {
            let rest = text[at + word.len()..].trim_start();
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
            let Some((target, _)) = rest[1..].split_once(quote) else { continue };
            if target.starts_with("./") || target.starts_with("../") {
                found.push(target);
            }
        }
    }
    found
}

/// The path that a relative address in a file leads to.
fn resolve(file: &str, target: &str) -> String {
    let mut folders: Vec<_> = file.split('/').collect();
    folders.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => {
                folders.pop();
            }
            name => folders.push(name),
        }
    }
    folders.join("/")
}

/// A script without the lines that are comments, which no browser needs; other files unchanged.
fn without_comments(path: &str, bytes: &[u8]) -> Vec<u8> {
    let is_script = Path::new(path).extension().is_some_and(|extension| extension == "js");
    let is_ours = is_script && !path.starts_with("vendor/");
    // A comment of several lines begins and ends with a line that has no code.
    let mut is_within = false;
    let mut is_comment = |line: &[u8]| {
        let line = line.trim_ascii();
        let begins = line.starts_with(b"/**");
        let is_part = is_within || begins || line.starts_with(b"//");
        is_within = (is_within || begins) && !line.ends_with(b"*/");
        is_part
    };
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !(is_ours && is_comment(line)))
        .collect::<Vec<_>>()
        .concat()
}

/// Writes a file's compressed form below a folder, and returns the expression that includes it, without a path of this
/// machine.
fn compress(bytes: &[u8], out: &Path, folder: &str, path: &str) -> Result<String, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    let name = format!("{folder}{path}.gz");
    let file = out.join(&name);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, encoder.finish()?)?;
    Ok(format!("include_bytes!(concat!(env!(\"OUT_DIR\"), {:?}))", format!("/{name}")))
}
