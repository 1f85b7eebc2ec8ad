//! Records of delivery attempts with the dialog of each, which show why a message did not arrive.
//!
//! `GET /messages/{id}/attempts` returns them.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::delivery::ip_pool::source::SourceAddress;
use crate::ids::{EventId, MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Number of the latest attempts of a message that are kept.
pub const KEPT_ATTEMPTS: u32 = 50;

/// Maximum number of lines kept of one dialog.
pub const MAX_LINES: usize = 200;

/// Maximum number of characters kept of one line.
pub const MAX_LINE: usize = 512;

/// Outcome of an attempt at one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// At least one recipient was accepted.
    Delivered,
    /// No recipient was accepted, and at least one is tried again.
    Deferred,
    /// All recipients were refused permanently.
    Bounced,
    /// The content was sent and the reply was lost, so the message may have arrived.
    Ambiguous,
}

/// Proof that the peer of an attempt is who it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TlsVerification {
    /// Its certificate is the one that signed TLSA records name (RFC 7672).
    Dane,
    /// Its certificate is valid for its name, and the MTA-STS policy of the domain names it (RFC 8461).
    MtaSts,
    /// Its certificate is valid for its name.
    Pkix,
    /// No proof: the dialog is encrypted, but the peer was not identified.
    None,
}

/// Protection of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttemptTls {
    /// Version of TLS, such as `TLSv1.3`.
    pub version: String,
    /// Cipher suite by its IANA name; null in attempts of versions that did not note it.
    pub cipher: Option<String>,
    /// Proof that the peer is who it should be.
    pub verified: TlsVerification,
}

/// Stored form of [`AttemptTls`]; rows of version 0.1.0 hold the TLS version as a bare string.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredTls {
    Version(String),
    Whole { version: String, cipher: Option<String>, verified: TlsVerification },
}

impl<'de> Deserialize<'de> for AttemptTls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match StoredTls::deserialize(deserializer)? {
            StoredTls::Version(version) => Self { version, cipher: None, verified: TlsVerification::None },
            StoredTls::Whole { version, cipher, verified } => Self { version, cipher, verified },
        })
    }
}

/// The dialog with one peer: commands and replies, never content or credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialog {
    /// Host name of the peer, also if no connection was made.
    pub mx: Option<String>,
    /// Address and port of the peer, `192.0.2.1:25`; `None` if no connection was made.
    pub remote_addr: Option<String>,
    /// Protection of the dialog; `None` in plain text.
    pub tls: Option<AttemptTls>,
    /// Requirement of the domain's MTA-STS policy that the peer did not meet. The policy is in mode `testing`, so the
    /// message was sent nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_failure: Option<String>,
    /// Source address of the path that the attempt used; `None` without a path, and in attempts of versions that did
    /// not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceAddress>,
    /// Outcome of the attempt at this peer.
    pub outcome: AttemptOutcome,
    /// Lines in order: `> ` precedes our commands, `< ` replies of the peer, `* ` other events such as a connection. At
    /// most [`MAX_LINES`] lines of at most [`MAX_LINE`] characters.
    pub transcript: Vec<String>,
}

/// A dialog as it is stored with its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageAttempt {
    /// Id of the record, in the order of the attempts of a message.
    pub id: EventId,
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// Number of the attempt, counted from 1 for each message. An attempt that talks to several peers has several
    /// records.
    pub attempt: u32,
    /// Time at which the dialog ended.
    pub at: Timestamp,
    /// Provider that made the attempt; `None` in rows of versions that did not record it.
    pub provider: Option<String>,
    /// Record of the connection to one peer: its address, the commands and replies, and the outcome.
    pub dialog: Dialog,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_earlier_versions_are_read() {
        let old = r#"{"mx":null,"remote_addr":null,"tls":"TLSv1.2","outcome":"delivered","transcript":[]}"#;
        let old: Dialog = serde_json::from_str(old).unwrap();
        let tls = AttemptTls { version: "TLSv1.2".to_owned(), cipher: None, verified: TlsVerification::None };
        assert_eq!((old.tls, old.tls_failure, old.source), (Some(tls), None, None));
        let new = AttemptTls {
            version: "TLSv1.3".to_owned(),
            cipher: Some("TLS_AES_128_GCM_SHA256".to_owned()),
            verified: TlsVerification::MtaSts,
        };
        let text = serde_json::to_string(&new).unwrap();
        assert!(text.ends_with(r#""verified":"mta_sts"}"#), "{text}");
        assert_eq!(serde_json::from_str::<AttemptTls>(&text).unwrap(), new);
    }
}
