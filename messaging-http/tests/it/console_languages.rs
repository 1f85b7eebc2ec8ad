//! The console's texts in other languages: each file has every text, and the sources have no text that cannot be
//! translated. It needs no browser; [`crate::console::languages`] tests the screens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::script::{Script, read};

/// The scripts with the texts of the first screen. Their texts are in the small file of a language.
const FIRST: [&str; 8] = [
    "app.js",
    "lib/api.js",
    "lib/channels.js",
    "lib/chart.js",
    "lib/live.js",
    "lib/route.js",
    "lib/ui.js",
    "screens/home.js",
];

/// Scripts without texts for people: tables of the API, and the page that shows mail, which has no texts.
const SILENT: [&str; 3] = ["operations.js", "schemas.js", "frame.js"];

/// Beginnings of strings that look like texts and are none: selectors, markup, commands, header fields, keys, names of
/// CSV columns, and a channel with its provider.
const NOT_TEXTS: [&str; 33] = [
    "<",
    "{",
    "[",
    ".",
    "(",
    "-",
    " ",
    "&",
    "messaging ",
    "curl ",
    "input",
    "select",
    "form",
    "h1, ",
    "details [",
    "repeat(",
    "X-",
    "Content-Type",
    "Retry-After",
    "webhook-",
    "Mod-",
    "Alt",
    "Ctrl ",
    "Shift-",
    "Arrow",
    "email ",
    "e-mail ",
    "sms ",
    "push ",
    "telegram ",
    "whatsapp ",
    "viber ",
    "phone number",
];

/// Strings that are the same in every language: products, standards, keys of the keyboard, names of languages, classes
/// and samples.
const SAME_EVERYWHERE: [&str; 46] = [
    "10px 25px",
    "AC…",
    "AbortError",
    "Android",
    "Chrome",
    "Deutsch",
    "Ed25519",
    "Edge",
    "English",
    "Enter",
    "Esc",
    "Escape",
    "Español",
    "Firefox",
    "Français",
    "GSM-7",
    "Gmail",
    "Idempotency-Key",
    "It works",
    "Linux",
    "Microsoft",
    "Node",
    "Opera",
    "PostgreSQL",
    "Português",
    "Python",
    "SHA-256",
    "Safari",
    "Spring",
    "Tab",
    "Telegram",
    "Twilio",
    "UCS-2",
    "Viber",
    "Vonage",
    "WhatsApp",
    "Windows",
    "Yahoo",
    "admin resume",
    "columns even",
    "many on",
    "muted block-summary",
    "notice warning",
    "paragraph block*",
    "Русский",
    "Українська",
];

/// Words in the markup that are the same in every language: the product, keys, protocols, and the command for a
/// terminal.
const IN_MARKUP: [&str; 6] =
    ["messaging", "Ctrl K", "HTTP", "ID", "messaging contact import people.csv", "messaging admin "];

/// Attributes with texts that people read or hear.
const SAID: [&str; 8] = ["aria-label", "title", "alt", "label", "caption", "text", "note", "help"];

/// Values of these attributes that need no translation: names of parameters and formats.
const IN_ATTRIBUTES: [&str; 5] = ["utm_source", "utm_medium", "utm_campaign", "HTML", "MJML"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("console")
}

/// The scripts of this project below the folder, by their paths.
fn scripts() -> BTreeMap<String, Script> {
    fn add(folder: &Path, below: &str, found: &mut BTreeMap<String, Script>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = format!("{below}{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                if !["vendor", "tests", "languages"].contains(&path.as_str()) {
                    add(&entry.path(), &format!("{path}/"), found);
                }
            } else if entry.path().extension().is_some_and(|ending| ending == "js") && !SILENT.contains(&path.as_str())
            {
                let script = read(&fs::read_to_string(entry.path()).unwrap());
                found.insert(path, script);
            }
        }
    }
    let mut found = BTreeMap::new();
    add(&folder(), "", &mut found);
    assert!(found.contains_key("app.js") && found.contains_key("screens/home.js"), "{:?}", found.keys());
    found
}

fn parsed(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder().join(path)).unwrap())
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns true if a string that is not an argument of `t` is a text for people: it stands in a table of texts.
fn reads_as_text(text: &str) -> bool {
    let has_word = text.as_bytes().windows(2).any(|pair| pair.iter().all(u8::is_ascii_alphabetic));
    let is_constant = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let begins = text.starts_with(|first: char| first.is_ascii_uppercase() || first == '“');
    has_word
        && (begins && !is_constant || text.contains(' '))
        && !NOT_TEXTS.iter().any(|start| text.starts_with(start))
        && !SAME_EVERYWHERE.contains(&text)
}

/// The texts of a script.
fn texts(script: &Script) -> BTreeSet<String> {
    let counted: BTreeSet<_> = script.counted.iter().flat_map(|(one, many)| [one, many]).collect();
    let has_letters = |text: &str| text.contains(|c: char| c.is_ascii_alphabetic());
    let mut found = BTreeSet::new();
    for literal in &script.literals {
        let is_named = SAME_EVERYWHERE.contains(&literal.text.as_str());
        let is_said = literal.is_said && has_letters(&literal.text) && !is_named;
        let is_in_table = !counted.contains(&literal.text) && reads_as_text(&literal.text);
        if is_said || is_in_table {
            found.insert(literal.text.clone());
        }
    }
    found.extend(script.counted.iter().map(|(one, many)| format!("{one}|{many}")));
    found
}

/// The texts of all scripts, of the gallery, and those that come from codes of the API.
fn all_texts() -> BTreeSet<String> {
    let mut found: BTreeSet<_> = scripts().values().flat_map(texts).collect();
    let string = |value: &Value| value.as_str().unwrap().to_owned();
    for template in parsed("gallery/gallery.json").as_array().unwrap() {
        found.extend([string(&template["name"]), string(&template["about"])]);
    }
    found.extend(parsed("tests/words.json").as_array().unwrap().iter().map(string));
    found
}

/// The languages besides English, as `lib/ui.js` lists them.
fn languages() -> Vec<String> {
    let script = fs::read_to_string(folder().join("lib/ui.js")).unwrap();
    let table = script.split("export const LANGUAGES = {").nth(1).unwrap().split("};").next().unwrap();
    let codes = table.split(',').filter_map(|entry| entry.split_once(':')).map(|(code, _)| code.trim().to_owned());
    let found: Vec<_> = codes.filter(|code| code != "en").collect();
    assert!(!found.is_empty() && found.iter().all(|code| code.len() == 2), "{found:?}");
    found
}

/// The texts of a language file, in the order of the file. Each must be on a separate line, so that duplicates are
/// found.
fn file(name: &str) -> BTreeMap<String, Value> {
    let path = format!("languages/{name}.json");
    let texts: BTreeMap<String, Value> = serde_json::from_value(parsed(&path)).unwrap();
    let lines = fs::read_to_string(folder().join(&path)).unwrap().lines().count();
    assert_eq!(lines, texts.len() + 2, "{path} has a text twice, or not each on a line of its own");
    texts
}

/// Returns true if a key is `one|many`, the words after a number.
fn is_counted(key: &str, texts: &BTreeSet<(String, String)>) -> bool {
    key.split_once('|').is_some_and(|(one, many)| texts.contains(&(one.to_owned(), many.to_owned())))
}

#[test]
fn every_text_is_in_every_language_and_nothing_else() {
    let scripts = scripts();
    let wanted = all_texts();
    let first: BTreeSet<_> = FIRST.iter().flat_map(|path| texts(&scripts[*path])).collect();
    assert!(wanted.len() > 2000 && first.len() > 100, "{} and {} texts", wanted.len(), first.len());
    for language in languages() {
        let [small, rest] = [format!("{language}-first"), language.clone()].map(|name| file(&name));
        let keys: BTreeSet<_> = small.keys().chain(rest.keys()).cloned().collect();
        let missing: Vec<_> = wanted.difference(&keys).collect();
        assert!(missing.is_empty(), "{language} lacks {missing:#?}");
        let unknown: Vec<_> = keys.difference(&wanted).collect();
        assert!(unknown.is_empty(), "{language} translates what nothing says: {unknown:#?}");
        let twice: Vec<_> = small.keys().filter(|key| rest.contains_key(*key)).collect();
        assert!(twice.is_empty(), "{language} has in both files {twice:#?}");
        let late: Vec<_> = first.iter().filter(|key| !small.contains_key(*key)).collect();
        assert!(late.is_empty(), "{language}-first lacks {late:#?}");
    }
}

#[test]
fn every_language_has_its_files_and_every_file_its_language() {
    let expected: BTreeSet<_> =
        languages().iter().flat_map(|code| [format!("{code}.json"), format!("{code}-first.json")]).collect();
    let found: BTreeSet<_> = fs::read_dir(folder().join("languages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected);
}

/// The names in braces of a text.
fn placeholders(text: &str) -> BTreeSet<&str> {
    let parts = text.split('{').skip(1).filter_map(|part| part.split_once('}'));
    let is_name =
        |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    parts.map(|(name, _)| name).filter(is_name).collect()
}

/// The plural forms of a language, of those that whole numbers have (Unicode CLDR, plural rules).
fn forms_of(language: &str) -> &'static [&'static str] {
    match language {
        "uk" | "ru" => &["few", "many", "one", "other"],
        _ => &["one", "other"],
    }
}

#[test]
fn translations_have_the_same_places_and_all_forms() {
    let counted: BTreeSet<_> = scripts().into_values().flat_map(|script| script.pairs).collect();
    for language in languages() {
        for (key, value) in file(&format!("{language}-first")).into_iter().chain(file(&language)) {
            let forms: Vec<_> = match &value {
                Value::String(text) => {
                    assert!(!is_counted(&key, &counted), "{language}: {key:?} needs forms");
                    vec![text.as_str()]
                }
                Value::Object(forms) => {
                    let names: Vec<_> = forms.keys().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
                    assert_eq!(names, forms_of(&language), "{language}: {key:?}");
                    forms.values().map(|form| form.as_str().unwrap()).collect()
                }
                other => panic!("{language}: {key:?} is {other}"),
            };
            for form in forms {
                assert!(!form.trim().is_empty() || key.trim().is_empty(), "{language}: {key:?} is empty");
                assert_eq!(placeholders(&key), placeholders(form), "{language}: {key:?} → {form:?}");
            }
        }
    }
}

#[test]
fn texts_are_given_to_t_as_plain_strings() {
    for (path, script) in scripts() {
        assert_eq!(script.said_templates, [""; 0], "console/{path} has texts that no file can name");
    }
}

#[test]
fn markup_has_no_words_of_its_own() {
    let mut found = Vec::new();
    for (path, script) in scripts() {
        for markup in &script.markup {
            for text in words_of(markup) {
                found.push(format!("console/{path}: {text}"));
            }
        }
    }
    assert!(found.is_empty(), "not in ${{t(…)}}:\n{}", found.join("\n"));
}

/// The words in markup: between its tags, and in the attributes that people read. A filled-in value is a NUL.
fn words_of(markup: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = markup;
    while !rest.is_empty() {
        let (text, tag) = rest.split_once('<').unwrap_or((rest, ""));
        let shown = entities_removed(&text.replace('\0', " "));
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_known =
            IN_MARKUP.iter().any(|known| shown == *known || known.ends_with(' ') && shown.starts_with(known));
        if shown.contains(|c: char| c.is_alphabetic()) && !is_known {
            found.push(shown);
        }
        let end = end_of_tag(tag);
        found.extend(attributes_of(&tag[..end]).filter(|value| !IN_ATTRIBUTES.contains(value)).map(str::to_owned));
        rest = tag.get(end + 1..).unwrap_or_default();
    }
    found
}

fn entities_removed(text: &str) -> String {
    let mut parts = text.split('&');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once(';').map_or(part, |(_, rest)| rest))
}

/// Returns the end of a tag: the first `>` outside of quotes.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    for (at, c) in tag.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '>' => return at,
            _ => {}
        }
    }
    tag.len()
}

/// The values of a tag's attributes that people read, if they have letters and no filled-in value.
fn attributes_of(tag: &str) -> impl Iterator<Item = &str> {
    SAID.iter().filter_map(move |name| {
        let value = tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?;
        (value.contains(|c: char| c.is_alphabetic()) && !value.contains('\0')).then_some(value)
    })
}

#[test]
fn words_in_markup_are_found() {
    let markup = "<p class=\"big one\">\0 and <b title=\"A word\">\0</b>&nbsp;<a href=\"a>b\" aria-label=\0>x1</a></p>";
    assert_eq!(words_of(markup), ["and", "A word", "x1"]);
}
