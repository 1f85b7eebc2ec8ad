//! Files in JSON or TOML that hold an automation each, as `automation pull` writes and `automation push` reads them.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::files;

/// Most files that a directory of automations may have.
const MAX_FILES: usize = 2_000;

/// The members of a file, in the order in which they are written.
const MEMBERS: [&str; 5] = ["name", "trigger", "re_entry", "re_entry_key", "graph"];

/// The format of a file that holds an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Toml,
}

impl Format {
    /// Ending of the names of files in this format, with the dot.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Json => ".json",
            Self::Toml => ".toml",
        }
    }

    /// The format by the extension of the file's name, in either case; `None` for other extensions.
    fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        [Self::Json, Self::Toml].into_iter().find(|format| format.suffix()[1..].eq_ignore_ascii_case(extension))
    }
}

/// A file with the request body that it holds.
#[derive(Debug)]
pub(super) struct Named {
    /// The file's name.
    pub(super) name: String,
    /// The format that the file is written in.
    pub(super) format: Format,
    /// Request body that creates or changes the automation.
    pub(super) body: Value,
}

/// Reads the files of a directory whose names end in `.json` or `.toml`, sorted by name; other files are skipped. Fails
/// if two of them hold automations of the same name, since only one of them could be pushed.
pub(super) fn read_all(directory: &Path) -> Result<Vec<Named>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| files::unreadable(directory, error))? {
        let path = entry.map_err(|error| files::unreadable(directory, error))?.path();
        let Some(format) = Format::of(&path).filter(|_| path.is_file()) else { continue };
        if found.len() == MAX_FILES {
            return Err(Failure::usage(format!("{} has more than {MAX_FILES} files", directory.display())));
        }
        found.push(read(&path, format)?);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(pair) = same_name(&found) {
        return Err(Failure::usage(format!("{} and {} have the same name", pair.0, pair.1)));
    }
    Ok(found)
}

/// The names of two files whose automations have the same name; `None` if all names differ.
fn same_name(found: &[Named]) -> Option<(&str, &str)> {
    let of = |(index, file): (usize, &'_ Named)| {
        found[..index].iter().position(|earlier| earlier.body["name"] == file.body["name"]).map(|at| (at, index))
    };
    let (one, other) = found.iter().enumerate().find_map(of)?;
    Some((&found[one].name, &found[other].name))
}

/// Reads the request body in a file, as JSON unless its name ends in `.toml`.
pub(super) fn read_one(path: &Path) -> Result<Value, Failure> {
    Ok(read(path, Format::of(path).unwrap_or(Format::Json))?.body)
}

/// Reads a file. An automation without a name gets that of the file without its ending.
fn read(path: &Path, format: Format) -> Result<Named, Failure> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = files::read(path)?;
    let body = match format {
        Format::Json => serde_json::from_str(&text).map_err(|error| files::unreadable(path, error))?,
        Format::Toml => of_toml(toml::from_str(&text).map_err(|error| files::unreadable(path, error))?),
    };
    let Value::Object(mut body) = body else {
        return Err(files::unreadable(path, "it is not an object with name, trigger and graph"));
    };
    body.entry("name").or_insert_with(|| {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Value::String(stem.unwrap_or_default())
    });
    // A file describes the whole automation: a member that it lacks is reset to null, not left as it is.
    for member in ["re_entry", "re_entry_key"] {
        body.entry(member).or_insert(Value::Null);
    }
    Ok(Named { name, format, body: Value::Object(body) })
}

/// Converts TOML to JSON. Dates become strings.
fn of_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(value) => value.into(),
        toml::Value::Datetime(date) => Value::String(date.to_string()),
        toml::Value::Array(items) => items.into_iter().map(of_toml).collect(),
        toml::Value::Table(members) => {
            Value::Object(members.into_iter().map(|(name, member)| (name, of_toml(member))).collect())
        }
    }
}

/// Converts JSON to TOML, which has no null: members that are null are left out. `None` if an item of an array is null.
fn to_toml(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml::Value::Array(items.iter().map(to_toml).collect::<Option<_>>()?),
        Value::Object(members) => {
            let mut table = toml::Table::new();
            for (name, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                table.insert(name.clone(), to_toml(member)?);
            }
            toml::Value::Table(table)
        }
    })
}

/// The request body in a file; `None` if there is no such file or it cannot be read.
pub(super) fn read_there(path: &Path, format: Format) -> Option<Value> {
    path.is_file().then(|| read(path, format).ok()).flatten().map(|known| known.body)
}

/// True if writing the automation that the API shows would not change the file's body: all [`MEMBERS`] are equal, and
/// the body has no others.
pub(super) fn is_same(body: &Value, automation: &Value) -> bool {
    MEMBERS.iter().all(|member| body[*member] == automation[*member])
        && body.as_object().is_some_and(|members| members.keys().all(|name| MEMBERS.contains(&name.as_str())))
}

/// Writes the [`MEMBERS`] of an automation, as the API shows it, to a file; members that are null are left out.
pub(super) fn write(path: &Path, format: Format, automation: &Value) -> Result<(), Failure> {
    let mut body = Map::new();
    for member in MEMBERS {
        let value = &automation[member];
        if !value.is_null() {
            body.insert(member.to_owned(), value.clone());
        }
    }
    let body = Value::Object(body);
    let text = match format {
        Format::Json => serde_json::to_string_pretty(&body).map_err(|error| files::unwritable(path, error))? + "\n",
        Format::Toml => {
            let table = to_toml(&body).ok_or_else(|| files::unwritable(path, "TOML cannot say null; use JSON"))?;
            toml::to_string_pretty(&table).map_err(|error| files::unwritable(path, error))?
        }
    };
    fs::write(path, text).map_err(|error| files::unwritable(path, error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn automation() -> Value {
        json!({"id": "aut_1", "name": "Cart", "status": "active", "version": 3, "re_entry": "always",
            "re_entry_key": null, "trigger": {"kind": "event", "config": {"name": "cart"}},
            "graph": {"nodes": [{"id": "a", "kind": "exit", "config": {"reason": "x"}, "name": null}], "edges": []}})
    }

    #[test]
    fn what_is_written_is_read_again_and_not_written_twice() {
        let directory = tempfile::tempdir().unwrap();
        for format in [Format::Json, Format::Toml] {
            let path = directory.path().join(format!("cart{}", format.suffix()));
            assert_eq!(read_there(&path, format), None);
            write(&path, format, &automation()).unwrap();
            let mut shown = automation();
            if format == Format::Toml {
                // TOML has no null.
                shown["graph"]["nodes"][0].as_object_mut().unwrap().remove("name");
            }
            assert!(is_same(&read_there(&path, format).unwrap(), &shown));
            let body = read(&path, format).unwrap().body;
            assert_eq!(body["re_entry"], "always");
            assert_eq!(body["trigger"], automation()["trigger"]);
            assert_eq!(body["graph"]["nodes"][0]["config"], json!({"reason": "x"}));
            assert_eq!(body.get("status"), None);
            let other = Value::Object(
                automation()
                    .as_object()
                    .unwrap()
                    .clone()
                    .into_iter()
                    .chain([("re_entry".to_owned(), json!("never"))])
                    .collect(),
            );
            assert!(!is_same(&read_there(&path, format).unwrap(), &other));
        }
        assert!(read_all(directory.path()).is_err(), "two files of one automation");
    }

    #[test]
    fn a_file_of_toml_is_what_the_same_json_is() {
        let directory = tempfile::tempdir().unwrap();
        let text = "re_entry = \"after_exit\"\n[trigger]\nkind = \"manual\"\n[graph]\nedges = []\n\
            [[graph.nodes]]\nid = \"s\"\nkind = \"split\"\nconfig.branches = [{name = \"a\", weight = 1}, {name = \"b\", weight = 0.5}]\n";
        fs::write(directory.path().join("welcome.toml"), text).unwrap();
        fs::write(directory.path().join("notes.md"), "no automation").unwrap();
        let found = read_all(directory.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].body,
            json!({"name": "welcome", "trigger": {"kind": "manual"}, "re_entry": "after_exit", "re_entry_key": null,
                "graph": {"edges": [], "nodes": [{"id": "s", "kind": "split",
                    "config": {"branches": [{"name": "a", "weight": 1}, {"name": "b", "weight": 0.5}]}}]}})
        );
    }
}
