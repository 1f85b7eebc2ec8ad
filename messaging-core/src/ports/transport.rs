//! The port through which messages leave.
//!
//! Core decides what is sent and what follows from an outcome; a transport carries, and says of every answer to which
//! class it belongs ([`OutcomeClass`]), because it alone knows the provider. A transport is chosen by channel and
//! provider name (contract section 16), receives the workspace's provider settings with every call, and keeps
//! whatever connections it likes between calls.

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

/// Carries messages of one channel through one provider.
///
/// An implementer owes: an outcome for every recipient of the envelope, or one error for all of them;
/// bounded time (nothing waits for ever); no retry of its own; and never a report of success before
/// the peer has taken responsibility.
///
/// One that hands texts to a program of your own:
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
    /// Waits for the place that a message needs among those that are sent at the same time: whoever waits here
    /// holds no content. The wait is bounded, and without a place [`Transport::send`] says so in its outcomes; where it
    /// is known when there will be one, [`Reservation::later`] puts the message off without an attempt. A transport
    /// without such limits reserves nothing.
    async fn reserve(&self, _route: &Route) -> Reservation {
        Reservation::default()
    }

    /// Attempts to deliver one message to its recipients.
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError>;

    /// State of the way to a recipient or a domain, as far as this process knows it. Asked whenever a message is shown,
    /// so it neither waits nor changes anything. A transport without limits of its own knows nothing.
    fn state_of(&self, _route: &Route) -> RouteState {
        RouteState::default()
    }

    /// Forgets that the servers of a recipient domain could not be reached: an operator asks for another attempt now. A
    /// transport that remembers no such thing does nothing.
    fn forget_unreachable(&self, _domain: &str) {}

    /// Judges settings before they are stored, as far as their text alone tells: whether they name a
    /// host that may not be connected to. Settings of the wrong form are not its business.
    fn check(&self, _settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        Ok(())
    }

    /// The JSON Schema of the workspace's settings, of a provider that is not one of contract section 16: settings are
    /// checked against it before they are stored, and what is `writeOnly` there is kept as a secret; see
    /// [`ProviderKind::from_schema`](crate::domain::channel::provider::ProviderKind::from_schema). Without one there are no
    /// settings.
    fn settings_schema(&self) -> Option<Value> {
        None
    }

    /// The settings that we make ourselves when a workspace chooses the provider, such as a key pair; stored with the
    /// others and kept while the provider stays. Secrets among them are sealed like those that are given.
    fn own_settings(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Which of several accounts in its settings an address is sent through, by the name that people know; `None` where
    /// the settings are those of one account. What a provider says of an account concerns that one alone.
    fn account_of(&self, _settings: &Map<String, Value>, _address: &str) -> Option<&'static str> {
        None
    }

    /// Reads a request to the callback address of a workspace's channel, or of one of its messages: proves that it
    /// comes from the provider and says what it reports. Changes nothing. What cannot be read, of a proved request, is
    /// no fault: it is answered and reports nothing.
    fn callback(
        &self,
        _settings: &Map<String, Value>,
        _request: &CallbackRequest<'_>,
    ) -> Result<Callback, CallbackFault> {
        Err(CallbackFault::NotFound)
    }

    /// Tells the provider where to call, where it has an API for that: run after the settings are stored, and again
    /// when the address changes. Bounded in time. `Err` holds what the provider said, for people.
    async fn register(
        &self,
        _settings: &Map<String, Value>,
        _address: &CallbackAddress,
    ) -> Result<Registration, String> {
        Ok(Registration::NotNeeded)
    }

    /// Whether the provider's receipts name a message by what it was sent with, so that they tell what became of it also
    /// where the provider's answer was lost. Such a message is not sent again at once after a crash.
    fn receipts_name_messages(&self) -> bool {
        false
    }

    /// Who is told what a provider reports over a connection of the transport's own (SMPP). Called once, before the
    /// first message.
    fn attach(&self, _sink: Weak<dyn ProviderSink>) {}

    /// Who chooses the source of each attempt and keeps what is learned of paths. Called before the first message; of several
    /// calls the last one counts.
    fn attach_paths(&self, _paths: Weak<dyn Paths>) {}

    /// Whether nothing leaves the process. Core then keeps no record of transactions that have begun,
    /// which after a crash tells that somebody outside may have the message: [`LastLook`] grants everything.
    fn is_local(&self) -> bool {
        false
    }
}

/// A setting that is well formed and not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the setting {member} {message}")]
pub struct SettingsFault {
    /// The name of the setting.
    pub member: &'static str,
    /// What is wrong, as a fragment: `must not be a private address`.
    pub message: &'static str,
}

/// One message to carry.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Workspace that sends the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The workspace's settings of the provider (contract section 16), secrets in clear.
    pub settings: Arc<Map<String, Value>>,
    /// Who receives this attempt: on a retry only those still open.
    pub recipients: Vec<String>,
    /// The content that they receive.
    pub content: Content,
    /// Asked before each transaction, and told what became of it.
    pub last_look: LastLook,
    /// What [`Transport::reserve`] gave, if it was asked.
    pub reservation: Reservation,
    /// How it is to be delivered.
    pub options: DeliveryOptions,
    /// Where the provider may report what becomes of the message, off email.
    pub receipts: Option<ReceiptAddress>,
}

/// Where a provider reports what becomes of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptAddress {
    /// Names the message and proves that we made it; a provider that sends back what it is given gets it alone
    /// ([`ProviderSink::receipt_token`] reads it).
    pub token: String,
    /// The address to call, which holds the token: a call there is proved by it ([`CallbackProof::ThisMessage`]).
    pub url: String,
}

/// Where a message is going, before its content is read.
#[derive(Debug, Clone)]
pub struct Route {
    /// Workspace that sends the message.
    pub workspace_id: WorkspaceId,
    /// How soon it is wanted: who waits for a place goes before what nobody waits for.
    pub class: JobClass,
    /// The workspace's settings of the provider, secrets in clear.
    pub settings: Arc<Map<String, Value>>,
    /// The domain of the recipients in A-labels, where they have one.
    pub domain: Option<String>,
    /// The one recipient, off email.
    pub recipient: Option<String>,
    /// Conditions under which an email may leave for a mail exchanger.
    pub terms: PathTerms,
}

/// State of the way to a recipient or a domain; see [`Transport::state_of`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteState {
    /// Time until the next attempt, where none is made before; zero while a probe is due or under way.
    pub rests_for: Option<Duration>,
    /// Messages a minute that are sent at most, where the peer asked for fewer than it could be sent.
    pub per_minute: Option<f64>,
    /// Last answer that put messages off and still matters, or the reason why there was none.
    pub last_refusal: Option<Response>,
}

/// A place that a transport keeps for a message; given back when dropped. Only the transport knows what it is.
#[derive(Clone, Default)]
pub struct Reservation {
    slot: Option<Arc<Mutex<ReservedSlot>>>,
    wait: Option<Duration>,
    held: Option<Arc<PathWait>>,
}

/// What a reservation holds until it is taken out.
type ReservedSlot = Option<Box<dyn Any + Send>>;

impl Reservation {
    /// A reservation that holds this.
    pub fn holding(reserved: impl Any + Send) -> Self {
        Self { slot: Some(Arc::new(Mutex::new(Some(Box::new(reserved))))), ..Self::default() }
    }

    /// No place now: one may be asked for again after so long. The message is not attempted before, and that is no
    /// attempt.
    pub const fn later(wait: Duration) -> Self {
        Self { slot: None, wait: Some(wait), held: None }
    }

    /// No place now, because no path is open to the message: it asks again after the wait, and is held for the reason
    /// where there is one.
    pub fn held(wait: PathWait) -> Self {
        let (time, is_told) = (wait.wait, wait.reason.is_some());
        Self { slot: None, wait: Some(time), held: is_told.then(|| Arc::new(wait)) }
    }

    /// Why no path is open to the message, if that is why there is no place.
    pub fn hold(&self) -> Option<&PathWait> {
        self.held.as_deref()
    }

    /// After how long a place may be asked for again, if there is none now.
    pub const fn wait(&self) -> Option<Duration> {
        self.wait
    }

    /// Takes out what it holds, if that is a `T` and was not taken before.
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

/// Core's word on every transaction, asked by the transport when everything else is ready.
///
/// Between the check of core and the moment a connection is open may lie minutes, and what leaves the process has
/// to be on record before it leaves: a crash must not make a second copy that nobody knows of. So a transport owes,
/// for each transaction:
///
/// 1. [`LastLook::is_held`], and where it had to wait [`LastLook::suppressed`], before it names the recipients to the
///    peer;
/// 2. [`LastLook::begin`] right before content or request leaves, when the peer takes everything that comes before:
///    after RCPT was accepted, and not while it waits for a connection. To whom it is not granted nothing is sent;
/// 3. [`LastLook::ended`] for each recipient when the outcome is known, before the next transaction begins.
///
/// The default grants everything and keeps nothing.
#[derive(Debug, Clone, Default)]
pub struct LastLook(Option<Arc<dyn Admission>>);

/// Admits transactions and keeps a record of them. The engine is one; tests of a transport have their own:
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
    /// For each recipient why it must not be sent to, or `None` where it may. Changes nothing.
    async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>>;

    /// Whether nothing may be sent at the moment, to anybody, because its outcome could not be stored.
    fn is_held(&self) -> bool {
        false
    }

    /// Puts on record, durably, that the transaction with these recipients begins, and answers for each whether it
    /// may. Nothing is on record for those it is not granted to. Bounded in time by the caller.
    async fn begin(&self, recipients: &[String]) -> Vec<Admitted>;

    /// Takes note of what became of a recipient of a transaction that ended. Made durable by the next `begin`, or
    /// by the end of the attempt.
    fn ended(&self, recipient: &str, outcome: &Outcome);
}

/// Whether a transaction may begin for a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted {
    /// It is on record: the content may leave.
    Granted,
    /// The address was suppressed meanwhile.
    Suppressed(SuppressionReason),
    /// Not now, because it cannot be put on record. The outcome is [`Outcome::Held`].
    Held,
    /// Not by this attempt, and why: somebody else delivers the message, or nobody shall any more. The outcome is
    /// [`Outcome::Withheld`].
    NotNow(String),
}

impl LastLook {
    /// Asks `admission`.
    pub fn at(admission: Arc<dyn Admission>) -> Self {
        Self(Some(admission))
    }

    /// For each recipient why it must not be sent to, or `None` where it may.
    pub async fn suppressed(&self, recipients: &[String]) -> Vec<Option<SuppressionReason>> {
        match &self.0 {
            Some(admission) => admission.suppressed(recipients).await,
            None => vec![None; recipients.len()],
        }
    }

    /// Whether nothing may be sent at the moment: everybody's outcome is [`Outcome::Held`] then. Costs an
    /// atomic load; a transport asks right before it begins a transaction.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_some_and(|admission| admission.is_held())
    }

    /// Whether the transaction with these recipients may go on to its content; see [`Admission::begin`].
    pub async fn begin(&self, recipients: &[String]) -> Vec<Admitted> {
        match &self.0 {
            Some(admission) => admission.begin(recipients).await,
            None => vec![Admitted::Granted; recipients.len()],
        }
    }

    /// Takes note of an outcome; see [`Admission::ended`].
    pub fn ended(&self, recipient: &str, outcome: &Outcome) {
        if let Some(admission) = &self.0 {
            admission.ended(recipient, outcome);
        }
    }
}

impl Admitted {
    /// The outcome of a recipient to whom it is not granted.
    pub fn refusal(self) -> Option<Outcome> {
        match self {
            Self::Granted => None,
            Self::Suppressed(reason) => Some(Outcome::Suppressed(reason)),
            Self::Held => Some(Outcome::Held),
            Self::NotNow(why) => Some(Outcome::Withheld(why)),
        }
    }
}

/// What became of an attempt that reached the peer.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// One per recipient of the envelope, in its order.
    pub outcomes: Vec<Outcome>,
    /// The bytes that would have gone on the wire, when the provider captures instead of sending.
    pub captured: Option<Bytes>,
    /// What was said on the wire, one for each peer that was talked to; for providers that keep it.
    pub dialogs: Vec<Dialog>,
}

/// The attempt failed for all recipients alike. Each is a class ([`TransportError::class`]) in short: an outcome for
/// every recipient says more.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The provider's settings cannot work, or the provider refuses the account: a host that does not parse, a
    /// refused login. The account stops until somebody mends that.
    #[error("the provider's settings do not work: {0}")]
    Misconfigured(String),
    /// The peer cannot be reached or broke off before it could have taken the message.
    #[error("the peer could not be reached: {0}")]
    Unreachable(String),
    /// The content was sent completely but the final reply was lost: the peer may have it.
    #[error("the final reply was lost: {0}")]
    Ambiguous(String),
    /// The message cannot be turned into what the wire needs.
    #[error("the message cannot be built: {0}")]
    Content(String),
}

impl TransportError {
    /// The class of outcome that it is for every recipient.
    pub const fn class(&self) -> OutcomeClass {
        match self {
            Self::Misconfigured(_) => OutcomeClass::Auth,
            Self::Unreachable(_) => OutcomeClass::Retry(Scope::Account),
            Self::Ambiguous(_) => OutcomeClass::Ambiguous,
            Self::Content(_) => OutcomeClass::Content(ContentFault::Provider),
        }
    }

    /// What is the matter, without the words that say of which kind it is.
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
        // What a message cannot be is said as it is; the rest needs the words that say whose fault it is.
        let text = if let TransportError::Content(cause) = &error { cause.clone() } else { error.to_string() };
        Self::of(error.class(), Response::of_text(&text))
    }
}
