//! The place where an operation is carried out: a server, or this process on the server's database.

mod database;
mod server;

use std::future::Future;
use std::path::Path;
use std::pin::{Pin, pin};

use clap::ArgMatches;
use messaging_core::scope::Access;
use messaging_engine::ops::{self, Endpoint};
use messaging_http::standalone::Role;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::command::spoken;
use crate::failure::Failure;
use crate::profile::{self, Connection};
use crate::reply::Reply;
use crate::request::{Raw, Request};

pub(crate) use database::{existing, open_existing, open_for_links, open_or_begin, open_to_work, refused};

/// The server or database on which operations are carried out, and the workspace that they concern.
pub(crate) struct Target {
    backend: Backend,
    /// The workspace that the arguments name.
    named: Option<String>,
    /// The workspace that was looked up.
    found: OnceCell<String>,
}

enum Backend {
    Server(Box<server::Server>),
    Database(database::Database),
}

impl Target {
    /// The server or database that the arguments name. No request is sent yet.
    pub(crate) async fn choose(matches: &ArgMatches, access: Access) -> Result<Self, Failure> {
        Self::choose_as(matches, access, Role::Command).await
    }

    /// Like `choose`, for a command that begins work of a server: if no server works on the database,
    /// the command does the work.
    pub(crate) async fn choose_to_work(matches: &ArgMatches, access: Access) -> Result<Self, Failure> {
        Self::choose_as(matches, access, Role::Server).await
    }

    async fn choose_as(matches: &ArgMatches, access: Access, role: Role) -> Result<Self, Failure> {
        let Connection { url, token, workspace: named } = profile::connection(matches, database::is_named(matches))?;
        let key = token.as_deref();
        let backend = match url.as_deref() {
            Some(_) if key.is_none() && is_for_people(access) => {
                return Err(Failure::usage(
                    "this needs a session of the server: `messaging login --url URL --email EMAIL` saves one",
                ));
            }
            Some(_) if key.is_none() && access != Access::Public => {
                return Err(Failure::usage(
                    "a server needs an API key: give --api-key, or set MESSAGING_API_KEY (`messaging admin create-key` \
                     makes one, `messaging dev` writes one to dev.json in its data directory)",
                ));
            }
            Some(url) => Backend::Server(Box::new(server::Server::new(url, key, named.as_deref())?)),
            None if key.is_some() && !database::is_named(matches) => {
                return Err(Failure::usage(
                    "an API key is for a server: give --url, or set MESSAGING_URL (or name a database with --data, which \
                     needs no key)",
                ));
            }
            None => Backend::Database(database::Database::open(matches, named.as_deref(), access, role).await?),
        };
        Ok(Self { backend, named, found: OnceCell::new() })
    }

    /// A server by its address.
    pub(crate) fn server(url: &str, token: Option<&str>, workspace: Option<&str>) -> Result<Self, Failure> {
        let backend = Backend::Server(Box::new(server::Server::new(url, token, workspace)?));
        Ok(Self { backend, named: workspace.map(ToOwned::to_owned), found: OnceCell::new() })
    }

    /// Carries out a raw request, with `{workspace_id}` in the path replaced by the workspace.
    pub(crate) async fn raw(&self, mut raw: Raw) -> Result<Reply, Failure> {
        if raw.path.contains(WORKSPACE_PLACE) {
            raw.path = raw.path.replace(WORKSPACE_PLACE, self.workspace().await?);
        }
        match &self.backend {
            Backend::Server(server) => server.raw(&raw).await,
            Backend::Database(database) => {
                let mut rows = ops::all().iter().filter(|row| (row.method)() == raw.method);
                let found = rows.find_map(|row| Some((row, spoken::parameters(row, &raw.path)?)));
                let Some((endpoint, path)) = found else {
                    return Err(Failure::usage(format!("the API has no {} {}", raw.method, raw.path)));
                };
                let query = form_urlencoded::parse(raw.query.as_bytes()).into_owned().collect();
                let Raw { body, idempotency_key, .. } = raw;
                database.call(&Request { endpoint, path: Vec::new(), query, body, idempotency_key }, &path).await
            }
        }
    }

    /// Carries out a request. A refusal is an answer, not an error.
    pub(crate) async fn call(&self, request: &Request) -> Result<Reply, Failure> {
        let mut path = request.path.clone();
        if request.endpoint.is_in_workspace() {
            path.insert(0, ("workspace_id".to_owned(), self.workspace().await?.to_owned()));
        }
        self.send(request, &path).await
    }

    async fn send(&self, request: &Request, path: &[(String, String)]) -> Result<Reply, Failure> {
        match &self.backend {
            Backend::Server(server) => server.call(request, path).await,
            Backend::Database(database) => database.call(request, path).await,
        }
    }

    /// Sends the file of an import. `sent` gets the number of further bytes sent.
    pub(crate) async fn upload(
        &self,
        import: &Value,
        file: &Path,
        sent: impl Fn(u64) + Send + 'static,
    ) -> Result<Reply, Failure> {
        let url = import["upload_url"].as_str().unwrap_or_default();
        match &self.backend {
            Backend::Server(_) => server::upload(url, import, file, sent).await,
            Backend::Database(database) => database.upload(url, file, sent).await,
        }
    }

    /// Reads the file of an import, if no server does.
    pub(crate) async fn work_on_import(&self, import: &Value) -> Result<(), Failure> {
        match &self.backend {
            Backend::Server(_) => Ok(()),
            Backend::Database(database) => database.work_on_import(import).await,
        }
    }

    /// The workspace for the path: the named one, or that of the database or the API key.
    async fn workspace(&self) -> Result<&str, Failure> {
        if let Some(named) = &self.named {
            return Ok(named);
        }
        if let Backend::Database(database) = &self.backend {
            return database.workspace();
        }
        self.found.get_or_try_init(|| self.ask_for_workspace()).await.map(String::as_str)
    }

    /// A key opens exactly one workspace, and the API lists it. A session may open several.
    async fn ask_for_workspace(&self) -> Result<String, Failure> {
        let reply = self.send(&Request::new(list_workspaces()), &[]).await?;
        if !reply.status.is_success() {
            return Err(Failure::Refused(reply));
        }
        let page: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let ids: Vec<_> =
            page["data"].as_array().into_iter().flatten().filter_map(|workspace| workspace["id"].as_str()).collect();
        match ids.as_slice() {
            [only] => Ok((*only).to_owned()),
            [] => Err(Failure::usage("these credentials open no workspace; give --workspace")),
            several => {
                let several = several.join(", ");
                Err(Failure::usage(format!("these credentials open several workspaces; give --workspace: {several}")))
            }
        }
    }
}

/// True for operations that need a session and refuse API keys.
const fn is_for_people(access: Access) -> bool {
    matches!(access, Access::Session | Access::SessionRole(_) | Access::Operator)
}

/// Placeholder for the workspace in the path of a raw request.
const WORKSPACE_PLACE: &str = "{workspace_id}";

fn list_workspaces() -> &'static Endpoint {
    ops::all().iter().find(|endpoint| endpoint.id == "listWorkspaces").expect("part of the contract")
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let mut result = None;
    drive(pin!(async {
        result = Some(work.await);
        database::close_shared().await;
    }))?;
    Ok(result.expect("what was waited for has ended"))
}

/// Not generic, so that the runtime's loop is compiled once.
fn drive(work: Pin<&mut dyn Future<Output = ()>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work);
    Ok(())
}
