//! Templates: what they are made of, what is checked when one is saved, and how one is rendered.
//!
//! Contract section 11. A version never changes: whatever is changed makes the next one, and a message
//! keeps the version that was current when it was accepted. [`saving`] turns what an author wrote into a
//! version; [`compiled`] renders one with the [`values`] of a message. What hostile templates cost is
//! bounded in three places: [`gate`] before anything that calls itself sees a source, `guard` in what is
//! compiled, [`budget`] in what is rendered.

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
/// Names that an author declares.
pub const MAX_DECLARED: u64 = 200;

/// What an author gives: everything that a version of a template is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// Its name; several templates may have one.
    pub name: String,
    /// The subject of an email, the title of a push message.
    pub subject: Option<String>,
    /// What a mail program shows after the subject.
    pub preheader: Option<String>,
    /// The sender's display name.
    pub from_name: Option<String>,
    /// The sender.
    pub from_email: Option<String>,
    /// Address to which recipients of an email reply (`Reply-To`).
    pub reply_to: Option<String>,
    /// The HTML form; made of `mjml` where there is one.
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
    /// Whether style sheets are to be moved into the elements.
    pub inline_css: bool,
}

/// A version of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Its id.
    pub id: TemplateId,
    /// Workspace that owns the template.
    pub workspace_id: WorkspaceId,
    /// The channel it is for; never changes.
    pub channel: Channel,
    /// Counts from 1.
    pub version: u32,
    /// The version that this one is a copy of.
    pub reverted_from: Option<u32>,
    /// Design of this version: subject, HTML, text and the rest that its author gave.
    #[serde(flatten)]
    pub design: Design,
    /// The HTML that is sent, where it is another than the design's: with styles in its elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Names of values, declared and found.
    pub variables: Vec<String>,
    /// What may hurt in the inbox.
    pub warnings: Vec<Warning>,
    /// Which parts it has.
    pub parts: Parts,
    /// When the template was created.
    pub created_at: Timestamp,
    /// When this version was made.
    pub updated_at: Timestamp,
}

/// Which parts a template has; known without reading them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// A subject.
    pub subject: bool,
    /// HTML.
    pub html: bool,
    /// A text.
    pub text: bool,
}

impl Template {
    /// The template without what may be long.
    pub fn head(&self) -> Self {
        let design = Design { html: None, mjml: None, text: None, ..self.design.clone() };
        Self { design, ready: None, ..self.clone() }
    }

    /// Whether it has what a message of its channel needs (contract section 11).
    pub const fn can_be_sent(&self) -> bool {
        self.parts.suffice(self.channel)
    }
}

impl Parts {
    /// Whether they are all that a message of a channel needs (contract section 11).
    pub const fn suffice(self, channel: Channel) -> bool {
        match channel {
            Channel::Email => self.subject && (self.html || self.text),
            Channel::Telegram => self.html || self.text,
            Channel::Sms | Channel::Push | Channel::Whatsapp | Channel::Viber => self.text,
        }
    }
}

/// The parts of a template, as the members of its design are called.
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
    /// The pointer of the member.
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
