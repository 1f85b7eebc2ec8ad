//! Provider accounts whose responses do not follow the API of the provider: something else may be in its place, such as
//! a sign-in page, and whether messages arrive is not known.
//!
//! The streaks are memory of the process that sends. After a restart it finds out again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::transport::{Answer, OutcomeClass};

use crate::app::account_pauses::Account;
use crate::app::caches::Provider;

/// Number of unreadable responses in a row from which an account is reported.
const TOO_MANY: u32 = 10;

/// Streaks of unreadable responses.
#[derive(Debug, Default)]
pub(crate) struct UnreadableAnswers(Mutex<HashMap<Account, Streak>>);

#[derive(Debug)]
struct Streak {
    /// Provider and settings that the streak is about.
    provider: Provider,
    /// Number of responses in a row.
    answers: u32,
    /// Beginning of the last one.
    words: String,
}

impl UnreadableAnswers {
    /// Counts the responses to an attempt over an account.
    pub(crate) fn report<'a>(
        &self,
        account: Account,
        provider: &Provider,
        answers: impl IntoIterator<Item = &'a Answer>,
    ) {
        let mut streaks = self.lock();
        for answer in answers {
            if answer.is_unreadable() {
                let words = answer.response.text.clone();
                let known = streaks.remove(&account).filter(|streak| streak.provider.is_same(provider));
                let answers = known.map_or(0, |streak| streak.answers).saturating_add(1);
                streaks.insert(account, Streak { provider: provider.clone(), answers, words });
            } else if was_read(answer) {
                streaks.remove(&account);
            }
        }
    }

    /// Returns the beginning of the last response over an account of a channel with too many unreadable ones in a row.
    pub(crate) fn trouble(&self, (workspace, channel): (WorkspaceId, Channel), provider: &Provider) -> Option<String> {
        let streaks = self.lock();
        let is_meant = |account: &Account| account.is_of(workspace, channel);
        let found = streaks.iter().filter(|(account, streak)| {
            is_meant(account) && streak.answers >= TOO_MANY && streak.provider.is_same(provider)
        });
        let worst = found.max_by_key(|(_, streak)| streak.answers);
        worst.map(|(_, streak)| streak.words.clone())
    }

    /// Forgets the accounts of channels whose settings are new.
    pub(crate) fn forget(&self, channels: &[(WorkspaceId, Channel)]) {
        if !channels.is_empty() {
            let is_meant =
                |account: &Account| channels.iter().any(|(workspace, channel)| account.is_of(*workspace, *channel));
            self.lock().retain(|account, _| !is_meant(account));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Account, Streak>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if the class of a response shows that the provider's API answered; false if it was unreachable or the
/// result is unknown.
fn was_read(answer: &Answer) -> bool {
    !matches!(answer.class, OutcomeClass::Ambiguous | OutcomeClass::Retry(_))
}
