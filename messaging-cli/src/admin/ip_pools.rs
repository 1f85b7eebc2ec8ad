//! `admin`: the addresses that workspaces may name in their IP pools, and pools that all of them share.

use clap::Args;
use messaging_core::ids::PoolId;
use messaging_engine::admin::{self, SharedPoolChange, SharedPoolInput};
use messaging_engine::{App, Error};

use super::parts::{ListPage, list, workspace};
use crate::failure::Failure;
use crate::output::Output;
use crate::target;

/// Help text of `grant-ip`, printed below its flags.
pub(super) const GRANTS: &str = "The operator gives the server its addresses, with `messaging serve --source 203.0.113.7=mx1.example.org`. A workspace puts the \
addresses that it was granted into IP pools, and names the pools in its sending domains. Mail of a domain without a pool leaves \
from any address that is in no pool of another workspace.

Examples:
  messaging admin grant-ip --workspace wsp_… --ip 203.0.113.7
  messaging pool create --name marketing --ips 203.0.113.7
  messaging domain update acme.com --marketing-ip-pool-id marketing
  messaging source list";

/// Help text of `create-pool`, printed below its flags.
pub(super) const SHARED: &str = "Every workspace sees a shared pool and may name it in its sending domains. Its addresses are not reserved: mail of domains without \
a pool leaves from them as well. Workspaces make pools of their own with `messaging pool create`, from addresses that \
`messaging admin grant-ip` has granted to them.

Examples:
  messaging admin create-pool --shared --name transactional --ip 203.0.113.8,203.0.113.9
  messaging domain update acme.com --ip-pool-id transactional";

#[derive(Debug, Args)]
pub(super) struct GrantIp {
    /// The workspace
    #[arg(long, value_name = "ID", env = "MESSAGING_WORKSPACE", hide_env_values = true)]
    workspace: String,
    /// The address, IPv4 or IPv6; a node may get it later
    #[arg(long, value_name = "IP")]
    ip: String,
}

#[derive(Debug, Args)]
pub(super) struct ListGrants {
    /// The workspace
    #[arg(long, value_name = "ID", env = "MESSAGING_WORKSPACE", hide_env_values = true)]
    workspace: String,
    #[command(flatten)]
    page: ListPage,
}

#[derive(Debug, Args)]
pub(super) struct CreatePool {
    /// Every workspace may use the pool; one of a single workspace is made with `messaging pool create`
    #[arg(long)]
    shared: bool,
    /// Its name, 1 to 100 characters
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The addresses of the pool
    #[arg(long, value_name = "IP,…", value_delimiter = ',', required = true)]
    ip: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct UpdatePool {
    /// The pool's id, of `messaging admin list-pools`
    #[arg(long, value_name = "POOL_ID")]
    id: String,
    /// Its name from now on
    #[arg(long, value_name = "NAME", required_unless_present = "ip")]
    name: Option<String>,
    /// All addresses of the pool from now on
    #[arg(long, value_name = "IP,…", value_delimiter = ',')]
    ip: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(super) struct DeletePool {
    /// The pool's id, of `messaging admin list-pools`
    #[arg(long, value_name = "POOL_ID")]
    id: String,
}

/// `admin grant-ip`: permits a workspace to put an address into its IP pools.
pub(super) async fn grant(app: &App, flags: &GrantIp, output: Output) -> Result<(), Failure> {
    let workspace = workspace(&flags.workspace)?;
    let report = admin::grant_ip(app, workspace, &flags.ip).await;
    output.resource(&report.map_err(|error| target::refused(app, error))?)
}

/// `admin revoke-ip`: withdraws the permission of [`grant`].
pub(super) async fn revoke(app: &App, flags: &GrantIp, output: Output) -> Result<(), Failure> {
    let workspace = workspace(&flags.workspace)?;
    let report = admin::revoke_ip(app, workspace, &flags.ip).await;
    output.resource(&report.map_err(|error| target::refused(app, error))?)
}

/// `admin list-grants`: prints the addresses that a workspace may put into its IP pools.
pub(super) async fn list_grants(app: &App, flags: &ListGrants, output: Output) -> Result<(), Failure> {
    let workspace = workspace(&flags.workspace)?;
    list(app, &flags.page, output, async |query| admin::list_grants(app, workspace, &query).await).await
}

/// `admin create-pool`: creates a pool that every workspace may use. Without `--shared` it is a usage error that names
/// the command for a pool of one workspace.
pub(super) async fn create(app: &App, flags: CreatePool, output: Output) -> Result<(), Failure> {
    if !flags.shared {
        let rule = "this command makes pools for all workspaces: add --shared; `messaging pool create` makes one for a workspace";
        return Err(Failure::usage(rule));
    }
    let input = SharedPoolInput { name: flags.name, ips: flags.ip };
    output.resource(&admin::create_shared_pool(app, &input).await.map_err(|error| target::refused(app, error))?)
}

/// `admin update-pool`: changes the name or the addresses of a shared pool.
pub(super) async fn update(app: &App, flags: UpdatePool, output: Output) -> Result<(), Failure> {
    let id = pool(app, &flags.id)?;
    let change = SharedPoolChange { name: flags.name, ips: flags.ip };
    output.resource(&admin::update_shared_pool(app, id, &change).await.map_err(|error| target::refused(app, error))?)
}

/// `admin delete-pool`: deletes a shared pool.
pub(super) async fn delete(app: &App, flags: &DeletePool, output: Output) -> Result<(), Failure> {
    let id = pool(app, &flags.id)?;
    output.resource(&admin::delete_shared_pool(app, id).await.map_err(|error| target::refused(app, error))?)
}

/// Parses the id of a pool. A malformed id is reported as a pool that does not exist.
fn pool(app: &App, text: &str) -> Result<PoolId, Failure> {
    text.parse().map_err(|_| target::refused(app, Error::NotFound))
}
