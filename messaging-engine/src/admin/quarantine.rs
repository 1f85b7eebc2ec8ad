//! Quarantined work, whose outcome the database refused: listing, releasing and dropping it.

use messaging_core::changes::{
    AutomationWrite, Changes, Condition, DateFire, Expect, JobWrite, NewJob, PutDateFires, PutRun, Write,
};
use messaging_core::domain::automation::AutomationStatus;
use messaging_core::domain::automation::run::{Held, Run, RunStatus};
use messaging_core::domain::installation::quarantine::{Again, KEPT, Quarantined};
use messaging_core::error::Chain;
use messaging_core::ids::{AutomationId, ContactId, JobId, WorkspaceId};
use messaging_core::ports::store::Stored;
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::app::App;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::call_node::CallNode;
use crate::ops::Page;
use crate::services::auditing::Command;
use crate::services::entering::ByHand;

/// Item of quarantined work, as the `admin` commands show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuarantinedReport {
    /// Id of the record.
    pub id: JobId,
    /// Kind of the work: the kind of the job, or another such as `automation_run` or `automation_note`.
    pub kind: String,
    /// Id of the item.
    pub subject: String,
    /// Workspace that owns the item, if one does.
    pub workspace_id: Option<WorkspaceId>,
    /// True if the work can be tried again. If not, the rest of it was done without the refused part, or the record
    /// does not contain enough for another try.
    pub can_be_released: bool,
    /// Text of the database's refusal.
    pub reason: String,
    /// Time at which the work was quarantined.
    pub at: Timestamp,
}

/// Result of releasing or dropping records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReleaseReport {
    /// Removed records: their items are tried again if they were released, and given up if they were dropped.
    pub done: Vec<JobId>,
    /// Ids that were not released or dropped, each with the reason.
    pub left: Vec<LeftReport>,
}

/// Id that was not released or dropped, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeftReport {
    /// Id of the record.
    pub id: JobId,
    /// The reason, with advice where there is some.
    pub reason: String,
}

/// Lists all quarantined work that was neither released nor dropped, newest first.
pub async fn list_quarantined(app: &App) -> Result<Page<QuarantinedReport>, Error> {
    let report = |one: Quarantined| QuarantinedReport {
        id: one.id,
        can_be_released: one.again.is_some(),
        kind: one.kind,
        subject: one.subject,
        workspace_id: one.workspace_id,
        reason: one.reason,
        at: one.at,
    };
    let (_, all) = app.store().quarantined(KEPT).await?;
    Ok(Page::only(all.into_iter().map(report).collect()))
}

/// Has items tried again at once: the named ones, or all that can be released if `ids` is `None`.
pub async fn release_quarantined(app: &App, ids: Option<&[JobId]>) -> Result<ReleaseReport, Error> {
    let chosen = |one: &Quarantined| ids.is_some() || one.again.is_some();
    let mut report = ReleaseReport::default();
    for id in selected(app, ids, chosen).await? {
        let release = || async {
            let (changes, outcome) = release(app, id).await?;
            let command = Command::new("admin quarantine release", "quarantined", Some(id.to_string()), None);
            Ok((app.record_command(changes, command).await?, outcome))
        };
        let left = match app.until_committed(release).await {
            Ok(Ok(())) => {
                report.done.push(id);
                continue;
            }
            Ok(Err(why)) => why.to_owned(),
            // An item that is refused again does not keep the others from being released.
            Err(error) if app.store().health().is_healthy() => format!("it is refused again: {}", Chain(&error)),
            Err(error) => return Err(error),
        };
        report.left.push(LeftReport { id, reason: left });
    }
    Ok(report)
}

/// Deletes records, so that their items are given up: the named ones, or all if `ids` is `None`.
pub async fn drop_quarantined(app: &App, ids: Option<&[JobId]>) -> Result<ReleaseReport, Error> {
    let mut report = ReleaseReport::default();
    for id in selected(app, ids, |_| true).await? {
        let forget = || async {
            let is_known = find(app, id).await?.is_some();
            let forget = is_known.then_some(Write::ForgetQuarantined(id));
            let command = Command::new("admin quarantine drop", "quarantined", Some(id.to_string()), None);
            Ok((app.record_command(forget.into_iter().collect(), command).await?, is_known))
        };
        if app.until_committed(forget).await? {
            report.done.push(id);
        } else {
            report.left.push(LeftReport { id, reason: UNKNOWN.to_owned() });
        }
    }
    Ok(report)
}

const UNKNOWN: &str = "there is no such record; `messaging admin quarantine list` shows those that there are";

/// Returns the given ids, or those of all records that are `wanted`, oldest first.
async fn selected(
    app: &App,
    ids: Option<&[JobId]>,
    wanted: impl Fn(&Quarantined) -> bool,
) -> Result<Vec<JobId>, Error> {
    if let Some(ids) = ids {
        return Ok(ids.to_vec());
    }
    let (_, all) = app.store().quarantined(KEPT).await?;
    Ok(all.iter().rev().filter(|one| wanted(one)).map(|one| one.id).collect())
}

async fn find(app: &App, id: JobId) -> Result<Option<Quarantined>, Error> {
    let (_, all) = app.store().quarantined(KEPT).await?;
    Ok(all.into_iter().find(|one| one.id == id))
}

/// Writes after which an item is tried again, or the reason for which it cannot be.
type Decided = Result<Vec<Write>, &'static str>;

async fn release(app: &App, id: JobId) -> Result<(Changes, Result<(), &'static str>), Error> {
    let Some(record) = find(app, id).await? else { return Ok((Changes::default(), Err(UNKNOWN))) };
    let decided = match (record.again, record.workspace_id) {
        (Some(Again::Job { kind, lane, payload }), _) => {
            let now = app.now();
            let known = crate::work::all().iter().find(|one| one.kind == kind);
            known.ok_or("its job is of a kind that this version does not know").map(|job_type| {
                let (id, payload) = (app.new_id(now), payload.into());
                vec![Write::Job(JobWrite::Enqueue(NewJob { id, kind: job_type.kind, lane, due_at: now, payload }))]
            })
        }
        (Some(Again::Run { automation_id, run_id, held }), Some(workspace)) => {
            let stored = app.store().run(workspace, automation_id, run_id).await?;
            match stored {
                Some(stored) => go_on(app, stored, held).await?,
                None => Err("its run is gone"),
            }
        }
        (Some(Again::Moments { automation_id, contact_id, due_at }), Some(workspace_id)) => {
            if app.store().automation(workspace_id, automation_id).await?.is_none() {
                return Ok((Changes::default(), Err(GONE)));
            }
            let fires = due_at.into_iter().map(|due_at| DateFire { contact_id, due_at }).collect();
            Ok(vec![Write::Automation(AutomationWrite::PutDateFires(Box::new(PutDateFires {
                workspace_id,
                automation_id,
                fires,
            })))])
        }
        (Some(Again::Entry { automation_id, contact_id }), Some(workspace)) => {
            enter(app, (workspace, automation_id), contact_id).await?
        }
        _ => Err("nothing of it is left to be tried again; `messaging admin quarantine drop` forgets it"),
    };
    Ok(match decided {
        Ok(writes) => (writes.into_iter().chain([Write::ForgetQuarantined(id)]).collect(), Ok(())),
        Err(why) => (Changes::default(), Err(why)),
    })
}

/// Returns the writes that resume a failed run at the node where it failed, or the reason for which it cannot be
/// resumed.
async fn go_on(app: &App, Stored { record, revision }: Stored<Run>, held: Option<Held>) -> Result<Decided, Error> {
    if record.status != RunStatus::Failed {
        return Ok(Err("its run has ended in another way meanwhile"));
    }
    let (workspace, automation, contact) = (record.workspace_id, record.automation_id, record.contact_id);
    let Some(found) = app.store().automation(workspace, automation).await? else { return Ok(Err(GONE)) };
    if found.record.status != AutomationStatus::Active {
        return Ok(Err(NOT_ACTIVE));
    }
    let open = app.store().open_runs(workspace, automation, &[contact]).await?;
    if open.iter().any(|other| other.record.key == record.key) {
        return Ok(Err("its contact has entered again meanwhile"));
    }
    let now = app.now();
    let is_calling = held == Some(Held::Calling);
    let due_at = (!is_calling).then_some(now);
    let run = Run { status: RunStatus::Waiting, due_at, held, ended_at: None, exit_reason: None, ..record };
    let call = run.node_id.as_deref().filter(|_| is_calling).map(|node| CallNode::of(&run, node));
    let enqueue = call.map(|call| Write::Job(JobWrite::Enqueue(call.enqueue(app.new_id(now), now))));
    let expect = Expect::Revision(revision);
    let put = Write::Automation(AutomationWrite::PutRun(Box::new(PutRun {
        run,
        expect,
        steps: Vec::new(),
        messages: Vec::new(),
    })));
    let expected = Write::Expect(Condition::Automation(workspace, automation, AutomationStatus::Active));
    Ok(Ok([put, expected].into_iter().chain(enqueue).collect()))
}

const NOT_ACTIVE: &str = "its automation is not active; activate it first";
const GONE: &str = "its automation is gone";

/// Returns the writes with which a contact enters an automation, as if a caller had entered it, or the reason for which
/// it cannot enter.
async fn enter(app: &App, of: (WorkspaceId, AutomationId), contact: ContactId) -> Result<Decided, Error> {
    let Some(Stored { record: automation, .. }) = app.store().automation(of.0, of.1).await? else {
        return Ok(Err(GONE));
    };
    if automation.status != AutomationStatus::Active {
        return Ok(Err(NOT_ACTIVE));
    }
    if app.store().contact(of.0, contact).await?.is_none() {
        return Ok(Err("its contact is gone"));
    }
    Ok(match app.enter_by_hand(&automation, contact, Map::new(), app.now()).await? {
        Some(ByHand::Listed(_, mut writes)) => {
            writes.push(Write::Expect(Condition::Automation(of.0, of.1, AutomationStatus::Active)));
            Ok(writes)
        }
        Some(ByHand::NotAllowed) => Err("its contact does not match the filter of the trigger any more"),
        Some(ByHand::ReEntry) => Err("its contact has entered meanwhile and may not do so again"),
        None => Err(NOT_ACTIVE),
    })
}
