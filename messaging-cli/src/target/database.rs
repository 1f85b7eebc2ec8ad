//! Operations in this process, on a database that a server may be using.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use clap::ArgMatches;
use clap::parser::ValueSource;
use http::StatusCode;
use messaging_core::error::Chain;
use messaging_core::ids::WorkspaceId;
use messaging_core::scope::Access;
use messaging_engine::ops;
use messaging_engine::ops::imports::ImportView;
use messaging_engine::ops::operation::Answer;
use messaging_engine::{App, Caller, Error};
use messaging_http::settings::running;
use messaging_http::standalone::{self, Role, StartError};
use messaging_http::{Settings, SettingsArgs};
use serde_json::Value;

use crate::arguments::{self, DATA, DATABASE};
use crate::dev_file;
use crate::failure::Failure;
use crate::reply::Reply;
use crate::request::Request;

/// Bytes of a file that are read at a time.
const PIECE: usize = 64 << 10;

/// Applications opened on databases that several processes share.
static SHARED: Mutex<Vec<App>> = Mutex::new(Vec::new());

const WHERE: &str = "name a server with --url and --api-key (MESSAGING_URL, MESSAGING_API_KEY), or the data directory of \
                     this machine's server with --data and --workspace; `messaging dev` starts a server to try things out";

const WHICH: &str = "without a server the workspace must be named: give --workspace (`messaging admin create-workspace` \
                     makes one and prints its id)";

/// The application on a database.
pub(super) struct Database {
    app: App,
    workspace: Option<WorkspaceId>,
    text: String,
    /// True if no server uses the database, so that this process does its work.
    is_alone: bool,
}

impl Database {
    /// Opens the database that the arguments name. The workspace of `messaging dev` counts as named.
    pub(super) async fn open(
        matches: &ArgMatches,
        named: Option<&str>,
        access: Access,
        role: Role,
    ) -> Result<Self, Failure> {
        let data = arguments::data_directory(matches);
        if !is_named(matches) && !data.exists() {
            return Err(Failure::usage(format!("neither a server nor a database is named: {WHERE}")));
        }
        let settings = settings(matches)?;
        if !settings.database.exists() {
            return Err(Failure::Unreachable(format!("{}; {WHERE}", missing(&settings, matches))));
        }
        let (app, is_alone) = match open_as(&settings, role).await {
            Err(error) if role == Role::Server && error.is_in_use() => (open_with(&settings).await?, false),
            opened => (opened?, role == Role::Server && settings.database.file().is_some()),
        };
        let text = named.map(ToOwned::to_owned).or_else(|| dev_file::workspace_of(&data)).unwrap_or_default();
        let workspace = match text.as_str() {
            "" if matches!(access, Access::Public | Access::Operator) => None,
            "" => return Err(Failure::usage(WHICH)),
            text => Some(text.parse::<WorkspaceId>().map_err(|_| {
                Failure::usage(
                    "--workspace is not the id of a workspace (wsp_…): `messaging admin list-workspaces` shows them",
                )
            })?),
        };
        let database = Self { app, workspace, text, is_alone };
        if let Some(id) = database.workspace {
            let known = database.app.store().workspace(id).await;
            let known = known.map_err(|error| refused(&database.app, error.into()))?;
            if known.is_none() {
                return Err(refused(&database.app, Error::WorkspaceForbidden));
            }
        }
        Ok(database)
    }

    /// The workspace for the path.
    pub(super) fn workspace(&self) -> Result<&str, Failure> {
        if self.workspace.is_some() { Ok(&self.text) } else { Err(Failure::usage(WHICH)) }
    }

    /// Carries out a request.
    pub(super) async fn call(&self, request: &Request, path: &[(String, String)]) -> Result<Reply, Failure> {
        let caller = Caller::Operator(self.workspace);
        let query = request.query_string();
        let filled = ops::fill_path(request.endpoint.path, path);
        let call = ops::Request {
            path: &filled,
            path_parameters: path.to_vec(),
            query: &query,
            body: request.body.clone(),
            idempotency_key: request.idempotency_key.as_deref().map(str::as_bytes),
            ..ops::Request::default()
        };
        let answer = match self.app.admit(caller, request.endpoint, path, None).await {
            Ok(admitted) => admitted.run(call).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => Ok(reply(answer)),
            Err(error) => match refused(&self.app, error) {
                Failure::Refused(reply) => Ok(reply),
                failure => Err(failure),
            },
        }
    }
}

impl Database {
    /// Sends the file of an import. `sent` gets the number of further bytes sent.
    pub(super) async fn upload(&self, url: &str, file: &Path, sent: impl Fn(u64)) -> Result<Reply, Failure> {
        let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", file.display()));
        let token = url.rsplit('/').next().unwrap_or_default();
        let mut open = File::open(file).map_err(unreadable)?;
        let mut piece = vec![0; PIECE];
        let outcome = async {
            let mut uploading = self.app.receive_upload(token, None).await?;
            loop {
                match open.read(&mut piece).map_err(Error::internal)? {
                    0 => return Ok(ImportView::of(uploading.finish().await?, self.app.now(), None)),
                    read => {
                        uploading.add(&piece[..read]).await?;
                        sent(read as u64);
                    }
                }
            }
        };
        match outcome.await {
            Ok(import) => Ok(Reply {
                status: StatusCode::ACCEPTED,
                content_type: Some(ops::operation::JSON.to_owned()),
                retry_after: None,
                replayed: false,
                body: serde_json::to_vec(&import).map_err(std::io::Error::from)?.into(),
            }),
            Err(error) => match refused(&self.app, error) {
                Failure::Refused(reply) => Ok(reply),
                failure => Err(failure),
            },
        }
    }

    /// Reads the file of an import, if no server does.
    pub(super) async fn work_on_import(&self, import: &Value) -> Result<(), Failure> {
        let id = import["import_id"].as_str().and_then(|id| id.parse().ok());
        let (Some(workspace), Some(id)) = (self.workspace.filter(|_| self.is_alone), id) else { return Ok(()) };
        let worked = self.app.run_import(workspace, id).await;
        worked.map_err(|error| Failure::unreachable("cannot import the file", &error))
    }
}

/// Returns true if the arguments or the environment name a database.
pub(super) fn is_named(matches: &ArgMatches) -> bool {
    arguments::text(matches, DATABASE).is_some()
        || matches.value_source(DATA).is_some_and(|source| source != ValueSource::DefaultValue)
}

/// Opens the application on the database that the arguments name, without running its jobs.
pub(crate) async fn open_existing(matches: &ArgMatches) -> Result<App, Failure> {
    open_with(&existing(matches)?).await
}

/// Like [`open_existing`], but also begins an installation in a data directory that exists and is empty: a mistyped
/// path is neither.
pub(crate) async fn open_or_begin(matches: &ArgMatches) -> Result<App, Failure> {
    let settings = settings(matches)?;
    let is_made_for_it = || std::fs::read_dir(&settings.data).is_ok_and(|mut entries| entries.next().is_none());
    if settings.database.exists()
        || settings.database.file().is_some_and(|file| file.starts_with(&settings.data)) && is_made_for_it()
    {
        return open_with(&settings).await;
    }
    Err(Failure::Unreachable(missing(&settings, matches)))
}

/// Like [`open_existing`], with links that begin with `public_url` unless the arguments say otherwise: the public URL
/// of the server on the database, or the address at which it listens.
pub(crate) async fn open_for_links(matches: &ArgMatches, public_url: Option<&str>) -> Result<App, Failure> {
    let settings = existing(matches)?;
    let listening = || std::fs::read_to_string(settings.data.join("listen")).ok().map(|text| text.trim().to_owned());
    let told = || running(&settings.data).and_then(|running| running.settings.public_url);
    let base = match public_url.map(ToOwned::to_owned).or_else(told) {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", listening().unwrap_or_else(|| settings.listen.to_string())),
    };
    Ok(open_at(&settings, Role::Command, &base).await?)
}

/// Opens the database for a command that does its work if no server does; returns true if the command is to do it.
pub(crate) async fn open_to_work(matches: &ArgMatches) -> Result<(App, bool), Failure> {
    let settings = existing(matches)?;
    match open_as(&settings, Role::Server).await {
        Err(error) if error.is_in_use() => Ok((open_with(&settings).await?, false)),
        opened => Ok((opened?, settings.database.file().is_some())),
    }
}

/// The settings of a database that exists.
pub(crate) fn existing(matches: &ArgMatches) -> Result<Settings, Failure> {
    let settings = settings(matches)?;
    if settings.database.exists() {
        return Ok(settings);
    }
    Err(Failure::Unreachable(missing(&settings, matches)))
}

/// Says that a database is missing, and which setting made the command look for it there.
fn missing(settings: &Settings, matches: &ArgMatches) -> String {
    let path = &settings.database;
    let source = |id| matches.value_source(id);
    let named = match (source(DATABASE), source(DATA)) {
        (Some(ValueSource::EnvVariable), _) => "MESSAGING_DATABASE names it".to_owned(),
        (Some(_), _) => "--database names it".to_owned(),
        (None, Some(ValueSource::EnvVariable)) => {
            format!("MESSAGING_DATA is {}; is that right?", settings.data.display())
        }
        (None, Some(ValueSource::CommandLine)) => format!("--data is {}; is that right?", settings.data.display()),
        _ => "--data was not given, and neither was MESSAGING_DATA".to_owned(),
    };
    format!("there is no database {path}: {named} (`messaging serve` makes one where it starts; this command does not)")
}

async fn open_with(settings: &Settings) -> Result<App, Failure> {
    Ok(open_as(settings, Role::Command).await?)
}

async fn open_as(settings: &Settings, role: Role) -> Result<App, StartError> {
    open_at(settings, role, &format!("http://{}", settings.listen)).await
}

async fn open_at(settings: &Settings, role: Role, base: &str) -> Result<App, StartError> {
    // Jobs of a database that several processes share are run by its servers and workers.
    let role = if settings.database.file().is_some() { role } else { Role::Command };
    let app = standalone::open(settings, role, base).await?;
    if settings.database.file().is_none() {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).push(app.clone());
    }
    Ok(app)
}

/// Tells the other processes that this one has ended, if the database is shared.
pub(super) async fn close_shared() {
    let opened = std::mem::take(&mut *SHARED.lock().unwrap_or_else(PoisonError::into_inner));
    for app in opened {
        app.store().close().await;
    }
}

/// The settings given by the arguments of a command on a database.
pub(crate) fn settings(matches: &ArgMatches) -> Result<Settings, Failure> {
    let given = SettingsArgs {
        data: Some(arguments::data_directory(matches)),
        database: arguments::text(matches, DATABASE).map(ToOwned::to_owned),
        secret_key_file: arguments::secret_key_path(matches),
        ..SettingsArgs::default()
    };
    let mut settings = given.resolve().map_err(|error| Failure::usage(Chain(&error).to_string()))?;
    // The same setting as the server that `dev` runs there.
    let is_dev = dev_file::is_there(&arguments::data_directory(matches));
    settings.engine = settings.engine.allow_unqualified_name(is_dev).grants_every_source(is_dev);
    Ok(settings)
}

/// Turns an error of the application into a failure of the command.
pub(crate) fn refused(app: &App, error: Error) -> Failure {
    match error.for_caller(app.store().health()) {
        Error::FileFailed(cause) => Failure::unreachable("cannot use the files of the installation", cause.as_ref()),
        full @ Error::DiskFull { .. } => Failure::Unreachable(full.to_string()),
        // The command uses the database directly, so that an internal error is one of the database.
        Error::Internal(cause) => Failure::unreachable("cannot use the database", cause.as_ref()),
        Error::Unavailable { .. } => Failure::Unreachable("the database is busy; try again".to_owned()),
        error => Failure::Refused(refusal(app, &error)),
    }
}

fn reply(answer: Answer) -> Reply {
    Reply {
        status: answer.status,
        content_type: answer.content_type.map(ToOwned::to_owned),
        retry_after: None,
        replayed: answer.replayed,
        body: answer.body,
    }
}

/// A refusal as the server would send it.
fn refusal(app: &App, error: &Error) -> Reply {
    // The id is in no log; it has the form of the server's request ids.
    let id = app.new_id::<WorkspaceId>(app.now()).to_string().replace("wsp_", "req_");
    Reply {
        status: error.status(),
        content_type: Some(ops::operation::JSON.to_owned()),
        retry_after: error.retry_after().map(|seconds| seconds.to_string()),
        replayed: false,
        body: error.to_body(&id).to_string().into(),
    }
}
