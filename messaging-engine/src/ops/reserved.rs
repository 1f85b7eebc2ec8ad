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
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};

/// Every reserved operation, in the order of the contract.
pub const fn reserved() -> &'static [Endpoint] {
    const RESERVED: &[Endpoint] = &[
        Endpoint::of::<ListIpPools>(),
        Endpoint::of::<CreateIpPool>(),
        Endpoint::of::<GetIpPool>(),
        Endpoint::of::<UpdateIpPool>(),
        Endpoint::of::<DeleteIpPool>(),
    ];
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

const POOLS: &str = "/workspaces/{workspace_id}/ip-pools";
const POOL: &str = "/workspaces/{workspace_id}/ip-pools/{id}";

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

reserve!(ListIpPools, "listIpPools", GET POOLS of InWorkspace, "ip-pool list");
reserve!(CreateIpPool, "createIpPool", POST POOLS of InWorkspace, "ip-pool create");
reserve!(GetIpPool, "getIpPool", GET POOL of ReservedPath, "ip-pool get");
reserve!(UpdateIpPool, "updateIpPool", PATCH POOL of ReservedPath, "ip-pool update");
reserve!(DeleteIpPool, "deleteIpPool", DELETE POOL of ReservedPath, "ip-pool delete");
