//! Waves: the instants at which the zones of an audience are due.
//!
//! Without a wall-clock time and without quiet hours all recipients are due at once, and there is one wave. Otherwise
//! there are as many as different instants, some 40: hundreds of zones share them.

use std::collections::HashMap;

use jiff::tz::TimeZone;

use super::{Terms, due_at, zone_of};
use crate::time::Timestamp;

/// Finds the wave of each zone of an audience.
#[derive(Debug)]
pub struct Waves {
    terms: Terms,
    start: Timestamp,
    workspace: TimeZone,
    /// Due times by the zone names of contacts, so that each zone is looked up once.
    known: HashMap<String, Timestamp>,
    own: Timestamp,
}

impl Waves {
    /// Returns the waves of a campaign that starts at `start`, in a workspace with a zone.
    pub fn new(terms: Terms, start: Timestamp, workspace: &str) -> Self {
        let workspace = zone_of(None, workspace);
        let own = due_at(&terms, &workspace, start);
        Self { terms, start, workspace, known: HashMap::new(), own }
    }

    /// Returns the time at which a contact with this zone is due.
    pub fn due(&mut self, contact: Option<&str>) -> Timestamp {
        let is_one = self.terms.wall_time.is_none() && self.terms.quiet_hours.is_none();
        let Some(name) = contact.filter(|_| !is_one) else { return self.own };
        if let Some(due) = self.known.get(name) {
            return *due;
        }
        let zone = crate::time::zone(name).map_or_else(|| self.workspace.clone(), |(zone, _)| zone);
        let due = due_at(&self.terms, &zone, self.start);
        self.known.insert(name.to_owned(), due);
        due
    }
}
