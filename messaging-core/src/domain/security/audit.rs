//! The audit log: every change with its actor, address, and the values before and after.
//!
//! Contract section 24. Each workspace has a log of its own, and so has the installation. The rows of a log are a
//! chain: each has the digest of itself and of the row before it, so that a changed, removed or inserted row is
//! detected. Retention removes rows from the beginning of the chain and keeps the digest of the last one as its anchor.

pub mod changes;
pub mod csv;

use std::net::IpAddr;

use ring::digest::{Context, SHA256};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::changes::AuditChange;
use crate::ids::{AuditId, Id as _, WorkspaceId};
use crate::time::Timestamp;

/// Default of the days for which rows are kept (contract section 24).
pub const DEFAULT_DAYS: u32 = 400;

/// Kind of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A person who is signed in, or tries to be.
    User,
    /// A program with an API key.
    Key,
    /// A command or program that works on the database itself.
    Command,
    /// The server, by itself.
    System,
}

impl ActorKind {
    /// The text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Key => "key",
            Self::Command => "command",
            Self::System => "system",
        }
    }
}

/// Actor of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditActor")]
pub struct Actor {
    /// Kind of the actor.
    pub kind: ActorKind,
    /// Id of the user or key; null for other kinds, and for a sign-in with an unknown email.
    pub id: Option<String>,
    /// Name of the user or key as it was then.
    pub name: Option<String>,
}

impl Actor {
    /// Returns an actor without id and name.
    pub const fn unnamed(kind: ActorKind) -> Self {
        Self { kind, id: None, name: None }
    }
}

/// Something that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditResource")]
pub struct Resource {
    /// Kind of the resource, such as `template`.
    pub kind: String,
    /// Its id; null for a resource without one.
    pub id: Option<String>,
    /// Its name as it was then; null for a resource without one, and for contacts and addresses.
    pub name: Option<String>,
}

/// An entry of an audit log, as it is stored and shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When it was recorded.
    pub at: Timestamp,
    /// Actor of the change.
    pub actor: Actor,
    /// Operation or command, such as `createApiKey` or `admin set-name`; `loginRefused` is a sign-in that failed.
    pub operation: String,
    /// The resource that was changed.
    pub resource: Resource,
    /// Members that changed; secrets are `•••`, and for contacts only pointers are recorded.
    pub changes: Vec<AuditChange>,
    /// Address of the caller.
    pub ip: Option<IpAddr>,
    /// Id of the request.
    pub request_id: Option<String>,
}

/// An entry with the log that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// Workspace of the log; `None` for the log of the installation.
    pub workspace_id: Option<WorkspaceId>,
    /// The entry.
    pub entry: AuditEntry,
}

/// Filters of a listing of entries; absent ones match every entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Id of the user or key, or the kind of the actor.
    pub actor: Option<String>,
    /// Name of the operation.
    pub operation: Option<String>,
    /// Id or kind of the resource.
    pub resource: Option<String>,
    /// Entries at this time and later.
    pub since: Option<Timestamp>,
    /// Entries before this time.
    pub until: Option<Timestamp>,
}

/// Digest of a row: SHA-256.
pub type Link = [u8; 32];

/// The link before the first row of a chain.
pub const FIRST_LINK: Link = [0; 32];

/// The two ends of a chain, whose rows are numbered without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Number of the last row that retention removed; 0 if none was. The chain begins after it.
    pub anchor: u64,
    /// Its link.
    pub anchor_link: Link,
    /// Number of the last row.
    pub last: u64,
    /// Its link.
    pub last_link: Link,
}

impl Chain {
    /// A chain without rows.
    pub const EMPTY: Self = Self { anchor: 0, anchor_link: FIRST_LINK, last: 0, last_link: FIRST_LINK };
}

/// A row as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow {
    /// Its number.
    pub number: u64,
    /// The entry, in the text that is linked: JSON with the members in their order.
    pub text: String,
    /// Its link.
    pub link: Link,
}

/// Returns the link of a row: the digest of the link before it, the workspace (zeros for the installation), its number
/// and its text.
pub fn link(before: &Link, workspace: Option<WorkspaceId>, number: u64, text: &str) -> Link {
    let mut digest = Context::new(&SHA256);
    digest.update(before);
    digest.update(&workspace.map_or([0; 16], WorkspaceId::to_bytes));
    digest.update(&number.to_be_bytes());
    digest.update(text.as_bytes());
    digest.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Compares each row of a chain, from its anchor on.
#[derive(Debug, Clone)]
pub struct ChainCheck {
    workspace: Option<WorkspaceId>,
    number: u64,
    link: Link,
}

impl ChainCheck {
    /// Begins at the anchor of a chain.
    pub const fn begin(workspace: Option<WorkspaceId>, chain: &Chain) -> Self {
        Self { workspace, number: chain.anchor, link: chain.anchor_link }
    }

    /// Number of the row that was compared last.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns true if a row is the next one of the chain, as it was recorded. Continues after it either way, so that
    /// one changed row is one difference.
    pub fn follows(&mut self, row: &StoredRow) -> bool {
        let is_next = row.number == self.number + 1;
        let is_linked = row.link == link(&self.link, self.workspace, row.number, &row.text);
        self.number = row.number;
        self.link = row.link;
        is_next && is_linked
    }

    /// True if the row that was compared last is the last one of the chain.
    pub fn ends(&self, chain: &Chain) -> bool {
        self.number == chain.last && self.link == chain.last_link
    }
}

/// Returns a sample entry, for tests of webhooks.
pub fn sample() -> Value {
    json!({
        "id": "aud_01JB3Q8Z5N6W7X8Y9ZABCDEFGH",
        "at": "2026-01-31T09:15:00.000Z",
        "actor": {"kind": "user", "id": "usr_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "name": "ann@example.com"},
        "operation": "updateTemplate",
        "resource": {"kind": "template", "id": "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "name": "Welcome"},
        "changes": [{"pointer": "/subject", "before": "Hi", "after": "Welcome"}],
        "ip": "192.0.2.1",
        "request_id": "req_01JB3Q8Z5N6W7X8Y9ZABCDEFGH",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(workspace: Option<WorkspaceId>, texts: &[&str]) -> (Vec<StoredRow>, Chain) {
        let mut chain = Chain::EMPTY;
        let mut rows = Vec::new();
        for text in texts {
            let number = chain.last + 1;
            let link = link(&chain.last_link, workspace, number, text);
            rows.push(StoredRow { number, text: (*text).to_owned(), link });
            chain = Chain { last: number, last_link: link, ..chain };
        }
        (rows, chain)
    }

    /// Places of the rows that do not follow, and whether the chain ends where it says.
    fn check(rows: &[StoredRow], chain: &Chain) -> (Vec<usize>, bool) {
        let mut check = ChainCheck::begin(None, chain);
        let wrong = rows.iter().enumerate().filter(|(_, row)| !check.follows(row)).map(|(place, _)| place).collect();
        (wrong, check.ends(chain))
    }

    #[test]
    fn a_chain_is_whole_until_a_row_is_touched() {
        let (rows, chain) = rows(None, &["a", "b", "c", "d"]);
        assert_eq!(check(&rows, &chain), (vec![], true));

        let mut changed = rows.clone();
        changed[1].text.push('!');
        assert_eq!(check(&changed, &chain), (vec![1], true));

        let mut without = rows.clone();
        without.remove(2);
        assert_eq!(check(&without, &chain), (vec![2], true));

        let cut = &rows[..3];
        assert_eq!(check(cut, &chain), (vec![], false));

        let mut swapped = rows.clone();
        swapped.swap(1, 2);
        assert_eq!(check(&swapped, &chain).0, [1, 2, 3]);
    }

    #[test]
    fn a_chain_goes_on_after_its_anchor() {
        let (rows, chain) = rows(None, &["a", "b", "c"]);
        let chain = Chain { anchor: 1, anchor_link: rows[0].link, ..chain };
        assert_eq!(check(&rows[1..], &chain), (vec![], true));
        assert_eq!(check(&rows[2..], &chain), (vec![0], true));
        assert_eq!(check(&[], &Chain::EMPTY), (vec![], true));
    }

    #[test]
    fn a_row_of_one_workspace_is_none_of_another() {
        let one = WorkspaceId::from_bytes([1; 16]);
        let links = [None, Some(one), Some(WorkspaceId::from_bytes([2; 16]))].map(|of| link(&FIRST_LINK, of, 1, "a"));
        assert!(links[0] != links[1] && links[1] != links[2] && links[0] != links[2]);
        assert_ne!(link(&FIRST_LINK, None, 1, "a"), link(&FIRST_LINK, None, 2, "a"));
    }

    #[test]
    fn the_sample_is_an_entry() {
        let entry: AuditEntry = serde_json::from_value(sample()).unwrap();
        assert_eq!(serde_json::to_value(entry).unwrap(), sample());
    }
}
