//! Requests of a thousand items, shared by several benches.

use bytes::Bytes;
use messaging_core::time::Timestamp;

/// Items of a request.
pub const BATCH: u64 = 1000;

/// A request of a thousand contacts.
pub fn contacts(n: u64, version: u64) -> Bytes {
    let item = |n: u64| {
        format!(
            r#"{{"external_id":"ext-{n:012}","email":"user-{n:012}@example.test","phone":"+1555{n:09}","attributes":{{"first_name":"Alex","last_name":"Doe","plan":"pro","visits":{},"city":"Berlin","ltv":129.5}},"tags":["newsletter","beta"],"locale":"en","timezone":"Europe/Berlin","consent":{{"marketing_email":true,"sms":false}}}}"#,
            n % 100 + version
        )
    };
    let items: Vec<_> = (n * BATCH..(n + 1) * BATCH).map(item).collect();
    format!(r#"{{"contacts":[{}]}}"#, items.join(",")).into()
}

/// Number of contacts that have events.
pub const EVENT_CONTACTS: u64 = 100_000;

/// Number of names of events.
pub const EVENT_NAMES: u64 = 20;

/// Kind of events in a request.
#[derive(Debug, Clone, Copy)]
pub enum EventsOf {
    /// Events of existing contacts.
    Known,
    /// Events of existing contacts, all with one name.
    OneName,
    /// Events of existing contacts, each with a unique id.
    Unique,
    /// Events of unknown contacts, each of which is created.
    Strangers,
}

/// Number of the contact of event `n`: spread over all contacts, in no order.
pub const fn somebody(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % EVENT_CONTACTS
}

/// Properties of event `n`, as JSON.
pub fn properties(n: u64) -> String {
    format!(r#"{{"order_id":"{n:012}","total":49.9,"currency":"EUR","items":3,"source":"web"}}"#)
}

/// A request of a thousand events.
pub fn events(kind: EventsOf, n: u64, at: Timestamp) -> Bytes {
    let item = |n: u64| {
        let (contact, unique_id) = match kind {
            EventsOf::Known | EventsOf::OneName => (format!("ext-{:012}", somebody(n)), String::new()),
            EventsOf::Unique => (format!("ext-{:012}", somebody(n)), format!(r#","unique_id":"order-{n:012}""#)),
            EventsOf::Strangers => (format!("new-{n:012}"), String::new()),
        };
        let name = if matches!(kind, EventsOf::OneName) { 0 } else { n % EVENT_NAMES };
        let properties = properties(n);
        format!(
            r#"{{"name":"event_{name}","contact":{{"external_id":"{contact}"}},"occurred_at":"{at}","properties":{properties}{unique_id}}}"#
        )
    };
    let items: Vec<_> = (n * BATCH..(n + 1) * BATCH).map(item).collect();
    format!(r#"{{"events":[{}]}}"#, items.join(",")).into()
}
