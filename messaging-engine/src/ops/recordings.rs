//! Table of the operations that are recorded in audit logs, and of those that are not, with the reason.

use std::collections::HashMap;
use std::sync::LazyLock;

use messaging_core::changes::Changes;
use messaging_core::domain::security::audit::changes::Detail;

/// Rule by which an operation is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recording {
    /// Id of the operation.
    pub(super) operation: &'static str,
    /// Kind of the resource that it changes.
    pub(super) kind: &'static str,
    /// The operation that reads the resource, with the same parameters of the path.
    pub(super) read_by: Option<&'static str>,
    /// Part of the changes that is kept.
    pub(super) detail: Detail,
    /// Source of the state after the operation.
    pub(super) after: After,
    /// True if the answer names the resource, because the path names another one or none.
    pub(super) creates: bool,
    /// True for an operation that only reads, but lets data leave the system.
    reads: bool,
}

/// Source of the state after an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Answer of the operation.
    Answer,
    /// Body of the request, because the answer does not show the state.
    Body,
    /// No state: it is enough that the operation was done.
    Nothing,
}

impl Recording {
    const fn of(operation: &'static str, kind: &'static str) -> Self {
        let (detail, after) = (Detail::Values, After::Answer);
        Self { operation, kind, read_by: None, detail, after, creates: false, reads: false }
    }

    const fn read_by(self, operation: &'static str) -> Self {
        Self { read_by: Some(operation), ..self }
    }

    const fn pointers(self) -> Self {
        Self { detail: Detail::Pointers, ..self }
    }

    const fn after(self, after: After) -> Self {
        Self { after, ..self }
    }

    const fn creates(self) -> Self {
        Self { creates: true, ..self }
    }

    const fn reads(self) -> Self {
        Self { reads: true, after: After::Nothing, ..self }
    }

    /// Returns true if an operation with these changes is recorded.
    pub(super) fn records(&self, changes: &Changes) -> bool {
        self.reads || !changes.is_empty()
    }
}

/// Returns the rule for an operation; `None` if it is not recorded.
pub(super) fn recording(operation: &str) -> Option<&'static Recording> {
    static BY_ID: LazyLock<HashMap<&str, &Recording>> =
        LazyLock::new(|| RECORDED.iter().map(|recording| (recording.operation, recording)).collect());
    BY_ID.get(operation).copied()
}

/// Name under which a refused sign-in is recorded.
pub(super) const REFUSED_SIGN_IN: &str = "loginRefused";

/// Operations that are recorded.
pub(super) const RECORDED: &[Recording] = &[
    // Keys and members.
    Recording::of("createApiKey", "api_key"),
    Recording::of("rotateApiKey", "api_key"),
    Recording::of("deleteApiKey", "api_key"),
    Recording::of("createMember", "member"),
    Recording::of("updateMember", "member"),
    Recording::of("deleteMember", "member"),
    Recording::of("createMemberTicket", "member").after(After::Nothing),
    Recording::of("acceptInvitation", "member").after(After::Nothing),
    Recording::of("declineInvitation", "member").after(After::Nothing),
    Recording::of("leaveWorkspace", "member").after(After::Nothing),
    // Sign-ins.
    Recording::of("login", "user").after(After::Nothing),
    Recording::of("loginWithFactor", "user").after(After::Nothing),
    Recording::of("logout", "user").after(After::Nothing),
    Recording::of("redeemTicket", "user").after(After::Nothing),
    Recording::of("confirmSignOn", "user").after(After::Nothing),
    Recording::of("setPassword", "user"),
    Recording::of("deleteSession", "session").after(After::Nothing),
    Recording::of("deleteOtherSessions", "user").after(After::Nothing),
    Recording::of("createFactor", "factor").after(After::Nothing).creates(),
    Recording::of("confirmFactor", "factor").after(After::Nothing),
    Recording::of("deleteFactor", "factor").after(After::Nothing),
    Recording::of("createRecoveryCodes", "user").after(After::Nothing),
    // Settings.
    Recording::of("createWorkspace", "workspace"),
    Recording::of("updateWorkspace", "workspace"),
    Recording::of("deleteWorkspace", "workspace"),
    Recording::of("restoreWorkspace", "workspace"),
    Recording::of("createCustomField", "custom_field"),
    Recording::of("updateCustomField", "custom_field"),
    Recording::of("deleteCustomField", "custom_field"),
    Recording::of("createList", "list"),
    Recording::of("updateList", "list").read_by("getList"),
    Recording::of("deleteList", "list").read_by("getList"),
    Recording::of("createForm", "form"),
    Recording::of("updateForm", "form").read_by("getForm"),
    Recording::of("deleteForm", "form").read_by("getForm"),
    Recording::of("createSegment", "segment"),
    Recording::of("updateSegment", "segment").read_by("getSegment"),
    Recording::of("deleteSegment", "segment").read_by("getSegment"),
    Recording::of("setChannel", "channel"),
    Recording::of("deleteChannel", "channel"),
    // Sending domains and pools.
    Recording::of("createSendingDomain", "sending_domain"),
    Recording::of("updateSendingDomain", "sending_domain").read_by("getSendingDomain"),
    Recording::of("deleteSendingDomain", "sending_domain").read_by("getSendingDomain"),
    Recording::of("rotateDkim", "sending_domain").read_by("getSendingDomain"),
    Recording::of("configureDns", "sending_domain").after(After::Body),
    Recording::of("removeDns", "sending_domain"),
    Recording::of("createIpPool", "ip_pool"),
    Recording::of("updateIpPool", "ip_pool").read_by("getIpPool"),
    Recording::of("deleteIpPool", "ip_pool").read_by("getIpPool"),
    // Webhooks.
    Recording::of("createWebhook", "webhook"),
    Recording::of("updateWebhook", "webhook").read_by("getWebhook"),
    Recording::of("deleteWebhook", "webhook").read_by("getWebhook"),
    Recording::of("pauseWebhook", "webhook").read_by("getWebhook"),
    Recording::of("resumeWebhook", "webhook").read_by("getWebhook"),
    Recording::of("rotateWebhookSecret", "webhook").read_by("getWebhook"),
    // Templates, campaigns, automations.
    Recording::of("createTemplate", "template"),
    Recording::of("importHtmlTemplate", "template"),
    Recording::of("importUrlTemplate", "template"),
    Recording::of("updateTemplate", "template").read_by("getTemplate"),
    Recording::of("revertTemplate", "template").read_by("getTemplate"),
    Recording::of("deleteTemplate", "template").read_by("getTemplate"),
    Recording::of("createImage", "image"),
    Recording::of("deleteImage", "image").after(After::Nothing),
    Recording::of("createCampaign", "campaign"),
    Recording::of("duplicateCampaign", "campaign").creates(),
    Recording::of("updateCampaign", "campaign").read_by("getCampaign"),
    Recording::of("deleteCampaign", "campaign").read_by("getCampaign"),
    Recording::of("scheduleCampaign", "campaign").read_by("getCampaign"),
    Recording::of("unscheduleCampaign", "campaign").read_by("getCampaign"),
    Recording::of("pauseCampaign", "campaign").read_by("getCampaign"),
    Recording::of("cancelCampaign", "campaign").read_by("getCampaign"),
    Recording::of("declareWinner", "campaign").read_by("getCampaign"),
    Recording::of("createAutomation", "automation"),
    Recording::of("updateAutomation", "automation").read_by("getAutomation"),
    Recording::of("deleteAutomation", "automation").read_by("getAutomation"),
    Recording::of("activateAutomation", "automation").read_by("getAutomation"),
    Recording::of("pauseAutomation", "automation").read_by("getAutomation"),
    // Data that leaves, comes in or is erased; suppressions by hand.
    Recording::of("exportContact", "contact").pointers().reads(),
    Recording::of("deleteContact", "contact").pointers(),
    Recording::of("createImport", "import").creates(),
    Recording::of("createSuppression", "suppression").pointers(),
    Recording::of("deleteSuppression", "suppression").pointers(),
    // Operations of the operator.
    Recording::of("updateSource", "source").after(After::Body),
    Recording::of("updateSourcePath", "source").after(After::Body),
    Recording::of("retryQueue", "queue").after(After::Body),
    Recording::of("suspendQueue", "queue").after(After::Body),
    Recording::of("resumeQueue", "queue").after(After::Body),
    Recording::of("cancelQueue", "queue").after(After::Body),
];

/// Operations that change something and are not recorded, each with the reason. Operations that only read are recorded
/// if they let data leave the system.
#[cfg(test)]
const NOT_RECORDED: &[(&str, &str)] = &[
    ("sendMessage", "the message is its own record"),
    ("beginPasskeyLogin", "changes nothing"),
    ("sendMessages", "each message is its own record"),
    ("testCampaign", "each message is its own record"),
    ("cancelMessage", "the events of the message tell it"),
    ("sendEvent", "the event is its own record"),
    ("sendEvents", "each event is its own record"),
    ("upsertContact", "a single contact's change"),
    ("bulkUpsertContacts", "changes of single contacts"),
    ("updateContact", "a single contact's change"),
    ("mergeContacts", "changes of single contacts"),
    ("addListContacts", "changes of single contacts"),
    ("removeListContact", "a single contact's change"),
    ("previewSegment", "changes nothing"),
    ("recalculateSegment", "computes anew what follows from what is recorded"),
    ("previewTemplate", "changes nothing"),
    ("previewAudience", "changes nothing"),
    ("triggerAutomation", "concerns single contacts, whose runs are listed"),
    ("exitAutomationRun", "concerns a single contact, whose run is listed"),
    ("simulateAutomation", "changes nothing"),
    ("verifySendingDomain", "looks at the DNS; what it finds is shown with the domain"),
    ("testChannel", "changes nothing; the message is its own record"),
    ("testWebhook", "changes nothing; the delivery is its own record"),
    ("replayDelivery", "the delivery is its own record"),
    ("replayWebhook", "the deliveries are their own record"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use http::Method;

    use super::*;
    use crate::ops;

    #[test]
    fn every_operation_is_recorded_or_not_for_a_reason() {
        let mut recorded = HashSet::new();
        for recording in RECORDED {
            assert!(recorded.insert(recording.operation), "{} is named twice", recording.operation);
        }
        for endpoint in ops::all() {
            let is_recorded = recorded.contains(endpoint.id);
            let is_reading = (endpoint.method)() == Method::GET;
            let is_named = NOT_RECORDED.iter().any(|(id, _)| *id == endpoint.id);
            let ways = [is_recorded, is_named, is_reading && !is_recorded].into_iter().filter(|way| *way).count();
            assert_eq!(ways, 1, "{}: is it recorded in the audit log? see RECORDED and NOT_RECORDED", endpoint.id);
        }
    }

    #[test]
    fn the_lists_name_operations_that_there_are() {
        let known = |id: &str| ops::all().iter().find(|endpoint| endpoint.id == id);
        for recording in RECORDED {
            let endpoint = known(recording.operation).unwrap_or_else(|| panic!("{} is none", recording.operation));
            let is_reading = (endpoint.method)() == Method::GET;
            assert_eq!(is_reading, recording.reads, "{}", recording.operation);
            if let Some(reader) = recording.read_by {
                let reader = known(reader).unwrap_or_else(|| panic!("{reader} is none"));
                assert_eq!((reader.method)(), Method::GET);
                assert!(endpoint.path.starts_with(reader.path), "{} has other parameters", recording.operation);
            }
        }
        for (id, _) in NOT_RECORDED {
            assert!(known(id).is_some(), "{id} is no operation");
        }
    }
}
