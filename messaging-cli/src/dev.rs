//! `dev`: a server to try things out, with everything in place.
//!
//! The credentials that the engine's [`prepare_dev`](admin::prepare_dev) creates are written to `dev.json` in the data
//! directory, readable by its owner alone, because nobody else knows the secrets. A later start reuses them. If the
//! file is gone and the database is not, a new key and a new password replace them.

mod fake_providers;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use clap::{ArgMatches, Command};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::installation::fence::MEANING;
use messaging_core::domain::security::secret::Secret;
use messaging_core::scope::Scope;
use messaging_engine::admin::{self, DevSetup};
use messaging_engine::ops::keys::ApiKeyInput;
use messaging_engine::{App, Error};
use messaging_http::Console;
use messaging_http::Settings;
use messaging_http::standalone::{self, Standalone};
use serde_json::json;

use self::fake_providers::{Called, Choice, FakeProviders};
use crate::dev_file::{self, DevFile};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{arguments, serve, target};

const EXAMPLES: &str = "Prints a link that signs in to the console once, and a curl that sends a message. The sandbox captures it: nothing leaves this machine.

Examples:
  messaging dev
  messaging dev --fake-providers
  messaging dev --listen 127.0.0.1:0 --data ./try --json";

/// The command.
pub(crate) fn command() -> Command {
    let about = "Try it out: a server with a workspace, an API key and a captured mailbox, ready at once";
    serve::with_settings(Command::new("dev").after_help(EXAMPLES), about)
        .arg(fake_providers::argument())
        .arg(arguments::json().help("Print what is written to dev.json, when the server is ready"))
}

/// Carries it out; returns when the server has stopped.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let mut settings = serve::settings(matches)?;
    settings.engine = settings.engine.allow_unqualified_name(true).grants_every_source(true);
    let fakes = fake_providers::chosen(matches);
    // Fake providers listen on loopback.
    settings.allow_private_targets |= fakes.is_some();
    settings.given.allow_private_targets = Some(settings.allow_private_targets);
    serve::run_server(matches, &settings, run_prepared(&settings, fakes.as_ref(), output))
}

async fn run_prepared(settings: &Settings, fakes: Option<&Choice>, output: Output) -> Result<(), Failure> {
    // Before anything else: a signal that comes while starting must not be lost.
    let stop = standalone::stop_signal()?;
    let server = Standalone::start(settings).await?;
    let address = server.local_addr();
    let file = settings.data.join(dev_file::FILE);
    let local = local_url(address);
    let (setup, dev) = prepare(server.app(), dev_file::read(&file), &local).await?;
    let fakes = match fakes {
        None => None,
        Some(fakes) => {
            // The default beginning of links: the address it listens at, even one that nobody can call, such as
            // 0.0.0.0.
            let public_url = settings.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
            let called = Called {
                app: server.app(),
                workspace: setup.workspace_id,
                public_url: &public_url,
                address: reachable(address),
            };
            Some(FakeProviders::start(fakes, &called, &settings.data).await?)
        }
    };
    dev_file::write(&file, &dev)
        .map_err(|error| Failure::unreachable(format!("cannot write {}", file.display()), &error))?;
    if output.is_json() {
        output.resource(&dev)?;
    } else {
        let is_captured = captures(server.app(), &dev).await?;
        let console = console_link(server.app(), settings, &dev, &local).await?;
        output::raw(
            (fenced(server.app()) + &welcome(&dev, &file, console.as_deref(), is_captured, fakes.as_ref())).as_bytes(),
        )?;
    }
    let entered = async {
        if let Some(fakes) = &fakes {
            fakes.enter_webhooks().await;
        }
    };
    let (ran, ()) = tokio::join!(server.run(stop), entered);
    drop(fakes);
    Ok(ran?)
}

/// Makes sure that there is something to try out, and finds or renews the secrets for it.
async fn prepare(app: &App, known: Option<DevFile>, local: &str) -> Result<(DevSetup, DevFile), Failure> {
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
    let file = DevFile {
        base_url: format!("{local}/v1"),
        workspace_id: setup.workspace_id.to_string(),
        api_key,
        console_email: setup.console_email.clone(),
        console_password,
        from_email: setup.from_email.clone(),
    };
    Ok((setup, file))
}

async fn new_key(app: &App, setup: &DevSetup) -> Result<String, Error> {
    let input = ApiKeyInput::new("Dev", [Scope::All]);
    let view = admin::create_key(app, setup.workspace_id, &input).await?;
    Ok(view.key.map(Secret::into_inner).unwrap_or_default())
}

async fn new_password(app: &App, setup: &DevSetup) -> Result<String, Error> {
    let password = admin::random_password(app);
    admin::create_user(app, &setup.console_email, Some(password.clone()), None).await?;
    Ok(password)
}

/// URL by which programs on this machine reach the server.
fn local_url(address: SocketAddr) -> String {
    format!("http://{}", reachable(address))
}

/// Address by which programs on this machine reach the server.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// The address of the console, where there is one, with a ticket that signs in once. It is printed and nowhere else.
async fn console_link(app: &App, settings: &Settings, dev: &DevFile, local: &str) -> Result<Option<String>, Failure> {
    if settings.console == Console::Off {
        return Ok(None);
    }
    let link = admin::login_link(app, &dev.console_email).await.map_err(|error| target::refused(app, error))?;
    let link = link.url.into_inner();
    // Without `--public-url`, links begin with the address it listens at, which may be 0.0.0.0.
    let below = link.strip_prefix(&app.settings().public_url).filter(|_| settings.public_url.is_none());
    Ok(Some(below.map_or_else(|| link.clone(), |below| format!("{local}{below}"))))
}

/// Returns true if email of the workspace goes to the sandbox; its channel may have been set since an earlier start.
async fn captures(app: &App, dev: &DevFile) -> Result<bool, Failure> {
    let Ok(workspace) = dev.workspace_id.parse() else { return Ok(false) };
    let settings = app.store().channel(workspace, Channel::Email).await;
    let settings = settings.map_err(|error| target::refused(app, error.into()))?;
    Ok(settings.is_some_and(|settings| settings.record.provider == "sandbox"))
}

/// The program's path as it was called, for commands that people copy: a program that is not on the search path is not
/// found by its name alone.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    let is_plain = called.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+@".contains(c));
    if is_plain && !called.is_empty() { called } else { "messaging".to_owned() }
}

/// The first line of what is printed, where the database is a copy.
fn fenced(app: &App) -> String {
    app.fence().map(|fence| format!("Fenced: {MEANING}.\nCure: {}.\n\n", fence.state.cure())).unwrap_or_default()
}

fn welcome(
    dev: &DevFile,
    file: &Path,
    console: Option<&str>,
    is_captured: bool,
    fakes: Option<&FakeProviders>,
) -> String {
    let DevFile { base_url, workspace_id, api_key, from_email, .. } = dev;
    let root = base_url.trim_end_matches("/v1");
    let message = json!({
        "channel": "email", "from_email": from_email, "to": "ann@example.com", "subject": "Hello", "text": "It works",
    });
    let fakes = fakes.map(|fakes| format!("{}\n", fakes.welcome())).unwrap_or_default();
    let (file, program) = (file.display(), program());
    let console = console.map_or_else(String::new, |link| {
        format!("Look at it in a browser; this link signs in once, within ten minutes:\n\n{link}\n\n")
    });
    let (send, look) = if is_captured {
        (
            "Send a message. The sandbox captures it, nothing leaves this machine:",
            format!("{program} sandbox list\n{program} sandbox get MESSAGE_ID\n"),
        )
    } else {
        ("Send a message. The email channel is not the sandbox: it goes out.", String::new())
    };
    format!(
        "{console}The API is at {base_url}, its reference at {root}/docs.

{send}

curl {base_url}/messages \\
  -H 'Authorization: Bearer {api_key}' \\
  -H 'Content-Type: application/json' \\
  -d '{message}'

See what became of it:

export MESSAGING_URL={base_url} MESSAGING_API_KEY={api_key}
{look}{program} message list
{program} message watch

{fakes}The workspace is {workspace_id}. All of this, with the email and password of a user, is in {file}.
Ctrl-C stops the server; the next start goes on where this one ended.
"
    )
}
