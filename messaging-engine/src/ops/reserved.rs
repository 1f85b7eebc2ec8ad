//! Operations that the contract reserves (section 21): they check who calls and answer 501.
//!
//! They stand in a list of their own, because the document and the command line offer only what works.

use http::{Method, StatusCode};
use messaging_core::ids::WorkspaceId;
use messaging_core::input::Empty;
use messaging_core::scope::{Access, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::endpoint::Endpoint;
use crate::ops::operation::{Call, NoContent, Operation};

/// Every reserved operation, in the order of the contract.
pub const fn reserved() -> &'static [Endpoint] {
    const RESERVED: &[Endpoint] = &[Endpoint::of::<ConfigureDns>()];
    RESERVED
}

/// The path of a reserved operation on one resource. No resource exists, so any id will do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReservedPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The resource.
    pub id: String,
}

const AUTO_DNS: &str = "/workspaces/{workspace_id}/sending-domains/{id}/auto-dns";

/// A row of section 21.
macro_rules! reserve {
    ($name:ident, $id:literal, $method:ident $path:ident of $parameters:ty, $cli:literal) => {
        #[doc = concat!("`", $cli, "`, reserved")]
        pub struct $name;

        impl Operation for $name {
            const ID: &'static str = $id;
            const METHOD: Method = Method::$method;
            const PATH: &'static str = $path;
            const ACCESS: Access = Access::Scope(Scope::DomainsWrite);
            const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
            const CLI: &'static str = $cli;
            const SUMMARY: &'static str = "Reserved for a later version";
            type Path = $parameters;
            type Query = Empty;
            type Body = Empty;
            type Output = NoContent;

            async fn run(_: &mut Context<'_>, _: Call<Self>) -> Result<NoContent, Error> {
                Err(Error::NotImplemented)
            }
        }
    };
}

reserve!(ConfigureDns, "configureDns", POST AUTO_DNS of ReservedPath, "sending-domain auto-dns");
