//! Forms by which readers subscribe to public lists.
//!
//! Contract section 23. A form has a page on this server, and accepts posts from pages of other sites. Fields other
//! than the email address only set what the contact lacks: whoever posts has not proved yet that the address is theirs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contact::attributes;
use crate::ids::{FormId, ListId, WorkspaceId};
use crate::time::Timestamp;
use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations};

/// Maximum number of forms of a workspace.
pub const MAX_FORMS: usize = 200;

/// Maximum number of lists of a form.
pub const MAX_LISTS: u64 = 20;

/// Maximum number of fields of a form.
pub const MAX_FIELDS: u64 = 20;

/// Maximum number of sites whose pages may post to a form.
pub const MAX_ORIGINS: u64 = 20;

/// Minimum time from the making of a form's page to its post.
pub const LEAST_TIME: Duration = Duration::from_secs(2);

/// Maximum time from the making of a form's page to its post.
pub const LONGEST_TIME: Duration = Duration::from_hours(24);

/// Name of the hidden field (honeypot) that people leave empty and bots fill in.
pub const TRAP: &str = "website";

/// Name of the hidden field with a token of the time at which the page was made.
pub const STARTED: &str = "started";

/// Name of the field with the proof of work.
pub const PROOF: &str = "proof";

const MAX_URL: usize = 2048;
const MAX_LABEL: u64 = 100;
const MAX_TEXT: u64 = 500;
const MAX_FIELD: usize = 80;

/// A form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// Its id.
    pub id: FormId,
    /// Workspace that owns the form.
    pub workspace_id: WorkspaceId,
    /// Title of its page, 1 to 200 characters.
    pub name: String,
    /// Public lists to which the form subscribes.
    pub list_ids: Vec<ListId>,
    /// Fields of the form in the order of its page, `email` always among them.
    pub fields: Vec<FormField>,
    /// URL that the reader is redirected to after the post, instead of the server's own page.
    pub redirect_url: Option<String>,
    /// Origins whose pages may post to the form by script (CORS), such as `https://www.example.com`.
    pub allowed_origins: Vec<String>,
    /// Look of its page.
    pub theme: FormTheme,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FormField {
    /// `email`, `phone`, or `attributes.<key>`.
    pub field: String,
    /// Label, at most 100 characters; a word in the reader's language unless given.
    #[serde(default)]
    #[validate(length(max = MAX_LABEL))]
    pub label: Option<String>,
    /// True if the field has to be filled in; `email` always has to.
    #[serde(default)]
    pub required: bool,
}

/// Look of a form's page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[setters(default)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FormTheme {
    /// Color of the button, `#1d4ed8`.
    #[serde(default)]
    pub color: Option<String>,
    /// Picture above the title, an https address.
    #[serde(default)]
    pub logo_url: Option<String>,
    /// Text above the fields, at most 500 characters.
    #[serde(default)]
    #[validate(length(max = MAX_TEXT))]
    pub text: Option<String>,
}

/// Value that a field of a form fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldTarget<'a> {
    /// The email address.
    Email,
    /// The phone number.
    Phone,
    /// An attribute, by its key.
    Attribute(&'a str),
}

impl FormField {
    /// Returns the value that the field fills in; `None` for a field that forms do not have.
    pub fn target(&self) -> Option<FieldTarget<'_>> {
        match self.field.as_str() {
            "email" => Some(FieldTarget::Email),
            "phone" => Some(FieldTarget::Phone),
            text => {
                let key = text.strip_prefix("attributes.").filter(|key| attributes::is_key(key));
                key.filter(|_| text.len() <= MAX_FIELD).map(FieldTarget::Attribute)
            }
        }
    }
}

/// Returns the fields with the email address, which is added in front if missing and always required.
pub fn with_email(mut fields: Vec<FormField>) -> Vec<FormField> {
    match fields.iter_mut().find(|one| one.field == "email") {
        Some(email) => email.required = true,
        None => fields.insert(0, FormField { field: "email".to_owned(), label: None, required: true }),
    }
    fields
}

/// Adds a violation for each field that is empty, unknown or a duplicate.
pub fn check_fields(fields: &[FormField], violations: &mut Violations) {
    for (index, one) in fields.iter().enumerate() {
        let pointer = format!("/fields/{index}/field");
        if one.field.is_empty() {
            violations.add(pointer, FieldCode::Required, "is required");
        } else if one.target().is_none() {
            violations.add(pointer, FieldCode::UnknownValue, "must be email, phone or attributes.<key>");
        } else if fields[..index].iter().any(|other| other.field == one.field) {
            violations.add(pointer, FieldCode::Duplicate, "names a field that the form has already");
        }
    }
}

/// Adds a violation for each text that is no origin.
pub fn check_origins(origins: &[String], violations: &mut Violations) {
    for (index, origin) in origins.iter().enumerate() {
        if !is_origin(origin) {
            let rule = "must be an origin such as https://www.example.com";
            violations.add(format!("/allowed_origins/{index}"), FieldCode::InvalidFormat, rule);
        }
    }
}

/// Adds the violations of a theme's color and logo address.
pub fn check_theme(theme: &FormTheme, violations: &mut Violations) {
    let is_color = |text: &String| {
        text.len() == 7 && text.starts_with('#') && text.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit())
    };
    if theme.color.as_ref().is_some_and(|color| !is_color(color)) {
        violations.add("/theme/color", FieldCode::InvalidFormat, "must be a color such as #1d4ed8");
    }
    if theme.logo_url.as_ref().is_some_and(|url| !is_web_address(url) || !url.starts_with("https://")) {
        violations.add(
            "/theme/logo_url",
            FieldCode::InvalidFormat,
            "must be an https address such as https://www.example.com/logo.png",
        );
    }
}

/// Adds a violation if the address to redirect to is no absolute http or https address.
pub fn check_redirect(url: &str, violations: &mut Violations) {
    if !is_web_address(url) {
        violations.add("/redirect_url", FieldCode::InvalidFormat, "must be an absolute http or https address");
    }
}

/// True if a text is an absolute http or https address without user information: at most 2048 visible ASCII characters,
/// none of them a quotation mark, backtick, angle bracket, backslash, semicolon or comma.
fn is_web_address(text: &str) -> bool {
    let is_plain = text.len() <= MAX_URL && text.bytes().all(|byte| byte.is_ascii_graphic());
    let has_quotes = text.contains(['"', '\'', '<', '>', '\\', '`', ';', ',']);
    let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let authority = authority.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    is_plain && !has_quotes && !authority.is_empty() && !authority.contains('@') && text.parse::<http::Uri>().is_ok()
}

/// True if a text is scheme, host and optional port alone, in lower case.
fn is_origin(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    is_web_address(text) && !rest.contains(['/', '?', '#']) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Returns scheme, host and port of an address; `None` without `://`.
pub fn origin_of(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    Some(&url[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of violations that a check adds.
    fn found(check: impl FnOnce(&mut Violations)) -> usize {
        let mut violations = Violations::new();
        check(&mut violations);
        violations.as_slice().len()
    }

    #[test]
    fn fields_are_of_the_reader_and_named_once() {
        let fields = |names: &[&str]| names.iter().map(|name| FormField::new(*name)).collect::<Vec<_>>();
        let codes = |names: &[&str]| {
            let mut violations = Violations::new();
            check_fields(&fields(names), &mut violations);
            violations.as_slice().len()
        };
        assert_eq!(codes(&["email", "phone", "attributes.first_name"]), 0);
        for bad in ["", "external_id", "attributes.", "attributes.a b", "list_ids", "consent.sms"] {
            assert_eq!(codes(&[bad]), 1, "{bad}");
        }
        assert_eq!(codes(&["phone", "phone"]), 1);
        let asked = with_email(fields(&["phone"]));
        assert_eq!((asked[0].field.as_str(), asked[0].required, asked.len()), ("email", true, 2));
        let asked = with_email(fields(&["phone", "email"]));
        assert_eq!((asked[1].field.as_str(), asked[1].required, asked.len()), ("email", true, 2));
    }

    #[test]
    fn addresses_are_absolute_and_plain() {
        for good in ["https://a.example/b?c=d#e", "http://localhost:8080"] {
            assert_eq!(found(|violations| check_redirect(good, violations)), 0, "{good}");
        }
        for bad in
            ["", "a.example", "javascript:alert(1)", "https://", "https://u@a.example", "https://a b", "https://ä"]
        {
            assert_eq!(found(|violations| check_redirect(bad, violations)), 1, "{bad}");
        }
        let origins = |text: &str| found(|violations| check_origins(&[text.to_owned()], violations));
        assert_eq!(origins("https://www.example.com:8443"), 0);
        for bad in ["*", "https://a.example/", "https://A.example", "a.example", "null"] {
            assert_eq!(origins(bad), 1, "{bad}");
        }
        let theme = |color: &str, logo: &str| {
            let theme = FormTheme { color: Some(color.to_owned()), logo_url: Some(logo.to_owned()), text: None };
            let mut violations = Violations::new();
            check_theme(&theme, &mut violations);
            violations.as_slice().len()
        };
        assert_eq!(theme("#1d4ed8", "https://a.example/l.png"), 0);
        assert_eq!(theme("red", "http://a.example/l.png"), 2);
        assert_eq!(theme("#12345g", "https://a.example/'); x"), 2);
        assert_eq!(origin_of("https://a.example:1/b?c"), Some("https://a.example:1"));
        assert_eq!(origin_of("https://a.example?c"), Some("https://a.example"));
    }
}
