//! Warnings about a template, which do not stop it from being saved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning about a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TemplateWarning")]
pub struct Warning {
    /// Code of the warning, for programs.
    pub code: WarningCode,
    /// Text of the warning, for people.
    pub message: String,
}

/// The kinds of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TemplateWarningCode")]
pub enum WarningCode {
    /// No text part can be made of the HTML: it has nothing to read.
    NoText,
    /// The HTML is longer than what large providers show.
    HtmlTooLarge,
    /// No `unsubscribe_url`; marketing needs one.
    NoUnsubscribeLink,
    /// Images without an alternative text, which show nothing where images are blocked.
    ImageWithoutAlt,
    /// Values are used that are not among the declared ones.
    UndeclaredVariable,
    /// Style sheets stay where they are.
    CssNotInlined,
    /// MJML does not know an attribute.
    MjmlAttributeIgnored,
}

impl Warning {
    /// Returns a warning.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
