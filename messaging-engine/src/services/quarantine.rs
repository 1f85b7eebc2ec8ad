//! Quarantine of work whose outcome the store refuses for good, so that nothing else waits for it.

use std::error::Error;
use std::fmt::Display;

use messaging_core::changes::Write;
use messaging_core::domain::installation::quarantine::{Again, Quarantined};
use messaging_core::error::Chain;
use messaging_core::ids::WorkspaceId;

use crate::app::App;

impl App {
    /// Returns the write that records an item as put aside, with the data to try it again: part of the commit that
    /// removes the item.
    pub(crate) fn quarantine(
        &self,
        workspace: Option<WorkspaceId>,
        (kind, subject): (&str, &(dyn Display + Sync)),
        why: &(dyn Error + 'static),
        again: Option<Again>,
    ) -> Write {
        let (now, subject, reason) = (self.now(), subject.to_string(), Chain(why).to_string());
        tracing::error!(kind, subject, reason, "the store refuses an outcome for good, and the item is put aside");
        let record = Quarantined::new((self.new_id(now), now), workspace, kind, subject, &reason);
        Write::Quarantine(Box::new(Quarantined { again, ..record }))
    }
}
