//! Records that are read back after they were written, from the name servers of the zone.
//!
//! Contract section 14.5. What the name servers say is also what the domain is judged by right afterwards
//! ([`App::look_at_published`]), so that no resolver has to be asked, and then remembers for minutes that a record was
//! missing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use messaging_core::domain::mail::auto_dns::{ChangeAction, ReadBack};
use messaging_core::domain::mail::dns_record::RecordType;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::verification::{Findings, is_exempt};
use messaging_core::ports::name_servers::{RecordQuestion, ServerAnswers};
use messaging_core::ports::resolver::{LookupError, Resolver};
use tokio::time::timeout;

use crate::app::App;
use crate::error::Error;
use crate::services::auto_dns::{AppliedChange, AppliedChanges};
use crate::services::spf_looks::answer;

/// Time that finding and asking the name servers of a zone may take.
const NAME_SERVERS_WITHIN: Duration = Duration::from_secs(10);

/// Values of records by name and type, as the name servers of their zone have them.
#[derive(Debug, Default)]
pub(crate) struct PublishedRecords(HashMap<(String, RecordType), Vec<String>>);

impl PublishedRecords {
    fn get(&self, host: &str, kind: RecordType) -> Option<&Vec<String>> {
        self.0.get(&(host.to_owned(), kind))
    }
}

/// Answers with published records where these are known, and else as a resolver does.
#[derive(Debug)]
pub(super) struct PublishedFirst<'a> {
    pub(super) published: &'a PublishedRecords,
    pub(super) resolver: &'a dyn Resolver,
}

#[async_trait]
impl Resolver for PublishedFirst<'_> {
    async fn txt(&self, name: &str) -> Result<Vec<String>, LookupError> {
        match self.published.get(name, RecordType::Txt) {
            Some(texts) => Ok(texts.clone()),
            None => self.resolver.txt(name).await,
        }
    }

    async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, LookupError> {
        let Some(values) = self.published.get(name, RecordType::Mx) else { return self.resolver.mx(name).await };
        let exchanger = |value: &String| {
            let (preference, host) = value.split_once(' ')?;
            Some((preference.parse().ok()?, host.to_owned()))
        };
        let mut exchangers: Vec<_> = values.iter().filter_map(exchanger).collect();
        exchangers.sort();
        Ok(exchangers)
    }

    async fn cname(&self, name: &str) -> Result<Option<String>, LookupError> {
        match self.published.get(name, RecordType::Cname) {
            Some(targets) => Ok(targets.first().cloned()),
            None => self.resolver.cname(name).await,
        }
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.resolver.addresses(name).await
    }

    async fn names(&self, address: IpAddr) -> Result<Vec<String>, LookupError> {
        self.resolver.names(address).await
    }
}

impl App {
    /// Reads changes back for a request, and checks the domain, unless it needs no records. Fails with
    /// [`Error::Unavailable`] if too many requests do so now.
    pub(crate) async fn look_after_changes(
        &self,
        domain: &SendingDomain,
        applied: &mut AppliedChanges,
    ) -> Result<Option<Findings>, Error> {
        let _turn = self.turn_for_request()?;
        let published = self.read_back(applied).await;
        if is_exempt(domain) {
            return Ok(None);
        }
        Ok(Some(self.look_at_published(domain, &published).await?))
    }

    /// Reads back the records that a zone holds after its changes, and notes with each what was found. Returns those
    /// that its name servers answered for; a record counts as published once all servers that answer have it.
    pub(crate) async fn read_back(&self, applied: &mut AppliedChanges) -> PublishedRecords {
        let AppliedChanges { zone, changes } = applied;
        let mut held: Vec<_> = changes.iter_mut().filter(|one| is_held(one)).collect();
        if held.is_empty() {
            return PublishedRecords::default();
        }
        let question =
            |one: &&mut AppliedChange| RecordQuestion { host: one.change.host.clone(), kind: one.change.kind };
        let questions: Vec<_> = held.iter().map(question).collect();
        let (servers, why) = match timeout(NAME_SERVERS_WITHIN, self.name_servers().ask(zone, &questions)).await {
            Ok(Ok(servers)) => (servers, None),
            Ok(Err(LookupError(why))) => (Vec::new(), Some(why)),
            Err(_) => (Vec::new(), Some("no answer in time".to_owned())),
        };
        let mut published = PublishedRecords::default();
        for (at, one) in held.iter_mut().enumerate() {
            let answers = servers.iter().filter_map(|server| Some((&*server.server, answer_of(server, at)?)));
            one.read_back = ReadBack::by_name_servers(&one.change.after, answers);
            if let Some(read) = &one.read_back {
                let values = read.differences.first().map_or(&one.change.after, |difference| &difference.values);
                published.0.insert((one.change.host.clone(), one.change.kind), values.clone());
            }
        }
        let unheard = held.into_iter().enumerate().filter(|(_, one)| one.read_back.is_none());
        join_all(unheard.map(async |(at, one)| {
            let why = why.clone().or_else(|| refusal_of(&servers, at)).unwrap_or_else(|| "none was found".to_owned());
            let found = self.resolved(&one.change.host, one.change.kind).await;
            one.read_back = Some(ReadBack::by_resolver(&one.change.after, found, &why));
        }))
        .await;
        published
    }

    /// Returns the values of records by the resolver, or the reason why there is no answer.
    async fn resolved(&self, host: &str, kind: RecordType) -> Result<Vec<String>, String> {
        let resolver = self.resolver();
        let values = async {
            Ok::<Vec<String>, LookupError>(match kind {
                RecordType::Txt => resolver.txt(host).await?,
                RecordType::Mx => {
                    let exchangers = resolver.mx(host).await?;
                    exchangers.into_iter().map(|(preference, host)| format!("{preference} {host}")).collect()
                }
                RecordType::Cname => resolver.cname(host).await?.into_iter().collect(),
            })
        };
        answer(values).await
    }
}

/// Returns true if the zone holds records after a change, which can be read back.
fn is_held(one: &AppliedChange) -> bool {
    one.done && one.change.action != ChangeAction::Conflict && !one.change.after.is_empty()
}

/// Returns the answer of a server to the question at a place.
fn answer_of(server: &ServerAnswers, at: usize) -> Option<&[String]> {
    server.answers.get(at)?.as_deref().ok()
}

/// Returns the reason why the first server gave no answer to the question at a place.
fn refusal_of(servers: &[ServerAnswers], at: usize) -> Option<String> {
    let server = servers.first()?;
    let LookupError(why) = server.answers.get(at)?.as_ref().err()?;
    Some(format!("{}: {why}", server.server))
}
