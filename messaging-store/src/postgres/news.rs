//! News of changes: passed on within the process at once, and to other processes by `NOTIFY`.
//!
//! A `NOTIFY` in a transaction would make all commits of the server wait for one another, so one connection announces
//! the commits, at most once every [`GATHER`]. News may be lost: caches expire, and due work is looked for anyway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::future::poll_fn;
use messaging_core::changes::{Changes, JobWrite, Write};
use messaging_core::ports::store::{News, Topic, Topics};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_postgres::{AsyncMessage, Client};

use super::connecting::{Driver, OnRuntime};
use super::connection_health::ConnectionHealth;
use super::fault::Fault;

/// Channel on which the processes of one database notify each other.
const CHANNEL: &str = "messaging";

/// Commits within this time are announced together.
const GATHER: Duration = Duration::from_millis(20);

/// Time before a lost connection is made again, and before a failed announcement is repeated.
const AGAIN: Duration = Duration::from_millis(500);

/// Interval at which the listening connection is checked, since there may be no notifications on it.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// Time within which the listening connection has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The bit after those of the topics: places are free, or have another owner.
const PLACES: u32 = 1 << 31;

/// Passes news of changes on.
#[derive(Debug)]
pub(super) struct ChangeNotifier {
    /// Sender of news to the subscribers in this process.
    here: watch::Sender<News>,
    /// Mask of the topics that other processes have not been notified of yet.
    pending: AtomicU32,
    wake: Notify,
    /// Name of this process, by which it ignores its own notifications.
    name: String,
    health: Arc<ConnectionHealth>,
    /// Notified when another process says that places are free.
    pub(super) places: Notify,
}

/// Topics of a commit that other processes have to hear of, beyond those in its changes.
pub(super) fn work_of(changes: &Changes) -> Topics {
    let mut topics = Topics::NONE;
    for write in changes.writes() {
        match write {
            Write::Job(
                JobWrite::Enqueue(_) | JobWrite::EnqueueOnce(_) | JobWrite::WakeLane(..) | JobWrite::MakeDue(..),
            ) => {
                topics.insert(Topic::Work);
            }
            Write::LogEvent(_) | Write::AppendEvent(_) => topics.insert(Topic::Events),
            _ => {}
        }
    }
    topics
}

impl ChangeNotifier {
    pub(super) fn new(name: String, health: Arc<ConnectionHealth>) -> Self {
        Self {
            here: watch::Sender::default(),
            pending: AtomicU32::new(0),
            wake: Notify::new(),
            name,
            health,
            places: Notify::new(),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<News> {
        self.here.subscribe()
    }

    /// Notifies the subscribers in this process.
    pub(super) fn tell_here(&self, topics: Topics) {
        if !topics.is_empty() {
            self.here.send_modify(|news| news.tell(topics));
        }
    }

    /// Notifies other processes.
    pub(super) fn tell_others(&self, topics: Topics) {
        self.send(mask_of(topics));
    }

    /// Tells other processes that places are free.
    pub(super) fn tell_of_places(&self) {
        self.send(PLACES);
    }

    fn send(&self, mask: u32) {
        if mask != 0 && self.pending.fetch_or(mask, Ordering::AcqRel) & mask != mask {
            self.wake.notify_one();
        }
    }

    /// Sends the pending notifications, for as long as the process runs.
    pub(super) async fn tell(self: Arc<Self>, pool: Pool) {
        loop {
            self.wake.notified().await;
            let mask = self.pending.swap(0, Ordering::AcqRel);
            if mask != 0 {
                let text = announcement(&self.name, mask);
                if let Err(error) = self.health.answer(Instant::now(), PATIENCE, notify(&pool, &text)).await {
                    tracing::debug!(%error, "other processes are told of changes later");
                    self.send(mask);
                    tokio::time::sleep(AGAIN).await;
                }
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Listens to other processes, for as long as this one runs.
    pub(super) async fn listen(self: Arc<Self>, connect: OnRuntime) {
        let mut is_again = false;
        loop {
            if let Ok(Ok((client, driver))) = timeout(PATIENCE, connect.connect()).await {
                self.hear(&client, driver, is_again).await;
            }
            is_again = true;
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Listens until the connection is lost.
    async fn hear(&self, client: &Client, mut driver: Driver, is_again: bool) {
        let receiving = async {
            while let Some(Ok(message)) = poll_fn(|cx| driver.poll_message(cx)).await {
                if let AsyncMessage::Notification(heard) = message {
                    self.heard(heard.payload());
                }
            }
        };
        let listening = async {
            let mut sql = format!("LISTEN {CHANNEL}");
            let mut has_missed = is_again;
            while let Ok(Ok(())) = timeout(PATIENCE, client.batch_execute(&sql)).await {
                // For notifications that were sent while nobody listened.
                if std::mem::take(&mut has_missed) {
                    self.tell_here(Topics::ALL);
                }
                tokio::time::sleep(ASK_EVERY).await;
                sql.clear();
            }
        };
        tokio::select! {
            () = receiving => {}
            () = listening => {}
        }
    }

    fn heard(&self, text: &str) {
        let Some((name, mask)) = announced(text) else { return };
        if name == self.name {
            return;
        }
        if mask & PLACES != 0 {
            self.places.notify_one();
        }
        self.tell_here(topics_of(mask));
    }
}

/// Payload of a notification: the name of the process, which may contain spaces, and a mask of topics in hexadecimal.
fn announcement(name: &str, mask: u32) -> String {
    format!("{name} {mask:x}")
}

/// Name and mask in the payload of a notification. If the mask cannot be read, everything may have changed.
fn announced(text: &str) -> Option<(&str, u32)> {
    let (name, mask) = text.rsplit_once(' ')?;
    Some((name, u32::from_str_radix(mask, 16).unwrap_or(u32::MAX)))
}

async fn notify(pool: &Pool, text: &str) -> Result<(), Fault> {
    let connection = pool.get().await?;
    let statement = connection.prepare_cached("SELECT pg_notify($1, $2)").await?;
    connection.execute(&statement, &[&CHANNEL, &text]).await?;
    Ok(())
}

fn mask_of(topics: Topics) -> u32 {
    let bits = Topic::ALL.into_iter().enumerate().filter(|(_, topic)| topics.contains(*topic));
    bits.fold(0, |mask, (bit, _)| mask | 1 << bit)
}

fn topics_of(mask: u32) -> Topics {
    let mut topics = Topics::NONE;
    for (bit, topic) in Topic::ALL.into_iter().enumerate() {
        if mask & (1 << bit) != 0 {
            topics.insert(topic);
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_names_its_sender_and_its_topics() {
        let name = "messaging d593f1416d56fd7d3b661d96633264dc";
        assert_eq!(announced(&announcement(name, 0x1000)), Some((name, 0x1000)));
        assert_eq!(announced("messaging later"), Some(("messaging", u32::MAX)), "of a newer version");
        assert_eq!(announced("nothing"), None);
    }

    #[test]
    fn a_process_does_not_listen_to_itself() {
        let name = "messaging d593f1416d56fd7d3b661d96633264dc";
        let notifier = ChangeNotifier::new(name.to_owned(), Arc::default());
        let news = notifier.subscribe();
        notifier.heard(&announcement(name, 1));
        assert!(!news.has_changed().unwrap());
        notifier.heard(&announcement("messaging of-another-process", 1));
        assert!(news.has_changed().unwrap());
    }
}
