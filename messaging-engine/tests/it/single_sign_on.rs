//! Contract section 25: single sign-on, with a provider in memory that answers well, badly, or as an attacker would.

mod attacks;
mod factors;
mod groups;
mod joining;

use std::net::IpAddr;
use std::sync::Arc;

use messaging_core::domain::security::oidc::OidcSettings;
use messaging_engine::Error;
use messaging_engine::app::App;
use messaging_engine::caller::Caller;
use messaging_engine::ops::sessions::sign_on::{FinishSignOn, SignOnInput, SignOnOutcome};
use messaging_engine::ops::{Endpoint, Request, SessionCookie};
use messaging_engine::services::single_sign_on::SignOnRefusal;
use messaging_testing::{MemoryFetch, MemoryOidcProvider};
use serde_json::{Value, json};

use crate::bed::{Bed, KEY, PUBLIC_URL};

/// Address of every browser.
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 9));

/// A bed that people sign in to with a provider.
struct SignOnBed {
    bed: Bed,
    provider: Arc<MemoryOidcProvider>,
}

/// End of a sign-in.
#[derive(Debug)]
enum Ended {
    SignedIn(Caller),
    Confirm(String),
    Factor(String),
    Refused(SignOnRefusal),
}

impl Ended {
    fn caller(self) -> Caller {
        match self {
            Self::SignedIn(caller) => caller,
            other => panic!("nobody is signed in: {other:?}"),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::SignedIn(_) => "signed in",
            Self::Confirm(_) => "confirm",
            Self::Factor(_) => "factor",
            Self::Refused(reason) => reason.code(),
        }
    }
}

impl SignOnBed {
    async fn start() -> Self {
        Self::with(|settings| settings).await
    }

    async fn with(change: impl FnOnce(OidcSettings) -> OidcSettings) -> Self {
        Self::on(Bed::start(), change).await
    }

    async fn on(mut bed: Bed, change: impl FnOnce(OidcSettings) -> OidcSettings) -> Self {
        let others = Arc::new(MemoryFetch::default());
        let provider = Arc::new(MemoryOidcProvider::new(Arc::clone(&bed.clock) as _, others));
        let settings = messaging_engine::Settings::default()
            .hostname("mx.service.test")
            .public_url(PUBLIC_URL)
            .oidc(change(MemoryOidcProvider::settings()));
        let builder = App::builder(Arc::clone(&bed.store), KEY).clock(Arc::clone(&bed.clock) as _);
        bed.app = builder.fetch(Arc::clone(&provider) as _).settings(settings).build().await.unwrap();
        Self { bed, provider }
    }

    /// Begins a sign-in: the cookie, and the query that the browser comes back with.
    async fn begin(&self) -> (String, String) {
        let start = self.bed.app.begin_sign_on().await.unwrap();
        let query = self.provider.authorize(&start.location);
        (start.cookie.into_inner(), query)
    }

    /// Comes back with a cookie and a query.
    async fn come_back(&self, cookie: Option<&str>, query: &str) -> Ended {
        let person = match self.bed.app.finish_sign_on(cookie, query, CLIENT).await {
            Ok(person) => person,
            Err(reason) => return Ended::Refused(reason),
        };
        let body = serde_json::to_vec(&SignOnInput::from(person)).unwrap();
        let endpoint = Endpoint::row::<FinishSignOn>();
        let admitted = self.bed.app.admit(Caller::Anonymous, endpoint, &[], None).await.unwrap();
        let request = Request { body: body.into(), client_ip: Some(CLIENT), ..Request::default() };
        let answer = match admitted.run(request).await {
            Err(Error::SecondFactorRequired { token, .. }) => return Ended::Factor(token.into_inner()),
            Err(Error::RateLimited { .. }) => return Ended::Refused(SignOnRefusal::Busy),
            answer => answer.unwrap(),
        };
        match serde_json::from_slice(&answer.body).unwrap() {
            SignOnOutcome::SignedIn => {
                let Some(SessionCookie::Keep(token, _)) = answer.session_cookie else { panic!("no session") };
                Ended::SignedIn(self.bed.app.authenticate(token.expose()).await.unwrap())
            }
            SignOnOutcome::Confirm { ticket } => Ended::Confirm(ticket.into_inner()),
            SignOnOutcome::Refused { reason } => Ended::Refused(reason),
            other => panic!("{other:?}"),
        }
    }

    /// Signs a person in whose token has these claims.
    async fn sign_in(&self, claims: Value) -> Ended {
        self.provider.person(claims);
        let (cookie, query) = self.begin().await;
        self.come_back(Some(&cookie), &query).await
    }
}

/// The claims of Ann, with more.
fn ann(more: Value) -> Value {
    let mut claims = json!({"sub": "ann", "email": "Ann@Example.com", "email_verified": true, "name": "Ann Lee"});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    claims
}
