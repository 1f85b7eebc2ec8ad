//! Automatic DNS: operations that write the records of a sending domain into its zone.
//!
//! Contract section 14.5.

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, JobWrite, Write};
use messaging_core::domain::mail::auto_dns::{ChangeAction, DnsCredentials, DnsProviderName, PlannedChange, ReadBack};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::{self, is_exempt};
use messaging_core::input::{Empty, Input};
use messaging_core::ports::dns_provider::DnsProviderError;
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Scope};
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::SendingDomainReport;
use super::{DomainPath, find};
use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::publish_keys::PublishKeys;
use crate::ops::context::Context;
use crate::ops::operation::{Call, NoContent, Operation};
use crate::services::auto_dns::{AppliedChange, AppliedChanges, DnsAccount, DnsFailure};

/// Seconds after which a provider that is away may be tried again.
const RETRY_AFTER: u64 = 10;

/// An account at a DNS provider, and options.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AutoDnsInput {
    /// Provider that hosts the zone.
    pub provider: DnsProviderName,
    /// Credentials of the account there.
    pub credentials: DnsCredentials,
    /// True to only show the changes.
    #[serde(default)]
    pub dry_run: bool,
    /// True to store the credentials, sealed, so that the records of new keys are published automatically.
    #[serde(default)]
    pub keep: bool,
}

impl Input for AutoDnsInput {
    fn check(&self, violations: &mut Violations) {
        self.credentials.check(self.provider, violations);
    }
}

/// Changes of the zone, and the domain afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AutoDns")]
#[non_exhaustive]
pub struct AutoDnsReport {
    /// A change for each record of the domain.
    pub changes: Vec<DnsChangeReport>,
    /// The domain after a check of its records; with `dry_run` unchanged.
    pub domain: SendingDomainReport,
}

/// The change of all records of one type at one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DnsChange")]
#[non_exhaustive]
pub struct DnsChangeReport {
    /// Action of the change; `conflict` is a foreign record that is not touched.
    pub action: ChangeAction,
    /// Type of the records.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// Name of the records.
    pub host: String,
    /// Values that the zone had.
    pub before: Vec<String>,
    /// Values that the zone has afterwards.
    pub after: Vec<String>,
    /// True if the provider shows the values: written and read back, or kept.
    pub done: bool,
    /// Advice for a person, or a note on what was kept.
    pub detail: Option<String>,
    /// Records that the DNS shows right afterwards; null with `dry_run`, and where the zone has none of them.
    pub read_back: Option<ReadBack>,
}

impl DnsChangeReport {
    fn of(applied: AppliedChange) -> Self {
        let AppliedChange { change, done, read_back } = applied;
        let PlannedChange { action, kind, host, before, after, detail } = change;
        Self { action, kind, host, before, after, done, detail, read_back }
    }
}

/// `POST /workspaces/{workspace_id}/sending-domains/{id}/auto-dns`
pub struct ConfigureDns;

impl Operation for ConfigureDns {
    const ID: &'static str = "configureDns";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}/auto-dns";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain auto-dns";
    const SUMMARY: &'static str = "Write the records of a sending domain where its zone is hosted, and look at them";
    // An unknown domain is 404 before wrong credentials are 422.
    const LOOKS_UP: bool = true;
    type Path = DomainPath;
    type Query = Empty;
    type Body = AutoDnsInput;
    type Output = AutoDnsReport;

    // The provider takes seconds, during which no other call shall wait.
    fn serialized_resources(_: &str, _: &Call<Self>) -> Vec<ResourceKey> {
        Vec::new()
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AutoDnsReport, Error> {
        let domain = find(cx, call.path).await?.record;
        // No provider is called with the rest of a body that is refused.
        if !cx.violations.is_empty() {
            return Err(Error::Validation(std::mem::take(&mut cx.violations)));
        }
        let AutoDnsInput { provider, credentials, dry_run, keep } = &call.body;
        let here = cx.app.named_installation().await?;
        let account = DnsAccount { provider: *provider, credentials };
        let mut applied = cx.app.publish_records(&account, &domain, &here, *dry_run).await.map_err(refused)?;
        let report = |applied: AppliedChanges| applied.changes.into_iter().map(DnsChangeReport::of).collect();
        if *dry_run {
            let domain = SendingDomainReport::of(&domain, &here, &cx.app.link_key());
            return Ok(AutoDnsReport { changes: report(applied), domain });
        }
        let findings = cx.app.look_after_changes(&domain, &mut applied).await?;
        let changes = report(applied);
        // Read again, because the calls took a while.
        let Stored { record, revision } = find(cx, call.path).await?;
        let mut looked = record.clone();
        if let Some(findings) = findings {
            looked = verification::apply(looked, findings, cx.app.now());
        }
        if *keep {
            looked.dns_account = Some(cx.app.seal_dns_account(&account, &looked));
        }
        if looked != record {
            cx.change(Write::put(looked.clone(), Expect::Revision(revision)));
        }
        Ok(AutoDnsReport { changes, domain: SendingDomainReport::of(&looked, &here, &cx.app.link_key()) })
    }
}

/// Returns the caller's error for a provider's failure.
fn refused(failure: DnsFailure) -> Error {
    let at = |pointer, code, message: &str| refuse(pointer, code, message).into();
    match failure {
        DnsFailure::Provider(DnsProviderError::Credentials(words)) => at("/credentials", FieldCode::NotAllowed, &words),
        DnsFailure::Provider(DnsProviderError::Blocked(words)) => {
            at("/credentials/server", FieldCode::NotAllowed, &words)
        }
        DnsFailure::Provider(error @ DnsProviderError::NoZone) => {
            at("/provider", FieldCode::NotFound, &error.to_string())
        }
        DnsFailure::Provider(DnsProviderError::Refused(words)) => at("/provider", FieldCode::NotAllowed, &words),
        DnsFailure::Provider(DnsProviderError::Away(words)) => {
            tracing::info!(words, "a DNS provider is away");
            Error::Unavailable { retry_after: RETRY_AFTER }
        }
        DnsFailure::Provider(DnsProviderError::Later(words, wait)) => {
            tracing::info!(words, ?wait, "a DNS provider asks to be left alone");
            Error::Unavailable { retry_after: wait.as_secs().max(1) }
        }
        DnsFailure::Provider(DnsProviderError::Changed) => Error::Unavailable { retry_after: 1 },
        DnsFailure::Unknown => at("/provider", FieldCode::NotAllowed, "this server does not speak to this provider"),
    }
}

/// Query of the removal.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct RemoveDnsQuery {
    /// True to also remove from the zone the records that are exactly those of the domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<bool>,
}

impl Input for RemoveDnsQuery {}

/// `DELETE /workspaces/{workspace_id}/sending-domains/{id}/auto-dns`
pub struct RemoveDns;

impl Operation for RemoveDns {
    const ID: &'static str = "removeDns";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}/auto-dns";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "domain delete-auto-dns";
    const SUMMARY: &'static str =
        "Forget the kept DNS credentials of a sending domain; with records=true remove its records";
    type Path = DomainPath;
    type Query = RemoveDnsQuery;
    type Body = Empty;
    type Output = NoContent;

    fn serialized_resources(_: &str, _: &Call<Self>) -> Vec<ResourceKey> {
        Vec::new()
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let domain = find(cx, call.path).await?.record;
        if call.query.records == Some(true) {
            let kept = domain.dns_account.as_ref().ok_or(NOTHING_KEPT)?;
            let credentials = cx.app.open_dns_account(&domain).ok_or(NOTHING_KEPT)?;
            let here = cx.app.named_installation().await?;
            let account = DnsAccount { provider: kept.provider, credentials: &credentials };
            let spared = cx.app.records_of_namesakes(&domain, &here).await?;
            cx.app.remove_records(&account, &domain, &here, &kept.retired, &spared).await.map_err(not_removed)?;
        }
        let Stored { record, revision } = find(cx, call.path).await?;
        if record.dns_account.is_some() {
            let mut without = record;
            without.dns_account = None;
            cx.change(Write::put(without, Expect::Revision(revision)));
        }
        Ok(NoContent)
    }
}

/// Error if no usable credentials are stored.
const NOTHING_KEPT: Error = Error::AccountState(
    "no usable DNS credentials are kept for this domain, so its records can only be removed where the zone is hosted; POST \
     auto-dns with keep keeps some",
);

/// Like [`refused`], for a request without a body.
fn not_removed(failure: DnsFailure) -> Error {
    let words = match failure {
        DnsFailure::Provider(DnsProviderError::Away(_) | DnsProviderError::Later(..) | DnsProviderError::Changed) => {
            return refused(failure);
        }
        DnsFailure::Provider(error) => error.to_string(),
        DnsFailure::Unknown => "this server does not speak to the provider of the kept credentials".to_owned(),
    };
    let mut violations = Violations::new();
    violations.add_parameter("records", FieldCode::NotAllowed, words);
    violations.into()
}

/// Starts the job that publishes the records of new keys, if an account is stored.
pub(super) fn publish_soon(cx: &mut Context<'_>, domain: &SendingDomain) {
    if domain.dns_account.is_some() && !is_exempt(domain) {
        let job = PublishKeys::of(domain).enqueue(cx.new_id(), cx.now);
        cx.change(Write::Job(JobWrite::Enqueue(job)));
    }
}
