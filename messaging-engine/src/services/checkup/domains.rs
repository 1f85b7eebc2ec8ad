//! Checks of the sending domains of all workspaces.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use messaging_core::domain::installation::checkup::{
    CheckId, CheckReport, DmarcPolicy, DomainFacts, LookUp, exempt_domain, judge_domain, skipped,
};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::is_exempt;
use messaging_core::ports::store::StoreError;

use crate::app::App;

/// Number of domains that are checked; each costs about ten look-ups.
const MAX_DOMAINS: usize = 200;

/// Number of domains that are checked concurrently.
const AT_A_TIME: usize = 8;

/// Time limit for all domains together.
const WITHIN: Duration = Duration::from_secs(40);

impl App {
    /// Runs the five checks of every domain.
    pub(super) async fn check_domains(&self) -> Result<Vec<CheckReport>, StoreError> {
        let mut domains = self.store().all_domains(MAX_DOMAINS + 1).await?;
        let has_more = domains.len() > MAX_DOMAINS;
        domains.truncate(MAX_DOMAINS);
        let subjects = subjects(&domains);
        let mut found: Vec<Option<[CheckReport; 5]>> = vec![None; domains.len()];
        let asked: Vec<_> = domains.into_iter().zip(subjects.clone()).enumerate().collect();
        let looks = stream::iter(asked)
            .map(|(place, (domain, subject))| async move { (place, self.check_domain(&domain, &subject).await) })
            .buffer_unordered(AT_A_TIME);
        let all = async {
            futures_util::pin_mut!(looks);
            while let Some((place, reports)) = looks.next().await {
                found[place] = Some(reports?);
            }
            Ok::<_, StoreError>(())
        };
        // Domains that were not checked by then say so.
        if let Ok(outcome) = tokio::time::timeout(WITHIN, all).await {
            outcome?;
        }
        let late = |subject: &String| {
            CheckId::OF_DOMAIN.map(|id| {
                skipped(
                    id,
                    subject,
                    "There was no time left to look.",
                    "look again; a resolver that answers slowly is the usual cause",
                )
            })
        };
        let mut reports: Vec<_> = found
            .into_iter()
            .zip(&subjects)
            .flat_map(|(reports, subject)| reports.unwrap_or_else(|| late(subject)))
            .collect();
        if has_more {
            let text = format!("Only {MAX_DOMAINS} domains are looked at, the first by name.");
            reports.push(skipped(
                CheckId::Dkim,
                "other domains",
                &text,
                "verify the others by `messaging domain verify`",
            ));
        }
        Ok(reports)
    }

    async fn check_domain(&self, domain: &SendingDomain, subject: &str) -> Result<[CheckReport; 5], StoreError> {
        if is_exempt(domain) {
            return Ok(exempt_domain(subject));
        }
        let (findings, policy) = tokio::join!(self.look_at(domain), self.dmarc_policy_of(&domain.domain));
        Ok(judge_domain(&DomainFacts {
            subject: subject.to_owned(),
            domain: domain.domain.clone(),
            findings: findings?,
            policy,
            public_url: self.settings().public_url.clone(),
        }))
    }

    /// Returns the policy that receivers apply to mail of a domain.
    async fn dmarc_policy_of(&self, domain: &str) -> LookUp<Option<DmarcPolicy>> {
        let found = self.discover_dmarc(domain).await?;
        Ok(found.policy.map(|record| DmarcPolicy::of(&record, domain)))
    }
}

/// Returns how the domains are named in reports: by name, and with the workspace if several workspaces have it.
fn subjects(domains: &[SendingDomain]) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for domain in domains {
        *count.entry(&domain.domain).or_default() += 1;
    }
    let subject = |domain: &SendingDomain| {
        let name = &domain.domain;
        if count[name.as_str()] > 1 { format!("{name} ({})", domain.workspace_id) } else { name.clone() }
    };
    domains.iter().map(subject).collect()
}
