//! Evaluation of SPF records in the DNS: the look-ups of a round run concurrently, with a time limit for all rounds
//! together.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use messaging_core::domain::mail::spf::evaluation::MAX_ROUNDS;
use messaging_core::domain::mail::spf::{Answers, Question, QuestionKind};
use messaging_core::ports::resolver::{LookupError, Resolver};

/// Time limit for a look-up: contract section 14 promises the answer to `verify` within 10 seconds, whatever the DNS
/// does.
const ANSWER_WITHIN: Duration = Duration::from_secs(8);

/// Look-ups that run at a time. A record leads to at most ten look-ups, of which each mail exchanger's name may lead to
/// ten more.
const AT_A_TIME: usize = 8;

/// Records in the answer to a look-up.
enum DnsRecords {
    Texts(Vec<String>),
    Addresses(Vec<IpAddr>),
    Exchangers(Vec<String>),
}

/// Returns the result of `step` once it was given every answer that it asks for; an error says why an answer is
/// missing.
pub(crate) async fn followed<T>(
    resolver: &dyn Resolver,
    step: impl Fn(&Answers) -> Result<T, Vec<Question>>,
) -> Result<T, String> {
    let rounds = async {
        let mut answers = Answers::default();
        for _ in 0..MAX_ROUNDS {
            let questions = match step(&answers) {
                Ok(done) => return Ok(done),
                Err(questions) => questions,
            };
            let mut found = stream::iter(questions)
                .map(|question| async move { (ask(resolver, &question).await, question) })
                .buffer_unordered(AT_A_TIME);
            while let Some((answer, question)) = found.next().await {
                let name = question.name;
                match answer {
                    Ok(DnsRecords::Texts(texts)) => drop(answers.texts.insert(name, texts)),
                    Ok(DnsRecords::Addresses(addresses)) => drop(answers.addresses.insert(name, addresses)),
                    Ok(DnsRecords::Exchangers(names)) => drop(answers.exchangers.insert(name, names)),
                    Err(LookupError(reason)) => return Err(format!("{name}: {reason}")),
                }
            }
        }
        Err("it leads on and on".to_owned())
    };
    tokio::time::timeout(ANSWER_WITHIN, rounds).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

/// The answer to a DNS query, or the reason why there is none within [`ANSWER_WITHIN`].
pub(super) async fn answer<T>(question: impl Future<Output = Result<T, LookupError>>) -> Result<T, String> {
    match tokio::time::timeout(ANSWER_WITHIN, question).await {
        Ok(answer) => answer.map_err(|LookupError(reason)| reason),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

async fn ask(resolver: &dyn Resolver, question: &Question) -> Result<DnsRecords, LookupError> {
    let name = question.name.as_str();
    match question.kind {
        QuestionKind::Texts => resolver.txt(name).await.map(DnsRecords::Texts),
        QuestionKind::Addresses => resolver.addresses(name).await.map(DnsRecords::Addresses),
        QuestionKind::Exchangers => {
            // A null MX (RFC 7505) names no server.
            let names = resolver.mx(name).await?.into_iter().map(|(_, host)| host).filter(|host| !host.is_empty());
            Ok(DnsRecords::Exchangers(names.collect()))
        }
    }
}
