//! Verification of exchangers, before an attempt sends to them.

use std::time::Duration;

use rustls_pki_types::UnixTime;

use super::super::tls_policy::{Judged, TlsPolicy};
use super::{Attempt, Miss, no_tls};
use crate::smtp::{Session, Transcript};

impl Attempt<'_> {
    /// Returns the demands on the connection to an exchanger, or the reason why no mail goes there.
    pub(super) async fn tls_policy(&self, host: &str) -> Result<TlsPolicy, String> {
        let Self { client, domain, is_secure, sts, require_tls, .. } = self;
        let policy = TlsPolicy::find(&client.routing, host, *is_secure, sts.as_ref(), *require_tls).await?;
        match policy.refusal(host, domain) {
            Some(text) => Err(text),
            None => Ok(policy),
        }
    }

    /// Returns the session, if its peer meets the demands.
    pub(super) async fn prove(
        &self,
        session: Session,
        host: &str,
        policy: &TlsPolicy,
        transcript: &mut Transcript,
    ) -> Result<Session, Miss> {
        let mut session = session;
        if session.transactions() > 0 && session.is_encrypted() && policy.asks_for_no_proof() {
            // The peer was verified before the first message of the session.
            return Ok(session);
        }
        let now = Duration::from_millis(u64::try_from(self.client.clock.now().as_millis()).unwrap_or_default());
        let (is_encrypted, chain) = (session.is_encrypted(), session.peer_certificates());
        let one = Judged { host, domain: self.domain, is_encrypted, chain };
        let (verified, fault) = policy.judge(&one, &self.client.pkix, UnixTime::since_unix_epoch(now));
        session.verified(verified, transcript);
        match fault {
            Some(fault) if fault.is_enforced => {
                transcript.note(format_args!("not sent: {}", fault.text));
                session.quit().await;
                Err(no_tls(host, if is_encrypted { "4.7.5" } else { "4.7.10" }, &fault.text))
            }
            Some(fault) => {
                transcript.tls_failed(&fault.text);
                Ok(session)
            }
            None => Ok(session),
        }
    }
}
