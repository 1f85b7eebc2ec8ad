//! Evaluation of a record to its end, with the limits that receivers keep (RFC 7208 section 4.6.4).
//!
//! Nothing waits here: [`evaluate`] gets the answers so far, and returns the questions that are missing. The caller
//! looks these up and calls it again; each round knows more, and there are at most [`MAX_ROUNDS`].

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::record::{self, Mechanism, Prefixes, Qualifier, has_macros};

/// Maximum number of terms that cost receivers a look-up; one more is an error to them.
pub const MAX_LOOKUPS: usize = 10;

/// Maximum number of look-ups that may find nothing; one more is an error to receivers.
pub const MAX_VOID_LOOKUPS: usize = 2;

/// Maximum number of mail exchangers of one name; one more is an error to receivers.
const MAX_EXCHANGERS: usize = 10;

/// Maximum number of rounds of questions until every record has been read: one for each look-up and one for the names
/// that it returns.
pub const MAX_ROUNDS: usize = 2 * MAX_LOOKUPS + 4;

/// The type of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuestionKind {
    /// TXT.
    Texts,
    /// A and AAAA.
    Addresses,
    /// MX.
    Exchangers,
}

/// A question to the DNS.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question {
    /// The type.
    pub kind: QuestionKind,
    /// The name, without a final dot.
    pub name: String,
}

/// Answers of the DNS so far; a name without records has an empty answer.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// TXT records by name.
    pub texts: HashMap<String, Vec<String>>,
    /// Addresses by name.
    pub addresses: HashMap<String, Vec<IpAddr>>,
    /// Names of mail exchangers by name.
    pub exchangers: HashMap<String, Vec<String>>,
}

/// Result of one round: missing answers, or the evaluation.
#[derive(Debug)]
pub enum Step {
    /// These questions have to be looked up first.
    Ask(Vec<Question>),
    /// The record was followed to its end.
    Done(Evaluation),
}

/// Reason why receivers give up on a record (`permerror`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A name that is to have an SPF record has none.
    NoRecord {
        /// The name.
        host: String,
    },
    /// A name has several SPF records.
    SeveralRecords {
        /// The name.
        host: String,
    },
    /// A term is malformed.
    Malformed {
        /// The name of the record.
        host: String,
        /// The term.
        term: String,
    },
    /// More than [`MAX_LOOKUPS`] look-ups.
    TooManyLookups {
        /// The term that is one too many.
        term: String,
        /// The name of its record.
        host: String,
    },
    /// A name has too many mail exchangers.
    TooManyExchangers {
        /// The name.
        host: String,
    },
}

/// A mechanism that found nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Void {
    /// Name of the record that has the mechanism.
    pub host: String,
    /// The mechanism as written.
    pub term: String,
}

/// Result of following an SPF record to its end.
#[derive(Debug, Clone, Default)]
pub struct Evaluation {
    /// Number of terms that cost a look-up.
    pub lookups: usize,
    /// Look-ups that found nothing.
    pub voids: Vec<Void>,
    /// Reason why receivers give up on the record; `None` if they do not.
    pub problem: Option<Problem>,
    policy: Policy,
}

/// A record whose names are resolved.
type Policy = Vec<(Qualifier, Match)>;

/// Resolved mechanism that an address is compared with.
#[derive(Debug, Clone)]
enum Match {
    /// Blocks.
    Nets(Vec<IpNet>),
    /// Every address.
    All,
    /// Addresses that another record, named by `include`, lets send.
    Included(Policy),
    /// The record that `redirect` names.
    Redirected(Policy),
    /// The match depends on more than the address.
    Unknown,
}

/// Verdict of an SPF record on one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The address may send.
    Allowed,
    /// The address may not send, or the record says nothing about it.
    Refused,
    /// A macro or `ptr` comes before the answer.
    Unknown,
}

impl Evaluation {
    /// Returns the verdict of the record on an address.
    pub fn permits(&self, address: IpAddr) -> Permission {
        match result(&self.policy, address) {
            Ok(Some(Qualifier::Pass)) => Permission::Allowed,
            Ok(_) => Permission::Refused,
            Err(Undecided) => Permission::Unknown,
        }
    }

    /// Returns true if some address may send, also if a macro or `ptr` leaves open which.
    pub fn permits_somebody(&self) -> bool {
        lets_send(&self.policy)
    }
}

/// The result depends on more than the address.
struct Undecided;

/// Returns the qualifier of the first match.
fn result(policy: &[(Qualifier, Match)], address: IpAddr) -> Result<Option<Qualifier>, Undecided> {
    for (qualifier, matched) in policy {
        let is_match = match matched {
            Match::All => true,
            Match::Nets(nets) => nets.iter().any(|net| net.contains(&address)),
            Match::Included(included) => result(included, address)? == Some(Qualifier::Pass),
            Match::Redirected(other) => return result(other, address),
            Match::Unknown => return Err(Undecided),
        };
        if is_match {
            return Ok(Some(*qualifier));
        }
    }
    Ok(None)
}

fn lets_send(policy: &[(Qualifier, Match)]) -> bool {
    policy.iter().any(|(qualifier, matched)| match matched {
        Match::Nets(nets) => *qualifier == Qualifier::Pass && !nets.is_empty(),
        Match::All | Match::Unknown => *qualifier == Qualifier::Pass,
        Match::Included(included) => *qualifier == Qualifier::Pass && lets_send(included),
        Match::Redirected(other) => lets_send(other),
    })
}

/// Evaluates the record of `host` as far as the answers lead.
pub fn evaluate(host: &str, answers: &Answers) -> Step {
    let mut walk = Walk { answers, missing: HashSet::new(), evaluation: Evaluation::default() };
    let policy = walk.record(host, None);
    let Walk { missing, mut evaluation, .. } = walk;
    if missing.is_empty() {
        evaluation.policy = policy;
        return Step::Done(evaluation);
    }
    let mut missing: Vec<_> = missing.into_iter().collect();
    missing.sort_unstable();
    Step::Ask(missing)
}

struct Walk<'a> {
    answers: &'a Answers,
    missing: HashSet<Question>,
    evaluation: Evaluation,
}

impl<'a> Walk<'a> {
    /// Resolves the record of a name; `named_by` is the term of another record that led here.
    fn record(&mut self, host: &str, named_by: Option<(&str, &str)>) -> Policy {
        let Some(texts) = self.known(QuestionKind::Texts, host, |answers| &answers.texts) else { return Vec::new() };
        if let Some((by, term)) = named_by
            && texts.is_empty()
        {
            self.void(by, term);
        }
        let mut records = texts.iter().filter_map(|text| record::strip_version(text));
        let (Some(terms), None) = (records.next(), records.next()) else {
            let host = host.to_owned();
            let is_none = !texts.iter().any(|text| record::strip_version(text).is_some());
            self.fail(if is_none { Problem::NoRecord { host } } else { Problem::SeveralRecords { host } });
            return Vec::new();
        };
        let record = match record::parse(terms) {
            Ok(record) => record,
            Err(term) => {
                self.fail(Problem::Malformed { host: host.to_owned(), term });
                return Vec::new();
            }
        };
        let mut policy = Vec::new();
        for directive in &record.directives {
            if self.evaluation.problem.is_some() {
                return policy;
            }
            let matched = self.mechanism(host, &directive.mechanism, &directive.text);
            policy.push((directive.qualifier, matched));
        }
        if let Some(other) = record.redirect {
            let term = format!("redirect={other}");
            if self.evaluation.problem.is_none() && self.count(host, &term) {
                let matched = if has_macros(&other) {
                    Match::Unknown
                } else {
                    Match::Redirected(self.record(&other, Some((host, &term))))
                };
                policy.push((Qualifier::Pass, matched));
            }
        }
        policy
    }

    fn mechanism(&mut self, host: &str, mechanism: &Mechanism, term: &str) -> Match {
        match mechanism {
            Mechanism::All => return Match::All,
            Mechanism::Net(net) => return Match::Nets(vec![*net]),
            _ => {}
        }
        if !self.count(host, term) {
            return Match::Unknown;
        }
        match mechanism {
            Mechanism::Include(name)
            | Mechanism::Exists(name)
            | Mechanism::A(Some(name), _)
            | Mechanism::Mx(Some(name), _)
                if has_macros(name) =>
            {
                Match::Unknown
            }
            Mechanism::Include(name) => Match::Included(self.record(name, Some((host, term)))),
            Mechanism::Exists(name) => {
                if self.addresses(name, host, term).is_empty() {
                    Match::Nets(Vec::new())
                } else {
                    Match::All
                }
            }
            Mechanism::A(name, prefixes) => {
                let name = name.as_deref().unwrap_or(host);
                Match::Nets(nets(&self.addresses(name, host, term), *prefixes))
            }
            Mechanism::Mx(name, prefixes) => {
                Match::Nets(nets(&self.exchangers(name.as_deref().unwrap_or(host), host, term), *prefixes))
            }
            Mechanism::Ptr | Mechanism::All | Mechanism::Net(_) => Match::Unknown,
        }
    }

    fn addresses(&mut self, name: &str, host: &str, term: &str) -> Vec<IpAddr> {
        let Some(found) = self.known(QuestionKind::Addresses, name, |answers| &answers.addresses) else {
            return Vec::new();
        };
        if found.is_empty() {
            self.void(host, term);
        }
        found.clone()
    }

    /// Returns the addresses of all mail exchangers of a name.
    fn exchangers(&mut self, name: &str, host: &str, term: &str) -> Vec<IpAddr> {
        let Some(names) = self.known(QuestionKind::Exchangers, name, |answers| &answers.exchangers) else {
            return Vec::new();
        };
        if names.is_empty() {
            self.void(host, term);
        }
        if names.len() > MAX_EXCHANGERS {
            self.fail(Problem::TooManyExchangers { host: name.to_owned() });
            return Vec::new();
        }
        let lists: Vec<_> = names
            .iter()
            .filter_map(|name| self.known(QuestionKind::Addresses, name, |answers| &answers.addresses))
            .collect();
        let found: Vec<_> = lists.iter().flat_map(|list| list.iter().copied()).collect();
        if found.is_empty() && lists.len() == names.len() && !names.is_empty() {
            self.void(host, term);
        }
        found
    }

    /// Returns the answer to a question; without one yet, adds the question.
    fn known<T>(
        &mut self,
        kind: QuestionKind,
        name: &str,
        of: impl Fn(&'a Answers) -> &'a HashMap<String, T>,
    ) -> Option<&'a T> {
        let found = of(self.answers).get(name);
        if found.is_none() {
            self.missing.insert(Question { kind, name: name.to_owned() });
        }
        found
    }

    /// Counts a look-up; returns false if it is one too many.
    fn count(&mut self, host: &str, term: &str) -> bool {
        if self.evaluation.lookups == MAX_LOOKUPS {
            self.fail(Problem::TooManyLookups { term: term.to_owned(), host: host.to_owned() });
            return false;
        }
        self.evaluation.lookups += 1;
        true
    }

    fn void(&mut self, host: &str, term: &str) {
        self.evaluation.voids.push(Void { host: host.to_owned(), term: term.to_owned() });
    }

    /// Records a problem, if it is the first.
    fn fail(&mut self, problem: Problem) {
        self.evaluation.problem.get_or_insert(problem);
    }
}

fn nets(addresses: &[IpAddr], prefixes: Prefixes) -> Vec<IpNet> {
    addresses.iter().map(|address| prefixes.around(*address)).collect()
}
