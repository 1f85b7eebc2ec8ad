//! Automatic DNS: changes of a zone by which it holds the records of a sending domain.
//!
//! Contract section 14.5. The plan is a function of the records that are offered and of those that the zone has now. It
//! only changes records that are missing or ours: an SPF record of others is merged, a DMARC policy is never replaced,
//! and every other record of others is a conflict that a person resolves.

mod account;
mod read_back;
mod spf_merge;

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::mail::dmarc::published;
use crate::domain::mail::dns_record::{
    Installation, Purpose, RecordType, RequiredRecord, judge_dkim, judge_return_path, judge_tls_rpt, policy_fault,
};
use crate::domain::mail::sending_domain::{DkimKey, RecordStatus, SendingDomain};
use spf_merge::{Merge, merge};

pub use account::{DnsCredentials, DnsProviderName, KeptDnsAccount, RetiredKeyRecord, TsigAlgorithm};
pub use read_back::{ReadBack, ReadBackDifference, ReadBackSource, ReadBackStatus};

/// Time to live of the records that are written, in seconds.
pub const TTL: u32 = 3600;

/// Maximum number of values that a zone may have of one type at a name that is written to.
pub const MAX_VALUES: usize = 100;

/// Action for an offered record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DnsChangeAction")]
pub enum ChangeAction {
    /// The name has no record of this type, so the record is added.
    Create,
    /// The name has a record that may be changed: our own, an SPF record that ours is merged into, or texts that stay
    /// beside ours.
    Update,
    /// The zone has the record, or one of yours that does as well.
    Keep,
    /// The zone has a record of others that is not touched; a person decides.
    Conflict,
}

/// The change of all records of one type at one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    /// Action for the record.
    pub action: ChangeAction,
    /// Type of the records.
    pub kind: RecordType,
    /// Name of the records.
    pub host: String,
    /// Values that the zone has now.
    pub before: Vec<String>,
    /// Values that the zone has afterwards.
    pub after: Vec<String>,
    /// Sentence on the record that is kept, or on what a person should do.
    pub detail: Option<String>,
}

/// The records that a zone has at one name: texts put together, names in lower case without a final dot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRecords {
    /// Texts.
    pub txt: Vec<String>,
    /// Mail exchangers, `10 mx.example.org`.
    pub mx: Vec<String>,
    /// The target of the alias; there is at most one.
    pub cname: Vec<String>,
    /// True if the provider answers in place of the target of the alias, as its own proxy.
    pub is_proxied: bool,
    /// True if there are records of other types, which an alias may not stand beside.
    pub has_others: bool,
}

impl HostRecords {
    /// Returns the values of one type.
    pub fn of(&self, kind: RecordType) -> &[String] {
        match kind {
            RecordType::Txt => &self.txt,
            RecordType::Mx => &self.mx,
            RecordType::Cname => &self.cname,
        }
    }

    /// Returns the values of one type, to be changed.
    pub fn of_mut(&mut self, kind: RecordType) -> &mut Vec<String> {
        match kind {
            RecordType::Txt => &mut self.txt,
            RecordType::Mx => &mut self.mx,
            RecordType::Cname => &mut self.cname,
        }
    }
}

/// Facts about a sending domain that a plan reads besides the zone.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Names of this installation that the records have.
    pub here: &'a Installation,
    /// The sending domain.
    pub domain: &'a SendingDomain,
    /// The parent domain whose DMARC policy covers this one, if there is one.
    pub covered_by: Option<&'a str>,
}

/// Returns the change by which the zone holds one offered record. `found` are the records of the zone at its name.
pub fn plan(of: Surroundings<'_>, purpose: Purpose, wanted: &RequiredRecord, found: &HostRecords) -> PlannedChange {
    let change = Draft { wanted, found };
    if wanted.kind != RecordType::Cname
        && let [target, ..] = found.cname.as_slice()
    {
        return change.conflict(match purpose {
            // Owners of a policy often publish it by an alias.
            Purpose::Dmarc | Purpose::TlsRpt => format!(
                "{} is an alias (CNAME) of {target}, so that what is published there counts, and nothing may stand beside it. \
                 Leave it if that is meant; else remove it and try again.",
                wanted.host
            ),
            _ => format!(
                "{} is an alias (CNAME) of {target}, and nothing may stand beside an alias. Remove it and try again.",
                wanted.host
            ),
        });
    }
    match purpose {
        Purpose::Dkim => dkim(of, &change),
        Purpose::Spf => spf(of.here, &change),
        Purpose::Dmarc => dmarc(of, &change),
        Purpose::ReturnPath => return_path(&of.here.hostname, &change),
        Purpose::Tracking => tracking(&change),
        Purpose::TlsRpt => tls_rpt(&change),
    }
}

/// Returns the change by which the zone no longer holds a record that is exactly the offered one; `None` when it has
/// none, because a record of others is not removed.
pub fn plan_removal(offered: &RequiredRecord, found: &HostRecords) -> Option<PlannedChange> {
    let before = found.of(offered.kind);
    if !before.contains(&offered.value) {
        return None;
    }
    let after: Vec<_> = before.iter().filter(|value| **value != offered.value).cloned().collect();
    Some(PlannedChange {
        action: ChangeAction::Update,
        kind: offered.kind,
        host: offered.host.clone(),
        before: before.to_vec(),
        after,
        detail: None,
    })
}

/// An offered record, and the records that the zone has at its name.
struct Draft<'a> {
    wanted: &'a RequiredRecord,
    found: &'a HostRecords,
}

impl Draft<'_> {
    fn before(&self) -> &[String] {
        self.found.of(self.wanted.kind)
    }

    fn make(&self, action: ChangeAction, after: Vec<String>, detail: Option<String>) -> PlannedChange {
        let RequiredRecord { kind, host, .. } = self.wanted;
        PlannedChange { action, kind: *kind, host: host.clone(), before: self.before().to_vec(), after, detail }
    }

    fn keep(&self, detail: Option<String>) -> PlannedChange {
        self.make(ChangeAction::Keep, self.before().to_vec(), detail)
    }

    fn conflict(&self, detail: String) -> PlannedChange {
        self.make(ChangeAction::Conflict, self.before().to_vec(), Some(detail))
    }

    /// Adds the record to the present ones.
    fn add(&self) -> PlannedChange {
        self.replace(|_| true)
    }

    /// Puts the record in the place of all present ones that do not stay.
    fn replace(&self, stays: impl Fn(&str) -> bool) -> PlannedChange {
        let before = self.before();
        if before.len() >= MAX_VALUES {
            return self.conflict(format!("{} has too many records. Remove those not needed.", self.wanted.host));
        }
        let mut after: Vec<_> = before.iter().filter(|value| stays(value)).cloned().collect();
        after.push(self.wanted.value.clone());
        let action = if before.is_empty() { ChangeAction::Create } else { ChangeAction::Update };
        self.make(action, after, None)
    }
}

/// Returns the change for a DKIM record. The selector is ours alone, so a wrong key record at it is replaced.
fn dkim(of: Surroundings<'_>, draft: &Draft<'_>) -> PlannedChange {
    let is_at = |key: &&DkimKey| Installation::dkim(of.domain, key).host == draft.wanted.host;
    let Some(key) = of.domain.dkim.iter().find(is_at) else { return draft.keep(None) };
    let judged = judge_dkim(key, draft.before());
    match judged.status {
        RecordStatus::Verified => draft.keep(judged.detail),
        RecordStatus::Pending => draft.add(),
        RecordStatus::Failed => draft.replace(|_| false),
    }
}

fn spf(here: &Installation, draft: &Draft<'_>) -> PlannedChange {
    match merge(&here.hostname, draft.before()) {
        Merge::Absent => draft.add(),
        Merge::Present => draft.keep(None),
        Merge::Merged { before, merged } => {
            let after = draft.before().iter().map(|text| if *text == before { merged.clone() } else { text.clone() });
            let detail = "The SPF record that is here stays, and lets this server send as well.".to_owned();
            draft.make(ChangeAction::Update, after.collect(), Some(detail))
        }
        Merge::Impossible(why) => draft.conflict(why),
    }
}

fn dmarc(of: Surroundings<'_>, draft: &Draft<'_>) -> PlannedChange {
    match (published(&of.domain.domain, draft.before()), of.covered_by) {
        (Err(fault), _) => draft.conflict(policy_fault(fault).to_owned()),
        (Ok(Some(_)), _) if draft.before().contains(&draft.wanted.value) => draft.keep(None),
        (Ok(Some(_)), _) => draft.keep(Some(format!(
            "The DMARC policy that is here stays as it is; this server would have published {}.",
            draft.wanted.value
        ))),
        // A policy of this domain would replace the one that covers it now.
        (Ok(None), Some(above)) => draft.keep(Some(format!(
            "The DMARC policy of {above} covers this domain and stays in force; nothing is published here."
        ))),
        (Ok(None), None) => draft.add(),
    }
}

/// Returns the change for a TLS-RPT record. A record of others stays, and the detail says what to add.
fn tls_rpt(draft: &Draft<'_>) -> PlannedChange {
    let ours = draft.wanted.value.rsplit("rua=").next().unwrap_or_default();
    let judged = judge_tls_rpt(draft.before(), ours, |uri| uri == ours);
    match judged.status {
        RecordStatus::Verified => draft.keep(judged.detail),
        RecordStatus::Pending => draft.add(),
        RecordStatus::Failed => draft.conflict(judged.detail.unwrap_or_default()),
    }
}

fn return_path(hostname: &str, draft: &Draft<'_>) -> PlannedChange {
    let parse = |value: &String| {
        let (preference, host) = value.split_once(' ')?;
        Some((preference.parse().ok()?, host.to_owned()))
    };
    let found: Vec<(u16, String)> = draft.before().iter().filter_map(parse).collect();
    let judged = judge_return_path(hostname, &found);
    match judged.status {
        RecordStatus::Verified => draft.keep(judged.detail),
        RecordStatus::Pending => draft.add(),
        RecordStatus::Failed => draft.conflict(format!(
            "Mail for {} goes to another server. Remove its MX records if bounces shall come here, and try again.",
            draft.wanted.host
        )),
    }
}

fn tracking(draft: &Draft<'_>) -> PlannedChange {
    let RequiredRecord { host, value, .. } = draft.wanted;
    if value.parse::<IpAddr>().is_ok() || !value.contains('.') {
        return draft.conflict(format!(
            "An alias leads to a name, and the public address of this server has none: {value}. Whoever runs it sets \
             --public-url to a name."
        ));
    }
    let others = draft.found.has_others || !draft.found.txt.is_empty() || !draft.found.mx.is_empty();
    match draft.before() {
        [only] if only == value && draft.found.is_proxied => draft.conflict(format!(
            "{host} leads to {value} through the proxy of the DNS provider, which answers in place of this server. Switch the \
             proxy off for this record (at Cloudflare: DNS only), or remove it and try again."
        )),
        [only] if only == value => draft.keep(None),
        [] if !others => draft.add(),
        [] => draft.conflict(format!(
            "{host} has records of other types, and nothing may stand beside an alias. Remove them, or choose another \
             tracking_subdomain."
        )),
        [other, ..] => draft.conflict(format!(
            "{host} is an alias of {other}. Remove it if links shall lead here, or choose another tracking_subdomain."
        )),
    }
}

#[cfg(test)]
mod tests;
