//! Checks of an installation for `messaging doctor` and `GET /system`: judgments of facts that were looked up
//! elsewhere.
//!
//! Contract section 22. Every judgment is a function from facts to a [`CheckReport`]; the lookups (DNS, sockets, files)
//! are elsewhere. A fault names its effect on mail or people, and its cure is something that whoever runs the server
//! can do.
//!
//! Rules that the contract leaves open: only a *fault* makes the whole not ok; a *warning* works and could be better; a
//! check that could not be made, or was not asked for, is *skipped* and says how to have it made.

mod dmarc;
mod domain;
mod inbound_tls;
mod keys;
mod machine;
mod mail;
mod names;
mod sign_on;
mod sources;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use dmarc::{DmarcAction, DmarcPolicy};
pub use domain::{DomainFacts, exempt_domain, judge_domain};
pub use inbound_tls::{TlsaFact, judge_sts, judge_tlsa};
pub use keys::judge_api_keys;
pub use machine::{
    DiskFacts, FileFact, NodeFacts, SecretKeyFact, judge_clock, judge_disk, judge_fence, judge_files, judge_node_clock,
    judge_resolver, judge_secret_key,
};
pub use mail::{
    CertificateFact, CertificateTrust, InboundFact, Outbound, SmtpCertificateFact, judge_blocklist, judge_inbound,
    judge_port25_out, judge_smtp_certificate, judge_tls, skipped_blocklist,
};
pub use names::{Address, LedBack, judge_address, judge_host_spf, judge_name, judge_ptr, skipped_ptr};
pub use sign_on::judge_sign_on;
pub use sources::{SourcelessDomain, judge_sources};

/// Result of a lookup, or the reason why there is no answer.
pub type LookUp<T> = Result<T, String>;

/// Id of a check; the words of contract section 22, which never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckId {
    /// The host name and the name of the installation.
    Name,
    /// The addresses of the host name.
    Address,
    /// The names of these addresses.
    Ptr,
    /// The SPF record of the installation's name.
    Spf,
    /// Outgoing mail: whether the mail server of another domain can be reached; many networks block port 25.
    #[serde(rename = "port25_out")]
    Port25Out,
    /// Incoming bounces: whether the SMTP server for returned mail is reached by the host name.
    Inbound,
    /// The certificate of the public URL.
    Tls,
    /// The clock of the machine.
    Clock,
    /// Free space.
    Disk,
    /// Permissions of the data directory.
    Files,
    /// The secret key of the database.
    SecretKey,
    /// The DNS resolver.
    Resolver,
    /// Blocklists of addresses.
    Blocklist,
    /// The fence: whether the database is a copy, so that nothing leaves (an extension of the contract's list).
    Fence,
    /// The certificate of the SMTP listeners, and what is published of it (an extension of the contract's list).
    Certificate,
    /// API keys that end soon (an extension of the contract's list).
    ApiKeys,
    /// The single sign-on provider, where there is one (an extension of the contract's list).
    Oidc,
    /// The addresses that mail may leave from, where there are IP pools (an extension of the contract's list).
    Sources,
    /// The keys of a sending domain.
    Dkim,
    /// The bounce domain of a sending domain.
    ReturnPath,
    /// The DMARC policy of a sending domain.
    Dmarc,
    /// DMARC alignment: whether mail of the domain passes DMARC.
    Alignment,
    /// One-click unsubscribing for recipients (RFC 8058).
    OneClick,
}

impl CheckId {
    /// Those of the host, in the order in which they are shown.
    pub const OF_HOST: [Self; 16] = [
        Self::Name,
        Self::Address,
        Self::Ptr,
        Self::Spf,
        Self::Port25Out,
        Self::Inbound,
        Self::Tls,
        Self::Clock,
        Self::Disk,
        Self::Files,
        Self::SecretKey,
        Self::Resolver,
        Self::Blocklist,
        Self::Certificate,
        Self::Fence,
        Self::ApiKeys,
    ];

    /// Those of each sending domain.
    pub const OF_DOMAIN: [Self; 5] = [Self::Dkim, Self::ReturnPath, Self::Dmarc, Self::Alignment, Self::OneClick];

    /// Returns the word of the check.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Address => "address",
            Self::Ptr => "ptr",
            Self::Spf => "spf",
            Self::Port25Out => "port25_out",
            Self::Inbound => "inbound",
            Self::Tls => "tls",
            Self::Clock => "clock",
            Self::Disk => "disk",
            Self::Files => "files",
            Self::SecretKey => "secret_key",
            Self::Resolver => "resolver",
            Self::Blocklist => "blocklist",
            Self::Fence => "fence",
            Self::Certificate => "certificate",
            Self::ApiKeys => "api_keys",
            Self::Oidc => "oidc",
            Self::Sources => "sources",
            Self::Dkim => "dkim",
            Self::ReturnPath => "return_path",
            Self::Dmarc => "dmarc",
            Self::Alignment => "alignment",
            Self::OneClick => "one_click",
        }
    }
}

/// Result of a check of the installation or of a sending domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// Works, and could be better.
    Warning,
    /// Mail or people are affected.
    Fault,
    /// Not checked.
    Skipped,
}

impl CheckStatus {
    /// Returns the word of the result.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
            Self::Skipped => "skipped",
        }
    }
}

/// Report of one check: its subject, what was found and wanted, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Check")]
#[non_exhaustive]
pub struct CheckReport {
    /// The check.
    pub id: CheckId,
    /// Subject of the check: a name, an address, a file, a domain.
    pub subject: String,
    /// Result of the check: `ok`, `warning`, `fault` or `skipped`.
    pub status: CheckStatus,
    /// The finding as a value; empty when nothing was found.
    pub found: String,
    /// Value that would be right, or a description of it; may be empty when the check was skipped.
    pub wanted: String,
    /// The finding in a sentence.
    pub text: String,
    /// Action that ends the finding; empty when nothing is to be done.
    pub cure: String,
}

impl CheckReport {
    /// True if the result is a fault, the only one by which the whole is not ok.
    pub fn is_fault(&self) -> bool {
        self.status == CheckStatus::Fault
    }
}

/// A check with its subject and finding, not judged yet.
#[derive(Debug, Clone)]
struct Looked {
    id: CheckId,
    subject: String,
    found: String,
    wanted: &'static str,
}

impl Looked {
    fn at(id: CheckId, subject: impl Into<String>, wanted: &'static str) -> Self {
        Self { id, subject: subject.into(), found: String::new(), wanted }
    }

    fn found(mut self, found: impl Into<String>) -> Self {
        self.found = found.into();
        self
    }

    fn end(self, status: CheckStatus, text: impl Into<String>, cure: impl Into<String>) -> CheckReport {
        let Self { id, subject, found, wanted } = self;
        CheckReport { id, subject, status, found, wanted: wanted.to_owned(), text: text.into(), cure: cure.into() }
    }

    fn ok(self, text: impl Into<String>) -> CheckReport {
        self.end(CheckStatus::Ok, text, "")
    }

    fn warning(self, text: impl Into<String>, cure: impl Into<String>) -> CheckReport {
        self.end(CheckStatus::Warning, text, cure)
    }

    fn fault(self, text: impl Into<String>, cure: impl Into<String>) -> CheckReport {
        self.end(CheckStatus::Fault, text, cure)
    }

    fn skipped(self, text: impl Into<String>, cure: impl Into<String>) -> CheckReport {
        self.end(CheckStatus::Skipped, text, cure)
    }

    /// Reports a fault: there was no answer, so receivers get none either, or this machine has no DNS.
    fn unanswered(self, name: &str, reason: &str) -> CheckReport {
        self.found(format!("no answer ({reason})")).fault(
            format!("{name} could not be looked up: {reason}."),
            "see the check resolver; when that is ok, the name servers of this name do not answer, and neither do they to \
             receivers",
        )
    }
}

/// Returns the report of a check that was not made.
pub fn skipped(id: CheckId, subject: &str, text: &str, cure: &str) -> CheckReport {
    Looked::at(id, subject, "").skipped(text, cure)
}

/// Joins several values on one line.
fn listed<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
