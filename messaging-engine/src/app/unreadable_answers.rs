//! Accounts whose answers are not what the API of the provider says: something else may stand in its place, such as a page
//! to sign in at, and whether messages arrive is not known.
//!
//! This is memory of the process that sends. After a restart it is found out anew.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use messaging_core::domain::channel::Channel;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::transport::{Answer, OutcomeClass};

use crate::app::account_pauses::Account;
use crate::app::caches::Provider;

/// So many answers in a row that cannot be read are no accident.
const TOO_MANY: u32 = 10;

/// Streaks of answers that could not be read.
#[derive(Debug, Default)]
pub(crate) struct UnreadableAnswers(Mutex<HashMap<Account, Streak>>);

#[derive(Debug)]
struct Streak {
    /// The provider and the settings that it is about.
    provider: Provider,
    /// Answers in a row.
    answers: u32,
    /// The beginning of the last one.
    words: String,
}

impl UnreadableAnswers {
    /// Takes note of the answers of an attempt over an account.
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

    /// The beginning of the last answer over an account of a channel of which too many in a row could not be read.
    pub(crate) fn trouble(&self, (workspace, channel): (WorkspaceId, Channel), provider: &Provider) -> Option<String> {
        let streaks = self.lock();
        let is_meant = |account: &Account| account.is_of(workspace, channel);
        let found = streaks.iter().filter(|(account, streak)| {
            is_meant(account) && streak.answers >= TOO_MANY && streak.provider.is_same(provider)
        });
        let worst = found.max_by_key(|(_, streak)| streak.answers);
        worst.map(|(_, streak)| streak.words.clone())
    }

    /// Forgets the accounts of channels, whose settings are new.
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

/// Whether an answer says something in the provider's words. What could not be reached has not answered.
fn was_read(answer: &Answer) -> bool {
    !matches!(answer.class, OutcomeClass::Ambiguous | OutcomeClass::Retry(_))
}
