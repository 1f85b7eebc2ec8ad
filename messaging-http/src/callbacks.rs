//! What providers call us with: `/callbacks/{channel}/{token}`.
//!
//! Contract section 18. The token is all that lets anybody in; what else proves a call, the provider's transport knows.

use http::Method;

pub(crate) use messaging_engine::services::callbacks::{CallbackCall, MAX_BODY};

/// The path; that of WhatsApp has one of its own, because it is the one provider that asks before it calls.
const ROUTE: &str = "/callbacks/{channel}/{token}";
const WHATSAPP_ROUTE: &str = "/callbacks/whatsapp/{token}";

/// The channel that [`WHATSAPP_ROUTE`] is about.
const WHATSAPP: &str = "whatsapp";

/// A route of callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallbackRoute {
    /// Of any channel but WhatsApp.
    Any,
    /// Of WhatsApp.
    Whatsapp,
    /// WhatsApp asks whether an address is right.
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
