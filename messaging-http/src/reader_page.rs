//! Pages for readers of mail: unsubscribing, confirming, forms, preferences, the archive.
//!
//! Plain on purpose: no script, nothing loaded except the logo of a form, readable in every browser, by screen readers
//! and in the dark, in the reader's language. Changes are made by forms, because mail filters follow links. Texts of
//! the workspace may be in a language that is written from right to left, and set their own direction.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use messaging_core::domain::audience::form::{FieldTarget, FormField, PROOF, STARTED, TRAP};
use messaging_core::domain::audience::list::ContactList;
use messaging_core::domain::audience::reader_texts::{Language, ReaderText, escaped};
use messaging_core::domain::security::account::Workspace;
use messaging_core::violation::Violations;
use messaging_engine::services::confirming::{ReaderList, ReaderPage};
use messaging_engine::services::forms::FormPage;

/// Keeps search engines from listing a page.
const UNLISTED: &str = "<meta name=\"robots\" content=\"noindex, nofollow\">";

const STYLE: &str = "\
:root{background:Canvas;color:CanvasText;color-scheme:light dark}\
body{font:1.125rem/1.5 system-ui,sans-serif;margin:0 auto;max-width:32rem;overflow-wrap:anywhere;padding:15vh 1.25rem 2rem}\
h1{font-size:1.5rem;margin:0 0 .5rem}\
h2{font-size:1.2rem;margin:2rem 0 .5rem}\
img{display:block;height:auto;margin:0 0 1rem;max-height:5rem;max-width:100%}\
fieldset{border:0;margin:0;padding:0}\
legend{font-weight:600;padding:0}\
label{display:block;margin:.5rem 0}\
small{display:block;font-size:.9rem}\
input[type=text],input[type=email],input[type=tel],select{box-sizing:border-box;display:block;font:inherit;padding:.5rem;width:100%}\
.error{font-weight:600}\
.trap{height:1px;left:-10000px;overflow:hidden;position:absolute;width:1px}\
button{background:#1d4ed8;border:0;border-radius:.5rem;color:#fff;cursor:pointer;font:inherit;font-weight:600;\
margin-top:.5rem;padding:.75rem 1.5rem}\
button:hover{background:#1e40af}\
button:focus-visible,a:focus-visible,input:focus-visible,select:focus-visible\
{outline:3px solid #f59e0b;outline-offset:2px}";

/// The texts of a page: in the language of its reader, and the workspace's texts if it has its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    language: Language,
    workspace: Option<Arc<Workspace>>,
}

impl From<Language> for Words {
    /// The built-in texts.
    fn from(language: Language) -> Self {
        Self { language, workspace: None }
    }
}

impl Words {
    /// The texts of a workspace.
    pub(crate) const fn new(language: Language, workspace: Option<Arc<Workspace>>) -> Self {
        Self { language, workspace }
    }

    /// The same texts in another language, if one is given.
    pub(crate) fn or_in(self, language: Option<Language>) -> Self {
        Self { language: language.unwrap_or(self.language), ..self }
    }

    /// Language of the page.
    pub(crate) const fn language(&self) -> Language {
        self.language
    }

    /// A text.
    fn text(&self, text: ReaderText) -> &str {
        match &self.workspace {
            Some(workspace) => workspace.readers.page_texts.say(text, self.language),
            None => text.in_language(self.language),
        }
    }

    /// A text as markup.
    pub(crate) fn say(&self, text: ReaderText) -> String {
        escaped(self.text(text))
    }

    /// A text with a name filled in, as markup.
    fn say_of(&self, text: ReaderText, place: &str, name: &str) -> String {
        let name = format!("<bdi>{}</bdi>", escaped(name));
        self.text(text).split(place).map(escaped).collect::<Vec<_>>().join(&name)
    }
}

/// A page with a title and one sentence.
fn plain(title: ReaderText, text: ReaderText, words: &Words) -> Bytes {
    let content = format!("<p>{}</p>", words.say(text));
    page(&words.say(title), &content, words)
}

/// Asks for confirmation to unsubscribe, with the choice of a list if there is one. The form goes to the page's own
/// address.
pub(crate) fn question(asked: Option<&ReaderPage>, words: &Words) -> Bytes {
    let text = words.say(ReaderText::UnsubscribeText);
    let mut content = String::new();
    let asked = asked.filter(|asked| !asked.lists.is_empty());
    if asked.is_none() {
        let _ = write!(content, "<p>{text}</p>");
    }
    content.push_str("<form method=\"post\">");
    if let Some(asked) = asked {
        let _ = write!(content, "<fieldset><legend>{text}</legend>");
        for (index, list) in asked.lists.iter().enumerate() {
            let checked = if index == 0 { " checked" } else { "" };
            let name = words.say_of(ReaderText::UnsubscribeList, "{list}", &list.name);
            let _ = write!(
                content,
                "<label><input type=\"radio\" name=\"list\" value=\"{}\"{checked}> {name}</label>",
                list.id
            );
        }
        let all = words.say_of(ReaderText::UnsubscribeAll, "{sender}", &asked.sender);
        let _ = write!(content, "<label><input type=\"radio\" name=\"list\" value=\"all\"> {all}</label></fieldset>");
    }
    let button = words.say(ReaderText::UnsubscribeButton);
    let _ = write!(content, "<button type=\"submit\" name=\"confirm\" value=\"yes\">{button}</button></form>");
    page(&words.say(ReaderText::UnsubscribeTitle), &content, words)
}

/// Says that the reader is unsubscribed.
pub(crate) fn done(words: &Words) -> Bytes {
    plain(ReaderText::UnsubscribedTitle, ReaderText::UnsubscribedText, words)
}

/// Says that the link is unknown.
pub(crate) fn unknown(words: &Words) -> Bytes {
    plain(ReaderText::LinkTitle, ReaderText::LinkText, words)
}

/// Says that the link has expired.
pub(crate) fn expired(words: &Words) -> Bytes {
    plain(ReaderText::ExpiredTitle, ReaderText::ExpiredText, words)
}

/// Says that a failure occurred and nothing was changed.
pub(crate) fn trouble(words: &Words) -> Bytes {
    plain(ReaderText::TroubleTitle, ReaderText::TroubleText, words)
}

/// Says that there were too many tries.
pub(crate) fn limited(words: &Words) -> Bytes {
    plain(ReaderText::TroubleTitle, ReaderText::FormLimited, words)
}

/// Says that a mail was sent.
pub(crate) fn mail_sent(words: &Words) -> Bytes {
    plain(ReaderText::SentTitle, ReaderText::SentText, words)
}

/// Says that the reader is subscribed.
pub(crate) fn subscribed(words: &Words) -> Bytes {
    plain(ReaderText::ConfirmedTitle, ReaderText::ConfirmedText, words)
}

/// A page with a button to press.
pub(crate) fn press(
    (title, text): (ReaderText, ReaderText),
    lists: &[ReaderList],
    button: ReaderText,
    words: &Words,
) -> Bytes {
    let mut content = format!("<p>{}</p>", words.say(text));
    if !lists.is_empty() {
        content.push_str("<ul>");
        for list in lists {
            content.push_str("<li dir=\"auto\">");
            named(&mut content, &list.name, list.description.as_deref());
            content.push_str("</li>");
        }
        content.push_str("</ul>");
    }
    let button = words.say(button);
    let _ = write!(
        content,
        "<form method=\"post\"><button type=\"submit\" name=\"confirm\" value=\"yes\">{button}</button></form>"
    );
    page(&words.say(title), &content, words)
}

/// Says in one line that the action was done.
pub(crate) fn happened(title: ReaderText, words: &Words) -> Bytes {
    page(&words.say(title), "", words)
}

/// The name of a list, with its description below.
fn named(content: &mut String, name: &str, description: Option<&str>) {
    content.push_str(&escaped(name));
    if let Some(description) = description {
        let _ = write!(content, "<small dir=\"auto\">{}</small>", escaped(description));
    }
}

/// State of a form besides its fields.
#[derive(Debug, Default)]
pub(crate) struct FormState<'a> {
    /// Answers of the reader.
    pub(crate) answers: &'a [(String, String)],
    /// Errors of the answers.
    pub(crate) faults: Option<&'a Violations>,
    /// True if the button must be pressed once more.
    pub(crate) again: bool,
}

/// The page of a form.
pub(crate) fn form(shown: &FormPage, state: &FormState<'_>, words: &Words) -> Bytes {
    let form = &shown.form;
    let mut content = String::new();
    if let Some(logo) = &form.theme.logo_url {
        let _ = write!(content, "<img src=\"{}\" alt=\"{}\">", escaped(logo), escaped(&shown.sender));
    }
    let _ = write!(content, "<h1 dir=\"auto\">{}</h1>", escaped(&form.name));
    if let Some(text) = &form.theme.text {
        let _ = write!(content, "<p dir=\"auto\">{}</p>", escaped(text));
    }
    lists_of_form(&mut content, &shown.lists);
    if state.again {
        let _ = write!(content, "<p class=\"error\" role=\"alert\">{}</p>", words.say(ReaderText::FormAgain));
    }
    form_tag(&mut content, shown.pow_bits, words);
    for (index, field) in form.fields.iter().enumerate() {
        field_of_form(&mut content, index, field, state, words);
    }
    let style =
        form.theme.color.as_deref().map_or_else(String::new, |color| {
            format!(" style=\"background:{};color:{}\"", escaped(color), ink_on(color))
        });
    let button = words.say(ReaderText::FormButton);
    let _ = write!(
        content,
        "<div class=\"trap\" aria-hidden=\"true\"><input type=\"text\" name=\"{TRAP}\" tabindex=\"-1\" \
         autocomplete=\"off\"></div><input type=\"hidden\" name=\"{STARTED}\" value=\"{}\">\
         <button type=\"submit\"{style}>{button}</button></form>",
        escaped(&shown.started)
    );
    let head = if shown.pow_bits > 0 { "<script src=\"proof.js\" defer></script>" } else { "" };
    document(&escaped(&form.name), head, &content, words.language).into()
}

/// Begins a form. One that needs a proof of work tells the script so, with the text to show meanwhile.
fn form_tag(content: &mut String, pow_bits: u32, words: &Words) {
    if pow_bits == 0 {
        content.push_str("<form method=\"post\">");
        return;
    }
    let needed = words.say(ReaderText::FormScript);
    let _ = write!(
        content,
        "<noscript><p class=\"error\">{needed}</p></noscript><form method=\"post\" data-bits=\"{pow_bits}\">\
         <input type=\"hidden\" name=\"{PROOF}\"><p role=\"status\" hidden>{}</p>",
        words.say(ReaderText::FormWorking)
    );
}

fn lists_of_form(content: &mut String, lists: &[ContactList]) {
    content.push_str("<ul>");
    for list in lists {
        content.push_str("<li dir=\"auto\">");
        named(content, &list.name, list.description.as_deref());
        content.push_str("</li>");
    }
    content.push_str("</ul>");
}

fn field_of_form(content: &mut String, index: usize, field: &FormField, state: &FormState<'_>, words: &Words) {
    let own = || match field.target() {
        Some(FieldTarget::Email) => words.say(ReaderText::FormEmail),
        Some(FieldTarget::Phone) => words.say(ReaderText::FormPhone),
        Some(FieldTarget::Attribute(key)) => escaped(key),
        None => String::new(),
    };
    let label = field.label.as_deref().map_or_else(own, escaped);
    let (kind, autocomplete) = match field.target() {
        Some(FieldTarget::Email) => ("email", "email"),
        Some(FieldTarget::Phone) => ("tel", "tel"),
        _ => ("text", "on"),
    };
    let answer = state.answers.iter().find(|(name, _)| *name == field.field).map_or("", |(_, text)| text.as_str());
    let pointer = format!("/{}", field.field);
    let is_faulty = state.faults.is_some_and(|faults| faults.as_slice().iter().any(|fault| is_at(fault, &pointer)));
    let required = if field.required { " required" } else { "" };
    let mark = if field.required { format!(" ({})", words.say(ReaderText::FormRequired)) } else { String::new() };
    let described =
        if is_faulty { format!(" aria-invalid=\"true\" aria-describedby=\"e{index}\"") } else { String::new() };
    let _ = write!(
        content,
        "<label for=\"f{index}\" dir=\"auto\">{label}{mark}</label>\
         <input id=\"f{index}\" type=\"{kind}\" dir=\"auto\" name=\"{}\" value=\"{}\" autocomplete=\"{autocomplete}\" maxlength=\"1000\"{required}{described}>",
        escaped(&field.field),
        escaped(answer)
    );
    if is_faulty {
        let text = words.say(ReaderText::FormError);
        let _ = write!(content, "<p class=\"error\" id=\"e{index}\" role=\"alert\">{text}</p>");
    }
}

fn is_at(fault: &impl serde::Serialize, pointer: &str) -> bool {
    let fault = serde_json::to_value(fault).unwrap_or_default();
    // The rules of contacts name an attribute by the pointer into the object.
    let named = fault.get("pointer").and_then(serde_json::Value::as_str).unwrap_or_default().replacen(
        "attributes/",
        "attributes.",
        1,
    );
    named == pointer
}

/// Black or white, whichever has the better contrast on a color such as `#1d4ed8` (WCAG 2.2, relative luminance).
fn ink_on(color: &str) -> &'static str {
    let channel = |at: usize| {
        let value = color.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or_default();
        let value = f64::from(value) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
    if luminance > 0.179 { "#000" } else { "#fff" }
}

/// The page of preferences.
pub(crate) fn preferences(shown: &ReaderPage, is_saved: bool, bad_address: bool, words: &Words) -> Bytes {
    let mut content = String::new();
    if is_saved {
        let _ = write!(content, "<p role=\"status\">{}</p>", words.say(ReaderText::PreferencesSaved));
    }
    content.push_str("<form method=\"post\"><fieldset>");
    if !shown.lists.is_empty() {
        let _ = write!(content, "<legend>{}</legend>", words.say(ReaderText::PreferencesLists));
    }
    for list in &shown.lists {
        let (id, checked) = (list.id, if list.is_member { " checked" } else { "" });
        let _ = write!(
            content,
            "<input type=\"hidden\" name=\"shown\" value=\"{id}\">\
             <label dir=\"auto\"><input type=\"checkbox\" name=\"list\" value=\"{id}\"{checked}> "
        );
        named(&mut content, &list.name, list.description.as_deref());
        content.push_str("</label>");
    }
    if let Some(is_weekly) = shown.weekly {
        let checked = if is_weekly { " checked" } else { "" };
        let _ = write!(
            content,
            "<input type=\"hidden\" name=\"shown\" value=\"weekly\">\
             <label><input type=\"checkbox\" name=\"weekly\" value=\"yes\"{checked}> {}</label>",
            words.say(ReaderText::PreferencesWeekly)
        );
    }
    let _ =
        write!(content, "</fieldset><label>{} <select name=\"language\">", words.say(ReaderText::PreferencesLanguage));
    for one in Language::ALL {
        let selected = if one == words.language { " selected" } else { "" };
        let _ = write!(content, "<option value=\"{0}\" lang=\"{0}\"{selected}>{1}</option>", one.code(), one.name());
    }
    content.push_str("</select></label>");
    button(&mut content, "save", &words.say(ReaderText::PreferencesSave));
    content.push_str("</form>");
    action(&mut content, "stop", &words.say_of(ReaderText::PreferencesAll, "{sender}", &shown.sender));
    let _ = write!(content, "<h2>{}</h2><form method=\"post\">", words.say(ReaderText::AddressTitle));
    if bad_address {
        let text = words.say(ReaderText::FormError);
        let _ = write!(content, "<p class=\"error\" id=\"bad\" role=\"alert\">{text}</p>");
    }
    let described = if bad_address { " aria-invalid=\"true\" aria-describedby=\"bad\"" } else { "" };
    let _ = write!(
        content,
        "<label>{} <input type=\"email\" name=\"address\" autocomplete=\"email\" required{described}></label>",
        words.say(ReaderText::AddressNew)
    );
    button(&mut content, "address", &words.say(ReaderText::PreferencesSave));
    let _ = write!(content, "</form><h2>{}</h2>", words.say(ReaderText::DataTitle));
    action(&mut content, "data", &words.say(ReaderText::DataButton));
    action(&mut content, "erase", &words.say(ReaderText::EraseTitle));
    page(&words.say(ReaderText::PreferencesTitle), &content, words)
}

fn button(content: &mut String, value: &str, text: &str) {
    let _ = write!(content, "<button type=\"submit\" name=\"action\" value=\"{value}\">{text}</button>");
}

fn action(content: &mut String, value: &str, text: &str) {
    content.push_str("<form method=\"post\">");
    button(content, value, text);
    content.push_str("</form>");
}

/// A page with a heading, which no search engine lists.
fn page(title: &str, content: &str, words: &Words) -> Bytes {
    let content = format!("<h1>{title}</h1>{content}");
    document(title, UNLISTED, &content, words.language).into()
}

/// A page of markup; `head` is the additional content of its head.
pub(crate) fn document(title: &str, head: &str, content: &str, language: Language) -> String {
    format!(
        "<!doctype html><html lang=\"{}\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">{head}<style>{STYLE}</style></head>\
         <body><main>{content}</main></body></html>\n",
        language.code()
    )
}

#[cfg(test)]
mod tests {
    use messaging_core::violation::FieldCode;

    use super::*;

    #[test]
    fn buttons_are_read_on_every_color() {
        for (color, ink) in [("#1d4ed8", "#fff"), ("#ffffff", "#000"), ("#000000", "#fff"), ("#facc15", "#000")] {
            assert_eq!(ink_on(color), ink, "{color}");
        }
    }

    #[test]
    fn a_fault_is_shown_at_its_field() {
        let mut faults = Violations::new();
        faults.add("/email", FieldCode::InvalidFormat, "x");
        faults.add("/attributes/plan", FieldCode::InvalidType, "x");
        let found = |pointer| faults.as_slice().iter().filter(|fault| is_at(fault, pointer)).count();
        assert_eq!((found("/email"), found("/attributes.plan"), found("/phone")), (1, 1, 0));
    }

    #[test]
    fn names_of_lists_are_no_markup() {
        let list = ReaderList {
            id: "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            name: "<b>News</b>".to_owned(),
            description: Some("\"x\"".to_owned()),
            is_member: true,
        };
        let shown = ReaderPage { language: None, sender: "A & B".to_owned(), lists: vec![list], weekly: Some(true) };
        for language in Language::ALL {
            let words = &Words::from(language);
            for page in [
                question(Some(&shown), words),
                preferences(&shown, true, true, words),
                press(
                    (ReaderText::ConfirmTitle, ReaderText::ConfirmText),
                    &shown.lists,
                    ReaderText::ConfirmButton,
                    words,
                ),
            ] {
                let page = String::from_utf8(page.to_vec()).unwrap();
                assert!(page.contains("&lt;b&gt;News") && !page.contains("<b>") && !page.contains("<script"), "{page}");
                assert!(page.contains(&format!("<html lang=\"{}\">", language.code())));
            }
        }
    }
}
