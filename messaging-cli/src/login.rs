//! `login`: saves a server with an API key or session as a profile, which other commands use.

use clap::{Arg, ArgMatches, Command};
use messaging_core::time::Timestamp;
use messaging_engine::ops::Endpoint;
use messaging_engine::ops::sessions::Login;
use messaging_engine::ops::sessions::second_step::LoginWithFactor;
use messaging_engine::ops::workspaces::ListWorkspaces;
use serde_json::{Value, json};

use crate::arguments::{self, API_KEY, PROFILE, URL, WORKSPACE};
use crate::failure::{Failure, accepted};
use crate::output::{self, Output};
use crate::profile::{self, Profile};
use crate::reply::Reply;
use crate::request::Request;
use crate::target::{self, Target};
use crate::{terminal, user_files};

const EMAIL: &str = "email";

/// URL of a server on this machine with default settings; suggested at the prompt.
const USUAL_URL: &str = "http://127.0.0.1:8080";

const EXAMPLES: &str = "Asks for an API key, or for email and password, without showing what is typed, and tries it. \
The profile is saved in $XDG_CONFIG_HOME/messaging/profiles.toml (~/.config/messaging), which only you can read. A session \
lasts 12 hours; an API key lasts until it expires or is revoked.

Without a terminal the key, or with --email the password, is read from standard input, and the code of a second factor \
from its next line. With --api-key other users of the machine may see the key on the command line.

Commands use the profile `default` unless --profile, MESSAGING_PROFILE, --url or MESSAGING_URL say otherwise, or a \
database is named.

Examples:
  messaging login --url https://mail.example.com
  messaging login --url https://staging.example.com --profile staging --email ann@example.com
  messaging login --url https://mail.example.com < key.txt";

/// Returns the definition of the command, with its arguments and help.
pub(crate) fn command() -> Command {
    Command::new("login")
        .about("Save a server with an API key or session as a profile, which other commands use")
        .after_help(EXAMPLES)
        .arg(
            Arg::new(URL)
                .long("url")
                .value_name("URL")
                .env("MESSAGING_URL")
                .hide_env_values(true)
                .help("The server, such as https://mail.example.com"),
        )
        .arg(
            Arg::new(API_KEY)
                .long("api-key")
                .value_name("KEY")
                .conflicts_with(EMAIL)
                .help("The API key; it is safer to type it, or to pass it on standard input"),
        )
        .arg(Arg::new(EMAIL).long("email").value_name("EMAIL").help("Sign in with this email and a password"))
        .arg(
            Arg::new(PROFILE)
                .long("profile")
                .value_name("NAME")
                .env("MESSAGING_PROFILE")
                .hide_env_values(true)
                .help("The name to save it under [default: default]"),
        )
        .arg(
            Arg::new(WORKSPACE)
                .long("workspace")
                .value_name("ID")
                .help("The workspace, if the credentials are valid for several"),
        )
        .arg(arguments::json())
}

/// Asks for missing arguments, tries the credentials, and saves the profile. Nothing is saved if they are refused.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let name = arguments::text(matches, PROFILE).unwrap_or(profile::DEFAULT).to_owned();
    profile::check_name(&name)?;
    let url = match arguments::text(matches, URL) {
        Some(url) => url.to_owned(),
        None if terminal::has_somebody() => {
            let typed = terminal::ask(&format!("Server [{USUAL_URL}]: "))?;
            if typed.trim().is_empty() { USUAL_URL.to_owned() } else { typed.trim().to_owned() }
        }
        None => return Err(Failure::usage("no server is named: give --url")),
    };
    let credentials = match arguments::text(matches, API_KEY) {
        Some(key) => Credentials::Key(key.trim().to_owned()),
        None => ask(arguments::text(matches, EMAIL))?,
    };
    target::block_on(sign_in(name, url, credentials, arguments::text(matches, WORKSPACE), output))?
}

/// Credentials that were typed or given as arguments.
enum Credentials {
    Key(String),
    Password { email: String, password: String },
}

/// Asks for an API key, or for a password if the email is known. An empty key means signing in with email and password.
fn ask(email: Option<&str>) -> Result<Credentials, Failure> {
    let email = if let Some(email) = email {
        email.to_owned()
    } else {
        let key = terminal::ask_secretly("API key (nothing: sign in with email and password): ")?;
        if !key.trim().is_empty() {
            return Ok(Credentials::Key(key.trim().to_owned()));
        }
        if !terminal::has_somebody() {
            return Err(Failure::usage(
                "there is nothing on standard input: pass an API key there, or with --email a password",
            ));
        }
        terminal::ask("Email: ")?.trim().to_owned()
    };
    let password = terminal::ask_secretly("Password: ")?;
    Ok(Credentials::Password { email, password })
}

/// Tries the credentials, chooses the workspace, and saves the profile.
async fn sign_in(
    name: String,
    url: String,
    credentials: Credentials,
    workspace: Option<&str>,
    output: Output,
) -> Result<(), Failure> {
    let (token, expires_at) = match credentials {
        Credentials::Key(key) => (key, None),
        Credentials::Password { email, password } => session(&url, &email, &password).await?,
    };
    let workspace = match workspace {
        Some(workspace) => Some(workspace.to_owned()),
        None => only_workspace(&url, &token).await?,
    };
    // Tried even if the workspace was given, so that credentials that do not work are not saved.
    let target = Target::server(&url, Some(&token), workspace.as_deref())?;
    accepted(target.call(&Request::new(Endpoint::row::<ListWorkspaces>())).await?)?;
    let saved = Profile { url: url.clone(), token, workspace: workspace.clone(), expires_at };
    profile::save(&name, saved)?;
    let file = user_files::path(profile::FILE)?;
    let document =
        json!({"profile": name, "url": url, "workspace_id": workspace, "expires_at": expires_at, "file": file});
    let until = expires_at.map(|time| format!(", until {time}")).unwrap_or_default();
    output.line(&document, &format!("signed in to {url}{until}; saved as profile {name} in {}", file.display()))
}

/// Signs in with a password, and with a second factor if the account has one. Returns the session's token and its end.
async fn session(url: &str, email: &str, password: &str) -> Result<(String, Option<Timestamp>), Failure> {
    let body = json!({"email": email, "password": password});
    let request = Request { body: body.to_string().into(), ..Request::new(Endpoint::row::<Login>()) };
    let target = Target::server(url, None, None)?;
    let mut reply = target.call(&request).await?;
    if let Some(pending) = second_step(&reply) {
        reply = with_factor(&target, &pending).await?;
    }
    let login = accepted(reply)?;
    let token = login["token"].as_str().unwrap_or_default().to_owned();
    Ok((token, login["expires_at"].as_str().and_then(|time| time.parse().ok())))
}

/// Returns the token for the second step of a sign-in; `None` if the reply does not ask for a second factor.
fn second_step(reply: &Reply) -> Option<String> {
    let answer: Value = serde_json::from_slice(&reply.body).ok()?;
    let is_asked = answer["error"]["code"] == "second_factor_required";
    is_asked.then(|| answer["error"]["details"]["token"].as_str().map(ToOwned::to_owned))?
}

/// Asks for a code and makes the second step of a sign-in. On a terminal a wrong code is asked for again while the
/// server permits another try.
async fn with_factor(target: &Target, token: &str) -> Result<Reply, Failure> {
    loop {
        let code = terminal::ask("Code of your second factor, or a recovery code: ")?;
        let body = json!({"token": token, "code": code.trim()});
        let request = Request { body: body.to_string().into(), ..Request::new(Endpoint::row::<LoginWithFactor>()) };
        let reply = target.call(&request).await?;
        let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let tries_left = answer["error"]["details"]["tries_left"].as_u64().unwrap_or(0);
        if tries_left == 0 || !terminal::has_somebody() {
            return Ok(reply);
        }
        output::note("the code is wrong, was used already or is too old; enter the present one");
    }
}

/// Returns the workspace of the credentials if there is only one. Otherwise prints all workspaces and returns `None`.
async fn only_workspace(url: &str, token: &str) -> Result<Option<String>, Failure> {
    let target = Target::server(url, Some(token), None)?;
    let page = accepted(target.call(&Request::new(Endpoint::row::<ListWorkspaces>())).await?)?;
    let text = |one: &Value, name: &str| output::plain_text(one[name].as_str().unwrap_or_default());
    let all: Vec<_> =
        page["data"].as_array().into_iter().flatten().map(|one| (text(one, "id"), text(one, "name"))).collect();
    if let [(id, _)] = all.as_slice() {
        return Ok(Some(id.clone()));
    }
    for (id, name) in &all {
        output::note(&format!("{id}  {name}"));
    }
    output::note("no workspace is saved: give --workspace here, or with each command");
    Ok(None)
}
