//! `dev`: a server to try things out, with everything in place.
//!
//! What core's [`prepare_dev`](admin::prepare_dev) creates is written to `dev.json` in the data directory,
//! readable by its owner alone, because nobody else knows the secrets. A later start reuses them. Where
//! the file is gone and the database is not, a new key and a new password take their place.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use messaging_core::domain::api_key::random_text;
use messaging_core::domain::secret::Secret;
use messaging_core::scope::Scope;
use messaging_engine::admin::{self, DevSetup};
use messaging_engine::ops::keys::ApiKeyInput;
use messaging_engine::{App, Error};
use messaging_http::Settings;
use messaging_http::standalone::{self, Standalone};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{arguments, serve, target};

/// What `dev` tells other programs, in the data directory.
const FILE: &str = "dev.json";

const EXAMPLES: &str = "Prints a curl that sends a message. The sandbox captures it: nothing leaves this machine.

Examples:
  messaging dev
  messaging dev --listen 127.0.0.1:0 --data ./try --json";

/// What is written to the file (contract section 22).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DevFile {
    base_url: String,
    workspace_id: String,
    api_key: String,
    console_email: String,
    console_password: String,
    from_email: String,
}

/// The command.
pub(crate) fn command() -> Command {
    let about = "Try it out: a server with a workspace, an API key and a captured mailbox, ready at once";
    serve::with_settings(Command::new("dev").after_help(EXAMPLES), about)
        .arg(arguments::json().help("Print what is written to dev.json, when the server is ready"))
}

/// Carries it out; returns when the server has stopped.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let settings = serve::settings(matches)?;
    serve::run_server(&settings, run_prepared(&settings, output))
}

async fn run_prepared(settings: &Settings, output: Output) -> Result<(), Failure> {
    // Before anything else: a signal that comes while starting must not be lost.
    let stop = standalone::stop_signal()?;
    let server = Standalone::start(settings).await?;
    let address = server.local_addr();
    let file = settings.data.join(FILE);
    let dev = prepare(server.app(), read(&file), &base_url(address)).await?;
    write(&file, &dev).map_err(|error| Failure::unreachable(format!("cannot write {}", file.display()), &error))?;
    if output.is_json() {
        output.resource(&dev)?;
    } else {
        output::raw(welcome(&dev, &file).as_bytes())?;
    }
    Ok(server.run(stop).await?)
}

/// Makes sure that there is something to try out, and finds or renews the secrets for it.
async fn prepare(app: &App, known: Option<DevFile>, base_url: &str) -> Result<DevFile, Failure> {
    let refused = |error: Error| target::refused(app, error);
    let setup = admin::prepare_dev(app).await.map_err(refused)?;
    let known = known.filter(|known| known.workspace_id == setup.workspace_id.to_string());
    let api_key = match (&setup.api_key, &known) {
        (Some(new), _) => new.expose().to_owned(),
        (None, Some(known)) => known.api_key.clone(),
        (None, None) => new_key(app, &setup).await.map_err(refused)?,
    };
    let console_password = match (&setup.console_password, &known) {
        (Some(new), _) => new.expose().to_owned(),
        (None, Some(known)) => known.console_password.clone(),
        (None, None) => new_password(app, &setup).await.map_err(refused)?,
    };
    Ok(DevFile {
        base_url: base_url.to_owned(),
        workspace_id: setup.workspace_id.to_string(),
        api_key,
        console_email: setup.console_email,
        console_password,
        from_email: setup.from_email,
    })
}

async fn new_key(app: &App, setup: &DevSetup) -> Result<String, Error> {
    let input = ApiKeyInput::new("Dev", [Scope::All]);
    let view = admin::create_key(app, setup.workspace_id, &input).await?;
    Ok(view.key.map(Secret::into_inner).unwrap_or_default())
}

async fn new_password(app: &App, setup: &DevSetup) -> Result<String, Error> {
    let password = random_text(app.entropy(), crate::admin::PASSWORD_ALPHABET, crate::admin::PASSWORD_LENGTH);
    admin::create_user(app, &setup.console_email, Some(password.clone()), None).await?;
    Ok(password)
}

/// Where programs on this machine reach the server.
fn base_url(mut address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{address}/v1")
}

/// The workspace of a data directory that `dev` has prepared.
pub(crate) fn workspace_of(data: &Path) -> Option<String> {
    read(&data.join(FILE)).map(|dev| dev.workspace_id)
}

fn read(file: &Path) -> Option<DevFile> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Puts the file into place as a whole, so that nobody reads half of it.
fn write(file: &Path, dev: &DevFile) -> io::Result<()> {
    let aside = PathBuf::from(format!("{}.new.{}", file.display(), std::process::id()));
    let text = serde_json::to_string_pretty(dev).map_err(io::Error::from)?;
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut out| out.write_all(format!("{text}\n").as_bytes()))
        .and_then(|()| fs::rename(&aside, file));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

fn welcome(dev: &DevFile, file: &Path) -> String {
    let DevFile { base_url, workspace_id, api_key, console_email, console_password, from_email } = dev;
    let root = base_url.trim_end_matches("/v1");
    let message = json!({
        "channel": "email", "from_email": from_email, "to": "ann@example.com", "subject": "Hello", "text": "It works",
    });
    let file = file.display();
    format!(
        "The API is at {base_url}, its reference at {root}/docs.

Send a message. The sandbox captures it, nothing leaves this machine:

curl {base_url}/messages \\
  -H 'Authorization: Bearer {api_key}' \\
  -H 'Content-Type: application/json' \\
  -d '{message}'

See what was captured, and what became of it:

export MESSAGING_URL={base_url} MESSAGING_API_KEY={api_key}
messaging sandbox list
messaging sandbox get MESSAGE_ID
messaging message watch

workspace   {workspace_id}
sign in as  {console_email}
password    {console_password}

All of this is in {file}. Ctrl-C stops the server; the next start goes on where this one ended.
"
    )
}
