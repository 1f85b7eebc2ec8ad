//! Automatic DNS: the zone of a sending domain is read, the change planned, written and read back from the provider.
//!
//! Contract section 14.5. The change is decided by core (`domain/mail/auto_dns`); here are the calls, each round with a
//! time limit. The DNS is asked for the records afterwards (`published_records.rs`).

use std::time::Duration;

use messaging_core::domain::mail::auto_dns::{
    ChangeAction, DnsCredentials, DnsProviderName, HostRecords, KeptDnsAccount, PlannedChange, ReadBack,
    RetiredKeyRecord, Surroundings, plan, plan_removal,
};
use messaging_core::domain::mail::dmarc::discovery::dmarc_host;
use messaging_core::domain::mail::dmarc::{Psd, discover};
use messaging_core::domain::mail::dns_record::{Installation, Purpose, RecordType, RequiredRecord, UNNAMED};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::spf::Answers;
use messaging_core::ports::dns_provider::{DnsProviderError, DnsZone, is_in_zone};
use messaging_core::ports::store::StoreError;
use tokio::time::timeout;

use crate::app::App;
use crate::error::Error;

/// Time limit for all calls of a provider that one request or job makes.
const PROVIDER_WITHIN: Duration = Duration::from_secs(25);

/// Number of domains of one name whose records are spared when those of one domain are removed.
const MAX_NAMESAKES: usize = 100;

/// A planned change, and its result.
#[derive(Debug, Clone)]
pub(crate) struct AppliedChange {
    /// The change.
    pub(crate) change: PlannedChange,
    /// True if the provider shows the planned values: they were written and read back, or existed before.
    pub(crate) done: bool,
    /// Result of reading it back from the DNS; `None` where it was not looked at.
    pub(crate) read_back: Option<ReadBack>,
}

/// Changes of a zone.
#[derive(Debug)]
pub(crate) struct AppliedChanges {
    /// Name of the zone, lower case, without a final dot.
    pub(crate) zone: String,
    /// The changes, in the order in which they were planned.
    pub(crate) changes: Vec<AppliedChange>,
}

/// An account at a DNS provider.
pub(crate) struct DnsAccount<'a> {
    /// The provider.
    pub(crate) provider: DnsProviderName,
    /// Credentials of the account there.
    pub(crate) credentials: &'a DnsCredentials,
}

/// Failure of a round of calls at a provider.
#[derive(Debug)]
pub(crate) enum DnsFailure {
    /// The provider reported an error.
    Provider(DnsProviderError),
    /// The application has no such provider.
    Unknown,
}

impl From<DnsProviderError> for DnsFailure {
    fn from(error: DnsProviderError) -> Self {
        Self::Provider(error)
    }
}

impl App {
    /// Returns the installation that the records refer to; refused while it has no name.
    pub(crate) async fn named_installation(&self) -> Result<Installation, Error> {
        let here = self.installation().await?;
        if here.hostname == UNNAMED {
            return Err(Error::SettingNeeded {
                setting: "hostname",
                cure: "the DNS records would name a host that nobody can look up; start the server with a fully qualified \
                       --hostname, or give the installation a name with `messaging admin set-name`",
            });
        }
        Ok(here)
    }

    /// Plans the records of a domain, and writes them unless `dry_run`.
    pub(crate) async fn publish_records(
        &self,
        account: &DnsAccount<'_>,
        domain: &SendingDomain,
        here: &Installation,
        dry_run: bool,
    ) -> Result<AppliedChanges, DnsFailure> {
        within(async {
            let zone = self.zone_of(account, domain).await?;
            let covered_by = self.policy_above(zone.as_ref(), &domain.domain).await?;
            let around = Surroundings { here, domain, covered_by: covered_by.as_deref() };
            // All records are read before any is written.
            let mut planned = Vec::new();
            for (purpose, wanted) in here.offered(domain, &self.link_key()) {
                let found = zone.at(&wanted.host).await?;
                planned.push(plan(around, purpose, &wanted, &found));
            }
            apply_all(zone.as_ref(), planned, dry_run).await
        })
        .await
    }

    /// Publishes the records of keys that lack theirs, and removes those of keys that are gone. Returns the changes,
    /// and the records that are removed by now.
    pub(crate) async fn publish_keys(
        &self,
        account: &DnsAccount<'_>,
        domain: &SendingDomain,
        here: &Installation,
        retired: &[RetiredKeyRecord],
    ) -> Result<(AppliedChanges, Vec<RetiredKeyRecord>), DnsFailure> {
        within(async {
            let zone = self.zone_of(account, domain).await?;
            let around = Surroundings { here, domain, covered_by: None };
            let mut planned = Vec::new();
            for key in &domain.dkim {
                let wanted = Installation::dkim(domain, key);
                let found = zone.at(&wanted.host).await?;
                planned.push(plan(around, Purpose::Dkim, &wanted, &found));
            }
            let applied = apply_all(zone.as_ref(), planned, false).await?;
            let mut gone = Vec::new();
            for record in retired {
                let RetiredKeyRecord { host, value } = record.clone();
                remove(zone.as_ref(), &RequiredRecord { kind: RecordType::Txt, host, value }).await?;
                gone.push(record.clone());
            }
            Ok((applied, gone))
        })
        .await
    }

    /// Returns the records of the domain's namesakes, which are domains of the same name in other workspaces that were
    /// verified: mail of these workspaces needs the records at their names.
    pub(crate) async fn records_of_namesakes(
        &self,
        domain: &SendingDomain,
        here: &Installation,
    ) -> Result<Vec<RequiredRecord>, StoreError> {
        let namesakes = self.store().domains_named(&domain.domain, None, MAX_NAMESAKES).await?;
        let others = namesakes.iter().filter(|other| other.id != domain.id);
        Ok(others.flat_map(|other| here.offered(other, &self.link_key())).map(|(_, offered)| offered).collect())
    }

    /// Removes every record from the zone that is exactly the one for the domain, except for those at a name of the
    /// `spared` ones.
    pub(crate) async fn remove_records(
        &self,
        account: &DnsAccount<'_>,
        domain: &SendingDomain,
        here: &Installation,
        retired: &[RetiredKeyRecord],
        spared: &[RequiredRecord],
    ) -> Result<(), DnsFailure> {
        within(async {
            let zone = self.zone_of(account, domain).await?;
            let retired = retired.iter().cloned().map(|RetiredKeyRecord { host, value }| RequiredRecord {
                kind: RecordType::Txt,
                host,
                value,
            });
            let offered = here.offered(domain, &self.link_key()).into_iter().map(|(_, offered)| offered);
            for gone in offered.chain(retired).filter(|one| !spared.iter().any(|other| is_in_one_place(one, other))) {
                remove(zone.as_ref(), &gone).await?;
            }
            Ok(())
        })
        .await
    }

    async fn zone_of(&self, account: &DnsAccount<'_>, domain: &SendingDomain) -> Result<Box<dyn DnsZone>, DnsFailure> {
        let provider = self.0.dns_providers.get(&account.provider).ok_or(DnsFailure::Unknown)?;
        Ok(provider.zone(account.credentials, &domain.domain).await?)
    }

    /// Returns the parent domain whose DMARC policy covers this one while it has none of its own (RFC 9989 section
    /// 4.10); names in the zone are read from the zone. The policy of a public suffix is for domains that publish
    /// nothing, and does not count.
    async fn policy_above(&self, zone: &dyn DnsZone, domain: &str) -> Result<Option<String>, DnsFailure> {
        let mut answers = Answers::default();
        answers.texts.insert(dmarc_host(domain), Vec::new());
        let Err(questions) = discover(domain, &answers) else { return Ok(None) };
        for question in questions {
            let host = question.name;
            let texts = if is_in_zone(&host, zone.name()) {
                zone.at(&host).await?.txt
            } else {
                self.txt(&host).await.map_err(|reason| {
                    DnsProviderError::Away(format!("whether {host} has a policy could not be looked up: {reason}"))
                })?
            };
            answers.texts.insert(host, texts);
        }
        let policy = discover(domain, &answers).ok().and_then(|found| found.policy);
        Ok(policy.filter(|policy| policy.psd != Psd::Yes).map(|policy| policy.domain))
    }

    /// Seals the credentials of an account for storage.
    pub(crate) fn seal_dns_account(&self, account: &DnsAccount<'_>, domain: &SendingDomain) -> KeptDnsAccount {
        let text = serde_json::to_string(account.credentials).expect("credentials are plain data");
        let retired = domain.dns_account.as_ref().map(|kept| kept.retired.clone()).unwrap_or_default();
        let sealed = self.vault().seal(&KeptDnsAccount::place(domain.id), &text, self.entropy());
        KeptDnsAccount { provider: account.provider, sealed, retired }
    }

    /// Opens the stored credentials; `None` if they do not open, which is logged.
    pub(crate) fn open_dns_account(&self, domain: &SendingDomain) -> Option<DnsCredentials> {
        let kept = domain.dns_account.as_ref()?;
        let opened = self.vault().open(&KeptDnsAccount::place(domain.id), &kept.sealed);
        let read = opened.map_err(|error| error.to_string());
        let read = read.and_then(|text| serde_json::from_str(&text).map_err(|_| "they are damaged".to_owned()));
        read.inspect_err(|error| tracing::error!(domain = %domain.id, error, "kept DNS credentials are unusable")).ok()
    }
}

/// Runs a round at a provider with its time limit.
async fn within<T>(round: impl Future<Output = Result<T, DnsFailure>>) -> Result<T, DnsFailure> {
    let late = || DnsProviderError::Away("the DNS provider did not answer in time".to_owned());
    timeout(PROVIDER_WITHIN, round).await.unwrap_or_else(|_| Err(late().into()))
}

/// Writes the planned changes one after another. A failure before anything was written fails the whole; a later one is
/// reported with its change.
async fn apply_all(
    zone: &dyn DnsZone,
    planned: Vec<PlannedChange>,
    dry_run: bool,
) -> Result<AppliedChanges, DnsFailure> {
    let (mut changes, mut has_written) = (Vec::new(), false);
    // A provider that asks for a pause gets it.
    let mut later: Option<String> = None;
    for mut change in planned {
        let done = match change.action {
            ChangeAction::Keep => true,
            ChangeAction::Conflict => false,
            ChangeAction::Create | ChangeAction::Update if dry_run => false,
            ChangeAction::Create | ChangeAction::Update if later.is_some() => {
                change.detail.clone_from(&later);
                false
            }
            ChangeAction::Create | ChangeAction::Update => match write(zone, &change).await {
                Ok(done) => {
                    has_written = true;
                    if !done {
                        change.detail = Some("The provider does not show the record yet. Try again.".to_owned());
                    }
                    done
                }
                Err(error @ (DnsProviderError::Refused(_) | DnsProviderError::Changed)) => {
                    change.detail = Some(format!("Not written: {error}"));
                    false
                }
                Err(error) if has_written => {
                    change.detail = Some(format!("Not written: {error}"));
                    if let DnsProviderError::Later(..) = error {
                        later.clone_from(&change.detail);
                    }
                    false
                }
                Err(error) => return Err(error.into()),
            },
        };
        changes.push(AppliedChange { change, done, read_back: None });
    }
    Ok(AppliedChanges { zone: zone.name().to_owned(), changes })
}

/// Writes a change and reads it back from the provider.
async fn write(zone: &dyn DnsZone, change: &PlannedChange) -> Result<bool, DnsProviderError> {
    zone.replace(&change.host, change.kind, &change.before, &change.after).await?;
    let found: HostRecords = zone.at(&change.host).await?;
    let found = found.of(change.kind);
    Ok(found.len() == change.after.len() && change.after.iter().all(|value| found.contains(value)))
}

/// Returns true if two records are of one type at one name.
fn is_in_one_place(one: &RequiredRecord, other: &RequiredRecord) -> bool {
    one.kind == other.kind && one.host == other.host
}

/// Removes a record that is exactly this one.
async fn remove(zone: &dyn DnsZone, offered: &RequiredRecord) -> Result<(), DnsFailure> {
    let found = zone.at(&offered.host).await?;
    if let Some(change) = plan_removal(offered, &found) {
        zone.replace(&change.host, change.kind, &change.before, &change.after).await?;
    }
    Ok(())
}
