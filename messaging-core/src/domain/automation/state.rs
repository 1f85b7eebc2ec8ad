//! Permitted changes of state of automations and runs (contract sections 1.8, 13 and 13.4, "End").

use serde_json::Map;

use super::history::RunStep;
use super::run::{Run, RunStatus};
use super::{Automation, AutomationPause, AutomationStatus, Design};
use crate::time::Timestamp;

/// Error: the status does not allow the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not possible while {status}")]
pub struct NotPossible {
    /// Present status of the automation or run, as the API spells it.
    pub status: &'static str,
    /// Statuses that allow it.
    pub allowed: &'static [&'static str],
}

impl AutomationStatus {
    /// Returns the name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }
}

impl RunStatus {
    /// Returns the name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Exited => "exited",
            Self::Failed => "failed",
        }
    }
}

impl Automation {
    fn needs(&self, allowed: &'static [&'static str]) -> Result<(), NotPossible> {
        let status = self.status.as_str();
        if allowed.contains(&status) { Ok(()) } else { Err(NotPossible { status, allowed }) }
    }

    /// Activates the automation. The caller has checked that it is complete.
    pub fn activate(self, now: Timestamp) -> Result<Self, NotPossible> {
        self.check_activate()?;
        let status = AutomationStatus::Active;
        Ok(Self { status, pause_reason: None, activated_at: Some(now), updated_at: now, ..self })
    }

    /// Succeeds if the automation is a draft or paused, so that it can be activated.
    pub fn check_activate(&self) -> Result<(), NotPossible> {
        self.needs(&["draft", "paused"])
    }

    /// Pauses the automation: no contact enters, and those inside stay at their nodes.
    pub fn pause(self, now: Timestamp) -> Result<Self, NotPossible> {
        self.needs(&["active"])?;
        Ok(self.paused(AutomationPause::User, now))
    }

    /// Pauses an active automation of a database that was restored from a copy, until somebody activates it; `None`
    /// unless it is active (contract section 22).
    pub fn hold_back(self, now: Timestamp) -> Option<Self> {
        (self.status == AutomationStatus::Active).then(|| self.paused(AutomationPause::Restored, now))
    }

    fn paused(self, reason: AutomationPause, now: Timestamp) -> Self {
        Self { status: AutomationStatus::Paused, pause_reason: Some(reason), updated_at: now, ..self }
    }

    /// Succeeds if the automation is active, so that a call can let a contact enter.
    pub fn check_trigger(&self) -> Result<(), NotPossible> {
        self.needs(&["active"])
    }

    /// Succeeds if the automation is a draft or paused, so that it can be deleted.
    pub fn check_delete(&self) -> Result<(), NotPossible> {
        self.needs(&["draft", "paused"])
    }

    /// Changes name and design. A different design gets the next version number.
    pub fn change(self, name: String, design: Design, now: Timestamp) -> Self {
        if name == self.name && design == self.design {
            return self;
        }
        let version = if design == self.design { self.version } else { self.version + 1 };
        Self { name, design, version, updated_at: now, ..self }
    }
}

impl Run {
    /// Ends the run from outside for a reason (`manual`, `restored`, `merged`) and returns it with the steps that say
    /// so.
    pub fn exit(mut self, reason: &str, now: Timestamp) -> Result<(Self, Vec<RunStep>), NotPossible> {
        if !self.status.is_open() {
            return Err(NotPossible { status: self.status.as_str(), allowed: &["active", "waiting"] });
        }
        let steps = self.end_outside(RunStatus::Exited, reason, Map::new(), now);
        Ok((self, steps))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn automation(status: AutomationStatus) -> Automation {
        let at = Timestamp::from_millis(1);
        Automation {
            id: "aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            name: "A".to_owned(),
            status,
            pause_reason: None,
            design: Design::default(),
            version: 3,
            activated_at: None,
            created_at: at,
            updated_at: at,
        }
    }

    #[test]
    fn every_move_is_possible_from_its_states_only() {
        let now = Timestamp::from_millis(2);
        let grid = AutomationStatus::ALL.map(|status| {
            let word = |moved: Result<AutomationStatus, NotPossible>| match moved {
                Ok(status) => status.as_str(),
                Err(refused) => {
                    assert_eq!(refused.status, status.as_str());
                    "409"
                }
            };
            let own = || automation(status);
            [
                word(own().activate(now).map(|moved| moved.status)),
                word(own().pause(now).map(|moved| moved.status)),
                word(own().check_trigger().map(|()| status)),
                word(own().check_delete().map(|()| status)),
            ]
        });
        assert_eq!(grid[0], ["active", "409", "409", "draft"]);
        assert_eq!(grid[1], ["409", "paused", "active", "409"]);
        assert_eq!(grid[2], ["active", "409", "409", "paused"]);
        let paused = automation(AutomationStatus::Active).pause(now).unwrap();
        assert_eq!(paused.pause_reason, Some(AutomationPause::User));
        let active = paused.activate(now).unwrap();
        assert_eq!((active.activated_at, active.pause_reason), (Some(now), None));
        let held = AutomationStatus::ALL.map(|status| automation(status).hold_back(now).map(|held| held.pause_reason));
        assert_eq!(held, [None, Some(Some(AutomationPause::Restored)), None]);
    }

    #[test]
    fn another_design_is_another_version() {
        let now = Timestamp::from_millis(2);
        let held = automation(AutomationStatus::Active);
        let changed = |name: &str, design: Design| held.clone().change(name.to_owned(), design, now);
        assert_eq!(changed("A", Design::default()), held);
        let renamed = changed("B", Design::default());
        assert_eq!((renamed.version, renamed.updated_at), (3, now));
        let graph = json!({"nodes": []}).as_object().unwrap().clone();
        assert_eq!(changed("A", Design { graph, ..Design::default() }).version, 4);
        assert_eq!(changed("A", Design { re_entry_key: Some("event.a".into()), ..Design::default() }).version, 4);
    }
}
