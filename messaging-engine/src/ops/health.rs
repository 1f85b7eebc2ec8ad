//! The health check of the server.
//!
//! Contract section 3.

use http::{Method, StatusCode};
use messaging_core::input::Empty;
use messaging_core::scope::Access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::single_sign_on::SignOnOffer;

/// Health of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Health {
    /// Always `ok`; a server that cannot work answers 503 instead.
    pub status: String,
    /// Single sign-on for the console's sign-in page; absent unless it is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_on: Option<SignOnOffer>,
}

/// `GET /health`
pub struct GetHealth;

impl Operation for GetHealth {
    const ID: &'static str = "getHealth";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/health";
    const ACCESS: Access = Access::Public;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "health get";
    const SUMMARY: &'static str = "Tell whether the server can do its work";
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = Health;

    async fn run(cx: &mut Context<'_>, _: Call<Self>) -> Result<Health, Error> {
        if !cx.store().health().is_healthy() {
            return Err(Error::Unavailable { retry_after: 1 });
        }
        cx.store().ping().await?;
        Ok(Health { status: "ok".to_owned(), sign_on: cx.app.sign_on_offer() })
    }
}
