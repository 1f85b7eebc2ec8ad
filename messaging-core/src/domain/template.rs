//! Templates: their parts, the checks when one is saved, and rendering.
//!
//! Contract section 11. A version never changes: every change makes the next version, and a message keeps the version
//! that was current when it was accepted. [`saving`] turns an author's input into a version; [`compiled`] renders one
//! with the [`values`] of a message. The cost of hostile templates is bounded in three places: [`gate`] before any
//! recursive parser sees a source, `guard` in the compiled template, [`budget`] in the rendering.

#[cfg(feature = "templates")]
mod address;
#[cfg(feature = "templates")]
pub mod budget;
#[cfg(feature = "templates")]
pub mod compiled;
#[cfg(feature = "templates")]
pub mod css;
#[cfg(feature = "templates")]
pub mod engine;
#[cfg(feature = "templates")]
mod escape;
#[cfg(feature = "templates")]
pub mod fault;
#[cfg(feature = "templates")]
mod filters;
#[cfg(feature = "templates")]
pub mod gate;
#[cfg(feature = "templates")]
mod guard;
#[cfg(feature = "templates")]
pub mod import;
#[cfg(feature = "templates")]
mod links;
#[cfg(feature = "templates")]
mod lint;
#[cfg(feature = "templates")]
mod markup;
#[cfg(all(test, feature = "templates", target_os = "linux"))]
mod memory_tests;
#[cfg(feature = "templates")]
pub mod mjml;
#[cfg(feature = "templates")]
mod positions;
#[cfg(feature = "templates")]
pub mod saving;
#[cfg(all(test, feature = "templates"))]
mod tests;
#[cfg(feature = "templates")]
pub mod text;
#[cfg(feature = "templates")]
pub mod values;
#[cfg(feature = "templates")]
pub mod variables;
pub mod warning;

use serde::{Deserialize, Serialize};

use self::warning::Warning;
use crate::domain::channel::Channel;
use crate::ids::{TemplateId, WorkspaceId};
use crate::time::Timestamp;

/// Characters of a preheader.
pub const MAX_PREHEADER: u64 = 500;
/// Maximum number of names that an author declares.
pub const MAX_DECLARED: u64 = 200;

/// Author's input: everything that a version of a template is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// Name of the template; several templates may have the same.
    pub name: String,
    /// The subject of an email, the title of a push message.
    pub subject: Option<String>,
    /// Text that a mail program shows after the subject.
    pub preheader: Option<String>,
    /// The sender's display name.
    pub from_name: Option<String>,
    /// The sender.
    pub from_email: Option<String>,
    /// Address to which recipients of an email reply (`Reply-To`).
    pub reply_to: Option<String>,
    /// The HTML; made from `mjml` if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// MJML, which wins over `html`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mjml: Option<String>,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Names of values that the author declares.
    pub declared: Vec<String>,
    /// True if style sheets are to be moved into the elements.
    pub inline_css: bool,
}

/// A version of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Its id.
    pub id: TemplateId,
    /// Workspace that owns the template.
    pub workspace_id: WorkspaceId,
    /// Channel of the template; never changes.
    pub channel: Channel,
    /// Number of the version; counts from 1.
    pub version: u32,
    /// The version that this one is a copy of.
    pub reverted_from: Option<u32>,
    /// Design of this version: subject, HTML, text and the rest that its author gave.
    #[serde(flatten)]
    pub design: Design,
    /// The HTML that is sent, if it differs from the design's: with styles in its elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Names of values, declared and found.
    pub variables: Vec<String>,
    /// Properties that may harm delivery or display in the inbox.
    pub warnings: Vec<Warning>,
    /// Parts that it has.
    pub parts: Parts,
    /// When the template was created.
    pub created_at: Timestamp,
    /// When this version was made.
    pub updated_at: Timestamp,
}

/// Parts that a template has; known without reading them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// True if there is a subject.
    pub subject: bool,
    /// True if there is HTML.
    pub html: bool,
    /// True if there is a text.
    pub text: bool,
}

impl Template {
    /// Returns the template without the parts that may be long.
    pub fn head(&self) -> Self {
        let design = Design { html: None, mjml: None, text: None, ..self.design.clone() };
        Self { design, ready: None, ..self.clone() }
    }

    /// True if it has the parts that a message of its channel needs (contract section 11).
    pub const fn can_be_sent(&self) -> bool {
        self.parts.suffice(self.channel)
    }
}

impl Parts {
    /// True if these parts are enough for a message of a channel (contract section 11).
    pub const fn suffice(self, channel: Channel) -> bool {
        match channel {
            Channel::Email => self.subject && (self.html || self.text),
            Channel::Telegram => self.html || self.text,
            Channel::Sms | Channel::Push | Channel::Whatsapp | Channel::Viber => self.text,
        }
    }
}

/// Parts of a template, named like the members of its design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The subject.
    Subject,
    /// The preheader.
    Preheader,
    /// MJML.
    Mjml,
    /// HTML.
    Html,
    /// The text.
    Text,
    /// The sender's display name of a campaign.
    FromName,
}

impl Part {
    /// Returns the JSON pointer of the member.
    pub const fn pointer(self) -> &'static str {
        match self {
            Self::Subject => "/subject",
            Self::Preheader => "/preheader",
            Self::Mjml => "/mjml",
            Self::Html => "/html",
            Self::Text => "/text",
            Self::FromName => "/from_name",
        }
    }
}
