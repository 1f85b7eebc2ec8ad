//! Events of the messages of a workspace, one page after the other.

use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_engine::ops::webhooks::events::{EventPage, EventQuery, ListWebhookEvents};
use messaging_engine::{App, Caller, Error};
use tokio::sync::watch;

/// Time limit of one request for events, in seconds.
const WAIT: u32 = 30;

/// Events of the messages of a workspace, in the order in which they were recorded.
///
/// Each page has a cursor. A program that stores the cursor in the same transaction as its own work on the page handles
/// every event exactly once; one that stores it afterwards handles each at least once.
///
/// ```
/// # async fn example(app: messaging::Messaging, load: fn() -> Option<String>, save: fn(String)) -> Result<(), messaging::Error> {
/// let mut events = app.events(load()).await?;
/// while let Some(page) = events.next().await? {
///     for event in &page.data {
///         println!("{:?} of {}", event.event_type, event.data.message_id);
///     }
///     save(page.next_cursor);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Events {
    app: App,
    caller: Caller,
    after: Option<String>,
    closing: watch::Receiver<bool>,
}

impl Events {
    /// Makes sure that events are recorded from now on.
    pub(crate) async fn follow(
        app: App,
        caller: Caller,
        closing: watch::Receiver<bool>,
        after: Option<String>,
    ) -> Result<Self, Error> {
        let events = Self { app, caller, after, closing };
        events.look(0).await?;
        Ok(events)
    }

    /// Returns the next events, at most 200; waits until there are some. `None` once the installation is
    /// [closed](crate::Messaging::close). The future may be dropped while it waits: nothing is skipped.
    pub async fn next(&mut self) -> Result<Option<EventPage>, Error> {
        loop {
            if *self.closing.borrow() {
                return Ok(None);
            }
            let page = self.look(WAIT).await?;
            self.after = Some(page.next_cursor.clone());
            if !page.data.is_empty() {
                return Ok(Some(page));
            }
        }
    }

    async fn look(&self, wait: u32) -> Result<EventPage, Error> {
        let mut query = EventQuery::default();
        query.after.clone_from(&self.after);
        query.wait = Some(wait);
        query.limit = Some(MAX_PAGE_SIZE);
        self.app.run(ListWebhookEvents).query(query).by(&self.caller).await
    }
}
