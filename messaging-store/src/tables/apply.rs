//! The writes that are the same statements on both databases.

use messaging_core::changes::{AutomationWrite, Condition, Write};

use crate::database::Statements;
use crate::fault::Fault;
use crate::{tables, workspace_rows};

/// Carries out a write that is nothing but statements. Those that each store carries out in its own way are refused:
/// they look first, or concern what the process holds in memory.
pub(crate) fn apply(on: &mut dyn Statements, write: &Write) -> Result<(), Fault> {
    match write {
        Write::Put(document, expect) => tables::put(on, document, *expect),
        Write::Delete(key) => tables::delete(on, key),
        Write::Account(write) => tables::change_account(on, write),
        Write::Webhook(write) => tables::change_webhook(on, write),
        Write::PutKeyCheck(check) => tables::installation::put_key_check(on, check),
        Write::PutInstallationName(name, before) => tables::installation::put_name(on, name, before.as_deref()),
        Write::PutStsPolicy(policy) => tables::sts_policies::put(on, policy),
        Write::Quarantine(quarantined) => tables::quarantine::put(on, quarantined),
        Write::ForgetQuarantined(id) => tables::quarantine::forget(on, *id),
        Write::EndWorkspace(workspace) => workspace_rows::end(on, *workspace),
        Write::CountSoftBounce(streak) => tables::soft_bounces::lengthen(on, streak),
        Write::EndSoftBounces(workspace, channel, address) => {
            tables::soft_bounces::end(on, *workspace, *channel, address)
        }
        Write::AppendRowErrors(errors) => tables::imports::append_errors(on, errors),
        Write::DeleteTemplate(workspace, id, at) => tables::templates::delete(on, *workspace, *id, *at),
        Write::PutImage(image, octets) => tables::images::put(on, image, octets),
        Write::PutContactBlock(block) => tables::search::put_contacts(on, block),
        Write::PutMessageBlock(block) => tables::search::put_messages(on, block),
        Write::DeleteImage(workspace, id) => tables::images::delete(on, *workspace, *id),
        Write::InsertMessage(message, content) => tables::messages::insert(on, message, content),
        Write::MoveMessage(movement) => tables::messages::change_status(on, movement),
        Write::CountLink(click) => tables::counters::count_link(on, click),
        Write::NoteEngagement(engagement) => tables::counters::note_engagement(on, engagement),
        Write::ListCopies(workspace, message, keys) => tables::messages::list_copies(on, *workspace, *message, keys),
        Write::UnlistCopy(workspace, message, key) => tables::messages::unlist_copy(on, *workspace, *message, *key),
        Write::PutProviderLink(link) => tables::provider_links::put(on, link),
        Write::NoteInbound(workspace, channel, key, at) => {
            tables::provider_links::note_inbound(on, *workspace, *channel, *key, *at)
        }
        Write::PutDomainReport(report) => tables::domain_reports::put(on, report),
        Write::Expect(Condition::Message(workspace, id, revision)) => {
            tables::messages::expect(on, *workspace, *id, *revision)
        }
        Write::LogEvent(event) => tables::event_log::log(on, event),
        Write::FollowEvents(workspace, until) => tables::event_log::follow(on, *workspace, *until),
        Write::AppendAttempt(attempt) => tables::attempts::append(on, attempt),
        Write::PutUrl(workspace, url) => tables::urls::put(on, *workspace, url),
        Write::Expect(Condition::Campaign(workspace, id, status)) => {
            tables::campaigns::expect(on, *workspace, *id, *status)
        }
        Write::Expect(Condition::Unused(workspace, what)) => tables::holds::expect_unused(on, *workspace, *what),
        Write::PutAudience(row) => tables::audiences::put(on, row),
        Write::TakeAddresses(workspace, campaign, digests) => {
            tables::audiences::take_addresses(on, *workspace, *campaign, digests)
        }
        Write::ForgetAddresses(workspace, campaign) => tables::audiences::forget_addresses(on, *workspace, *campaign),
        Write::LeaveOutAddresses(workspace, campaign, piece, entries) => {
            tables::audiences::leave_out(on, *workspace, *campaign, *piece, entries)
        }
        Write::ForgetLeftOut(workspace, campaign) => tables::audiences::forget_left_out(on, *workspace, *campaign),
        Write::Expect(Condition::Automation(workspace, id, status)) => {
            tables::automations::expect(on, *workspace, *id, *status)
        }
        Write::Automation(AutomationWrite::PutEntry(entry, expect)) => {
            tables::automations::put_entry(on, entry, *expect)
        }
        Write::Expect(Condition::Entries(expected)) => tables::automations::expect_entries(on, expected),
        Write::Automation(AutomationWrite::TakeNotes(take)) => tables::automations::take_notes(on, take),
        Write::Automation(AutomationWrite::TakeDateFire(workspace, id, fire)) => {
            tables::automations::take_date_fire(on, *workspace, *id, fire)
        }
        Write::Expect(Condition::Webhook(workspace, id, status)) => {
            tables::webhooks::expect(on, *workspace, *id, *status)
        }
        Write::KeepBlob(blob) => tables::blobs::name(on, *blob),
        Write::AbandonBlob(blob) => tables::blobs::abandon(on, *blob),
        Write::Suspend(suspension) => tables::operator_queue::suspend(on, suspension),
        Write::LiftSuspension(scope) => tables::operator_queue::lift(on, scope),
        Write::TrimAudit(workspace, up_to) => tables::audit_logs::trim(on, *workspace, *up_to),
        Write::LogRequests(requests) => tables::request_logs::add(on, requests),
        Write::ForgetRequestBodies(workspace, requests) => {
            tables::request_logs::forget_bodies(on, *workspace, requests)
        }
        Write::Remember(reply) => tables::replies::remember(on, reply),
        // Of kept files nothing is noted, and what is observed is for the process alone.
        Write::DeleteBlob(..) | Write::Observe(_) => Ok(()),
        Write::Source(write) => tables::sources::change(on, write),
        Write::SwitchSecretKey(..)
        | Write::PutFence(..)
        | Write::PutSuppression(..)
        | Write::DeleteSuppression(..)
        | Write::PutContacts(..)
        | Write::DeleteContact(..)
        | Write::AppendProductEvents(..)
        | Write::MoveProductEvents(..)
        | Write::DeleteProductEvents(..)
        | Write::JoinList(..)
        | Write::LeaveList(..)
        | Write::PutSubscription(..)
        | Write::ForgetSubscription(..)
        | Write::PutSegment(..)
        | Write::DeleteSegment(..)
        | Write::CountMessages(..)
        | Write::CountSites(..)
        | Write::AttributeMessage(..)
        | Write::RedactMessage(..)
        | Write::EraseCopy(..)
        | Write::AppendEvent(..)
        | Write::PutCapture(..)
        | Write::InsertWaiting(..)
        | Write::TakeWaiting(..)
        | Write::PutWaiting(..)
        | Write::PutAutomation(..)
        | Write::DeleteAutomation(..)
        | Write::Job(_)
        | Write::Audit(..)
        | Write::Automation(
            AutomationWrite::PutRun(..)
            | AutomationWrite::CountNodes(..)
            | AutomationWrite::PutDateFires(..)
            | AutomationWrite::MoveRuns(..)
            | AutomationWrite::DeleteRuns(..)
            | AutomationWrite::CausedAt(..),
        ) => Err(Fault::Malformed("a write that the store carries out itself")),
    }
}
