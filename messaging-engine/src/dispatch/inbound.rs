//! The port through which mail comes in: bounces and complaints about messages, reports about sending domains, and mail
//! to the operator's role addresses, which is forwarded as a message.

use async_trait::async_trait;
use messaging_core::domain::mail::report::Report;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ports::inbound::{
    InboundError, InboundSink, ReportAddress, ReportMail, ReturnAddress, RoleAddress, RoleMail,
};
use messaging_core::ports::store::StoreError;

use crate::app::App;
use crate::caller::Caller;
use crate::error::Error;

#[async_trait]
impl InboundSink for App {
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError> {
        Self::return_address(self, address).await
    }

    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), InboundError> {
        Self::receive(self, to, report).await.map_err(InboundError::new)
    }

    async fn report_address(&self, address: &str) -> Result<Option<ReportAddress>, StoreError> {
        Self::report_address(self, address).await
    }

    async fn receive_domain_report(&self, to: &ReportAddress, mail: &ReportMail) -> Result<(), InboundError> {
        Self::receive_domain_report(self, to, mail).await.map_err(InboundError::new)
    }

    async fn role_address(&self, address: &str) -> Result<Option<RoleAddress>, StoreError> {
        Self::role_address(self, address).await
    }

    async fn hand_on(&self, to: &RoleAddress, mail: RoleMail) -> Result<(), InboundError> {
        // A host that missed our reply sends the same octets again: their digest is the idempotency key.
        let text = format!("{}\0{}", to.address, String::from_utf8_lossy(&mail.source));
        let key = format!("role-{}", Digest::of(&text).to_text());
        let message = match self.role_message(to, mail) {
            Ok(message) => message,
            Err(reason) => {
                tracing::info!(reason, "mail to the operator was not forwarded");
                return Ok(());
            }
        };
        if !self.0.role_mail_pace.admit(self.monotonic()) {
            return Err(InboundError::new(Error::RateLimited { retry_after: 3600 }));
        }
        let operator = Caller::Operator(Some(to.workspace_id));
        self.send_once(message, Some(key), &operator).await.map(drop).map_err(InboundError::new)
    }
}
