//! The port through which messages leave the process.
//!
//! Core decides which messages are sent and what follows from an outcome; a transport delivers them and classifies
//! every answer ([`OutcomeClass`]), because it alone knows the provider. A transport is chosen by channel and provider
//! name (contract section 16), receives the workspace's provider settings with every call, and may keep connections
//! between calls.

mod callback;
mod content;

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use serde_json::{Map, Value};

use crate::domain::audience::suppression::SuppressionReason;
use crate::domain::delivery::attempt::Dialog;
use crate::domain::delivery::lane::JobClass;
use crate::ids::{MessageId, WorkspaceId};
use crate::ports::inbound::ProviderSink;
use crate::ports::paths::{PathTerms, PathWait, Paths};

pub use callback::{
    About, Callback, CallbackAddress, CallbackEvent, CallbackFault, CallbackProof, CallbackReply, CallbackRequest,
    Registration,
};
pub use content::*;

pub use crate::domain::delivery::outcome::{
    Acceptance, AddressFault, Answer, ContentFault, Outcome, OutcomeClass, ProviderAnswer, Response, Scope, SoftCause,
};

/// Transport of messages of one channel through one provider.
///
/// An implementation must return an outcome for every recipient of the envelope, or one error for all of them; take a
/// bounded time (nothing waits for ever); not retry by itself; and never report success before the peer has taken
/// responsibility.
///
/// A transport that hands texts to a program of your own:
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use messaging_core::ids::IdSource;
/// use messaging_core::ports::clock::SeededEntropy;
/// use messaging_core::ports::transport::{
///     Acceptance, Admitted, Content, DeliveryOptions, LastLook, Outcome, Outgoing, Reservation, Response, Sent,
///     SmsContent, Transport, TransportError,
/// };
/// use messaging_core::time::Timestamp;
///
/// #[derive(Debug)]
/// struct Printed;
///
/// #[async_trait]
/// impl Transport for Printed {
///     async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
///         let Content::Sms(message) = &outgoing.content else {
///             return Err(TransportError::Content("only text messages are printed".to_owned()));
///         };
///         let mut outcomes = Vec::new();
///         for recipient in &outgoing.recipients {
///             // From here on the message may have left, so that is put on record.
///             let admitted = outgoing.last_look.begin(std::slice::from_ref(recipient)).await;
///             let refused = admitted.into_iter().find_map(Admitted::refusal);
///             let outcome = refused.unwrap_or_else(|| {
///                 println!("{recipient}: {}", message.text);
///                 Outcome::accepted(Acceptance::Delivered, Response::of_text("printed"))
///             });
///             outgoing.last_look.ended(recipient, &outcome);
///             outcomes.push(outcome);
///         }
///         Ok(Sent { outcomes, ..Sent::default() })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), TransportError> {
/// let (ids, entropy, now) = (IdSource::default(), SeededEntropy::new(1), Timestamp::from_millis(0));
/// let outgoing = Outgoing {
///     workspace_id: ids.next(now, &entropy),
///     message_id: ids.next(now, &entropy),
///     settings: Arc::default(),
///     recipients: vec!["+4915112345678".to_owned()],
///     content: Content::Sms(SmsContent { text: "Hi".to_owned() }),
///     options: DeliveryOptions::default(),
///     last_look: LastLook::default(),
///     reservation: Reservation::default(),
///     receipts: None,
/// };
/// assert!(Printed.send(&outgoing).await?.outcomes.iter().all(Outcome::is_accepted));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Waits for one of the places that bound how many messages are sent at the same time; the caller holds no content
    /// meanwhile. The wait is bounded, and without a place [`Transport::send`] says so in its outcomes; if it is known
    /// when a place will be free, [`Reservation::later`] puts the message off without an attempt. A transport without
    /// such limits reserves nothing.
    async fn reserve(&self, _route: &Route) -> Reservation {
        Reservation::default()
    }

    /// Attempts to deliver one message to its recipients.
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError>;

    /// Returns the state of the route to a recipient or a domain, as far as this process knows it. Called whenever a
    /// message is shown, so it neither waits nor changes anything. A transport without limits of its own returns the
    /// default.
    fn state_of(&self, _route: &Route) -> RouteState {
        RouteState::default()
    }

    /// Forgets that the servers of a recipient domain could not be reached, because an operator asks for another
    /// attempt now. A transport that remembers no such thing does nothing.
    fn forget_unreachable(&self, _domain: &str) {}

    /// Checks settings before they are stored, as far as their text alone allows: whether they name a host that may not
    /// be connected to. Settings of the wrong form are checked elsewhere.
    fn check(&self, _settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        Ok(())
    }

    /// Returns the JSON Schema of the workspace's settings, for a provider that is not one of contract section 16:
    /// settings are checked against it before they are stored, and a `writeOnly` property is kept as a secret; see
    /// [`ProviderKind::from_schema`](crate::domain::channel::provider::ProviderKind::from_schema). Without a schema
    /// there are no settings.
    fn settings_schema(&self) -> Option<Value> {
        None
    }

    /// Makes the settings that the server generates itself when a workspace chooses the provider, such as a key pair;
    /// stored with the other settings and kept while the provider stays. Secrets among them are sealed like the others.
    fn own_settings(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Returns the name of the account that an address is sent through, for settings with several accounts; `None` if
    /// the settings have one account. An answer of the provider about an account concerns that account alone.
    fn account_of(&self, _settings: &Map<String, Value>, _address: &str) -> Option<&'static str> {
        None
    }

    /// Reads a request to the callback address of a workspace's channel, or of one of its messages: proves that it
    /// comes from the provider and returns what it reports. Changes nothing. An unreadable part of a proved request is
    /// no fault: the request is answered and reports nothing.
    fn callback(
        &self,
        _settings: &Map<String, Value>,
        _request: &CallbackRequest<'_>,
    ) -> Result<Callback, CallbackFault> {
        Err(CallbackFault::NotFound)
    }

    /// Registers the callback address with the provider, if it has an API for that: run after the settings are stored,
    /// and again when the address changes. Bounded in time. `Err` holds the provider's answer, for people.
    async fn register(
        &self,
        _settings: &Map<String, Value>,
        _address: &CallbackAddress,
    ) -> Result<Registration, String> {
        Ok(Registration::NotNeeded)
    }

    /// True if the provider's receipts name a message by a value that it was sent with, so that they report its outcome
    /// even if the provider's answer was lost. Such a message is not sent again at once after a crash.
    fn receipts_name_messages(&self) -> bool {
        false
    }

    /// Sets the sink for reports that arrive over the transport's own connection (SMPP). Called once, before the first
    /// message.
    fn attach(&self, _sink: Weak<dyn ProviderSink>) {}

    /// Sets the port that chooses the source of each attempt and keeps what is learned of paths. Called before the
    /// first message; the last of several calls counts.
    fn attach_paths(&self, _paths: Weak<dyn Paths>) {}

    /// True if nothing leaves the process. Begun transactions are then not put on record (after a crash a record shows
    /// that the peer may have the message), except for campaign messages, which count against the limits of a contact.
    fn is_local(&self) -> bool {
        false
    }
}

/// A setting that is well formed but not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the setting {member} {message}")]
pub struct SettingsFault {
    /// Name of the setting.
    pub member: &'static str,
    /// The rule that is broken, as a fragment: `must not be a private address`.
    pub message: &'static str,
}

/// One message for a transport to send.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Workspace that sends the message.
    pub workspace_id: WorkspaceId,
    /// Id of the message.
    pub message_id: MessageId,
    /// The workspace's settings of the provider (contract section 16), secrets in clear.
    pub settings: Arc<Map<String, Value>>,
    /// Recipients of this attempt: on a retry only those still open.
    pub recipients: Vec<String>,
    /// Content for all these recipients.
    pub content: Content,
    /// Last check before each transaction; also receives the outcomes.
    pub last_look: LastLook,
    /// Reservation from [`Transport::reserve`]; the default if it was not called.
    pub reservation: Reservation,
    /// Options of the delivery, such as its time to live.
    pub options: DeliveryOptions,
    /// Address for the provider's reports about the message, on channels other than email.
    pub receipts: Option<ReceiptAddress>,
}

/// Callback address for the provider's reports about one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptAddress {
    /// Token that names the message and proves that this server made it; a provider that sends back a given value gets
    /// the token alone ([`ProviderSink::receipt_token`] reads it).
    pub token: String,
    /// URL to call, which holds the token: a call there is proved by it ([`CallbackProof::ThisMessage`]).
    pub url: String,
}

/// Destination of a message, before its content is read.
#[derive(Debug, Clone)]
pub struct Route {
    /// Workspace that sends the message.
    pub workspace_id: WorkspaceId,
    /// Urgency of the message: one that somebody waits for gets a place before others.
    pub class: JobClass,
    /// The workspace's settings of the provider, secrets in clear.
    pub settings: Arc<Map<String, Value>>,
    /// Domain of the recipients in A-labels, if they have one.
    pub domain: Option<String>,
    /// The single recipient, on channels other than email.
    pub recipient: Option<String>,
    /// Conditions under which an email may leave for a mail exchanger.
    pub terms: PathTerms,
}

/// State of the route to a recipient or a domain; see [`Transport::state_of`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteState {
    /// Time until the next attempt is possible, if none is now; zero while a probe of the peer is due or under way.
    pub rests_for: Option<Duration>,
    /// Maximum number of messages a minute, if answers of the peer have slowed down sending to it.
    pub per_minute: Option<f64>,
    /// Last answer that put messages off and still matters, or the reason why there was no answer.
    pub last_refusal: Option<Response>,
}

/// A place that a transport keeps for a message; given back when dropped. Its content is known to the transport alone.
#[derive(Clone, Default)]
pub struct Reservation {
    slot: Option<Arc<Mutex<ReservedSlot>>>,
    wait: Option<Duration>,
    held: Option<Arc<PathWait>>,
}

/// Value inside a reservation, until it is taken out.
type ReservedSlot = Option<Box<dyn Any + Send>>;

impl Reservation {
    /// Returns a reservation that holds the value.
    pub fn holding(reserved: impl Any + Send) -> Self {
        Self { slot: Some(Arc::new(Mutex::new(Some(Box::new(reserved))))), ..Self::default() }
    }

    /// Returns a reservation without a place: one may be asked for again after `wait`. The message is not attempted
    /// before, and the wait counts as no attempt.
    pub const fn later(wait: Duration) -> Self {
        Self { slot: None, wait: Some(wait), held: None }
    }

    /// Returns a reservation without a place because no path is open to the message: one may be asked for again after
    /// the wait, and until then the message is held if the wait has a reason.
    pub fn held(wait: PathWait) -> Self {
        let (time, is_told) = (wait.wait, wait.reason.is_some());
        Self { slot: None, wait: Some(time), held: is_told.then(|| Arc::new(wait)) }
    }

    /// Returns the reason why no path is open to the message, if there is no place for that reason.
    pub fn hold(&self) -> Option<&PathWait> {
        self.held.as_deref()
    }

    /// Returns the time after which a place may be asked for again, if there is none now.
    pub const fn wait(&self) -> Option<Duration> {
        self.wait
    }

    /// Takes out the reserved value, if it is a `T` and was not taken before.
    pub fn take<T: Any>(&self) -> Option<T> {
        let reserved = self.slot.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        reserved.downcast().ok().map(|reserved| *reserved)
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&self.slot, self.wait) {
            (Some(_), _) => "Reservation(..)",
            (None, Some(_)) => "Reservation(later)",
            (None, None) => "Reservation(none)",
        })
    }
}

/// Core's last check of every transaction, asked by the transport when everything else is ready.
///
/// Minutes may pass between core's check and the moment when a connection is open, and a message has to be on record
/// before it leaves: a crash must not make a second copy that nobody knows of. So a transport calls, for each
/// transaction:
///
/// 1. [`LastLook::is_held`], and where it had to wait [`LastLook::suppressed`], before it names the recipients to the
///    peer;
/// 2. [`LastLook::begin`] right before content or request leaves, when the peer has accepted everything before it:
///    after RCPT, and not while it waits for a connection. Nothing is sent to recipients that are not granted;
/// 3. [`LastLook::ended`] for each recipient when the outcome is known, before the next transaction begins.
///
/// The default grants everything and keeps nothing.
#[derive(Debug, Clone, Default)]
pub struct LastLook(Option<Arc<dyn Admission>>);

/// Admits transactions and keeps a record of them. The engine implements it; tests of a transport have their own:
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use async_trait::async_trait;
/// use messaging_core::domain::audience::suppression::SuppressionReason;
/// use messaging_core::ports::transport::{Admission, Admitted, LastLook, Outcome};
///
/// /// Grants everything once.
/// #[derive(Debug, Default)]
/// struct Once(Mutex<Vec<String>>);
///
/// #[async_trait]
/// impl Admission for Once {
///     async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
///         vec![None; recipients.len()]
///     }
///
///     async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
///         let mut begun = self.0.lock().unwrap();
///         let mut grant = |recipient: &String| {
///             if begun.contains(recipient) {
///                 return Admitted::NotNow("its transaction has begun".to_owned());
///             }
///             begun.push(recipient.clone());
///             Admitted::Granted
///         };
///         recipients.iter().map(&mut grant).collect()
///     }
///
///     fn ended(&self, _: &str, _: &Outcome) {}
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let last_look = LastLook::at(Arc::new(Once::default()));
/// let ann = ["ann@example.com".to_owned()];
/// assert_eq!(last_look.begin(&ann).await, [Admitted::Granted]);
/// assert!(matches!(last_look.begin(&ann).await[0], Admitted::NotNow(_)));
/// # }
/// ```
#[async_trait]
pub trait Admission: Debug + Send + Sync {
    /// Returns for each recipient the reason why it must not be sent to, or `None`. Changes nothing.
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>>;

    /// True if nothing may be sent at the moment, for example because outcomes could not be stored.
    fn is_held(&self) -> bool {
        false
    }

    /// Records durably that the transaction with these recipients begins, and returns for each whether the transaction
    /// may begin. Nothing is recorded for recipients that are refused. The caller bounds the time.
    async fn begin(&self, recipients: &[String]) -> Vec<Admitted>;

    /// Notes the outcome of a recipient of a transaction that ended. Made durable by the next `begin`, or by the end of
    /// the attempt.
    fn ended(&self, recipient: &str, outcome: &Outcome);
}

/// Answer of [`Admission::begin`] for one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted {
    /// The transaction is on record: the content may leave.
    Granted,
    /// The address was suppressed after core had checked it.
    Suppressed(SuppressionReason),
    /// Not now, because sending is held or the transaction cannot be recorded. The outcome is [`Outcome::Held`].
    Held,
    /// Not by this attempt, with the reason, such as: the claim of its job was lost, the message was settled, or its
    /// campaign is paced. The outcome is [`Outcome::Withheld`].
    NotNow(String),
}

impl LastLook {
    /// Returns a last look that asks `admission`.
    pub fn at(admission: Arc<dyn Admission>) -> Self {
        Self(Some(admission))
    }

    /// Returns for each recipient the reason why it must not be sent to, or `None`.
    pub async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        match &self.0 {
            Some(admission) => admission.suppressed(recipients).await,
            None => vec![None; recipients.len()],
        }
    }

    /// True if nothing may be sent at the moment: every recipient's outcome is [`Outcome::Held`] then. Costs an atomic
    /// load; a transport calls it right before it begins a transaction.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_some_and(|admission| admission.is_held())
    }

    /// Returns for each recipient whether the transaction may continue to its content; see [`Admission::begin`].
    pub async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
        match &self.0 {
            Some(admission) => admission.begin(recipients).await,
            None => vec![Admitted::Granted; recipients.len()],
        }
    }

    /// Notes the outcome of a recipient; see [`Admission::ended`].
    pub fn ended(&self, recipient: &str, outcome: &Outcome) {
        if let Some(admission) = &self.0 {
            admission.ended(recipient, outcome);
        }
    }
}

impl Admitted {
    /// Returns the outcome of a recipient that is refused; `None` if the transaction is granted.
    pub fn refusal(self) -> Option<Outcome> {
        match self {
            Self::Granted => None,
            Self::Suppressed(reason) => Some(Outcome::Suppressed(reason)),
            Self::Held => Some(Outcome::Held),
            Self::NotNow(why) => Some(Outcome::Withheld(why)),
        }
    }
}

/// Result of an attempt that did not fail for all recipients alike.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// One per recipient of the envelope, in its order.
    pub outcomes: Vec<Outcome>,
    /// The bytes that would have been sent, if the provider captures instead of sending.
    pub captured: Option<Bytes>,
    /// Dialogs on the wire, one for each peer; from transports that keep them.
    pub dialogs: Vec<Dialog>,
}

/// Failure of an attempt for all recipients alike. Each variant stands for a class ([`TransportError::class`]); an
/// outcome for every recipient says more.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The provider's settings cannot work, or the provider refuses the account: a host that does not parse, a refused
    /// login. The account stops until its settings are corrected.
    #[error("the provider's settings do not work: {0}")]
    Misconfigured(String),
    /// The peer cannot be reached or broke off before it could have taken the message.
    #[error("the peer could not be reached: {0}")]
    Unreachable(String),
    /// The content was sent completely but the final reply was lost: the peer may have it.
    #[error("the final reply was lost: {0}")]
    Ambiguous(String),
    /// The message cannot be turned into the format of the protocol.
    #[error("the message cannot be built: {0}")]
    Content(String),
}

impl TransportError {
    /// Returns the class of the outcome for every recipient.
    pub const fn class(&self) -> OutcomeClass {
        match self {
            Self::Misconfigured(_) => OutcomeClass::Auth,
            Self::Unreachable(_) => OutcomeClass::Retry(Scope::Account),
            Self::Ambiguous(_) => OutcomeClass::Ambiguous,
            Self::Content(_) => OutcomeClass::Content(ContentFault::Provider),
        }
    }

    /// Returns the cause, without the words that name the kind of error.
    pub fn cause(&self) -> &str {
        match self {
            Self::Misconfigured(cause) | Self::Unreachable(cause) | Self::Ambiguous(cause) | Self::Content(cause) => {
                cause
            }
        }
    }

    /// True for classes after which another attempt may succeed.
    pub const fn retryable(&self) -> bool {
        self.class().is_retried()
    }
}

impl From<TransportError> for Outcome {
    fn from(error: TransportError) -> Self {
        // The cause of a content error suffices; the others need the words that say whose fault it is.
        let text = if let TransportError::Content(cause) = &error { cause.clone() } else { error.to_string() };
        Self::of(error.class(), Response::of_text(&text))
    }
}
