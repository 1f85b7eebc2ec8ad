//! The operations: one type per row of the contract, and the list of them all.
//!
//! Everything that names a path, a scope or a command reads [`all`].
//!
//! # How to add an operation
//!
//! A type that implements [`Operation`], with the types of its path, query, body and answer; a line in [`all`]; code
//! that other operations or jobs also need goes into [`services`](crate::services). Route, access check, document,
//! client and command follow from it.

pub mod audit;
mod audit_notes;
mod auditing;
pub mod context;
pub mod endpoint;
mod fingerprint;
pub(crate) mod invoke;
pub mod operation;
pub mod page;
pub(crate) mod parts;
mod progress;
mod recordings;
pub mod requests;
pub(crate) mod runnable;
mod uses;

pub mod analytics;
pub mod attempts;
pub mod automations;
pub mod campaigns;
pub mod channels;
pub mod contacts;
pub mod custom_fields;
pub mod deliverability;
pub mod events;
pub mod forms;
pub mod health;
pub mod images;
pub mod imports;
pub mod ip_pools;
pub mod keys;
pub mod lists;
pub mod members;
pub mod messages;
pub mod queue;
pub mod sandbox;
pub mod segments;
pub mod sending_domains;
mod session_cookie;
pub mod sessions;
pub mod sources;
pub mod suppressions;
pub mod system;
pub mod templates;
pub mod webhooks;
pub mod workspaces;

use serde::Serialize;
use serde_json::Value;

pub use context::{Context, Quota, Request};
pub use endpoint::Endpoint;
pub use messaging_core::input::{BodyKind, Empty, Input, PageQuery};
pub use operation::{Answer, Call, InWorkspace, NoContent, Operation, Output, OutputKind, Upserted};
pub use page::Page;
pub use session_cookie::SessionCookie;

/// Every operation, in the order of the contract.
// Inlined into another crate, the rows would have every operation compiled there once more.
#[inline(never)]
pub const fn all() -> &'static [Endpoint] {
    const ALL: &[Endpoint] = &[
        // Section 2.
        Endpoint::of::<keys::ListApiKeys>(),
        Endpoint::of::<keys::CreateApiKey>(),
        Endpoint::of::<keys::DeleteApiKey>(),
        Endpoint::of::<keys::rotation::RotateApiKey>(),
        Endpoint::of::<sessions::Login>(),
        Endpoint::of::<sessions::Logout>(),
        Endpoint::of::<sessions::GetMe>(),
        Endpoint::of::<sessions::second_step::LoginWithFactor>(),
        Endpoint::of::<sessions::second_step::BeginPasskeyLogin>(),
        Endpoint::of::<sessions::factors::ListFactors>(),
        Endpoint::of::<sessions::factors::CreateFactor>(),
        Endpoint::of::<sessions::factors::ConfirmFactor>(),
        Endpoint::of::<sessions::factors::DeleteFactor>(),
        Endpoint::of::<sessions::factors::CreateRecoveryCodes>(),
        Endpoint::of::<sessions::tickets::Redeem>(),
        Endpoint::of::<sessions::sign_on::ConfirmSignOn>(),
        Endpoint::of::<sessions::own::SetPassword>(),
        Endpoint::of::<sessions::own::ListSessions>(),
        Endpoint::of::<sessions::own::DeleteSession>(),
        Endpoint::of::<sessions::own::DeleteOtherSessions>(),
        Endpoint::of::<sessions::invitations::ListInvitations>(),
        Endpoint::of::<sessions::invitations::AcceptInvitation>(),
        Endpoint::of::<sessions::invitations::DeclineInvitation>(),
        Endpoint::of::<sessions::invitations::LeaveWorkspace>(),
        Endpoint::of::<members::ListMembers>(),
        Endpoint::of::<members::CreateMember>(),
        Endpoint::of::<members::UpdateMember>(),
        Endpoint::of::<members::DeleteMember>(),
        Endpoint::of::<sessions::tickets::CreateTicket>(),
        // Section 3.
        Endpoint::of::<health::GetHealth>(),
        Endpoint::of::<workspaces::ListWorkspaces>(),
        Endpoint::of::<workspaces::CreateWorkspace>(),
        Endpoint::of::<workspaces::UpdateWorkspace>(),
        Endpoint::of::<workspaces::DeleteWorkspace>(),
        Endpoint::of::<workspaces::RestoreWorkspace>(),
        // Section 4.
        Endpoint::of::<messages::SendMessage>(),
        Endpoint::of::<messages::batch::SendMessages>(),
        Endpoint::of::<messages::GetMessage>(),
        Endpoint::of::<messages::ListMessages>(),
        Endpoint::of::<attempts::ListAttempts>(),
        Endpoint::of::<messages::content::GetMessageContent>(),
        Endpoint::of::<messages::cancel::CancelMessage>(),
        // Section 5.
        Endpoint::of::<events::SendEvent>(),
        Endpoint::of::<events::SendEvents>(),
        // Section 6.
        Endpoint::of::<contacts::UpsertContact>(),
        Endpoint::of::<contacts::BulkUpsertContacts>(),
        Endpoint::of::<imports::CreateImport>(),
        Endpoint::of::<contacts::ListContacts>(),
        Endpoint::of::<contacts::GetContact>(),
        Endpoint::of::<contacts::UpdateContact>(),
        Endpoint::of::<contacts::DeleteContact>(),
        Endpoint::of::<contacts::ExportContact>(),
        Endpoint::of::<contacts::MergeContacts>(),
        Endpoint::of::<imports::ListImports>(),
        Endpoint::of::<imports::GetImport>(),
        Endpoint::of::<imports::ListImportErrors>(),
        // Section 7.
        Endpoint::of::<lists::ListLists>(),
        Endpoint::of::<lists::CreateList>(),
        Endpoint::of::<lists::GetList>(),
        Endpoint::of::<lists::UpdateList>(),
        Endpoint::of::<lists::DeleteList>(),
        Endpoint::of::<lists::ListListContacts>(),
        Endpoint::of::<lists::AddListContacts>(),
        Endpoint::of::<lists::RemoveListContact>(),
        Endpoint::of::<forms::ListForms>(),
        Endpoint::of::<forms::CreateForm>(),
        Endpoint::of::<forms::GetForm>(),
        Endpoint::of::<forms::UpdateForm>(),
        Endpoint::of::<forms::DeleteForm>(),
        // Section 8.
        Endpoint::of::<custom_fields::ListCustomFields>(),
        Endpoint::of::<custom_fields::CreateCustomField>(),
        Endpoint::of::<custom_fields::UpdateCustomField>(),
        Endpoint::of::<custom_fields::DeleteCustomField>(),
        // Section 9.
        Endpoint::of::<segments::ListSegments>(),
        Endpoint::of::<segments::CreateSegment>(),
        Endpoint::of::<segments::PreviewSegment>(),
        Endpoint::of::<segments::RecalculateSegmentMembers>(),
        Endpoint::of::<segments::GetSegment>(),
        Endpoint::of::<segments::UpdateSegment>(),
        Endpoint::of::<segments::DeleteSegment>(),
        Endpoint::of::<segments::ListSegmentContacts>(),
        // Section 10.
        Endpoint::of::<suppressions::CreateSuppression>(),
        Endpoint::of::<suppressions::ListSuppressions>(),
        Endpoint::of::<suppressions::DeleteSuppression>(),
        Endpoint::of::<contacts::ExplainContact>(),
        // Section 11.
        Endpoint::of::<templates::ListTemplates>(),
        Endpoint::of::<templates::CreateTemplate>(),
        Endpoint::of::<templates::GetTemplate>(),
        Endpoint::of::<templates::UpdateTemplate>(),
        Endpoint::of::<templates::DeleteTemplate>(),
        Endpoint::of::<templates::versions::ListTemplateVersions>(),
        Endpoint::of::<templates::versions::RevertTemplate>(),
        Endpoint::of::<templates::import::ImportHtmlTemplate>(),
        Endpoint::of::<templates::import::ImportUrlTemplate>(),
        Endpoint::of::<templates::preview::PreviewTemplate>(),
        // Section 12.
        Endpoint::of::<campaigns::ListCampaigns>(),
        Endpoint::of::<campaigns::CreateCampaign>(),
        Endpoint::of::<campaigns::preview::PreviewAudience>(),
        Endpoint::of::<campaigns::GetCampaign>(),
        Endpoint::of::<campaigns::UpdateCampaign>(),
        Endpoint::of::<campaigns::actions::ScheduleCampaign>(),
        Endpoint::of::<campaigns::actions::PauseCampaign>(),
        Endpoint::of::<campaigns::actions::CancelCampaign>(),
        Endpoint::of::<campaigns::recipients::ListRecipients>(),
        Endpoint::of::<campaigns::actions::UnscheduleCampaign>(),
        Endpoint::of::<campaigns::actions::DeclareWinner>(),
        Endpoint::of::<campaigns::test_send::TestCampaign>(),
        Endpoint::of::<campaigns::DuplicateCampaign>(),
        Endpoint::of::<campaigns::DeleteCampaign>(),
        Endpoint::of::<analytics::campaigns::GetCampaignStats>(),
        // Section 13.
        Endpoint::of::<automations::ListAutomations>(),
        Endpoint::of::<automations::CreateAutomation>(),
        Endpoint::of::<automations::GetAutomation>(),
        Endpoint::of::<automations::UpdateAutomation>(),
        Endpoint::of::<automations::actions::ActivateAutomation>(),
        Endpoint::of::<automations::actions::PauseAutomation>(),
        Endpoint::of::<automations::runs::TriggerAutomation>(),
        Endpoint::of::<automations::runs::ListRuns>(),
        Endpoint::of::<automations::DeleteAutomation>(),
        Endpoint::of::<automations::runs::GetRun>(),
        Endpoint::of::<automations::runs::ExitRun>(),
        Endpoint::of::<automations::stats::GetAutomationStats>(),
        Endpoint::of::<automations::simulate::SimulateAutomation>(),
        // Section 14.
        Endpoint::of::<sending_domains::ListSendingDomains>(),
        Endpoint::of::<sending_domains::CreateSendingDomain>(),
        Endpoint::of::<sending_domains::verification::VerifySendingDomain>(),
        Endpoint::of::<sending_domains::verification::ListSendingDomainRecords>(),
        Endpoint::of::<sending_domains::GetSendingDomain>(),
        Endpoint::of::<sending_domains::UpdateSendingDomain>(),
        Endpoint::of::<sending_domains::DeleteSendingDomain>(),
        Endpoint::of::<sending_domains::verification::RotateDkim>(),
        Endpoint::of::<ip_pools::ListIpPools>(),
        Endpoint::of::<ip_pools::CreateIpPool>(),
        Endpoint::of::<ip_pools::GetIpPool>(),
        Endpoint::of::<ip_pools::UpdateIpPool>(),
        Endpoint::of::<ip_pools::DeleteIpPool>(),
        Endpoint::of::<sending_domains::auto_dns::ConfigureDns>(),
        Endpoint::of::<sending_domains::auto_dns::RemoveDns>(),
        Endpoint::of::<sending_domains::dmarc::GetSendingDomainDmarc>(),
        Endpoint::of::<sending_domains::tls_reports::ListTlsReports>(),
        // Section 15.
        Endpoint::of::<webhooks::ListWebhooks>(),
        Endpoint::of::<webhooks::CreateWebhook>(),
        Endpoint::of::<webhooks::GetWebhook>(),
        Endpoint::of::<webhooks::DeleteWebhook>(),
        Endpoint::of::<webhooks::PauseWebhook>(),
        Endpoint::of::<webhooks::ResumeWebhook>(),
        Endpoint::of::<webhooks::deliveries::TestWebhook>(),
        Endpoint::of::<webhooks::deliveries::ListDeliveries>(),
        Endpoint::of::<webhooks::deliveries::ListMessageDeliveries>(),
        Endpoint::of::<webhooks::deliveries::ReplayDelivery>(),
        Endpoint::of::<webhooks::UpdateWebhook>(),
        Endpoint::of::<webhooks::RotateWebhookSecret>(),
        Endpoint::of::<webhooks::deliveries::ReplayWebhookEvents>(),
        Endpoint::of::<webhooks::events::ListWebhookEvents>(),
        // Section 16.
        Endpoint::of::<channels::ListChannels>(),
        Endpoint::of::<channels::SetChannel>(),
        Endpoint::of::<channels::DeleteChannel>(),
        Endpoint::of::<channels::try_out::TestChannel>(),
        // Section 22.
        Endpoint::of::<system::GetSystem>(),
        Endpoint::of::<sources::ListSources>(),
        Endpoint::of::<sources::UpdateSource>(),
        Endpoint::of::<sources::UpdatePath>(),
        // Section 26.
        Endpoint::of::<images::CreateImage>(),
        Endpoint::of::<images::ListImages>(),
        Endpoint::of::<images::DeleteImage>(),
        Endpoint::of::<queue::ListQueue>(),
        Endpoint::of::<queue::RetryQueue>(),
        Endpoint::of::<queue::SuspendQueue>(),
        Endpoint::of::<queue::ResumeQueue>(),
        Endpoint::of::<queue::CancelQueue>(),
        // Section 17.
        Endpoint::of::<analytics::GetOverview>(),
        Endpoint::of::<analytics::campaigns::ListStartedCampaigns>(),
        Endpoint::of::<analytics::campaigns::GetCampaignActivity>(),
        Endpoint::of::<analytics::events::GetEventActivity>(),
        // Section 14.6.
        Endpoint::of::<deliverability::GetDeliverability>(),
        // Section 24.
        Endpoint::of::<requests::ListRequests>(),
        Endpoint::of::<requests::GetRequest>(),
        Endpoint::of::<audit::ListAudit>(),
        Endpoint::of::<audit::ListSystemAudit>(),
        // Section 22, sandbox inbox.
        Endpoint::of::<sandbox::ListSandboxMessages>(),
        Endpoint::of::<sandbox::GetSandboxMessage>(),
    ];
    ALL
}

/// The members of a path or a query as text by name; those that are null are left out.
pub fn parameters<T: Serialize>(values: &T) -> Result<Vec<(String, String)>, serde_json::Error> {
    serde_json::to_value(values).map(texts)
}

fn texts(values: Value) -> Vec<(String, String)> {
    let Value::Object(members) = values else { return Vec::new() };
    members.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name, text(value))).collect()
}

/// A value as it stands in a path or query: the items of a list are separated by commas.
pub fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(items) => items.into_iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A query string of parameters.
pub fn query_string(parameters: &[(String, String)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

/// Fills the parameters of a path template, percent-encoded.
pub fn fill_path(template: &str, parameters: &[(String, String)]) -> String {
    parameters.iter().fold(template.to_owned(), |path, (name, value)| {
        let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        // Ids consist of letters, digits and underscores; those stay readable.
        path.replace(&format!("{{{name}}}"), &value.to_string().replace("%5F", "_"))
    })
}
