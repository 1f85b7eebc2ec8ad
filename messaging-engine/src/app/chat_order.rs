//! Order of messages to one chat: they leave in the order in which they were claimed, although many are delivered
//! concurrently.
//!
//! A chat is a conversation, where an answer must not come before the question. So a message waits as long as an
//! earlier one is under way or put off for a moment; one that is put off for longer loses its place, or an outage would
//! hold back all messages after it.
//!
//! All messages of a channel of a workspace are claimed by one process, and their jobs in the order in which they are
//! due. The order is memory of that process: after a restart, messages that were put off before have no place.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging_core::ids::JobId;
use messaging_core::time::Monotonic;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::jobs::deliver_message::Chat;

/// Longest time that a message may be put off without losing its place.
pub(crate) const LONGEST: Duration = Duration::from_secs(90);

/// Time a message waits for one that is under way before it is put off itself: it holds one of the places that all
/// lanes share.
const UNDER_WAY: Duration = Duration::from_secs(2);

/// Time after the earlier message to which a message is put off.
const STEP: Duration = Duration::from_secs(1);

/// Longest time that a message is put off at once because of another.
const PUT_OFF: Duration = Duration::from_mins(1);

/// Delay of a claim after which a message counts as gone.
const LATE: Duration = Duration::from_secs(10);

/// Number of chats from which they are searched for ones to forget.
const SWEEP_FROM: usize = 1024;

/// Messages that are under way, by chat.
#[derive(Debug, Default)]
pub(crate) struct ChatOrder(Mutex<Chats>);

#[derive(Debug, Default)]
struct Chats {
    lines: HashMap<Chat, VecDeque<Entry>>,
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry {
    job: JobId,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    /// The message is claimed again at this time.
    PutOff(Monotonic),
}

impl Entry {
    fn is_late(&self, now: Monotonic) -> bool {
        matches!(*self.state.borrow(), State::PutOff(until) if until + LATE < now)
    }
}

/// The position of a message in the order of its chat; given up when dropped, unless the message was put off.
#[derive(Debug)]
pub(crate) struct ChatPosition {
    order: Arc<ChatOrder>,
    chat: Chat,
    job: JobId,
    /// True once the fate of the place was decided: the next run of the job may hold it by now.
    is_settled: AtomicBool,
}

impl ChatOrder {
    /// Enters a claimed job: at the place that it had, or behind all others.
    pub(crate) fn enter(self: &Arc<Self>, chat: Chat, job: JobId, now: Monotonic) -> ChatPosition {
        let mut chats = self.lock();
        chats.sweep(now);
        let line = chats.lines.entry(chat.clone()).or_default();
        match line.iter().find(|entry| entry.job == job) {
            Some(entry) => drop(entry.state.send_replace(State::UnderWay)),
            None => line.push_back(Entry { job, state: watch::Sender::new(State::UnderWay) }),
        }
        ChatPosition { order: Arc::clone(self), chat, job, is_settled: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, Chats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chats {
    fn sweep(&mut self, now: Monotonic) {
        if self.lines.len() < self.sweep_at.max(SWEEP_FROM) {
            return;
        }
        self.lines.retain(|_, line| {
            line.retain(|entry| !entry.is_late(now));
            !line.is_empty()
        });
        self.sweep_at = self.lines.len() * 2;
    }
}

impl ChatPosition {
    /// Waits a moment until the message before this one has left; the error is the time after which to ask again, if
    /// that takes longer.
    pub(crate) async fn turn(&self, now: impl Fn() -> Monotonic + Send) -> Result<(), Duration> {
        let end = Instant::now() + UNDER_WAY;
        loop {
            let Some(mut before) = self.before(now()) else { return Ok(()) };
            if let State::PutOff(until) = *before.borrow_and_update() {
                return Err((until.since(now()) + STEP).min(PUT_OFF));
            }
            // An error means that the message has left.
            let is_put_off = |state: &State| *state != State::UnderWay;
            if timeout_at(end, before.wait_for(is_put_off)).await.is_err() {
                return Err(STEP);
            }
        }
    }

    /// Returns the state of the message right before this one.
    fn before(&self, now: Monotonic) -> Option<watch::Receiver<State>> {
        let mut chats = self.order.lock();
        let line = chats.lines.get_mut(&self.chat)?;
        line.retain(|entry| !entry.is_late(now));
        let before = line.iter().take_while(|entry| entry.job != self.job).last()?;
        Some(before.state.subscribe())
    }

    /// Puts off the message; it keeps its place unless the wait is too long.
    pub(crate) fn put_off(&self, wait: Duration, now: Monotonic) {
        if wait > LONGEST {
            return self.give_up();
        }
        self.is_settled.store(true, Ordering::Relaxed);
        let chats = self.order.lock();
        let entry = chats.lines.get(&self.chat).and_then(|line| line.iter().find(|entry| entry.job == self.job));
        if let Some(entry) = entry {
            entry.state.send_replace(State::PutOff(now + wait));
        }
    }

    /// Gives up the place: no other message waits for this one any more.
    pub(crate) fn give_up(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
        let mut chats = self.order.lock();
        let Some(line) = chats.lines.get_mut(&self.chat) else { return };
        line.retain(|entry| entry.job != self.job);
        if line.is_empty() {
            chats.lines.remove(&self.chat);
        }
    }
}

impl Drop for ChatPosition {
    fn drop(&mut self) {
        if !self.is_settled.load(Ordering::Relaxed) {
            self.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::channel::Channel;
    use messaging_core::domain::message::recipients::RecipientKey;
    use messaging_core::ids::{Id as _, WorkspaceId};

    use super::*;

    const NOW: Monotonic = Monotonic::new(Duration::from_secs(1000));
    const SECOND: Duration = Duration::from_secs(1);

    fn chat(number: u8) -> Chat {
        let workspace = WorkspaceId::from_bytes([1; 16]);
        Chat { workspace, channel: Channel::Telegram, recipient: RecipientKey::of(&number.to_string()) }
    }

    fn enter(order: &Arc<ChatOrder>, number: u8, now: Monotonic) -> ChatPosition {
        order.enter(chat(7), JobId::from_bytes([number; 16]), now)
    }

    async fn turn(position: &ChatPosition, now: Monotonic) -> Result<(), Duration> {
        position.turn(|| now).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_the_one_before_it() {
        let order = Arc::new(ChatOrder::default());
        let [first, second, third] = [1, 2, 3].map(|number| enter(&order, number, NOW));
        let elsewhere = order.enter(chat(8), JobId::from_bytes([4; 16]), NOW);
        assert_eq!((turn(&first, NOW).await, turn(&elsewhere, NOW).await), (Ok(()), Ok(())));
        assert_eq!(turn(&second, NOW).await, Err(STEP), "the first is under way for too long");
        let (waited, ()) = tokio::join!(turn(&second, NOW), async { drop(first) });
        assert_eq!(waited, Ok(()));
        let (waited, ()) = tokio::join!(turn(&third, NOW), async { second.put_off(5 * SECOND, NOW) });
        assert_eq!(waited, Err(6 * SECOND));
        drop((second, third, elsewhere));
        assert_eq!(order.lock().lines.len(), 1, "who was put off keeps the place");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_put_off_keeps_the_place_for_a_while() {
        let order = Arc::new(ChatOrder::default());
        let first = enter(&order, 1, NOW);
        first.put_off(LONGEST, NOW);
        drop(first);
        let second = enter(&order, 2, NOW);
        assert_eq!(turn(&second, NOW).await, Err(PUT_OFF));
        let first = enter(&order, 1, NOW + LONGEST);
        assert_eq!(turn(&first, NOW + LONGEST).await, Ok(()), "it goes before who came later");
        first.put_off(LONGEST + SECOND, NOW + LONGEST);
        assert_eq!(turn(&second, NOW + LONGEST).await, Ok(()), "an outage does not hold back what comes after");
        second.put_off(SECOND, NOW);
        drop(second);
        let third = enter(&order, 3, NOW);
        assert_eq!(turn(&third, NOW + SECOND + LATE).await, Err(STEP));
        assert_eq!(turn(&third, NOW + 2 * SECOND + LATE).await, Ok(()), "it never came back");
    }

    #[test]
    fn chats_without_messages_are_forgotten() {
        let order = Arc::new(ChatOrder::default());
        for number in 0..3 * SWEEP_FROM {
            let recipient = RecipientKey::of(&number.to_string());
            let now = NOW + SECOND * u32::try_from(number).unwrap();
            let position = order.enter(Chat { recipient, ..chat(0) }, JobId::from_bytes([1; 16]), now);
            position.put_off(Duration::ZERO, now);
        }
        assert!(order.lock().lines.len() <= SWEEP_FROM);
        drop(enter(&order, 1, NOW));
        assert!(!order.lock().lines.contains_key(&chat(7)));
    }
}
