//! Uses of keys by operation, and the scopes that they need.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use crate::ids::ApiKeyId;
use crate::scope::{Access, Scope};
use crate::time::Timestamp;

/// Time for which uses are watched: a program hardly needs an operation that it did not use for so long. Before a key
/// was watched for this time, nothing is concluded about its scopes.
pub const WATCHED: Duration = Duration::from_hours(30 * 24);

/// Maximum number of uses that are shown for a key, the newest first.
pub const MAX_SHOWN: usize = 20;

/// Uses of an operation by a key. A store has one record for each key and operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationUse {
    /// The key.
    pub key_id: ApiKeyId,
    /// Id of the operation.
    pub operation: String,
    /// When it was first used.
    pub first_at: Timestamp,
    /// When it was last used.
    pub used_at: Timestamp,
    /// Address of the last caller, if known.
    pub ip: Option<IpAddr>,
}

/// Scopes that a key needs for its uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeUse {
    /// Scopes of the key that no use required.
    pub unused: Vec<Scope>,
    /// The fewest scopes that are enough.
    pub needed: Vec<Scope>,
}

/// Operations that show no address to a caller of any scope, although others with their scope do.
const WITHOUT_ADDRESSES: &[&str] = &["sendMessage", "sendMessages", "sendAllMessages"];

/// Operations that require more than their own scope for some requests.
const MAY_ASK_FOR_MORE: &[(&str, Scope)] = &[("createWebhook", Scope::All), ("updateWebhook", Scope::All)];

/// Returns the scopes that a key with the scopes `held` needs, by its uses; `access` returns the access rule of an
/// operation. `None` if that is not known: the key was not watched long enough, was not used, or used an operation that
/// no longer exists.
pub fn scopes(
    held: &[Scope],
    uses: &[OperationUse],
    access: impl Fn(&str) -> Option<Access>,
    now: Timestamp,
) -> Option<ScopeUse> {
    let begin = now - WATCHED;
    let is_watched = uses.iter().any(|used| used.first_at <= begin);
    let recent: Vec<_> = uses.iter().filter(|used| used.used_at > begin).collect();
    if !is_watched || recent.is_empty() {
        return None;
    }
    let mut needed = BTreeSet::new();
    for used in &recent {
        needed.extend(needs(&used.operation, access(&used.operation)?).into_iter().filter(|scope| holds(held, *scope)));
    }
    let unused = held.iter().copied().filter(|scope| !needed.contains(scope)).collect();
    let needed = if needed.contains(&Scope::All) { BTreeSet::from([Scope::All]) } else { needed };
    let is_covered = |scope: &Scope| needed.iter().any(|other| other != scope && other.covers(*scope));
    let fewest = needed.iter().copied().filter(|scope| !is_covered(scope)).collect();
    Some(ScopeUse { unused, needed: fewest })
}

fn holds(held: &[Scope], wanted: Scope) -> bool {
    held.iter().any(|scope| scope.covers(wanted))
}

/// Returns the scopes that an operation requires, or may have required.
fn needs(operation: &str, access: Access) -> Vec<Scope> {
    let mut scopes = match access {
        Access::Scope(scope) | Access::ScopeOrAdmin(scope) => vec![scope],
        Access::Scopes(first, second) => vec![first, second],
        Access::Administration => vec![Scope::All],
        Access::Public | Access::AnyCredential | Access::Session | Access::SessionRole(_) | Access::Operator => vec![],
    };
    scopes.extend(MAY_ASK_FOR_MORE.iter().filter(|(id, _)| *id == operation).map(|(_, scope)| *scope));
    let is_about_people =
        |scope: &Scope| !matches!(scope, Scope::EventsWrite | Scope::DomainsRead | Scope::DomainsWrite);
    if !WITHOUT_ADDRESSES.contains(&operation) && scopes.iter().any(is_about_people) {
        scopes.push(Scope::PiiRead);
    }
    scopes
}

/// Returns the operations that the rules of this module name.
pub fn named_operations() -> impl Iterator<Item = &'static str> {
    WITHOUT_ADDRESSES.iter().copied().chain(MAY_ASK_FOR_MORE.iter().map(|(id, _)| *id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id as _;

    const DAY: Duration = Duration::from_hours(24);

    fn day(n: u32) -> Timestamp {
        Timestamp::from_millis(0) + DAY * n
    }

    fn used(operation: &str, first: u32, last: u32) -> OperationUse {
        let key_id = ApiKeyId::from_bytes([1; 16]);
        OperationUse { key_id, operation: operation.to_owned(), first_at: day(first), used_at: day(last), ip: None }
    }

    fn access(operation: &str) -> Option<Access> {
        Some(match operation {
            "sendMessage" => Access::Scope(Scope::MessagesSend),
            "getMessage" => Access::Scope(Scope::MessagesRead),
            "getContact" => Access::Scope(Scope::ContactsRead),
            "upsertContact" => Access::Scope(Scope::ContactsWrite),
            "sendEvent" => Access::Scope(Scope::EventsWrite),
            "listSendingDomains" => Access::Scope(Scope::DomainsRead),
            "createWebhook" => Access::Scope(Scope::WebhooksWrite),
            "setChannel" => Access::Administration,
            "testCampaign" => Access::Scopes(Scope::CampaignsWrite, Scope::MessagesSend),
            "getHealth" => Access::AnyCredential,
            _ => return None,
        })
    }

    fn texts(scopes: &[Scope]) -> String {
        scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Compares what is said of a key that was used for these operations throughout the time.
    #[track_caller]
    fn check(held: &str, operations: &str, unused: &str, needed: &str) {
        let held: Vec<Scope> = held.split(' ').map(|scope| scope.parse().unwrap()).collect();
        let uses: Vec<_> = operations.split(' ').map(|operation| used(operation, 0, 39)).collect();
        let found = scopes(&held, &uses, access, day(40)).unwrap();
        assert_eq!((texts(&found.unused).as_str(), texts(&found.needed).as_str()), (unused, needed));
    }

    #[test]
    fn what_nothing_asked_for_is_unused() {
        check("messages:send", "sendMessage", "", "messages:send");
        check("messages:send contacts:write", "sendMessage", "contacts:write", "messages:send");
        check("messages:send events:write", "sendMessage sendEvent", "", "messages:send events:write");
        check("domains:write", "listSendingDomains", "domains:write", "domains:read");
        check("campaigns:write messages:send", "testCampaign", "", "campaigns:write messages:send");
        check("messages:send", "getHealth", "messages:send", "");
    }

    #[test]
    fn a_scope_that_includes_another_is_enough() {
        check("contacts:write", "upsertContact getContact", "", "contacts:write");
        check("contacts:write contacts:read", "upsertContact getContact", "", "contacts:write");
        check("contacts:write", "getContact", "contacts:write", "contacts:read");
        check("messages:send", "sendMessage getMessage", "", "messages:send");
        check("messages:send", "getMessage", "messages:send", "messages:read");
    }

    #[test]
    fn everything_is_needed_by_administration_alone() {
        check("*", "sendMessage", "*", "messages:send");
        check("*", "getContact sendMessage", "*", "contacts:read messages:send pii:read");
        check("*", "sendMessage setChannel", "", "*");
        check("* messages:send", "createWebhook", "messages:send", "*");
        check("webhooks:write", "createWebhook", "", "webhooks:write");
    }

    #[test]
    fn addresses_in_clear_are_needed_where_addresses_are_shown() {
        check("contacts:read pii:read", "getContact", "", "contacts:read pii:read");
        check("messages:send pii:read", "sendMessage", "pii:read", "messages:send");
        check("events:write pii:read", "sendEvent", "pii:read", "events:write");
    }

    #[test]
    fn what_was_not_watched_long_enough_is_not_judged() {
        let held = [Scope::MessagesSend, Scope::ContactsRead];
        let judged = |uses: &[OperationUse]| scopes(&held, uses, access, day(40));
        assert_eq!(judged(&[]), None);
        assert_eq!(judged(&[used("sendMessage", 11, 39)]), None);
        assert!(judged(&[used("sendMessage", 10, 39)]).is_some());
        // Nothing was used of late, or something that nobody knows.
        assert_eq!(judged(&[used("sendMessage", 0, 10)]), None);
        assert_eq!(judged(&[used("sendMessage", 0, 39), used("gone", 0, 39)]), None);
        // What was used long ago does not count.
        let found = judged(&[used("sendMessage", 0, 39), used("getContact", 0, 9)]).unwrap();
        assert_eq!(found.unused, [Scope::ContactsRead]);
    }
}
