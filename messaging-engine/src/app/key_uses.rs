//! Uses of API keys by operation, gathered in memory and written together once a minute.
//!
//! Nobody waits for them and nothing depends on them: uses for which there is no room, that the store does not take or
//! that a process had gathered when it was killed are lost.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::domain::security::api_key::usage::OperationUse;
use messaging_core::ids::ApiKeyId;
use messaging_core::time::Timestamp;

/// Time for which uses are gathered.
pub(crate) const GATHERED_FOR: Duration = Duration::from_mins(1);

/// Pairs of key and operation that are gathered, at most.
const MAX_GATHERED: usize = 20_000;

/// Uses that are gathered.
#[derive(Debug, Default)]
pub(crate) struct KeyUses(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    gathered: HashMap<(ApiKeyId, &'static str), Use>,
    /// True while a task waits to write them.
    is_awaited: bool,
}

#[derive(Debug)]
struct Use {
    first_at: Timestamp,
    used_at: Timestamp,
    ip: Option<IpAddr>,
}

impl KeyUses {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a use where there is room. Answers whether a task has to begin to wait.
    pub(crate) fn note(&self, key: ApiKeyId, operation: &'static str, ip: Option<IpAddr>, now: Timestamp) -> bool {
        let mut state = self.state();
        let has_room = state.gathered.len() < MAX_GATHERED;
        match state.gathered.get_mut(&(key, operation)) {
            Some(known) => (known.used_at, known.ip) = (known.used_at.max(now), ip),
            None if has_room => {
                state.gathered.insert((key, operation), Use { first_at: now, used_at: now, ip });
            }
            None => {}
        }
        !std::mem::replace(&mut state.is_awaited, true)
    }

    /// Takes what was gathered. Without anything no task waits any more.
    pub(crate) fn take(&self) -> Vec<OperationUse> {
        let mut state = self.state();
        let gathered = std::mem::take(&mut state.gathered);
        state.is_awaited &= !gathered.is_empty();
        drop(state);
        in_order(gathered)
    }

    /// Takes what was gathered, while the task goes on to wait.
    pub(crate) fn take_early(&self) -> Vec<OperationUse> {
        let gathered = std::mem::take(&mut self.state().gathered);
        in_order(gathered)
    }
}

/// Uses in the order of keys, so that processes that write at the same time do so in the same order.
fn in_order(gathered: HashMap<(ApiKeyId, &'static str), Use>) -> Vec<OperationUse> {
    let use_of = |((key_id, operation), Use { first_at, used_at, ip }): ((ApiKeyId, &str), Use)| OperationUse {
        key_id,
        operation: operation.to_owned(),
        first_at,
        used_at,
        ip,
    };
    let mut uses: Vec<_> = gathered.into_iter().map(use_of).collect();
    uses.sort_by(|one, other| (one.key_id, &one.operation).cmp(&(other.key_id, &other.operation)));
    uses
}

#[cfg(test)]
mod tests {
    use messaging_core::ids::Id as _;

    use super::*;

    fn key(n: u8) -> ApiKeyId {
        ApiKeyId::from_bytes([n; 16])
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn uses_of_one_operation_are_one() {
        let uses = KeyUses::default();
        let ip = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        assert!(uses.note(key(2), "sendMessage", ip(1), at(5)));
        assert!(!uses.note(key(2), "sendMessage", ip(2), at(7)));
        // A clock that was set back makes nothing older.
        assert!(!uses.note(key(2), "sendMessage", ip(3), at(6)));
        assert!(!uses.note(key(1), "getMessage", None, at(8)));
        let taken = uses.take();
        let shown: Vec<_> =
            taken.iter().map(|used| (used.key_id, used.operation.as_str(), used.first_at, used.used_at)).collect();
        assert_eq!(shown, [(key(1), "getMessage", at(8), at(8)), (key(2), "sendMessage", at(5), at(7))]);
        assert_eq!(taken[1].ip, ip(3));
    }

    #[test]
    fn a_task_waits_until_a_minute_brings_nothing() {
        let uses = KeyUses::default();
        assert!(uses.note(key(1), "sendMessage", None, at(0)));
        assert_eq!(uses.take_early().len(), 1);
        assert!(!uses.note(key(1), "sendMessage", None, at(1)));
        assert_eq!(uses.take().len(), 1);
        assert!(!uses.note(key(1), "sendMessage", None, at(2)));
        assert_eq!(uses.take().len(), 1);
        assert_eq!(uses.take(), []);
        assert!(uses.note(key(1), "sendMessage", None, at(3)));
    }

    #[test]
    fn what_has_no_room_is_lost() {
        let uses = KeyUses::default();
        for n in 0..MAX_GATHERED + 10 {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&n.to_be_bytes());
            uses.note(ApiKeyId::from_bytes(id), "sendMessage", None, at(0));
        }
        assert_eq!(uses.take().len(), MAX_GATHERED);
    }
}
