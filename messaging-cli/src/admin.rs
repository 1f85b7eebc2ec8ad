//! `admin`: users, workspaces and API keys, straight on the database, also while a server works on it.

mod deletion;
mod ip_pools;
#[cfg(feature = "postgres")]
mod moving;
mod parts;
mod quarantine;
mod rotate_secret_key;

use std::io::Read as _;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand};
use messaging_core::ids::ApiKeyId;
use messaging_core::input;
use messaging_core::scope::Scope;
use messaging_engine::admin::{DifferenceReport, Queued, VerifyReport};
use messaging_engine::ops::keys::ApiKeyInput;
use messaging_engine::{App, Error, admin};
use serde_json::{Map, Value, json};

use self::parts::{ListPage, list, workspace};
use crate::arguments;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target;

const EXAMPLES: &str = "Examples:
  messaging admin create-user --email ann@example.com --generate-password
  messaging admin create-workspace --name Acme --owner ann@example.com
  messaging admin create-key --workspace wsp_… --name backend --scopes messages:send,events:write
  messaging admin create-key --workspace wsp_… --name everything --scopes '*' --json | jq -r .key
  messaging admin list-users --all --json | jq -r '.data[].email'
  messaging admin login-link --email ann@example.com
  messaging admin set-operator --email ann@example.com
  messaging admin reset-factors --email ann@example.com
  messaging admin delete-workspace --id wsp_… --now
  messaging admin delete-user --email ann@example.com
  messaging admin dns-records
  messaging admin verify --data ./messaging-data
  messaging admin quarantine release --all
  messaging admin grant-ip --workspace wsp_… --ip 203.0.113.7
  messaging admin create-pool --shared --name transactional --ip 203.0.113.8,203.0.113.9
  messaging admin rotate-secret-key
  messaging admin move --from sqlite://messaging-data/messaging.db --to postgres://messaging@db.internal/messaging

An installation begins with the first start of `messaging serve`, or with create-user in an empty directory that is there \
already. Nothing else makes a database, so that a mistyped --data is an error.";

#[derive(Debug, Subcommand)]
enum Admin {
    /// Create a user, or set the password or name of an existing one
    CreateUser(CreateUser),
    /// Create a workspace; the owner is a user
    CreateWorkspace(CreateWorkspace),
    /// Create an API key; the answer is the only place where the whole key is shown
    CreateKey(CreateKey),
    /// Revoke an API key; a running server notices within a second
    RevokeKey(RevokeKey),
    /// Delete a workspace with everything in it: in seven days, or --now
    #[command(after_help = deletion::HELP)]
    DeleteWorkspace(deletion::DeleteWorkspace),
    /// Delete a user with their password, sessions and memberships; logs of what they did keep their name
    DeleteUser(deletion::DeleteUser),
    /// List the API keys of a workspace, revoked ones included
    ListKeys(ListKeys),
    /// List the workspaces of the installation
    ListWorkspaces(ListPage),
    /// List the users of the installation
    ListUsers(ListPage),
    /// Make a user an operator of the whole installation, who may use `/system`; --off ends that
    SetOperator(SetOperator),
    /// Remove all second factors of a user who has lost them, and their recovery codes; the user's sessions end
    ResetFactors(ResetFactors),
    /// Make a link by which a user signs in once within ten minutes, also one who has lost the password
    LoginLink(LoginLink),
    /// End the fence of a restored or copied installation; --queued says whether waiting messages are sent or cancelled
    Resume(Resume),
    /// Grant an address to a workspace, which may then use it in its IP pools
    #[command(after_help = ip_pools::GRANTS)]
    GrantIp(ip_pools::GrantIp),
    /// Take an address back from a workspace; refused while one of its IP pools names it
    RevokeIp(ip_pools::GrantIp),
    /// List the addresses that a workspace may name in its IP pools
    ListGrants(ip_pools::ListGrants),
    /// Create an IP pool that every workspace may use and none may change
    #[command(after_help = ip_pools::SHARED)]
    CreatePool(ip_pools::CreatePool),
    /// List the IP pools that all workspaces share
    ListPools,
    /// Rename a shared IP pool, or replace its addresses
    UpdatePool(ip_pools::UpdatePool),
    /// Delete a shared IP pool; refused while a sending domain names it
    DeletePool(ip_pools::DeletePool),
    /// Change the name of the installation, which is in Message-IDs and DNS records; at first it is the hostname
    SetName(SetName),
    /// Show the DNS records of the installation's own name, which DMARC and TLS reports need; `domain records` shows those of
    /// a sending domain
    DnsRecords,
    /// Move everything from SQLite to an empty PostgreSQL database, compare both, and fence the source
    #[cfg(feature = "postgres")]
    #[command(after_help = moving::HELP)]
    Move(moving::Move),
    /// Recount all counters and check rows and files; exit code 1 when something differs. Changes nothing, and may run
    /// beside a server, whose write-ahead log grows meanwhile
    Verify,
    /// Change to a new secret key, also while servers run; links in mail that was sent go on working
    #[command(after_help = rotate_secret_key::HELP)]
    RotateSecretKey(rotate_secret_key::RotateSecretKey),
    /// List, release or drop work that was put aside because the database permanently refuses its result
    #[command(subcommand, disable_help_subcommand = true)]
    Quarantine(quarantine::Quarantine),
}

#[derive(Debug, Args)]
struct CreateUser {
    /// The sign-in name
    #[arg(long, value_name = "EMAIL")]
    email: String,
    /// The password; `-` reads it from standard input. Without one a new user cannot sign in yet
    #[arg(long, value_name = "PASSWORD", conflicts_with = "generate_password")]
    password: Option<String>,
    /// Generate a password and print it once, on standard error
    #[arg(long)]
    generate_password: bool,
    /// A display name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Make the user an operator, who manages the whole installation: `/system` in the API, System in the console
    #[arg(long)]
    operator: bool,
}

#[derive(Debug, Args)]
struct SetOperator {
    /// The sign-in name
    #[arg(long, value_name = "EMAIL")]
    email: String,
    /// Make the user an ordinary user again
    #[arg(long)]
    off: bool,
}

#[derive(Debug, Args)]
struct ResetFactors {
    /// The sign-in name
    #[arg(long, value_name = "EMAIL")]
    email: String,
}

#[derive(Debug, Args)]
struct CreateWorkspace {
    /// Its name, 1 to 200 characters
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The email of the user who owns it
    #[arg(long, value_name = "EMAIL")]
    owner: String,
}

#[derive(Debug, Args)]
struct CreateKey {
    /// The workspace that the key opens
    #[arg(long, value_name = "ID", env = "MESSAGING_WORKSPACE", hide_env_values = true)]
    workspace: String,
    /// Name of the key, such as the program that uses it, 1 to 100 characters
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Scopes of the key: the operations that it may call
    #[arg(long, value_name = "SCOPE,…", value_delimiter = ',', required = true, value_parser = scopes())]
    scopes: Vec<String>,
    /// Requests a minute [default: 600]
    #[arg(long, value_name = "N")]
    rate_limit: Option<u32>,
    /// Addresses and blocks from which the key works [default: all]
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',')]
    ip_allow: Vec<String>,
    /// Time at which the key expires, RFC 3339 or a time from now such as +90d [default: never]
    #[arg(long, value_name = "TIME", value_parser = arguments::time_ahead)]
    expires_at: Option<String>,
}

#[derive(Debug, Args)]
struct RevokeKey {
    /// The key's id
    #[arg(long, value_name = "KEY_ID")]
    id: String,
}

#[derive(Debug, Args)]
struct ListKeys {
    /// The workspace
    #[arg(long, value_name = "ID", env = "MESSAGING_WORKSPACE", hide_env_values = true)]
    workspace: String,
    #[command(flatten)]
    page: ListPage,
}

#[derive(Debug, Args)]
struct LoginLink {
    /// The sign-in name
    #[arg(long, value_name = "EMAIL")]
    email: String,
    /// URL of the server [default: the --public-url of the server that runs on the database, or the address at which it listens]
    #[arg(long, value_name = "URL", env = "MESSAGING_PUBLIC_URL", hide_env_values = true)]
    public_url: Option<String>,
}

#[derive(Debug, Args)]
struct SetName {
    /// A domain name
    #[arg(long, value_name = "NAME")]
    name: String,
}

#[derive(Debug, Args)]
struct Resume {
    /// `cancel` ends every waiting message as cancelled and every waiting webhook delivery as failed, so that nothing from
    /// before is sent from here; `send` sends all of it, even if another server has sent it since the copy was made
    #[arg(long, value_name = "WHAT", value_parser = ["send", "cancel"])]
    queued: String,
}

/// Interval at which the command checks if a server has cancelled everything.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest time the command waits for a server to cancel everything; the server continues without it.
const PATIENCE: Duration = Duration::from_mins(30);

async fn resume(matches: &ArgMatches, resume: &Resume, output: Output) -> Result<(), Failure> {
    let (app, is_alone) = target::open_to_work(matches).await?;
    let refused = |error: Error| target::refused(&app, error);
    let queued = if resume.queued == "send" { Queued::Send } else { Queued::Cancel };
    let mut report = admin::resume(&app, queued).await.map_err(refused)?;
    if report.fenced_since.is_none() {
        output::note("the installation is not fenced: there is nothing to resume");
    }
    let is_cancelling = report.doing.take().is_some();
    if is_cancelling && queued == Queued::Send {
        return Err(Failure::Failed(
            "waiting messages are being cancelled already; after that the server sends again".to_owned(),
        ));
    }
    if is_cancelling && is_alone {
        let mut cancelled = 0;
        let mut note = |more: usize| {
            cancelled += more;
            if cancelled > 0 && more > 0 && cancelled % 20_000 < more {
                output::note(&format!("{cancelled} cancelled so far"));
            }
        };
        admin::cancel_waiting(&app, &mut note).await.map_err(refused)?;
    } else if is_cancelling {
        let started = tokio::time::Instant::now();
        while app.store().fence().await.map_err(|error| refused(error.into()))?.is_some() {
            if started.elapsed() > PATIENCE {
                return Err(Failure::Failed(
                    "the server is still cancelling waiting messages, and continues without this command".to_owned(),
                ));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    app.store().close().await;
    output.resource(&report)
}

fn scopes() -> PossibleValuesParser {
    PossibleValuesParser::new(Scope::ALL.iter().map(|scope| scope.as_str()))
}

/// The command.
pub(crate) fn command() -> Command {
    let command = Command::new("admin")
        .about("Manage users, workspaces, API keys, sign-in links, IP pools and the database itself, directly on the database, also while the server runs")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true);
    let mut command = Admin::augment_subcommands(command);
    let names: Vec<_> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in names {
        // `move` names its databases itself.
        let is_move = name == "move";
        let of_database = |verb: Command| verb.args(arguments::database_target()).args(arguments::output());
        command = command.mut_subcommand(name, |verb| {
            if verb.has_subcommands() {
                return verb.mut_subcommands(of_database);
            }
            if is_move { verb.arg(arguments::json()) } else { of_database(verb) }
        });
    }
    command
}

/// Carries it out.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let admin = Admin::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let (_, verb) = matches.subcommand().expect("required");
    let matches = verb.subcommand().map_or(verb, |(_, inner)| inner);
    target::block_on(async {
        if let Admin::Resume(flags) = &admin {
            return resume(matches, flags, output).await;
        }
        if let Admin::DeleteWorkspace(flags) = &admin {
            return deletion::delete_workspace(matches, flags, output).await;
        }
        if let Admin::RotateSecretKey(flags) = &admin {
            return rotate_secret_key::carry_out(matches, flags, output).await;
        }
        #[cfg(feature = "postgres")]
        if let Admin::Move(flags) = &admin {
            return moving::carry_out(flags, output).await;
        }
        let app = match &admin {
            Admin::CreateUser(_) => target::open_or_begin(matches).await?,
            Admin::LoginLink(link) => target::open_for_links(matches, link.public_url.as_deref()).await?,
            _ => Box::pin(target::open_existing(matches)).await?,
        };
        carry_out(&app, admin, output).await
    })?
}

async fn carry_out(app: &App, admin: Admin, output: Output) -> Result<(), Failure> {
    let refused = |error: Error| target::refused(app, error);
    match admin {
        Admin::CreateUser(user) => {
            let password = password(app, &user)?;
            let is_secret = password.is_some();
            let mut report = admin::create_user(app, &user.email, password, user.name).await.map_err(refused)?;
            if user.operator {
                report = admin::set_operator(app, &user.email, true).await.map_err(refused)?;
            }
            if !is_secret {
                output::note(
                    "no password was given: `messaging admin login-link` makes a link by which the user signs in and sets \
                     one, or set one with the same command and --password or --generate-password",
                );
            }
            output.resource(&report)
        }
        Admin::SetOperator(set) => {
            output.resource(&admin::set_operator(app, &set.email, !set.off).await.map_err(refused)?)
        }
        Admin::ResetFactors(reset) => output.resource(&admin::reset_factors(app, &reset.email).await.map_err(refused)?),
        Admin::CreateWorkspace(workspace) => {
            let view = admin::create_workspace(app, &workspace.name, &workspace.owner).await.map_err(refused)?;
            output.resource(&view)
        }
        Admin::CreateKey(key) => {
            let workspace = workspace(&key.workspace)?;
            let input = key_input(key).map_err(refused)?;
            let view = admin::create_key(app, workspace, &input).await.map_err(refused)?;
            if !output.is_json() {
                output::note("keep the key; it cannot be shown again");
            }
            output.resource(&view)
        }
        Admin::RevokeKey(key) => {
            let id = key.id.parse::<ApiKeyId>().map_err(|_| refused(Error::NotFound))?;
            output.resource(&admin::revoke_key(app, id).await.map_err(refused)?)
        }
        Admin::DeleteUser(user) => {
            user.confirmation.ask(&format!("Delete the user {} with their sessions and memberships?", user.email))?;
            output.resource(&admin::delete_user(app, &user.email).await.map_err(refused)?)
        }
        Admin::Resume(_) | Admin::DeleteWorkspace(_) | Admin::RotateSecretKey(_) => {
            Err(Failure::usage("the command opens the database itself"))
        }
        #[cfg(feature = "postgres")]
        Admin::Move(_) => Err(Failure::usage("move opens the databases itself")),
        Admin::SetName(set) => output.resource(&admin::set_installation_name(app, &set.name).await.map_err(refused)?),
        Admin::DnsRecords => output.resource(&admin::dns_records(app).await.map_err(refused)?),
        Admin::Quarantine(quarantine) => quarantine::carry_out(app, quarantine, output).await,
        Admin::GrantIp(grant) => ip_pools::grant(app, &grant, output).await,
        Admin::RevokeIp(grant) => ip_pools::revoke(app, &grant, output).await,
        Admin::ListGrants(grants) => ip_pools::list_grants(app, &grants, output).await,
        Admin::CreatePool(pool) => ip_pools::create(app, pool, output).await,
        Admin::ListPools => output.resource(&admin::list_shared_pools(app).await.map_err(refused)?),
        Admin::UpdatePool(pool) => ip_pools::update(app, pool, output).await,
        Admin::DeletePool(pool) => ip_pools::delete(app, &pool, output).await,
        Admin::Verify => verified(&admin::verify(app).await.map_err(refused)?, output),
        Admin::ListKeys(keys) => {
            let workspace = workspace(&keys.workspace)?;
            list(app, &keys.page, output, async |query| admin::list_keys(app, workspace, &query).await).await
        }
        Admin::ListWorkspaces(page) => {
            list(app, &page, output, async |query| admin::list_workspaces(app, &query).await).await
        }
        Admin::ListUsers(page) => list(app, &page, output, async |query| admin::list_users(app, &query).await).await,
        Admin::LoginLink(link) => {
            let report = admin::login_link(app, &link.email).await.map_err(refused)?;
            if !output.is_json() {
                output::note(
                    "the link opens one session; `messaging auth redeem --ticket` takes what follows #ticket=",
                );
            }
            output.resource(&report)
        }
    }
}

/// Prints the report; fails if something differs.
fn verified(report: &VerifyReport, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        output.resource(report)?;
    } else {
        for DifferenceReport { what, stored, counted, .. } in &report.differences {
            output::raw(format!("{what}: stored {stored}, counted {counted}\n").as_bytes())?;
        }
    }
    let (checked, differing) = (report.checked, report.differences.len());
    if differing > 0 {
        return Err(Failure::Unsuccessful(format!("{differing} of {checked} numbers, rows and files differ")));
    }
    if !output.is_json() {
        output::raw(format!("{checked} numbers, rows and files are as they should be\n").as_bytes())?;
    }
    Ok(())
}

fn password(app: &App, user: &CreateUser) -> Result<Option<String>, Failure> {
    if user.generate_password {
        let password = admin::random_password(app);
        output::note(&format!("password: {password}"));
        return Ok(Some(password));
    }
    if user.password.as_deref() != Some("-") {
        return Ok(user.password.clone());
    }
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read the password from standard input: {error}")))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// The flags as the body of the operation that does the same, so that its rules and field errors apply.
fn key_input(key: CreateKey) -> Result<ApiKeyInput, Error> {
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(key.name));
    body.insert("scopes".to_owned(), json!(key.scopes));
    body.insert("ip_allowlist".to_owned(), json!(key.ip_allow));
    body.extend(key.rate_limit.map(|limit| ("rate_limit".to_owned(), json!(limit))));
    body.extend(key.expires_at.map(|time| ("expires_at".to_owned(), json!(time))));
    Ok(input::body(Value::Object(body).to_string().as_bytes())?)
}
