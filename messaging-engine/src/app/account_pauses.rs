//! Pauses of provider accounts: of those that asked for one, and of those that refuse messages.
//!
//! An account is a channel of a workspace under its current settings, or one of several in these settings
//! ([`Transport::account_of`]); other settings are another account. An account that asked for a pause gets it. One that
//! refuses us (a wrong key, an unpaid bill) is tried by one message every five minutes, and at once under new settings:
//! every other message waits without an attempt, because each of them would meet the same refusal and might get the
//! account blocked.
//!
//! [`Transport::account_of`]: messaging_core::ports::Transport::account_of
//!
//! The pauses are memory of the process that sends. After a restart the first message finds out again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::changes::{Changes, Document, DocumentKey, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::settings::CallbackRegistration;
use messaging_core::domain::delivery::consequence::{AccountState, PROBE_EVERY};
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Monotonic;

use crate::app::caches::Provider;

/// Wait of the other messages while a probe is under way.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// An account at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    /// Workspace that the account belongs to.
    pub(crate) workspace: WorkspaceId,
    /// The channel that it carries.
    pub(crate) channel: Channel,
    /// Name of the account if the channel's settings have several.
    pub(crate) name: Option<&'static str>,
}

impl Account {
    /// Returns the only account of a channel.
    pub(crate) const fn of(workspace: WorkspaceId, channel: Channel) -> Self {
        Self { workspace, channel, name: None }
    }

    pub(super) fn is_of(&self, workspace: WorkspaceId, channel: Channel) -> bool {
        (self.workspace, self.channel) == (workspace, channel)
    }
}

/// Pauses of accounts.
#[derive(Debug, Default)]
pub(crate) struct AccountPauses {
    paused: Mutex<HashMap<Account, Pause>>,
    /// Number of paused accounts: nearly always none, which is read without the lock.
    count: AtomicUsize,
}

/// Kind of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PauseKind {
    /// The account asked for a pause.
    Rests,
    /// The account refuses us.
    Stopped,
}

#[derive(Debug)]
struct Pause {
    /// Provider and settings that the pause is for.
    provider: Provider,
    kind: PauseKind,
    /// Text of the provider's answer.
    error: String,
    until: Monotonic,
    is_probed: bool,
}

/// State of a paused account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paused {
    /// Kind of the pause.
    pub(crate) kind: PauseKind,
    /// Text of the provider's answer.
    pub(crate) error: String,
    /// Time until a message may be attempted over it.
    pub(crate) wait: Duration,
}

/// Decision on whether a message may be attempted over an account.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A message may be attempted; as the probe, if there is one, whose turn is given back when it is dropped.
    Go(Option<Probe>),
    /// No message is attempted for this time, with the text of the provider's answer.
    Wait(Duration, String),
}

/// The one message that finds out whether an account works again.
#[derive(Debug)]
pub(crate) struct Probe {
    pauses: Arc<AccountPauses>,
    account: Account,
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(pause) = self.pauses.lock().get_mut(&self.account) {
            pause.is_probed = false;
        }
    }
}

impl AccountPauses {
    /// Decides whether a message may be attempted over an account.
    pub(crate) fn enter(self: &Arc<Self>, account: Account, provider: &Provider, now: Monotonic) -> Entry {
        if self.count.load(Ordering::Acquire) == 0 {
            return Entry::Go(None);
        }
        let mut paused = self.lock();
        let Some(pause) = paused.get_mut(&account) else { return Entry::Go(None) };
        if !pause.provider.is_same(provider) || (pause.kind == PauseKind::Rests && now >= pause.until) {
            self.remove(&mut paused, account);
            return Entry::Go(None);
        }
        if now < pause.until {
            return Entry::Wait(pause.until.since(now), pause.error.clone());
        }
        if pause.is_probed {
            return Entry::Wait(LOOK_AGAIN, pause.error.clone());
        }
        pause.is_probed = true;
        Entry::Go(Some(Probe { pauses: Arc::clone(self), account }))
    }

    /// Returns the time for which nothing is attempted over an account, with the reason; `None` if a message may be
    /// attempted. The call takes no probe.
    pub(crate) fn wait(&self, account: Account, provider: &Provider, now: Monotonic) -> Option<(Duration, String)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let paused = self.lock();
        let pause = paused.get(&account).filter(|pause| pause.provider.is_same(provider))?;
        if now < pause.until {
            return Some((pause.until.since(now), pause.error.clone()));
        }
        pause.is_probed.then(|| (LOOK_AGAIN, pause.error.clone()))
    }

    /// Learns from the answers of an attempt about an account.
    pub(crate) fn report(&self, account: Account, provider: &Provider, state: AccountState, now: Monotonic) {
        let (kind, wait, error) = match state {
            // The account did not say for how long: its messages wait by their schedule.
            AccountState::Unknown | AccountState::Rests(Duration::ZERO, _) => return,
            AccountState::Works => {
                if self.count.load(Ordering::Acquire) > 0 {
                    let mut paused = self.lock();
                    if paused.get(&account).is_some_and(|pause| pause.kind == PauseKind::Stopped) {
                        self.remove(&mut paused, account);
                    }
                }
                return;
            }
            AccountState::Rests(wait, error) => (PauseKind::Rests, wait, error),
            AccountState::Stopped(error) => (PauseKind::Stopped, PROBE_EVERY, error),
        };
        let mut paused = self.lock();
        let until = now + wait;
        if let Some(known) = paused.get(&account).filter(|known| known.provider.is_same(provider)) {
            let is_worse = known.kind == PauseKind::Stopped && kind == PauseKind::Rests;
            if is_worse || (known.kind == kind && known.until >= until) {
                return;
            }
        }
        if kind == PauseKind::Stopped {
            let Account { workspace, channel, name } = account;
            let provider = name.unwrap_or(&provider.name);
            tracing::warn!(%workspace, %channel, provider, "an account is refused: what goes over it stops");
        }
        paused.insert(account, Pause { provider: provider.clone(), kind, error, until, is_probed: false });
        self.count.store(paused.len(), Ordering::Release);
    }

    /// Returns the reason if the attempt of another message has paused an account since [`Self::enter`]. A probe may
    /// proceed.
    pub(crate) fn closed_since(&self, account: Account, provider: &Provider, now: Monotonic) -> Option<String> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let paused = self.lock();
        let pause = paused.get(&account).filter(|pause| pause.provider.is_same(provider))?;
        (now < pause.until).then(|| pause.error.clone())
    }

    /// Returns the worst pause of a channel's accounts under its current settings, with the text of the answer and, if
    /// there are several accounts, their names.
    pub(crate) fn trouble(
        &self,
        (workspace, channel): (WorkspaceId, Channel),
        provider: &Provider,
        now: Monotonic,
    ) -> Option<(PauseKind, String)> {
        let paused = self.lock();
        let is_present = |pause: &Pause| pause.kind == PauseKind::Stopped || now < pause.until;
        let mut found: Vec<_> = paused
            .iter()
            .filter(|(account, pause)| {
                account.is_of(workspace, channel) && pause.provider.is_same(provider) && is_present(pause)
            })
            .collect();
        found.sort_by_key(|(account, pause)| (pause.kind != PauseKind::Stopped, account.name));
        let kind = found.first()?.1.kind;
        let words = found.iter().map(|(account, pause)| match account.name {
            Some(name) => format!("{name}: {}", pause.error),
            None => pause.error.clone(),
        });
        Some((kind, words.collect::<Vec<_>>().join("; ")))
    }

    /// State of an account under its current settings, with the time until a message may be attempted over it: zero
    /// while a probe is due or under way. `None` if the account is not paused. The call changes nothing.
    pub(crate) fn state_of(&self, account: Account, provider: &Provider, now: Monotonic) -> Option<Paused> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let paused = self.lock();
        let pause = paused.get(&account).filter(|pause| pause.provider.is_same(provider))?;
        let is_over = pause.kind == PauseKind::Rests && now >= pause.until;
        let Pause { kind, error, until, .. } = pause;
        (!is_over).then(|| Paused { kind: *kind, error: error.clone(), wait: until.since(now) })
    }

    /// Returns the accounts over which nothing is attempted before a time.
    pub(crate) fn closed(&self, now: Monotonic) -> Vec<(Account, Provider, Monotonic)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut paused = self.lock();
        paused.retain(|_, pause| pause.kind == PauseKind::Stopped || now < pause.until);
        self.count.store(paused.len(), Ordering::Release);
        let closed = paused.iter().filter(|(_, pause)| now < pause.until);
        closed.map(|(account, pause)| (*account, pause.provider.clone(), pause.until)).collect()
    }

    /// Returns the channels whose settings these changes replace or remove. The result of registering a callback is
    /// kept with the settings and says nothing new about the account.
    pub(crate) fn concerned(changes: &Changes) -> Vec<(WorkspaceId, Channel)> {
        let is_finding = |found: &CallbackRegistration| found.address.is_some() || found.error.is_some();
        let replaced = changes.writes().iter().filter_map(|write| match write {
            Write::Put(Document::Channel(settings), _) if settings.registration.as_ref().is_some_and(is_finding) => {
                None
            }
            Write::Put(Document::Channel(settings), _) => Some((settings.workspace_id, settings.channel)),
            Write::Delete(DocumentKey::Channel(workspace, channel)) => Some((*workspace, *channel)),
            _ => None,
        });
        replaced.collect()
    }

    /// Forgets the pauses of channels whose settings are new.
    pub(crate) fn forget(&self, channels: &[(WorkspaceId, Channel)]) {
        if channels.is_empty() {
            return;
        }
        let mut paused = self.lock();
        paused.retain(|account, _| !channels.iter().any(|(workspace, channel)| account.is_of(*workspace, *channel)));
        self.count.store(paused.len(), Ordering::Release);
    }

    fn remove(&self, paused: &mut HashMap<Account, Pause>, account: Account) {
        paused.remove(&account);
        self.count.store(paused.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Account, Pause>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::changes::Expect;
    use messaging_core::domain::channel::settings::ChannelSettings;
    use messaging_core::ids::Id as _;
    use serde_json::{Map, json};

    use super::*;

    const NOW: Monotonic = Monotonic::new(Duration::from_secs(1000));
    const SECOND: Duration = Duration::from_secs(1);

    fn home() -> WorkspaceId {
        WorkspaceId::from_bytes([1; 16])
    }

    fn account() -> Account {
        Account::of(home(), Channel::Sms)
    }

    fn channel() -> (WorkspaceId, Channel) {
        (home(), Channel::Sms)
    }

    fn provider(token: &str) -> Provider {
        let settings = Map::from_iter([("token".to_owned(), json!(token))]);
        Provider { name: "twilio".to_owned(), settings: Arc::new(settings) }
    }

    fn shown(entry: &Entry) -> String {
        match entry {
            Entry::Go(None) => "go".to_owned(),
            Entry::Go(Some(_)) => "probe".to_owned(),
            Entry::Wait(wait, error) => format!("wait {} {error}", wait.as_secs()),
        }
    }

    #[test]
    fn an_account_that_rests_is_left_alone_until_then() {
        let pauses = Arc::new(AccountPauses::default());
        let enter = |now| shown(&pauses.enter(account(), &provider("a"), now));
        let rest = |wait, now| pauses.report(account(), &provider("a"), AccountState::Rests(wait, "slow".into()), now);
        assert_eq!(enter(NOW), "go");
        rest(SECOND * 10, NOW);
        // A shorter pause, and an answer to an attempt that was under way, do not end it.
        rest(SECOND, NOW);
        pauses.report(account(), &provider("a"), AccountState::Works, NOW);
        assert_eq!((enter(NOW), enter(NOW + SECOND * 9)), ("wait 10 slow".into(), "wait 1 slow".into()));
        assert_eq!(pauses.closed(NOW).len(), 1);
        assert_eq!(pauses.trouble(channel(), &provider("a"), NOW), Some((PauseKind::Rests, "slow".into())));
        assert_eq!((enter(NOW + SECOND * 10), enter(NOW + SECOND * 10)), ("go".into(), "go".into()));
        assert!(pauses.closed(NOW).is_empty());
    }

    #[test]
    fn an_account_that_is_refused_is_probed_by_one_at_a_time() {
        let pauses = Arc::new(AccountPauses::default());
        let stopped = || AccountState::Stopped("wrong key".into());
        let enter = |now| pauses.enter(account(), &provider("a"), now);
        pauses.report(account(), &provider("a"), stopped(), NOW);
        pauses.report(account(), &provider("a"), AccountState::Rests(SECOND, "slow".into()), NOW);
        assert_eq!(shown(&enter(NOW)), "wait 300 wrong key");
        let later = NOW + PROBE_EVERY;
        let probe = enter(later);
        assert_eq!((shown(&probe), shown(&enter(later))), ("probe".into(), "wait 5 wrong key".into()));
        // A probe that attempts nothing lets another take its turn.
        drop(probe);
        let probe = enter(later);
        assert_eq!(shown(&probe), "probe");
        pauses.report(account(), &provider("a"), stopped(), later);
        drop(probe);
        assert_eq!(shown(&enter(later)), "wait 300 wrong key");
        let probe = enter(later + PROBE_EVERY);
        pauses.report(account(), &provider("a"), AccountState::Works, later + PROBE_EVERY);
        drop(probe);
        assert_eq!(shown(&enter(later + PROBE_EVERY)), "go");
        assert_eq!(pauses.trouble(channel(), &provider("a"), NOW), None);
    }

    #[test]
    fn other_settings_are_another_account() {
        let pauses = Arc::new(AccountPauses::default());
        let stop = || pauses.report(account(), &provider("a"), AccountState::Stopped("no".into()), NOW);
        stop();
        assert_eq!(pauses.trouble(channel(), &provider("b"), NOW), None);
        assert_eq!(shown(&pauses.enter(Account::of(home(), Channel::Push), &provider("a"), NOW)), "go");
        assert_eq!(shown(&pauses.enter(account(), &provider("b"), NOW)), "go");
        assert_eq!(shown(&pauses.enter(account(), &provider("a"), NOW)), "go", "the old ones are forgotten");
        stop();
        pauses.forget(&[channel()]);
        assert_eq!(shown(&pauses.enter(account(), &provider("a"), NOW)), "go", "settings that were given again");
    }

    #[test]
    fn what_a_registration_found_out_is_no_new_setting() {
        let settings = |error: Option<&str>| {
            let job = messaging_core::ids::JobId::from_bytes([2; 16]);
            let registration = Some(CallbackRegistration { job, address: None, error: error.map(ToOwned::to_owned) });
            let (provider, config) = ("twilio".to_owned(), Map::new());
            let settings =
                ChannelSettings { workspace_id: home(), channel: Channel::Sms, provider, config, registration };
            AccountPauses::concerned(&Changes::from_iter([Write::put(settings, Expect::Absent)]))
        };
        assert_eq!(settings(None), [channel()]);
        assert_eq!(settings(Some("not reachable")), []);
    }

    #[test]
    fn an_account_among_several_stops_alone_and_is_named() {
        let pauses = Arc::new(AccountPauses::default());
        let named = |name| Account { name: Some(name), ..account() };
        let wait = |name| pauses.wait(named(name), &provider("a"), NOW).map(|(wait, error)| (wait.as_secs(), error));
        pauses.report(named("fcm"), &provider("a"), AccountState::Stopped("wrong key".into()), NOW);
        pauses.report(named("apns"), &provider("a"), AccountState::Rests(SECOND, "slow".into()), NOW);
        assert_eq!((wait("fcm"), wait("apns")), (Some((300, "wrong key".into())), Some((1, "slow".into()))));
        assert_eq!((wait("webpush"), shown(&pauses.enter(account(), &provider("a"), NOW))), (None, "go".into()));
        let trouble = |now| pauses.trouble(channel(), &provider("a"), now);
        assert_eq!(trouble(NOW), Some((PauseKind::Stopped, "fcm: wrong key; apns: slow".into())));
        assert_eq!(trouble(NOW + SECOND), Some((PauseKind::Stopped, "fcm: wrong key".into())));
        // `wait` takes no probe; while one is under way the others wait.
        let later = NOW + PROBE_EVERY;
        assert_eq!(pauses.wait(named("fcm"), &provider("a"), later), None);
        let _probe = pauses.enter(named("fcm"), &provider("a"), later);
        assert_eq!(pauses.wait(named("fcm"), &provider("a"), later), Some((LOOK_AGAIN, "wrong key".into())));
        pauses.forget(&[channel()]);
        assert_eq!((trouble(NOW), pauses.wait(named("fcm"), &provider("a"), NOW)), (None, None));
    }
}
