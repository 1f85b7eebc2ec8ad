//! Telling what changed: within the process at once, to other processes by `NOTIFY`.
//!
//! A `NOTIFY` in a transaction would have all commits of the server wait for one another, so one connection tells of what
//! was committed, every [`GATHER`] at most. News may be lost: what is remembered expires, and due work is looked for.

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

/// The channel on which processes of one database tell each other.
const CHANNEL: &str = "messaging";

/// What is committed meanwhile is told of at once.
const GATHER: Duration = Duration::from_millis(20);

/// How long is waited before a lost connection is made again, and before others are told again.
const AGAIN: Duration = Duration::from_millis(500);

/// How often it is asked whether the other end of the connection is there, on which there may be nothing to hear.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// Time within which the listening connection has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The bit after those of the topics: places are free, or have another owner.
const PLACES: u32 = 1 << 31;

/// Tells of changes.
#[derive(Debug)]
pub(super) struct ChangeNotifier {
    /// Sender of news to the subscribers in this process.
    here: watch::Sender<News>,
    /// What other processes are to be told.
    pending: AtomicU32,
    wake: Notify,
    /// What this process is called, so that it does not listen to itself.
    name: String,
    health: Arc<ConnectionHealth>,
    /// Somebody else says that places are free.
    pub(super) places: Notify,
}

/// What other processes have to hear of a commit that the topics do not tell.
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

    /// Tells those who listen in this process.
    pub(super) fn tell_here(&self, topics: Topics) {
        if !topics.is_empty() {
            self.here.send_modify(|news| news.tell(topics));
        }
    }

    /// Tells other processes.
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

    /// Sends what is to be told, for as long as the process runs.
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
                // Whatever was told while nobody listened.
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

/// What a process tells the others: its name, which may have spaces in it, and a mask of topics in hexadecimal.
fn announcement(name: &str, mask: u32) -> String {
    format!("{name} {mask:x}")
}

/// Name and mask of an announcement. Of a mask that cannot be read everything may be untrue.
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
