//! A foreign single sign-on provider as a process: the npm package `oidc-provider`, run by `node`.
//!
//! It is not part of this project: `OIDC_PROVIDER` is the path of its file `lib/index.js`, version 9.13.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use messaging_core::domain::security::oidc::OidcSettings;
use serde_json::{Value, json};

use super::page::{NAMED, Page};
use crate::harness::TestServer;

/// The Enter key, as the browser's protocol writes it.
const ENTER: &str = "\u{e007}";

/// The secret of the client.
const SECRET: &str = "a secret: with+marks%";

/// A running provider. It ends with its standard input, and so with this process.
pub(crate) struct Provider {
    library: OsString,
    process: Process,
    /// Address of the provider and its issuer name: scheme, host and port.
    pub(crate) issuer: String,
    settings: Value,
}

struct Process {
    child: Child,
    /// Kept open, so that the provider can write.
    _output: BufReader<ChildStdout>,
}

impl Provider {
    /// Starts a provider for the server at [`NAMED`], with accounts for these people: claims by sign-in name. `None` if
    /// it is not installed, which is noted on standard error.
    pub(crate) fn start(people: &Value) -> Option<Self> {
        let Some(library) = std::env::var_os("OIDC_PROVIDER") else {
            assert!(std::env::var_os("REQUIRE_BROWSER").is_none(), "OIDC_PROVIDER names no lib/index.js");
            let _ = writeln!(std::io::stderr(), "SKIPPED: single sign-on, because OIDC_PROVIDER names no lib/index.js");
            return None;
        };
        let settings = json!({"port": 0, "redirect_uri": format!("{NAMED}/v1/auth/oidc/callback"), "secret": SECRET,
            "algorithm": "RS256", "people": people});
        let (process, issuer) = run(&library, &settings);
        Some(Self { library, process, issuer, settings })
    }

    /// Ends the provider and starts it again at the same address with another key, no memory, and changed settings.
    pub(crate) fn restart(&mut self, changes: &Value) {
        let (_, port) = self.issuer.rsplit_once(':').unwrap();
        self.settings["port"] = json!(port.parse::<u16>().unwrap());
        for (name, value) in changes.as_object().unwrap() {
            self.settings[name] = value.clone();
        }
        self.end();
        let (process, issuer) = run(&self.library, &self.settings);
        assert_eq!(issuer, self.issuer);
        self.process = process;
    }

    fn end(&mut self) {
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
    }

    /// Settings of a server whose users sign in at the provider.
    pub(crate) fn oidc(&self) -> OidcSettings {
        OidcSettings {
            issuer: self.issuer.clone(),
            client_id: "messaging".to_owned(),
            client_secret: self.settings["secret"].as_str().map(|secret| secret.to_owned().into()),
            name: "Acme".to_owned(),
            groups_claim: "groups".to_owned(),
            group_roles: Vec::new(),
            only: false,
        }
    }

    /// Follows the console's button. The server's clock is set to that of the browser, which is also the provider's.
    pub(crate) async fn follow_button(page: &Page, server: &TestServer) {
        page.set_clock(server).await;
        page.focus("link", "Sign in with Acme").await;
        page.browser.type_keys(ENTER).await;
    }

    /// Follows the button to the provider, which asks for the sign-in name.
    pub(crate) async fn ask_for_name(&self, page: &Page, server: &TestServer) {
        Self::follow_button(page, server).await;
        let is_there = format!("location.origin === {}", json!(self.issuer));
        page.until_there(&format!("{is_there} && document.querySelector('form [name=login]')")).await;
    }

    /// Signs in a person who is new to the provider: by name, and then by consent.
    pub(crate) async fn sign_in(&self, page: &Page, server: &TestServer, name: &str) {
        self.ask_for_name(page, server).await;
        for (field, text) in [("login", name), ("password", "any")] {
            let focus = "document.querySelector(`form [name=${arguments[0]}]`).focus()";
            page.browser.run(focus, &[json!(field)]).await;
            page.browser.type_keys(text).await;
        }
        page.browser.type_keys(ENTER).await;
        page.until_there("document.querySelector('form [name=prompt][value=consent]')").await;
        page.browser.run("document.querySelector('form [type=submit]').focus()", &[]).await;
        page.browser.type_keys(ENTER).await;
    }

    /// Faults of the console since the last call, without those of the provider's pages, which load a font from another
    /// host.
    pub(crate) async fn faults_without_its_own(&self, page: &Page) -> Vec<String> {
        let mut faults = page.faults().await;
        faults.retain(|fault| !fault.contains(&self.issuer) && !fault.contains("fonts.googleapis.com"));
        faults
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a provider; returns the process and the issuer.
fn run(library: &OsStr, settings: &Value) -> (Process, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/console/sign_on_provider.mjs");
    let mut child = Command::new("node")
        .arg(script)
        .arg(library)
        .arg(settings.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("node runs the provider");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut issuer = String::new();
    output.read_line(&mut issuer).unwrap();
    assert!(issuer.starts_with("http://127.0.0.1:"), "the provider does not start: {issuer:?}");
    (Process { child, _output: output }, issuer.trim_end().to_owned())
}
