//! The settings of single sign-on.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use messaging_core::domain::security::oidc::discovery::is_issuer;
use messaging_core::domain::security::oidc::{
    MAX_CLAIM, MAX_CLIENT_ID, MAX_GROUP_ROLES, MAX_ISSUER, MAX_NAME, OidcSettings,
};
use messaging_core::domain::security::secret::Secret;

use super::args::SettingsArgs;
use super::error::SettingsError;

/// The provider's name where none is given.
const DEFAULT_NAME: &str = "single sign-on";
/// The claim that lists groups where none is given.
const DEFAULT_CLAIM: &str = "groups";
/// Octets of the file with the client's secret.
const MAX_SECRET: u64 = 4096;

/// The provider of the settings; `None` if no setting is about one.
pub(super) fn oidc(args: &SettingsArgs) -> Result<Option<OidcSettings>, SettingsError> {
    let given = args.given();
    let Some(first) = given.into_iter().find(|name| name.starts_with("oidc_")) else { return Ok(None) };
    let (Some(issuer), Some(client_id)) = (args.oidc_issuer.clone(), args.oidc_client_id.clone()) else {
        return Err(SettingsError::OidcIncomplete(first.replace('_', "-")));
    };
    if !is_issuer(&issuer) || issuer.len() > MAX_ISSUER {
        return Err(SettingsError::OidcIssuer);
    }
    let is_plain = issuer.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    if is_plain && args.allow_private_targets != Some(true) {
        return Err(SettingsError::OidcPlain);
    }
    if !is_text(&client_id, MAX_CLIENT_ID) {
        return Err(SettingsError::OidcClientId);
    }
    let name = args.oidc_name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned());
    if !is_text(&name, MAX_NAME) {
        return Err(SettingsError::OidcName);
    }
    let groups_claim = args.oidc_groups_claim.clone().unwrap_or_else(|| DEFAULT_CLAIM.to_owned());
    if !is_text(&groups_claim, MAX_CLAIM) {
        return Err(SettingsError::OidcGroupsClaim);
    }
    let group_roles = args.oidc_map.clone().unwrap_or_default();
    if group_roles.len() > MAX_GROUP_ROLES {
        return Err(SettingsError::OidcMap);
    }
    Ok(Some(OidcSettings {
        issuer,
        client_id,
        client_secret: args.oidc_client_secret_file.as_deref().map(read_secret).transpose()?,
        name,
        groups_claim,
        group_roles,
        only: args.oidc_only.unwrap_or(false),
    }))
}

/// True of a text of 1 to `most` characters, none of them a control character, and no blanks around it.
fn is_text(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.chars().count()) && text.trim() == text && !text.contains(char::is_control)
}

/// Reads the secret. Editors end a file with a line break, which is not part of it.
fn read_secret(path: &Path) -> Result<Secret, SettingsError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_SECRET + 1).read_to_string(&mut text));
    read.map_err(|source| SettingsError::OidcSecretUnreadable { path: path.to_owned(), source })?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() || text.len() as u64 > MAX_SECRET || secret.contains(char::is_control) {
        return Err(SettingsError::OidcSecret(path.to_owned()));
    }
    Ok(secret.to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_toml(text: &str) -> Result<Option<OidcSettings>, String> {
        let args: SettingsArgs = toml::from_str(text).map_err(|error| error.to_string())?;
        oidc(&args).map_err(|error| error.to_string())
    }

    const WORKSPACE: &str = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    const NEEDED: &str = "oidc_issuer = \"https://id.example.org/realms/acme\"\noidc_client_id = \"messaging\"\n";

    #[test]
    fn a_provider_needs_an_issuer_and_a_client() {
        assert_eq!(from_toml(""), Ok(None));
        let settings = from_toml(NEEDED).unwrap().unwrap();
        assert_eq!((settings.name.as_str(), settings.groups_claim.as_str()), ("single sign-on", "groups"));
        assert_eq!((settings.client_secret, settings.only), (None, false));
        for (text, named) in [
            ("oidc_only = true", "--oidc-only"),
            ("oidc_issuer = \"https://id.example.org\"", "--oidc-issuer"),
            ("oidc_client_id = \"messaging\"", "--oidc-client-id"),
        ] {
            let problem = from_toml(text).unwrap_err();
            assert!(problem.contains(named) && problem.contains("--oidc-client-id"), "{problem}");
        }
    }

    #[test]
    fn everything_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        std::fs::write(&path, "s3cret with blanks\n").unwrap();
        let text = format!(
            "{NEEDED}oidc_client_secret_file = '{}'\noidc_name = \"Acme\"\noidc_groups_claim = \"realm_access.roles\"\n\
             oidc_map = [\"CN=Mail,OU=IT={WORKSPACE}:admin\", \"staff={WORKSPACE}:viewer\"]\noidc_only = true",
            path.display()
        );
        let settings = from_toml(&text).unwrap().unwrap();
        assert_eq!(settings.client_secret.as_ref().map(Secret::expose), Some("s3cret with blanks"));
        assert_eq!(settings.group_roles[0].group, "CN=Mail,OU=IT");
        assert_eq!((settings.group_roles.len(), settings.only, settings.name.as_str()), (2, true, "Acme"));
        for (content, word) in [("", "--oidc-client-secret-file"), ("\n", "empty"), ("a\nb", "one line")] {
            std::fs::write(&path, content).unwrap();
            assert!(from_toml(&text).unwrap_err().contains(word), "{content:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(from_toml(&text).unwrap_err().contains("failed to read"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let client = "oidc_client_id = \"messaging\"";
        for (text, word) in [
            (format!("oidc_issuer = \"id.example.org\"\n{client}"), "--oidc-issuer"),
            (format!("oidc_issuer = \"https://id.example.org/?x\"\n{client}"), "--oidc-issuer"),
            (format!("oidc_issuer = \"http://id.example.org\"\n{client}"), "--allow-private-targets"),
            ("oidc_issuer = \"https://id.example.org\"\noidc_client_id = \"\"".to_owned(), "--oidc-client-id"),
            (format!("{NEEDED}oidc_name = \" \""), "--oidc-name"),
            (format!("{NEEDED}oidc_name = \"{}\"", "x".repeat(61)), "--oidc-name"),
            (format!("{NEEDED}oidc_groups_claim = \"\""), "--oidc-groups-claim"),
            (format!("{NEEDED}oidc_map = [\"staff=Acme:viewer\"]"), "staff=Acme:viewer"),
            (format!("{NEEDED}oidc_map = [\"staff={WORKSPACE}:boss\"]"), "viewer, editor, admin, owner"),
            (format!("{NEEDED}oidc_only = 1"), "oidc_only"),
        ] {
            let problem = from_toml(&text).unwrap_err();
            assert!(problem.contains(word), "{text}: {problem}");
        }
        let plain = format!("oidc_issuer = \"http://127.0.0.1:5000\"\n{client}\nallow_private_targets = true");
        assert!(from_toml(&plain).unwrap().is_some());
    }
}
