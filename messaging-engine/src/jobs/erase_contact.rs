//! The erasure of a person from their messages.

use messaging_core::cursor::StoreCursor;
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{ContactId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Progress {
    /// Messages attributed to the contact.
    Attributed,
    /// Messages that are known to copy one of its addresses.
    Copied,
    /// Messages to its addresses, from this position on.
    Addressed(Option<StoreCursor>),
    /// Targets of links, from this position on.
    Linked(Option<StoreCursor>),
    /// Bodies of logged requests, from this position on.
    Logged(Option<StoreCursor>),
    /// Messages attributed to the contact, a second time: some may have been accepted during the erasure.
    Again,
}

/// Job that removes a person from their messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EraseContact {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) contact_id: ContactId,
    /// Addresses of the contact; none in the second pass, so that they are stored no longer than needed.
    pub(crate) addresses: Vec<(Channel, String)>,
    /// Other texts that name the person.
    pub(crate) names: Vec<String>,
    /// Progress of the search through messages.
    pub(crate) progress: Progress,
}

impl EraseContact {
    /// Returns the job of an erasure.
    pub(crate) fn of(contact: &Contact) -> Self {
        Self {
            workspace_id: contact.workspace_id,
            contact_id: contact.id,
            addresses: contact.all_addresses(),
            names: contact.external_id.iter().cloned().collect(),
            progress: Progress::Attributed,
        }
    }
}

impl JobData for EraseContact {
    const KIND: &'static str = "erase_contact";
    const REACH: Reach = Reach::Inside;

    fn lane(&self) -> Lane {
        Lane::new(JobClass::Transactional, self.workspace_id, lanes::CONTACTS)
    }
}
