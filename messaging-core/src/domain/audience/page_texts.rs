//! Texts by which a workspace replaces the standard ones on the pages for its readers.
//!
//! Contract section 23, "Pages". The texts are plain text: the page escapes them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader_texts::{Language, ReaderText};
use crate::violation::{FieldCode, Violations};

/// Maximum length of one text, in characters.
pub const MAX_TEXT: usize = 500;

/// Maximum length of all texts of a workspace together, in characters.
pub const MAX_TEXTS: usize = 20_000;

/// Texts by the code of their language, and then by their key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PageTexts(BTreeMap<String, BTreeMap<String, String>>);

impl PageTexts {
    /// Reads texts from JSON. Adds a violation below a pointer for each error; it names the known languages or keys.
    pub fn read(
        texts: &BTreeMap<String, BTreeMap<String, String>>,
        pointer: &str,
        violations: &mut Violations,
    ) -> Self {
        let mut length = 0;
        for (code, of_language) in texts {
            let at = format!("{pointer}/{}", escaped(code));
            if Language::ALL.iter().all(|language| language.code() != code) {
                let codes = Language::ALL.map(Language::code).join(", ");
                violations.add(
                    &at,
                    FieldCode::UnknownField,
                    format_args!("is not a language of these pages; they are {codes}"),
                );
                continue;
            }
            for (key, text) in of_language {
                check(key, text, format!("{at}/{}", escaped(key)), violations);
                length += text.chars().count();
            }
        }
        if length > MAX_TEXTS {
            let rule = format_args!("must have at most {MAX_TEXTS} characters in all");
            violations.add(pointer, FieldCode::TooLong, rule);
        }
        Self(texts.iter().filter(|(_, of_language)| !of_language.is_empty()).map(owned).collect())
    }

    /// A text as its readers see it: the workspace's own in this language, else the standard one.
    pub fn say(&self, text: ReaderText, language: Language) -> &str {
        let own = self.0.get(language.code()).and_then(|of_language| of_language.get(text.key()));
        own.map_or_else(|| text.in_language(language), String::as_str)
    }
}

fn owned((code, texts): (&String, &BTreeMap<String, String>)) -> (String, BTreeMap<String, String>) {
    (code.clone(), texts.iter().map(|(key, text)| (key.clone(), text.trim().to_owned())).collect())
}

fn check(key: &str, text: &str, pointer: String, violations: &mut Violations) {
    if !ReaderText::keys().any(|known| known == key) {
        let keys = ReaderText::keys().collect::<Vec<_>>().join(", ");
        violations.add(pointer, FieldCode::UnknownField, format_args!("is not a text of these pages; they are {keys}"));
    } else if text.trim().is_empty() {
        violations.add(pointer, FieldCode::Required, "must not be empty; leave it out to keep the standard text");
    } else if text.chars().count() > MAX_TEXT {
        violations.add(pointer, FieldCode::TooLong, format_args!("must have at most {MAX_TEXT} characters"));
    } else if text.chars().any(char::is_control) {
        violations.add(pointer, FieldCode::InvalidFormat, "must not contain control characters");
    }
}

/// A name as a part of a JSON pointer (RFC 6901 section 3).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(texts: Value) -> (PageTexts, Vec<Value>) {
        let mut violations = Violations::new();
        let read = PageTexts::read(&serde_json::from_value(texts).unwrap(), "/page_texts", &mut violations);
        (read, violations.as_slice().iter().map(|one| serde_json::to_value(one).unwrap()).collect())
    }

    #[test]
    fn a_text_stands_in_place_of_ours_in_its_language() {
        let (texts, faults) = read(json!({"de": {"form_button": " Mitmachen "}, "fr": {}}));
        assert_eq!(faults, Vec::<Value>::new());
        assert_eq!(texts.say(ReaderText::FormButton, Language::German), "Mitmachen");
        let ours = ReaderText::FormButton.in_language(Language::English);
        assert_eq!(texts.say(ReaderText::FormButton, Language::English), ours);
        let ours = ReaderText::FormEmail.in_language(Language::German);
        assert_eq!(texts.say(ReaderText::FormEmail, Language::German), ours);
        assert_eq!(serde_json::to_value(&texts).unwrap(), json!({"de": {"form_button": "Mitmachen"}}));
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        for (texts, pointer, code) in [
            (json!({"ja": {"form_button": "x"}}), "/page_texts/ja", "unknown_field"),
            (json!({"DE": {}}), "/page_texts/DE", "unknown_field"),
            (json!({"de": {"a/b": "x"}}), "/page_texts/de/a~1b", "unknown_field"),
            (json!({"de": {"form_button": " "}}), "/page_texts/de/form_button", "required"),
            (json!({"de": {"form_button": "a\nb"}}), "/page_texts/de/form_button", "invalid_format"),
            (json!({"de": {"form_button": "x".repeat(MAX_TEXT + 1)}}), "/page_texts/de/form_button", "too_long"),
        ] {
            let (_, faults) = read(texts.clone());
            assert_eq!(faults.len(), 1, "{texts}");
            assert_eq!((&faults[0]["pointer"], &faults[0]["code"]), (&json!(pointer), &json!(code)), "{texts}");
        }
        let (_, faults) = read(json!({"de": {"nope": "x"}}));
        assert!(faults[0]["message"].as_str().unwrap().contains("form_button, form_email"), "{faults:?}");
        let all: serde_json::Map<_, _> =
            ReaderText::keys().map(|key| (key.to_owned(), json!("x".repeat(MAX_TEXT)))).collect();
        let (_, faults) = read(json!({"de": all}));
        assert_eq!((faults.len(), &faults[0]["pointer"]), (1, &json!("/page_texts")));
    }
}
