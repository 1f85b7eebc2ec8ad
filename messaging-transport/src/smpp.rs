//! The provider `smpp` of SMS: a message center that speaks SMPP 3.4 (cargo feature `smpp`).
//!
//! Each account has one session, bound as a transceiver as long as the account is used. Messages leave over it, and
//! receipts and messages of recipients come in, which need no other proof. It is opened by the first message, kept
//! alive, and opened again when it breaks; if the bind is refused, every five minutes. It ends when its channel has
//! other settings or none. The window limits how many parts wait for an answer at a time.

mod answer;
mod codec;
mod encoding;
mod incoming;
mod names;
mod open;
mod parts;
mod session;
mod settings;
mod submit;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::inbound::ProviderSink;
use messaging_core::ports::transport::{
    Answer, Content, DeliveryOptions, Outcome, OutcomeClass, Outgoing, ProviderAnswer, Response, Scope, Sent,
    SettingsFault, SmsContent, Transport, TransportError,
};
use rustls_pki_types::CertificateDer;
use serde_json::{Map, Value};

use crate::dns::Dns;
use crate::guard::Guard;
use crate::provider::refused_by_last_look;
use crate::smtp::{Tls, Trust};
use open::Opener;
use parts::Group;
use session::{Owner, Session, Submitted};
use settings::Account;

/// Maximum number of accounts that are bound at a time; beyond it the least recently used one is unbound.
const MAX_SESSIONS: usize = 256;

/// Transport that sends text messages through message centers.
pub struct Smpp {
    opener: Arc<Opener>,
    sessions: Mutex<Sessions>,
    sink: Mutex<Option<Weak<dyn ProviderSink>>>,
}

#[derive(Default)]
struct Sessions {
    by_workspace: HashMap<WorkspaceId, PooledSession>,
    uses: u64,
}

struct PooledSession {
    account: Account,
    session: Arc<Session>,
    used: u64,
}

/// Builder of an [`Smpp`].
pub struct SmppBuilder {
    dns: Dns,
    allow_private: bool,
    roots: Vec<CertificateDer<'static>>,
}

impl SmppBuilder {
    /// Permits message centers at addresses that are not public.
    pub fn allow_private(mut self, allow: bool) -> Self {
        self.allow_private = allow;
        self
    }

    /// Adds a root certificate to those of the system.
    pub fn root(mut self, root: CertificateDer<'static>) -> Self {
        self.roots.push(root);
        self
    }

    /// Builds the transport.
    pub fn build(self) -> Smpp {
        let guard = Guard { allow_private: self.allow_private };
        let opener = Opener { guard, dns: self.dns, tls: Tls::new(Trust::Verified(self.roots)) };
        Smpp { opener: Arc::new(opener), sessions: Mutex::default(), sink: Mutex::new(None) }
    }
}

impl fmt::Debug for SmppBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmppBuilder").finish_non_exhaustive()
    }
}

impl fmt::Debug for Smpp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smpp").finish_non_exhaustive()
    }
}

impl Smpp {
    /// Returns a builder for a transport that looks names up with `dns`.
    pub fn builder(dns: Dns) -> SmppBuilder {
        SmppBuilder { dns, allow_private: false, roots: Vec::new() }
    }

    /// Returns the session of an account. The session of replaced settings is unbound when nobody uses it any more.
    fn session(&self, workspace: WorkspaceId, account: &Account, settings: &Arc<Map<String, Value>>) -> Arc<Session> {
        let sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.uses += 1;
        let used = sessions.uses;
        if let Some(pooled) = sessions.by_workspace.get_mut(&workspace)
            && pooled.account == *account
            && !pooled.session.has_ended()
        {
            pooled.used = used;
            return Arc::clone(&pooled.session);
        }
        if sessions.by_workspace.len() >= MAX_SESSIONS && !sessions.by_workspace.contains_key(&workspace) {
            sessions.by_workspace.retain(|_, pooled| !pooled.session.has_ended());
        }
        if sessions.by_workspace.len() >= MAX_SESSIONS && !sessions.by_workspace.contains_key(&workspace) {
            let oldest = sessions.by_workspace.iter().min_by_key(|(_, pooled)| pooled.used).map(|(id, _)| *id);
            oldest.and_then(|oldest| sessions.by_workspace.remove(&oldest));
        }
        let owner = Owner { workspace, settings: Arc::clone(settings), sink };
        let session = Arc::new(Session::start(owner, account.clone(), Arc::clone(&self.opener)));
        let pooled = PooledSession { account: account.clone(), session: Arc::clone(&session), used };
        sessions.by_workspace.insert(workspace, pooled);
        session
    }

    /// Sends to one recipient: the session is bound and has a place before the message is put on record.
    async fn deliver(&self, session: &Session, account: &Account, outgoing: &Outgoing, to: &Recipient<'_>) -> Outcome {
        let place = match session.place().await {
            Ok(place) => place,
            Err(answer) => return answer.into(),
        };
        if let Some(refusal) = refused_by_last_look(&outgoing.last_look, to.number).await {
            return refusal;
        }
        let outcome = Outcome::from(submit_parts(session, account, to, &outgoing.options).await);
        drop(place);
        outgoing.last_look.ended(to.number, &outcome);
        outcome
    }
}

/// A recipient's number, and the parts of the message that go to it.
struct Recipient<'a> {
    number: &'a str,
    parts: &'a encoding::Parts,
}

/// Submits the parts of a message one after another. The id of the first one is that of the message.
async fn submit_parts(session: &Session, account: &Account, to: &Recipient<'_>, options: &DeliveryOptions) -> Answer {
    let count = to.parts.bodies.len();
    let group = (count > 1).then(|| Arc::new(Group::of(count)));
    let mut first = None;
    for body in &to.parts.bodies {
        let Ok(pdu) = submit::submit_sm(account, to.number, to.parts, body, options) else {
            let class = OutcomeClass::Content(messaging_core::ports::transport::ContentFault::Provider);
            return failed(group.as_deref(), Answer::new(class, Response::of_text("the message cannot be encoded")));
        };
        match session.submit(pdu, group.clone()).await {
            Submitted::Answered { status: 0, id } => {
                first.get_or_insert(id);
            }
            Submitted::Answered { status, .. } => return failed(group.as_deref(), answer::submitted(status)),
            Submitted::NotSent(text) if first.is_none() => {
                let class = OutcomeClass::Retry(Scope::Account);
                return failed(group.as_deref(), Answer::new(class, Response::of_text(&text)));
            }
            Submitted::NotSent(_) | Submitted::Lost => {
                let lost = Response::of_text("the message center did not answer");
                return failed(group.as_deref(), Answer::new(OutcomeClass::Ambiguous, lost));
            }
        }
    }
    let segments = u16::try_from(count).ok();
    let first = first.filter(|id| !id.is_empty());
    let provider = ProviderAnswer { message_id: first, segments, ..ProviderAnswer::default() };
    answer::accepted().provider(provider)
}

/// Settles a message by the part that failed: receipts of the others say nothing more.
fn failed(group: Option<&Group>, answer: Answer) -> Answer {
    if let Some(group) = group {
        group.settle();
    }
    answer
}

#[async_trait]
impl Transport for Smpp {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let Content::Sms(SmsContent { text }) = &outgoing.content else {
            return Err(TransportError::Content("only text messages are sent by SMPP".to_owned()));
        };
        let account = Account::read(&outgoing.settings)?;
        let parts = encoding::encode(text, outgoing.message_id.to_bytes()[15]);
        if parts.bodies.len() > usize::from(u8::MAX) {
            return Err(TransportError::Content("the text has too many parts".to_owned()));
        }
        let session = self.session(outgoing.workspace_id, &account, &outgoing.settings);
        let mut outcomes = Vec::with_capacity(outgoing.recipients.len());
        for number in &outgoing.recipients {
            let recipient = Recipient { number, parts: &parts };
            outcomes.push(self.deliver(&session, &account, outgoing, &recipient).await);
        }
        for outcome in &mut outcomes {
            if let Outcome::Answered(answer) = outcome {
                answer.response.host = Some(account.host.clone());
            }
        }
        Ok(Sent { outcomes, ..Sent::default() })
    }

    fn check(&self, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        match settings.get("host").and_then(Value::as_str) {
            Some(host) if !self.opener.guard.permits_host(host) => {
                Err(SettingsFault { member: "host", message: "must not be a private address or this machine" })
            }
            _ => Ok(()),
        }
    }

    fn attach(&self, sink: Weak<dyn ProviderSink>) {
        *self.sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink);
    }
}
