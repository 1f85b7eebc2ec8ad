//! Templates of an export: from their files to the bodies that create them.

use std::collections::{BTreeSet, HashSet};

use messaging_core::domain::channel::Channel;
use messaging_core::domain::template::{Design, saving};
use serde_json::{Value, json};

use super::directory::Entry;
use super::language::{Fault, Translated};
use super::plan::Template;
use super::refused::Why;
use crate::error::Error;
use crate::files;

/// Returns the documents of a file: one, or those of an array at the top or below `data`, `result` or `templates`.
pub(crate) fn documents(entry: &Entry) -> Result<Vec<Value>, Error> {
    let text = files::read(&entry.path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut document: Value = serde_json::from_str(text).map_err(|error| Error::unreadable(&entry.path, error))?;
    for _ in 0..3 {
        let inner = ["data", "results", "result", "templates"].iter().find_map(|name| {
            document.get_mut(*name).filter(|inner| inner.is_object() || inner.is_array()).map(Value::take)
        });
        match inner {
            Some(inner) => document = inner,
            None => break,
        }
    }
    Ok(match document {
        Value::Array(documents) => documents,
        document => vec![document],
    })
}

/// A template that is being translated.
pub(crate) struct Making {
    template: Template,
    body: Value,
}

impl Making {
    /// Creates an email template; without a name it is called like its file.
    pub(crate) fn new(entry: &Entry, name: Option<&str>) -> Self {
        let name = name.map(str::trim).filter(|name| !name.is_empty()).map_or_else(|| entry.stem(), ToOwned::to_owned);
        let body = json!({"name": name, "channel": "email"});
        let template = Template { file: entry.name.clone(), name, body: Ok(Value::Null), notes: BTreeSet::new() };
        Self { template, body }
    }

    /// Translates and adds a part, if there is one.
    pub(crate) fn part(
        &mut self,
        part: &str,
        source: Option<&str>,
        translate: impl Fn(&str) -> Result<Translated, Fault>,
    ) {
        let Some(source) = source else { return };
        match translate(source) {
            Ok(translated) => {
                self.body[part] = json!(translated.text);
                self.template.notes.extend(translated.notes);
            }
            Err(fault) => self.refuse(format!("{part}, {fault}")),
        }
    }

    /// Refuses the template; the first reason counts.
    pub(crate) fn refuse(&mut self, why: String) {
        if self.template.body.is_ok() {
            self.template.body = Err(why);
        }
    }

    /// Returns the template; one that the API would not save is refused.
    pub(crate) fn finish(mut self) -> Template {
        if self.body["html"].is_null() && self.body["text"].is_null() {
            self.refuse("it has no body in this file".to_owned());
        }
        if self.template.body.is_ok() {
            let checked = check(&self.body);
            self.template.body = checked.map(|()| self.body);
        }
        self.template
    }
}

/// Checks that a body can be saved, as the API would judge it.
pub(crate) fn check(body: &Value) -> Result<(), String> {
    let text = |member: &str| body[member].as_str().map(ToOwned::to_owned);
    let channel: Channel =
        serde_json::from_value(body["channel"].clone()).map_err(|_| "it has no channel".to_owned())?;
    let design = Design {
        name: text("name").unwrap_or_default(),
        subject: text("subject"),
        preheader: text("preheader"),
        html: text("html"),
        mjml: text("mjml"),
        text: text("text"),
        ..Design::default()
    };
    saving::make(channel, design).map(|_| ()).map_err(|faults| Why::of_violations(&faults).message)
}

/// Gives templates of the same name different names, because templates are found by name.
pub(crate) fn tell_apart(templates: &mut [Template]) {
    let mut taken = HashSet::new();
    for template in templates {
        let mut name = template.name.clone();
        let channel = template.body.as_ref().map_or(Value::Null, |body| body["channel"].clone()).to_string();
        let mut count = 1;
        while !taken.insert((channel.clone(), name.clone())) {
            count += 1;
            name = format!("{} ({count})", template.name);
        }
        if let Ok(body) = &mut template.body {
            body["name"] = json!(name);
        }
        template.name = name;
    }
}
