//! Errors as API callers see them: one table from error to status, code and sentence.
//!
//! Contract section 1.4. Inside the crates errors are `thiserror` enums, one per subject; here they become an answer.
//! No variant carries a rejected value, an address, a key or a body. The cause of an internal error is logged where the
//! request is answered and never leaves the process.

use std::fmt;

use http::StatusCode;
use messaging_core::DomainError;
use messaging_core::domain::automation::state::NotPossible;
use messaging_core::domain::campaign::refusal::Refusal;
use messaging_core::domain::security::factor::FactorKind;
use messaging_core::domain::security::secret::Secret;
use messaging_core::error::JsonFault;
use messaging_core::ids::{ContactId, DomainId, WorkspaceId};
use messaging_core::input::{MAX_LEVELS, MAX_VALUES};
use messaging_core::ports::store::{StoreError, StoreHealth};
use messaging_core::scope::Scope;
use messaging_core::violation::Violations;
use serde_json::{Map, Value, json};

/// Seconds to wait before a request is repeated that failed because of a file: an operator has to repair it first.
const FILE_RETRY: u64 = 5;

/// A refused or failed operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The body is not a JSON object; with the place of the syntax error, if it is no JSON.
    #[error("{}", .0.as_ref().map_or_else(|| "the body is not a JSON object".to_owned(), |fault| format!("the body is not JSON: {fault}")))]
    InvalidJson(Option<JsonFault>),
    /// The cursor belongs to another path or other filters, or was not issued by this installation.
    #[error("the cursor does not belong to this listing")]
    InvalidCursor,
    /// The Idempotency-Key header breaks its rules.
    #[error("Idempotency-Key must be 1 to 64 visible ASCII characters")]
    InvalidIdempotencyKey,
    /// No Authorization header, or not the Bearer scheme.
    #[error("send an API key or session token as `Authorization: Bearer …`")]
    MissingCredentials,
    /// Unknown, malformed, revoked or expired credentials, or a wrong password.
    #[error(
        "the credentials are not valid: the API key or session is unknown, revoked or expired, or email and password do not \
         match"
    )]
    InvalidCredentials,
    /// The first step of a sign-in was right, and the person has a second factor (contract section 25).
    #[error(
        "a second factor is required: send the `token` of the details to POST /auth/login/factor within ten minutes, with a code \
         of the authenticator app, a recovery code or the assertion of a passkey"
    )]
    SecondFactorRequired {
        /// Token of the sign-in, for its second step.
        token: Secret,
        /// Kinds of the person's factors.
        kinds: Vec<FactorKind>,
        /// WebAuthn options for the browser to use a passkey of the person, if there is one.
        options: Option<Box<Map<String, Value>>>,
    },
    /// A code sent in the second step of a sign-in is wrong.
    #[error(
        "the code is wrong, was used already or is too old: enter the present code; tries left in this sign-in: {tries_left}"
    )]
    WrongCode {
        /// Codes that may still be tried in this sign-in.
        tries_left: u32,
    },
    /// The token of a second step is unknown or used, or its time or number of tries is over.
    #[error(
        "this sign-in has ended, because it was completed, took longer than ten minutes or had five wrong codes: sign in again"
    )]
    SignInOver,
    /// An API key without the needed scope.
    #[error("scope required: {0}")]
    ScopeRequired(Scope),
    /// Another workspace, or one that does not exist.
    #[error("the credentials do not belong to this workspace")]
    WorkspaceForbidden,
    /// The operation is for sessions, not for API keys.
    #[error("this operation needs a session")]
    SessionRequired,
    /// The session's role is too low.
    #[error("the role in this workspace is too low")]
    RoleForbidden,
    /// The operation is for operators of the installation.
    #[error(
        "only operators may do this; `messaging admin set-operator --email EMAIL` on the server makes somebody one"
    )]
    OperatorRequired,
    /// The session's role does not have a scope that a part of the request needs.
    #[error("the role in this workspace does not have the scope {0}")]
    RoleLacks(Scope),
    /// The workspace demands a second factor of its members, and the caller has none.
    #[error(
        "this workspace requires a second factor of its members: add one to your account, in the console under Account or with \
         POST /auth/factors"
    )]
    SecondFactorMissing,
    /// The caller's address is not in the key's allowlist.
    #[error("the caller's address is not on the key's allowlist")]
    IpNotAllowed,
    /// The resource does not exist, or belongs to another workspace.
    #[error("no such resource: nothing has this id or name here")]
    NotFound,
    /// No operation has this path.
    #[error("no operation has this path; paths begin with /v1, and GET /v1/openapi.json lists them")]
    RouteNotFound,
    /// The path does not support the method.
    #[error("this path does not take this method")]
    MethodNotAllowed {
        /// The value of the `Allow` header.
        allow: String,
    },
    /// The resource is in a state that does not allow the operation.
    #[error("not possible while {status}")]
    InvalidState {
        /// Current state.
        status: &'static str,
        /// States from which the operation is possible.
        allowed: &'static [&'static str],
    },
    /// The account or membership is in a state that does not allow it; with advice on what to do instead.
    #[error("{0}")]
    AccountState(&'static str),
    /// A setting of the server does not allow the operation.
    #[error("the server's setting {setting} does not allow this: {cure}")]
    SettingNeeded {
        /// The setting, as its key of the configuration file.
        setting: &'static str,
        /// Advice on what to do about the setting, as a sentence fragment.
        cure: &'static str,
    },
    /// An identifier belongs to another contact.
    #[error("another contact has this identifier")]
    IdentifierConflict {
        /// JSON pointer of the member with the identifier.
        pointer: &'static str,
        /// Contact that the identifier belongs to.
        contact_id: ContactId,
    },
    /// A resource with this identity exists already.
    #[error("it exists already")]
    AlreadyExists,
    /// Other resources depend on this one.
    #[error("it is in use")]
    InUse {
        /// Ids of the resources that use it.
        by: Vec<String>,
    },
    /// The contact may not enter this automation again now.
    #[error("the automation does not let this contact in again")]
    ReEntryNotAllowed,
    /// An automation is not complete enough to be active.
    #[error("the automation is not complete: {}", .0.summary())]
    AutomationInvalid(Violations),
    /// The first request with this Idempotency-Key is still running.
    #[error("the first request with this Idempotency-Key is still running")]
    IdempotencyInProgress,
    /// The contract reserves the operation for a later version.
    #[error("this operation is reserved for a later version")]
    NotImplemented,
    /// The link was used, or its time is over.
    #[error("the link was used already or has expired: ask for a new link, or sign in again")]
    LinkExpired,
    /// The body is larger than the operation allows.
    #[error("the body is larger than {limit} bytes")]
    PayloadTooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// The body is JSON with more values or levels than are allowed.
    #[error(
        "the body has more than {MAX_VALUES} values, or objects and lists within one another on more than {MAX_LEVELS} levels"
    )]
    TooManyValues,
    /// The body is not declared as JSON, or is compressed.
    #[error("send the body as JSON, uncompressed, with the header Content-Type: application/json")]
    UnsupportedMediaType,
    /// Fields, query parameters or headers break their rules.
    #[error("{}", .0.summary())]
    Validation(Violations),
    /// The Idempotency-Key was used with another request.
    #[error("this Idempotency-Key was used with another request")]
    IdempotencyKeyReused,
    /// The sender of a message does not belong to a verified domain of the workspace.
    #[error("{0}")]
    SenderNotVerified(Box<UnverifiedSender>),
    /// The request is well formed but cannot be carried out.
    #[error("{}", .0.message())]
    Unprocessable(Unprocessable),
    /// Too many requests.
    #[error("too many requests")]
    RateLimited {
        /// Whole seconds to wait, at least 1.
        retry_after: u64,
    },
    /// The database can never hold an item; the request's other items are kept.
    #[error("{}", DomainError::NotStorable)]
    NotStorable,
    /// A bug or a broken machine. The source is logged and never sent.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Overloaded, stopping, or the disk takes no writes; nothing was done, and a later try may succeed.
    #[error("temporarily unavailable")]
    Unavailable {
        /// Whole seconds to wait, at least 1.
        retry_after: u64,
    },
    /// The disk of the database is full; nothing was done. Only [`Error::for_caller`] makes it.
    #[error(
        "the disk of the installation is full, so nothing is taken that adds to it: whoever runs the server makes room \
         (`messaging doctor` tells how much is free)"
    )]
    DiskFull {
        /// Whole seconds to wait, at least 1.
        retry_after: u64,
    },
    /// A file beside the database cannot be read or written; nothing was done. The source is logged and never sent.
    /// Only [`Error::for_caller`] makes it.
    #[error(
        "a file of the installation cannot be read or written; whoever runs the server finds in its log which and why"
    )]
    FileFailed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk failed during the commit: the change may or may not be stored. Contract section 20.
    #[error(
        "the disk or the connection to the database failed; whether this was done is unknown, so repeat it with the same \
         Idempotency-Key"
    )]
    OutcomeUnknown {
        /// Whole seconds to wait, at least 1.
        retry_after: u64,
    },
}

/// Domain that a message cannot be sent from, and the step that makes it possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnverifiedSender {
    /// Workspace that was to send the message.
    pub workspace_id: WorkspaceId,
    /// Domain name: the responsible sending domain, else the domain of the sender's address.
    pub domain: String,
    /// The domain's id, if it was added.
    pub id: Option<DomainId>,
    /// True if the domain is verified, but does not cover the address.
    pub is_other: bool,
}

impl UnverifiedSender {
    /// Returns the id and the path of the operation to call next.
    fn next_step(&self) -> (&'static str, String) {
        let domains = format!("/workspaces/{}/sending-domains", self.workspace_id);
        match self.id {
            _ if self.is_other => ("listSendingDomains", domains),
            Some(id) => ("verifySendingDomain", format!("{domains}/{id}/verify")),
            None => ("createSendingDomain", domains),
        }
    }

    fn details(&self) -> Value {
        let (operation, path) = self.next_step();
        json!({"domain": self.domain, "operation": operation, "path": path})
    }
}

impl fmt::Display for UnverifiedSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, .. } = self;
        let (_, path) = self.next_step();
        match self.id {
            _ if self.is_other => write!(f, "the sender is not of the sending domain {domain} that was named"),
            Some(_) => write!(
                f,
                "the sending domain {domain} is not verified: publish the records that GET {} shows, then POST {path}",
                path.replace("/verify", "/records")
            ),
            None => write!(f, "{domain} is not a sending domain of this workspace: add it with POST {path}"),
        }
    }
}

/// The causes of 422 that have a code of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unprocessable {
    /// No sender was given and none can be derived.
    SenderMissing,
    /// The sender's domain is not a verified domain of the workspace.
    SenderDomainNotVerified,
    /// The channel has no settings or no transport.
    ChannelNotConfigured,
    /// The contact has no address for the channel.
    ContactAddressMissing,
    /// A campaign was scheduled without a time.
    ScheduleTimeRequired,
    /// A campaign was scheduled for a time that has passed.
    ScheduleInPast,
    /// No contact is in the audience of a campaign.
    AudienceEmpty,
    /// The size of an uploaded file differs from the size given before.
    SizeMismatch,
    /// The checksum of an uploaded file differs from the checksum given before.
    ChecksumMismatch,
    /// The rules for outgoing calls refuse the address.
    UrlNotAllowed,
    /// The address gave no usable answer.
    UrlFetchFailed,
}

impl Unprocessable {
    /// Every cause, for the table of codes.
    pub const ALL: &'static [Self] = &[
        Self::SenderMissing,
        Self::SenderDomainNotVerified,
        Self::ChannelNotConfigured,
        Self::ContactAddressMissing,
        Self::ScheduleTimeRequired,
        Self::ScheduleInPast,
        Self::AudienceEmpty,
        Self::SizeMismatch,
        Self::ChecksumMismatch,
        Self::UrlNotAllowed,
        Self::UrlFetchFailed,
    ];

    /// The code of contract section 1.4.
    pub const fn code(self) -> &'static str {
        match self {
            Self::SenderMissing => "sender_missing",
            Self::SenderDomainNotVerified => "sender_domain_not_verified",
            Self::ChannelNotConfigured => "channel_not_configured",
            Self::ContactAddressMissing => "contact_address_missing",
            Self::ScheduleTimeRequired => "schedule_time_required",
            Self::ScheduleInPast => "schedule_in_past",
            Self::AudienceEmpty => "audience_empty",
            Self::SizeMismatch => "size_mismatch",
            Self::ChecksumMismatch => "checksum_mismatch",
            Self::UrlNotAllowed => "url_not_allowed",
            Self::UrlFetchFailed => "url_fetch_failed",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::SenderMissing => "give from_email, or verify exactly one sending domain",
            Self::SenderDomainNotVerified => {
                "the sender's domain is not a verified sending domain of this workspace; GET …/sending-domains shows which are"
            }
            Self::ChannelNotConfigured => "the channel has no usable provider; set one with PUT …/channels/{channel}",
            Self::ContactAddressMissing => "the contact has no address for this channel",
            Self::ScheduleTimeRequired => "give at, or send_now",
            Self::ScheduleInPast => "at lies in the past",
            Self::AudienceEmpty => "the audience names no list and no segment",
            Self::SizeMismatch => "the file is not as long as size_bytes said; the link still works",
            Self::ChecksumMismatch => "the file does not have the sha256 that was announced; the link still works",
            Self::UrlNotAllowed => {
                "this address may not be called: https, a public host, no user in it; for webhooks on this machine there is \
                 `messaging webhook listen`, and a server started with --allow-private-targets calls private addresses too"
            }
            Self::UrlFetchFailed => "the address gave no page that could be read within the limits",
        }
    }
}

impl From<Unprocessable> for Error {
    fn from(cause: Unprocessable) -> Self {
        Self::Unprocessable(cause)
    }
}

impl Error {
    /// Wraps a cause that the caller cannot influence.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal(cause.into())
    }

    /// The status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::InvalidJson(_) | Self::InvalidCursor | Self::InvalidIdempotencyKey => StatusCode::BAD_REQUEST,
            Self::MissingCredentials
            | Self::InvalidCredentials
            | Self::SecondFactorRequired { .. }
            | Self::WrongCode { .. }
            | Self::SignInOver => StatusCode::UNAUTHORIZED,
            Self::ScopeRequired(_)
            | Self::WorkspaceForbidden
            | Self::SessionRequired
            | Self::RoleForbidden
            | Self::OperatorRequired
            | Self::RoleLacks(_)
            | Self::SecondFactorMissing
            | Self::IpNotAllowed => StatusCode::FORBIDDEN,
            Self::NotFound | Self::RouteNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::InvalidState { .. }
            | Self::AccountState(_)
            | Self::SettingNeeded { .. }
            | Self::IdentifierConflict { .. }
            | Self::AlreadyExists
            | Self::InUse { .. }
            | Self::ReEntryNotAllowed
            | Self::IdempotencyInProgress => StatusCode::CONFLICT,
            Self::LinkExpired => StatusCode::GONE,
            Self::PayloadTooLarge { .. } | Self::TooManyValues => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Validation(_)
            | Self::AutomationInvalid(_)
            | Self::IdempotencyKeyReused
            | Self::SenderNotVerified(_)
            | Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) | Self::NotStorable => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable { .. } | Self::DiskFull { .. } | Self::FileFailed(_) | Self::OutcomeUnknown { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// The code of the answer; never changes, never carries data.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson(_) => "invalid_json",
            Self::InvalidCursor => "invalid_cursor",
            Self::InvalidIdempotencyKey => "invalid_idempotency_key",
            Self::MissingCredentials => "missing_credentials",
            Self::InvalidCredentials | Self::WrongCode { .. } | Self::SignInOver => "invalid_credentials",
            Self::SecondFactorRequired { .. } | Self::SecondFactorMissing => "second_factor_required",
            Self::ScopeRequired(_) => "scope_required",
            Self::WorkspaceForbidden => "workspace_forbidden",
            Self::SessionRequired => "session_required",
            Self::RoleForbidden | Self::OperatorRequired | Self::RoleLacks(_) => "role_forbidden",
            Self::IpNotAllowed => "ip_not_allowed",
            Self::NotFound => "not_found",
            Self::RouteNotFound => "route_not_found",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::InvalidState { .. } | Self::AccountState(_) | Self::SettingNeeded { .. } => "invalid_state",
            Self::IdentifierConflict { .. } => "identifier_conflict",
            Self::AlreadyExists => "already_exists",
            Self::InUse { .. } => "in_use",
            Self::ReEntryNotAllowed => "re_entry_not_allowed",
            Self::AutomationInvalid(_) => "automation_invalid",
            Self::IdempotencyInProgress => "idempotency_in_progress",
            Self::LinkExpired => "link_expired",
            Self::PayloadTooLarge { .. } | Self::TooManyValues => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Validation(_) => "validation_failed",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::SenderNotVerified(_) => Unprocessable::SenderDomainNotVerified.code(),
            Self::Unprocessable(cause) => cause.code(),
            Self::RateLimited { .. } => "rate_limited",
            Self::Internal(_) | Self::NotStorable => "internal_error",
            Self::NotImplemented => "not_implemented",
            Self::Unavailable { .. } | Self::DiskFull { .. } | Self::FileFailed(_) | Self::OutcomeUnknown { .. } => {
                "unavailable"
            }
        }
    }

    /// The `details` member of the answer, where the code has one.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Validation(violations) | Self::AutomationInvalid(violations) => {
                Some(json!({"errors": violations.as_slice()}))
            }
            Self::InvalidJson(fault) => fault.as_ref().map(|fault| json!(fault.position)),
            Self::SenderNotVerified(sender) => Some(sender.details()),
            Self::InvalidState { status, allowed } => Some(json!({"status": status, "allowed": allowed})),
            Self::SettingNeeded { setting, .. } => Some(json!({"setting": setting})),
            Self::IdentifierConflict { pointer, contact_id } => {
                Some(json!({"pointer": pointer, "contact_id": contact_id}))
            }
            Self::InUse { by } => Some(json!({"by": by})),
            Self::SecondFactorRequired { token, kinds, options: None } => Some(json!({"token": token, "kinds": kinds})),
            Self::SecondFactorRequired { token, kinds, options } => {
                Some(json!({"token": token, "kinds": kinds, "options": options}))
            }
            Self::WrongCode { tries_left } => Some(json!({"tries_left": tries_left})),
            Self::OutcomeUnknown { .. } => Some(json!({"outcome": "unknown"})),
            _ => None,
        }
    }

    /// Seconds for the `Retry-After` header, where the code has one.
    pub const fn retry_after(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after }
            | Self::Unavailable { retry_after }
            | Self::DiskFull { retry_after }
            | Self::OutcomeUnknown { retry_after } => Some(*retry_after),
            Self::IdempotencyInProgress => Some(1),
            Self::FileFailed(_) => Some(FILE_RETRY),
            _ => None,
        }
    }

    /// Cause of the failure, which is logged and never sent.
    pub fn hidden_cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        match self {
            Self::Internal(cause) | Self::FileFailed(cause) => Some(cause.as_ref()),
            _ => None,
        }
    }

    /// Returns the error to send to the caller: this one, or the state of the disk or a file that caused it.
    pub fn for_caller(self, health: StoreHealth) -> Self {
        match self {
            Self::Unavailable { retry_after } if health.lacks_space() => Self::DiskFull { retry_after },
            Self::Internal(cause) if is_of_a_file(cause.as_ref()) => Self::FileFailed(cause),
            error => error,
        }
    }

    /// The JSON body of the answer.
    pub fn to_body(&self, request_id: &str) -> Value {
        // Contract section 1.4: the one exception to the shape.
        if let Self::ScopeRequired(_) = self {
            return json!({"error": self.to_string()});
        }
        let mut error = json!({"code": self.code(), "message": self.to_string(), "request_id": request_id});
        if let Some(details) = self.details() {
            error["details"] = details;
        }
        json!({"error": error})
    }
}

impl From<DomainError> for Error {
    fn from(error: DomainError) -> Self {
        match error {
            DomainError::NotAnObject(fault) => Self::InvalidJson(fault),
            DomainError::Invalid(violations) => Self::Validation(violations),
            DomainError::IdentifierConflict { pointer, contact_id } => Self::IdentifierConflict { pointer, contact_id },
            DomainError::LinkExpired => Self::LinkExpired,
            DomainError::SenderMissing => Unprocessable::SenderMissing.into(),
            DomainError::SenderDomainNotVerified => Unprocessable::SenderDomainNotVerified.into(),
            DomainError::NotStorable => Self::NotStorable,
        }
    }
}

impl From<NotPossible> for Error {
    fn from(NotPossible { status, allowed }: NotPossible) -> Self {
        Self::InvalidState { status, allowed }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(violations) => Self::Validation(violations),
            Refusal::State { status, allowed } => Self::InvalidState { status, allowed },
            Refusal::ScheduleTimeRequired => Unprocessable::ScheduleTimeRequired.into(),
            Refusal::ScheduleInPast => Unprocessable::ScheduleInPast.into(),
            Refusal::AudienceEmpty => Unprocessable::AudienceEmpty.into(),
            Refusal::SenderMissing => Unprocessable::SenderMissing.into(),
            Refusal::SenderDomainNotVerified => Unprocessable::SenderDomainNotVerified.into(),
            Refusal::ChannelNotConfigured => Unprocessable::ChannelNotConfigured.into(),
        }
    }
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        Self::Validation(violations)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable => Self::Unavailable { retry_after: 1 },
            StoreError::OutcomeUnknown => Self::OutcomeUnknown { retry_after: 1 },
            StoreError::Failed(_) => Self::internal(error),
        }
    }
}

/// Returns true if the system refused a file, which says nothing about the database. Errors of connections are about
/// another machine.
fn is_of_a_file(first: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind;
    let mut causes = std::iter::successors(Some(first), |error| error.source());
    let found = causes.find_map(|error| error.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    found.is_some_and(|kind| {
        !matches!(
            kind,
            ErrorKind::BrokenPipe
                | ErrorKind::ConnectionAborted
                | ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::NotConnected
                | ErrorKind::TimedOut
                | ErrorKind::UnexpectedEof
        )
    })
}
