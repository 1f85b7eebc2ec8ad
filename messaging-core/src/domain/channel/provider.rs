//! The providers of each channel and the settings they take.
//!
//! Contract section 16: the second table.

mod check;
mod kind;
mod table;

use serde_json::{Map, Value};

pub use check::check;
pub use kind::{
    BUILTIN, CALLBACKS, Callbacks, DETAIL, Form, MASK, MAX_RATE, Member, ProviderKind, ROUTES, Role, SANDBOX, VIBER_BOT,
};
pub use table::{all, default_of, find};

/// The port on which SMTP has TLS from the first byte by registration (RFC 8314 section 7.3).
const SUBMISSIONS_PORT: u64 = 465;

/// Puts in what is meant where a setting is left out, stored and shown: how the connection is secured.
pub fn complete(kind: &ProviderKind, config: &mut Map<String, Value>) {
    for member in kind.members.iter().filter(|member| member.form == Form::Tls) {
        if config.get(&member.name).is_none_or(Value::is_null) {
            let is_submissions = config.get("port").and_then(Value::as_u64) == Some(SUBMISSIONS_PORT);
            config.insert(member.name.clone(), if is_submissions { "tls" } else { "starttls" }.into());
        }
    }
}

/// The settings in words, a line each, for people.
pub fn described() -> String {
    let described = |kind: &ProviderKind| {
        let members = kind.members.iter().filter(|member| member.is_shown());
        let lines: String = members.map(|member| format!("  {}\n", member.described())).collect();
        if lines.is_empty() {
            format!("{} {}: no settings\n", kind.channel, kind.name)
        } else {
            format!("{} {}:\n{lines}", kind.channel, kind.name)
        }
    };
    all().iter().map(described).collect()
}
