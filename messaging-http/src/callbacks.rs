//! Callbacks of providers: `/callbacks/{channel}/{token}`.
//!
//! Contract section 18. The token is the only credential; other proofs of a call are checked by the provider's
//! transport.

use http::Method;

pub(crate) use messaging_engine::services::callbacks::{CallbackCall, MAX_BODY};

/// The path; WhatsApp has another route, because it is the only provider that checks an address before it calls.
const ROUTE: &str = "/callbacks/{channel}/{token}";
const WHATSAPP_ROUTE: &str = "/callbacks/whatsapp/{token}";

/// The channel of [`WHATSAPP_ROUTE`].
const WHATSAPP: &str = "whatsapp";

/// A route of callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallbackRoute {
    /// Calls for any channel but WhatsApp.
    Any,
    /// Calls for WhatsApp.
    Whatsapp,
    /// The request by which WhatsApp checks an address.
    WhatsappChallenge,
}

impl CallbackRoute {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Any, Self::Whatsapp, Self::WhatsappChallenge];

    /// The path.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::Any => ROUTE,
            Self::Whatsapp | Self::WhatsappChallenge => WHATSAPP_ROUTE,
        }
    }

    /// The method.
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Any | Self::Whatsapp => Method::POST,
            Self::WhatsappChallenge => Method::GET,
        }
    }

    /// The channel, where the path does not name it.
    pub(crate) const fn channel(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::Whatsapp | Self::WhatsappChallenge => Some(WHATSAPP),
        }
    }
}
