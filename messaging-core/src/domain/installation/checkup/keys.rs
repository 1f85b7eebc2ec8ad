//! Judgment of the API keys of all workspaces.

use super::{CheckId, CheckReport, Looked, listed};
use crate::domain::security::api_key::{ApiKey, expiry};
use crate::time::Timestamp;

/// Maximum number of keys that are named; of the others only the number is reported.
const MAX_NAMED: usize = 10;

/// Judges the keys that end soon, in the order of their ends; programs that use them are refused afterwards. `more` is
/// true if there are further ones.
pub fn judge_api_keys(ending: &[ApiKey], more: bool, now: Timestamp) -> CheckReport {
    let looked = Looked::at(CheckId::ApiKeys, "API keys", "no key in use that ends within 14 days");
    let Some(first) = ending.first().and_then(|key| key.expires_at) else {
        return looked.found("none ends soon").ok("No API key ends within 14 days.");
    };
    let named = ending.iter().take(MAX_NAMED).filter_map(|key| {
        let end = key.expires_at?;
        Some(format!("{} ({}…) at {end}", key.name, key.prefix))
    });
    let rest = ending.len().saturating_sub(MAX_NAMED);
    let rest = match (rest, more) {
        (0, false) => String::new(),
        (rest, false) => format!(", and {rest} more"),
        (rest, true) => format!(", and more than {rest} more"),
    };
    let days = expiry::days_left(first, now);
    looked.found(format!("{}{rest}", listed(named))).warning(
        format!(
            "API keys end soon, the first within {days} days: programs that call with them are refused afterwards."
        ),
        "run `messaging key rotate` and give the new key to the program; a key that nobody uses may expire",
    )
}
