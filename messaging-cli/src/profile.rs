//! Profiles: servers and credentials that `messaging login` has saved, in a file that its owner alone can read.

use std::collections::BTreeMap;

use clap::ArgMatches;
use clap::parser::ValueSource;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::arguments::{self, API_KEY, PROFILE, URL, WORKSPACE};
use crate::failure::Failure;
use crate::user_files;

/// Name of the file that holds the profiles, among the files of the user.
pub(crate) const FILE: &str = "profiles.toml";

/// Name of the profile that is used when none is named.
pub(crate) const DEFAULT: &str = "default";

/// Maximum length of a profile's name, in characters.
const MAX_NAME: usize = 64;

/// A server and the credential for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) url: String,
    /// An API key or a session token.
    pub(crate) token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<String>,
    /// Time at which the token expires; `None` for an API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Timestamp>,
}

/// Content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Profiles {
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

/// Server, credential and workspace given by the command line, the environment and the profile together.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) url: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) workspace: Option<String>,
}

/// Returns the server, credential and workspace to use. `--profile` takes precedence over the environment; a profile
/// from the environment or the default one is used only if no server, key or database is given: a key is never sent to
/// a server that it was not saved for.
pub(crate) fn connection(matches: &ArgMatches, names_database: bool) -> Result<Connection, Failure> {
    let given = |id| arguments::text(matches, id).map(ToOwned::to_owned);
    let flag = |id| given(id).filter(|_| matches.value_source(id) == Some(ValueSource::CommandLine));
    let plain = Connection { url: given(URL), token: given(API_KEY), workspace: given(WORKSPACE) };
    if let Some(name) = flag(PROFILE) {
        if flag(URL).is_some() {
            return Err(Failure::usage("--profile names a server already: leave --url out"));
        }
        return Ok(of(named(&name)?, flag(API_KEY), flag(WORKSPACE)));
    }
    if plain.url.is_some() || plain.token.is_some() || names_database {
        return Ok(plain);
    }
    match given(PROFILE) {
        Some(name) => Ok(of(named(&name)?, None, plain.workspace)),
        None => Ok(match load()?.profiles.remove(DEFAULT) {
            Some(profile) => of(live(DEFAULT, profile)?, None, plain.workspace),
            None => plain,
        }),
    }
}

fn of(profile: Profile, token: Option<String>, workspace: Option<String>) -> Connection {
    Connection {
        url: Some(profile.url),
        token: token.or(Some(profile.token)),
        workspace: workspace.or(profile.workspace),
    }
}

/// Returns the profile with a name, if its token has not expired.
fn named(name: &str) -> Result<Profile, Failure> {
    let mut all = load()?.profiles;
    let Some(profile) = all.remove(name) else {
        let known: Vec<_> = all.into_keys().collect();
        let known = if known.is_empty() { "none is saved".to_owned() } else { format!("saved: {}", known.join(", ")) };
        return Err(Failure::usage(format!("there is no profile {name:?} ({known}); `messaging login` makes one")));
    };
    live(name, profile)
}

/// Returns the profile if its token has not expired.
fn live(name: &str, profile: Profile) -> Result<Profile, Failure> {
    if profile.expires_at.is_some_and(|until| until <= SystemClock.now()) {
        return Err(Failure::usage(format!("the session of the profile {name:?} is over: messaging login")));
    }
    Ok(profile)
}

/// Saves a profile, replacing one with the same name.
pub(crate) fn save(name: &str, profile: Profile) -> Result<(), Failure> {
    let mut all = load()?;
    all.profiles.insert(name.to_owned(), profile);
    let text = toml::to_string(&all).map_err(|error| Failure::usage(format!("cannot save the profile: {error}")))?;
    user_files::write(&user_files::path(FILE)?, &text)
}

/// Checks the name of a profile: 1 to 64 letters, digits, `-`, `_` and `.`.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Failure::usage("--profile: letters, digits, -, _ and ., at most 64"))
}

fn load() -> Result<Profiles, Failure> {
    // Without a home directory there are no profiles.
    let Ok(path) = user_files::path(FILE) else { return Ok(Profiles::default()) };
    let Some(text) = user_files::read(&path)? else { return Ok(Profiles::default()) };
    toml::from_str(&text)
        .map_err(|error| Failure::usage(format!("cannot read {}: {}", path.display(), error.message())))
}
