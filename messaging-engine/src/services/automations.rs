//! Code that operations on automations and jobs of automations share.

use std::sync::Arc;

use messaging_core::changes::{Expect, JobWrite, PutAutomation, Write};
use messaging_core::domain::automation::note::EventSubscription;
use messaging_core::domain::automation::parse::{AutomationPlan, Reading};
use messaging_core::domain::automation::trigger::TriggerKind;
use messaging_core::domain::automation::{Automation, AutomationStatus};
use messaging_core::domain::campaign::Reference;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::resolve::named;
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::run_automation::{EnterExisting, FollowDates, RunAutomation};

impl App {
    /// Returns the write that stores an automation, with the data that the store needs about it.
    pub(crate) async fn put_automation(
        &self,
        automation: &Automation,
        reading: &Reading,
        expect: Expect,
    ) -> Result<Write, StoreError> {
        let (workspace, id) = (automation.workspace_id, automation.id);
        let is_draft = automation.status == AutomationStatus::Draft;
        let subscription = match &reading.plan {
            Some(plan) if !is_draft => plan.subscription(),
            _ => EventSubscription::default(),
        };
        let mut holds = Vec::new();
        if automation.status == AutomationStatus::Active {
            holds = reading.holds();
            holds.extend(self.automation_domains(workspace, &reading.sends).await?.into_iter().map(Reference::Domain));
        }
        let lanes = Self::automation_lanes(workspace, id);
        let put = PutAutomation { automation: automation.clone(), subscription, lanes, holds };
        Ok(Write::PutAutomation(Box::new(put), expect))
    }

    /// Returns the lanes of an automation's jobs, by shard: every note makes them due.
    pub(crate) fn automation_lanes(workspace: WorkspaceId, automation: AutomationId) -> Vec<Lane> {
        RunAutomation::of(workspace, automation).map(|job| job.lane()).collect()
    }

    /// Returns the writes that have jobs work on a changed automation: part of every commit that activates it, and of
    /// every one that changes it while it is active. `was` is the state before. Pausing and deleting need none: its
    /// jobs find out when they run.
    pub(crate) fn automation_changed(
        &self,
        automation: &Automation,
        plan: &AutomationPlan,
        was: AutomationStatus,
        now: Timestamp,
    ) -> Vec<Write> {
        let (workspace_id, automation_id) = (automation.workspace_id, automation.id);
        let mut writes = Vec::new();
        for job in RunAutomation::of(workspace_id, automation_id) {
            // The added job is due already.
            writes.push(Write::Job(JobWrite::WakeLane(job.lane(), now)));
            writes.push(Write::Job(JobWrite::EnqueueOnce(job.enqueue(self.new_id(now), now))));
        }
        match &plan.trigger.kind {
            TriggerKind::SegmentEnter { segment_id, include_existing: true } if was == AutomationStatus::Draft => {
                let activated_at = automation.activated_at.unwrap_or(now);
                let (segment_id, after) = (*segment_id, None);
                let job = EnterExisting { workspace_id, automation_id, segment_id, activated_at, after };
                writes.push(Write::Job(JobWrite::Enqueue(job.enqueue(self.new_id(now), now))));
            }
            TriggerKind::Date(_) => {
                let (since, known_to) = ((automation.version, automation.activated_at), now);
                let job = FollowDates { workspace_id, automation_id, since, known_to, look: None };
                writes.push(Write::Job(JobWrite::WakeLane(job.lane(), now)));
                writes.push(Write::Job(JobWrite::EnqueueOnce(job.enqueue(self.new_id(now), now))));
            }
            _ => {}
        }
        if was == AutomationStatus::Paused {
            // Contacts that were about to enter continue.
            writes.push(Write::Job(JobWrite::WakeLane(EnterExisting::lane_of(workspace_id, automation_id), now)));
        }
        writes
    }

    /// Returns the plan of a version of an automation; `None` if the version does not exist any more, or this program
    /// cannot parse it.
    pub(crate) async fn automation_plan(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        version: u32,
    ) -> Result<Option<Arc<AutomationPlan>>, StoreError> {
        let load = async {
            let found = self.store().automation_version(workspace, automation, version).await?;
            Ok(found.and_then(|found| match found.design.parse() {
                Ok(plan) => Some(Arc::new(plan)),
                Err(faults) => {
                    tracing::error!(automation = %automation, version, faults = %faults.summary(), "a version of an automation cannot be read");
                    None
                }
            }))
        };
        self.lookups().automation_plans.get(&(workspace, automation, version), self.now(), load).await
    }

    /// Returns the time zone of a workspace.
    pub(crate) async fn workspace_zone(&self, workspace: WorkspaceId) -> Result<jiff::tz::TimeZone, StoreError> {
        Ok(self.workspace(workspace).await?.map_or(jiff::tz::TimeZone::UTC, |workspace| workspace.zone()))
    }

    /// Returns a filter in the form that stores evaluate: without dynamic segments; `None` if it names something that
    /// is gone, so that nobody matches it.
    pub(crate) async fn askable(&self, workspace: WorkspaceId, filter: Filter) -> Result<Option<Filter>, StoreError> {
        if named(&filter).next().is_none() {
            return Ok(Some(filter));
        }
        Ok(self.segment_graph(workspace).await?.resolve(&filter).ok())
    }
}
