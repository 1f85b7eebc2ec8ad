//! The records of a sending domain: listed, looked at, their keys replaced.

use std::time::Duration;

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::{self, MAX_KEY_PAIRS, is_exempt, key_pairs};
use messaging_core::input::{Empty, PageQuery};
use messaging_core::ports::store::Stored;
use messaging_core::scope::{Access, Scope};

use super::auto_dns::publish_soon;
use super::report::{RecordItem, SendingDomainReport};
use super::{DomainPath, find};
use crate::app::write_queues::ResourceKey;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;
use crate::services::dkim::ALGORITHMS;

/// `POST /workspaces/{workspace_id}/sending-domains/{id}/verify`
pub struct VerifySendingDomain;

impl Operation for VerifySendingDomain {
    const ID: &'static str = "verifySendingDomain";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}/verify";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain verify";
    const SUMMARY: &'static str = "Look at the records of a sending domain now; takes at most 10 seconds";
    type Path = DomainPath;
    type Query = Empty;
    type Body = Empty;
    type Output = SendingDomainReport;

    // Looking takes seconds, in which nobody else shall wait.
    fn serialized_resources(_: &str, _: &Call<Self>) -> Vec<ResourceKey> {
        Vec::new()
    }

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SendingDomainReport, Error> {
        let mut stored = find(cx, call.path).await?;
        if !is_exempt(&stored.record) {
            let findings = cx.app.look_for_request(&stored.record).await?;
            // Read again, because looking took its time: the commit must not find another revision and
            // have everything looked up once more.
            let Stored { record, revision } = find(cx, call.path).await?;
            let looked = verification::apply(record, findings, cx.app.now());
            cx.change(Write::put(looked.clone(), Expect::Revision(revision)));
            stored.record = looked;
        }
        Ok(SendingDomainReport::of(&stored.record, &cx.app.installation().await?, &cx.app.link_key()))
    }
}

/// `GET /workspaces/{workspace_id}/sending-domains/{id}/records`
pub struct ListSendingDomainRecords;

impl Operation for ListSendingDomainRecords {
    const ID: &'static str = "listSendingDomainRecords";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}/records";
    const ACCESS: Access = Access::Scope(Scope::DomainsRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "domain records";
    const SUMMARY: &'static str = "List the DNS records to publish for a sending domain, on one page";
    type Path = DomainPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<RecordItem>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<RecordItem>, Error> {
        let domain = find(cx, call.path).await?.record;
        // Always one page, whatever `limit` says; a cursor can only come from elsewhere.
        cx.page(&call.query)?;
        Ok(Page::only(RecordItem::all(&domain, &cx.app.installation().await?, &cx.app.link_key())))
    }
}

/// `POST /workspaces/{workspace_id}/sending-domains/{id}/rotate-dkim`
///
/// Contract section 14. What it leaves open: the new keys sign once their records are verified, and the
/// old ones stay until a week after that. At most three pairs of keys exist at a time.
pub struct RotateDkim;

impl Operation for RotateDkim {
    const ID: &'static str = "rotateDkim";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/workspaces/{workspace_id}/sending-domains/{id}/rotate-dkim";
    const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "domain rotate-dkim";
    const SUMMARY: &'static str = "Add new signing keys to a sending domain; they sign once their records are verified";
    type Path = DomainPath;
    type Query = Empty;
    type Body = Empty;
    type Output = SendingDomainReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<SendingDomainReport, Error> {
        let domain = find(cx, call.path).await?.record;
        refuse_fourth_pair(&domain)?;
        let keys = cx.app.make_dkim_keys(ALGORITHMS).await?;
        // Read again, because making keys took its time.
        let Stored { record: mut domain, revision } = find(cx, call.path).await?;
        refuse_fourth_pair(&domain)?;
        // Which pair is the newer one must be certain.
        let newest = domain.dkim.iter().map(|key| key.created_at).max();
        let made_at = newest.map_or(cx.now, |newest| cx.now.max(newest + Duration::from_millis(1)));
        domain.dkim.extend(cx.app.seal_dkim_keys(&keys, domain.id, made_at));
        if is_exempt(&domain) {
            verification::publish(&mut domain, cx.now);
        }
        cx.change(Write::put(domain.clone(), Expect::Revision(revision)));
        publish_soon(cx, &domain);
        Ok(SendingDomainReport::of(&domain, &cx.app.installation().await?, &cx.app.link_key()))
    }
}

/// The oldest pair may be what mail under way was signed with; it goes a week after a newer one is
/// published.
fn refuse_fourth_pair(domain: &SendingDomain) -> Result<(), Error> {
    if key_pairs(domain) < MAX_KEY_PAIRS {
        return Ok(());
    }
    let oldest = domain.dkim.iter().map(|key| key.created_at).min();
    let by = domain.dkim.iter().filter(|key| Some(key.created_at) == oldest).map(|key| key.selector.clone());
    Err(Error::InUse { by: by.collect() })
}
