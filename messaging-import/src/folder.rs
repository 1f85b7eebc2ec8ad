//! Templates as folders, which users keep in version control: `template.toml` with the short members, and
//! `template.html`, `template.mjml` and `template.txt` with the long ones.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::files;

const FACTS: &str = "template.toml";

/// The long members and their files.
const BODIES: [(&str, &str); 3] = [("html", "template.html"), ("mjml", "template.mjml"), ("text", "template.txt")];

/// Maximum number of folders that are read.
const MAX_FOLDERS: usize = 2_000;

/// A folder and the request it makes.
#[derive(Debug)]
pub struct Folder {
    /// The folder's name.
    pub name: String,
    /// The body for creating or changing the template.
    pub body: Value,
    /// Id of the template in a workspace, by which automations name it.
    pub id: Option<String>,
}

/// The members of the file `template.toml`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    /// Id by which automations name it; only `automation simulate` reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Name of the template; that of the folder if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default = "email")]
    channel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preheader: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    variables: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_css: Option<bool>,
}

fn email() -> String {
    "email".to_owned()
}

/// Reads the folders of a directory that hold a template, by name.
pub fn read_all(directory: &Path) -> Result<Vec<Folder>, Error> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| Error::unreadable(directory, error))? {
        let path = entry.map_err(|error| Error::unreadable(directory, error))?.path();
        if !path.join(FACTS).is_file() {
            continue;
        }
        if folders.len() == MAX_FOLDERS {
            return Err(Error::too_many(directory.display(), MAX_FOLDERS, "folders"));
        }
        folders.push(read(&path)?);
    }
    folders.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(folders)
}

fn read(folder: &Path) -> Result<Folder, Error> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let path = folder.join(FACTS);
    let facts: Facts = toml::from_str(&files::read(&path)?).map_err(|error| Error::unreadable(&path, error))?;
    let mut body = json!({
        "name": facts.name.unwrap_or_else(|| name.clone()), "channel": facts.channel, "subject": facts.subject,
        "preheader": facts.preheader, "from_name": facts.from_name, "from_email": facts.from_email,
        "reply_to": facts.reply_to, "variables": facts.variables, "inline_css": facts.inline_css.unwrap_or(true),
    });
    for (member, name) in BODIES {
        let path = folder.join(name);
        body[member] = if path.is_file() { Value::String(files::read(&path)?) } else { Value::Null };
    }
    // The server renders MJML to HTML.
    if !body["mjml"].is_null() {
        body["html"] = Value::Null;
    }
    Ok(Folder { name, body, id: facts.id })
}

/// Writes a template as the API shows it.
pub fn write(folder: &Path, template: &Value) -> Result<(), Error> {
    let text = |member: &str| template[member].as_str().map(ToOwned::to_owned);
    // Variables found in the template are found again: a pull and a push change nothing.
    let variables = template["variables"].as_array().into_iter().flatten();
    // A folder that has an id keeps it: it may be that of another workspace.
    let known = read(folder).ok().and_then(|known| known.id);
    let facts = Facts {
        id: known,
        name: text("name"),
        channel: text("channel").unwrap_or_default(),
        subject: text("subject"),
        preheader: text("preheader"),
        from_name: text("from_name"),
        from_email: text("from_email"),
        reply_to: text("reply_to"),
        variables: variables.filter_map(|name| name.as_str().map(ToOwned::to_owned)).collect(),
        inline_css: template["inline_css"].as_bool().filter(|inline| !inline),
    };
    fs::create_dir_all(folder).map_err(|error| Error::unwritable(folder, error))?;
    let path = folder.join(FACTS);
    let facts = toml::to_string(&facts).map_err(|error| Error::unwritable(&path, error))?;
    fs::write(&path, facts).map_err(|error| Error::unwritable(&path, error))?;
    for (member, name) in BODIES {
        let path = folder.join(name);
        let is_made = member == "html" && !template["mjml"].is_null();
        match text(member).filter(|_| !is_made) {
            Some(body) => fs::write(&path, body).map_err(|error| Error::unwritable(&path, error))?,
            None if path.is_file() => fs::remove_file(&path).map_err(|error| Error::unwritable(&path, error))?,
            None => {}
        }
    }
    Ok(())
}
