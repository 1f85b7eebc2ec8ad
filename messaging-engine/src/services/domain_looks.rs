//! DNS checks of a sending domain: all look-ups run at once, each with a time limit.

use std::net::IpAddr;

use futures_util::future::join_all;
use messaging_core::domain::mail::dmarc::{Discovery, discover};
use messaging_core::domain::mail::dns_record::{
    Installation, UNNAMED, judge_dkim, judge_dmarc, judge_return_path, judge_spf, judge_tls_rpt, judge_tracking,
    tls_rpt_host,
};
use messaging_core::domain::mail::link_token::ReportPurpose;
use messaging_core::domain::mail::sending_domain::{Check, SendingDomain};
use messaging_core::domain::mail::verification::{Finding, Findings};
use messaging_core::ports::resolver::Resolver;
use messaging_core::ports::store::StoreError;
use tokio::sync::SemaphorePermit;

use crate::app::App;
use crate::error::Error;
use crate::services::published_records::{PublishedFirst, PublishedRecords};
use crate::services::spf_looks::{self, answer};

impl App {
    /// Names of this installation that DNS records refer to.
    pub(crate) async fn installation(&self) -> Result<Installation, StoreError> {
        Ok(Installation::new(&self.installation_name().await?, &self.settings().public_url))
    }

    /// Checks a domain for a request. Fails with [`Error::Unavailable`] if too many requests do so now.
    pub(crate) async fn look_for_request(&self, domain: &SendingDomain) -> Result<Findings, Error> {
        let _turn = self.turn_for_request()?;
        Ok(self.look_at(domain).await?)
    }

    /// A permit to query the DNS for a request, held while the queries run. Fails with [`Error::Unavailable`] if all
    /// are taken.
    pub(crate) fn turn_for_request(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.domain_looks().by_requests.try_acquire().map_err(|_| Error::Unavailable { retry_after: 1 })
    }

    /// A permit for [`App::look_at`] in a job; `None` if all are taken.
    pub(crate) fn turn_to_look(&self) -> Option<SemaphorePermit<'_>> {
        self.domain_looks().in_background.try_acquire().ok()
    }

    /// Looks up all records of a domain and judges each. A look-up that fails is part of the findings, with its reason.
    pub(crate) async fn look_at(&self, domain: &SendingDomain) -> Result<Findings, StoreError> {
        self.look_at_published(domain, &PublishedRecords::default()).await
    }

    /// The same, where it is known of some records how they are published.
    pub(crate) async fn look_at_published(
        &self,
        domain: &SendingDomain,
        published: &PublishedRecords,
    ) -> Result<Findings, StoreError> {
        let resolver = PublishedFirst { published, resolver: self.resolver() };
        let (here, link_key) = (self.installation().await?, self.link_key());
        let keys = join_all(domain.dkim.iter().map(async |key| {
            let found = answer(resolver.txt(&Installation::dkim(domain, key).host)).await;
            (key.selector.clone(), found.map(|found| judge_dkim(key, &found)))
        }));
        let bounce_domain = domain.bounce_domain();
        let spf = async {
            if here.hostname == UNNAMED && !self.settings().allow_unqualified_name {
                return Ok(Check::pending(
                    "This server has no fully qualified name that the record could include. Whoever runs it starts it with \
                     --hostname, or gives it a name with `messaging admin set-name`.",
                ));
            }
            spf_looks::followed(&resolver, |answers| judge_spf(&bounce_domain, &here.hostname, answers)).await
        };
        let return_path = async {
            let found = answer(resolver.mx(&bounce_domain)).await;
            found.map(|found| judge_return_path(&here.hostname, &found))
        };
        let tracking = async {
            let host = domain.tracking_subdomain.clone()?;
            let finding = look_at_tracking(&resolver, &here.public_host, &host).await;
            Some((host, finding))
        };
        let dmarc = async {
            let found = spf_looks::followed(&resolver, |answers| discover(&domain.domain, answers)).await?;
            let ours = here.report_uri(&link_key, ReportPurpose::Dmarc, domain.id);
            let is_ours = |uri: &str| self.receives_reports(uri, ReportPurpose::Dmarc, domain.id);
            Ok(judge_dmarc(&domain.domain, &found, &ours, is_ours))
        };
        let tls_rpt = async {
            let found = answer(resolver.txt(&tls_rpt_host(&domain.domain))).await?;
            let ours = here.report_uri(&link_key, ReportPurpose::TlsRpt, domain.id);
            Ok(judge_tls_rpt(&found, &ours, |uri| self.receives_reports(uri, ReportPurpose::TlsRpt, domain.id)))
        };
        let (dkim, spf, dmarc, return_path, tracking, tls_rpt) =
            tokio::join!(keys, spf, dmarc, return_path, tracking, tls_rpt);
        Ok(Findings { dkim, spf, dmarc, return_path, tracking, tls_rpt })
    }

    /// The DMARC policy that applies to a domain (RFC 9989 section 4.10).
    pub(crate) async fn discover_dmarc(&self, domain: &str) -> Result<Discovery, String> {
        spf_looks::followed(self.resolver(), |answers| discover(domain, answers)).await
    }

    /// The TXT records of a name.
    pub(super) async fn txt(&self, name: &str) -> Result<Vec<String>, String> {
        answer(self.resolver().txt(name)).await
    }
}

/// Checks the host name of tracked links: an alias of our public host, or the same addresses.
async fn look_at_tracking(resolver: &dyn Resolver, public_host: &str, host: &str) -> Finding {
    let ours = async {
        match public_host.parse::<IpAddr>() {
            Ok(address) => Ok(vec![address]),
            Err(_) => answer(resolver.addresses(public_host)).await,
        }
    };
    let (alias, addresses, ours) = tokio::join!(answer(resolver.cname(host)), answer(resolver.addresses(host)), ours,);
    let alias = alias?;
    // Addresses matter only without an alias of our name, and ours only if the host has any.
    let addresses = if alias.as_deref() == Some(public_host) { Vec::new() } else { addresses? };
    let ours = if addresses.is_empty() { Vec::new() } else { ours? };
    Ok(judge_tracking(public_host, alias.as_deref(), &addresses, &ours))
}
