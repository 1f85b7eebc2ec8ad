//! The console in a browser, as a person uses it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::people::PASSWORD;
use super::webdriver::{Browser, keys};
use crate::harness::TestServer;

/// Script that runs in every document before its own.
const WATCH: &str = include_str!("watch.js");

/// Time limit for drawing a screen, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Address of a server with a name, see [`Page::start_named`].
pub(crate) const NAMED: &str = "http://localhost";

/// The name of the session cookie without HTTPS.
const COOKIE: &str = "messaging_session";

/// A window with the console.
pub(crate) struct Page {
    pub(crate) browser: Browser,
    /// Address of the server: scheme, host and port.
    pub(crate) origin: String,
}

/// Simulated answer of the server to every call except the one for the signed-in user.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answers {
    /// An internal error.
    Failure,
    /// A refusal, because the key or role lacks the scope.
    MissingScope,
}

impl Answers {
    fn to_json(self) -> Value {
        match self {
            Self::Failure => json!({"status": 500, "body": {"error": {
                "code": "internal_error", "message": "Something went wrong here", "request_id": "req_OFATEST"}}}),
            Self::MissingScope => json!({"status": 403, "body": {"error": "scope required: contacts:read"}}),
        }
    }
}

impl Page {
    /// Opens a browser for this server; `None` if there is none. The server's clock is set to the browser's, so that
    /// both have the same days.
    pub(crate) async fn start(server: &TestServer) -> Option<Self> {
        let browser = Browser::start().await?;
        Some(Self::of(server, browser, format!("http://{}", server.address)).await)
    }

    /// Opens a browser for a server at [`NAMED`]: browsers keep passkeys only for names, and a name is known before the
    /// server listens.
    pub(crate) async fn start_named(server: &TestServer) -> Option<Self> {
        let browser = Browser::start_for(server.address).await?;
        Some(Self::of(server, browser, NAMED.to_owned()).await)
    }

    async fn of(server: &TestServer, browser: Browser, origin: String) -> Self {
        let page = Self { browser, origin };
        page.set_clock(server).await;
        page.begin().await;
        page
    }

    /// Opens another window, and switches to it; returns its handle.
    pub(crate) async fn open_window(&self) -> String {
        let handle = self.browser.open_window().await;
        self.begin().await;
        handle
    }

    /// Prepares a window, whose settings the browser does not keep.
    async fn begin(&self) {
        self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
        self.narrow(1280, 900).await;
    }

    /// Sets the server's clock to the browser's.
    pub(crate) async fn set_clock(&self, server: &TestServer) {
        let now = self.browser.run("return new Date().toISOString()", &[]).await;
        server.clock.set(now.as_str().unwrap().parse().unwrap());
    }

    /// Signs in with the token of a session, and shows Home.
    pub(crate) async fn sign_in(&self, token: &str) {
        // A cookie belongs to the host of the page that is shown.
        self.browser.open(&self.url("#/sign-in")).await;
        self.browser.set_cookie(COOKIE, token).await;
        self.load("#/").await;
    }

    /// Loads a new document with this route, and waits until it is drawn.
    pub(crate) async fn load(&self, route: &str) {
        // If only the part behind `#` differs, no document is loaded.
        self.browser.open("about:blank").await;
        self.browser.open(&self.url(route)).await;
        self.settle(None).await;
    }

    /// The address of a route.
    pub(crate) fn url(&self, route: &str) -> String {
        format!("{}/console/{route}", self.origin)
    }

    /// Goes to a route within the document, and waits until the screen with this heading is drawn.
    pub(crate) async fn show(&self, route: &str, heading: &str) {
        self.browser.run("location.hash = arguments[0]", &[json!(route)]).await;
        self.settle(Some(heading)).await;
    }

    /// Goes to a route within the document, and waits until its screen is drawn.
    pub(crate) async fn leave_for(&self, route: &str) {
        // The heading of the left screen stays for a moment, so it is marked as not ready. Filters and tabs of the same
        // screen keep its heading, so that nothing would show a change.
        let leave = "const [path] = location.hash.split('?');
            if (path === arguments[0].split('?')[0]) return false;
            document.querySelector('main h1').ariaBusy = 'true';
            location.hash = arguments[0];
            return true";
        if self.browser.run(leave, &[json!(route)]).await == false {
            return self.load(route).await;
        }
        self.settle(None).await;
    }

    /// Waits until a screen is drawn, and no request is pending.
    pub(crate) async fn settle(&self, heading: Option<&str>) {
        let patience = u64::try_from(PATIENCE.as_millis()).unwrap();
        let arguments = [json!(heading), json!(patience)];
        let missing = self.browser.run("return seen.settled(...arguments)", &arguments).await;
        let faults = if missing.is_null() { Vec::new() } else { self.faults().await };
        assert!(missing.is_null(), "{heading:?} is not drawn after {PATIENCE:?}: {missing}; {faults:#?}");
    }

    /// Sets the size of the window in CSS pixels.
    pub(crate) async fn narrow(&self, width: u32, height: u32) {
        self.browser.narrow(width, height).await;
    }

    /// Sets the preferred color scheme: `light` or `dark`.
    pub(crate) async fn prefer(&self, scheme: &str) {
        self.browser.prefer(scheme).await;
    }

    /// From now on every call seems to be answered like this; returns the argument of [`Self::answer_as_ever`].
    pub(crate) async fn answer(&self, answers: Answers) -> Value {
        let source = format!("window.answers = {}", answers.to_json());
        self.browser.run(&source, &[]).await;
        self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": source})).await
    }

    /// Ends [`Self::answer`].
    pub(crate) async fn answer_as_ever(&self, since: Value) {
        self.browser.devtools("Page.removeScriptToEvaluateOnNewDocument", since).await;
        self.browser.run("delete window.answers", &[]).await;
    }

    /// The visible text.
    pub(crate) async fn text(&self) -> String {
        let text = self.browser.run("return document.body.innerText", &[]).await;
        text.as_str().unwrap().to_owned()
    }

    /// Everything in the document: its elements, and the values of its controls.
    pub(crate) async fn dom(&self) -> String {
        let script = "return document.documentElement.outerHTML
            + [...document.querySelectorAll('input, textarea, select')].map((control) => `\\n${control.value}`).join('')";
        self.browser.run(script, &[]).await.as_str().unwrap().to_owned()
    }

    /// The controls with this role and name in the accessibility tree, as the browser's numbers of their elements.
    async fn controls(&self, role: &str, name: &str) -> Vec<Value> {
        let document = self.browser.devtools("DOM.getDocument", json!({"depth": 0})).await;
        let query = json!({"nodeId": document["root"]["nodeId"], "role": role});
        let found = self.browser.devtools("Accessibility.queryAXTree", query).await;
        let nodes = found["nodes"].as_array().unwrap().iter();
        let is_it = |node: &&Value| node["name"]["value"].as_str().is_some_and(|text| is_named(text, name));
        nodes.filter(is_it).map(|node| node["backendDOMNodeId"].clone()).collect()
    }

    /// The first control with this role and name, as soon as there is one. The accessibility tree follows the screen a
    /// moment later.
    async fn control(&self, role: &str, name: &str) -> Option<Value> {
        let began = Instant::now();
        loop {
            if let Some(control) = self.controls(role, name).await.into_iter().next() {
                return Some(control);
            }
            if began.elapsed() >= PATIENCE {
                return None;
            }
            self.settle(None).await;
        }
    }

    /// Returns true if there is a control with this role and name.
    pub(crate) async fn has(&self, role: &str, name: &str) -> bool {
        self.control(role, name).await.is_some()
    }

    /// Gives the focus to the first control with this role and name.
    pub(crate) async fn focus(&self, role: &str, name: &str) {
        let Some(control) = self.control(role, name).await else {
            panic!("no {role} {name:?} in: {}", self.text().await);
        };
        self.browser.devtools("DOM.focus", json!({"backendNodeId": control})).await;
    }

    /// Types into the text control with this name, replacing its text.
    pub(crate) async fn fill(&self, name: &str, text: &str) {
        self.focus("textbox", name).await;
        self.browser.chord(keys::CONTROL, 'a').await;
        self.browser.type_keys(text).await;
    }

    /// Presses a button, or follows a link, and waits until no request is pending.
    pub(crate) async fn press(&self, role: &str, name: &str) {
        self.focus(role, name).await;
        self.browser.type_keys(&keys::ENTER.to_string()).await;
        self.settle(None).await;
    }

    /// Clicks the first control with this role and name where a person would, and waits until nothing is under way.
    pub(crate) async fn click(&self, role: &str, name: &str) {
        let Some(control) = self.control(role, name).await else {
            panic!("no {role} {name:?} in: {}", self.text().await);
        };
        let node = json!({"backendNodeId": control});
        let found = self.browser.devtools("DOM.resolveNode", node.clone()).await;
        // In the middle nothing that sticks to an edge of the window lies over it.
        let scroll = json!({"objectId": found["object"]["objectId"],
            "functionDeclaration": "function () { this.scrollIntoView({ block: 'center' }) }"});
        self.browser.devtools("Runtime.callFunctionOn", scroll).await;
        let quads = self.browser.devtools("DOM.getContentQuads", node).await;
        let corner = |at: usize| quads["quads"][0][at].as_f64().unwrap();
        let (x, y) = (f64::midpoint(corner(0), corner(4)), f64::midpoint(corner(1), corner(5)));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.browser.devtools("Input.dispatchMouseEvent", event).await;
        }
        self.settle(None).await;
    }

    /// Presses Tab until the control with this role and name has the focus, as a person without a mouse does.
    pub(crate) async fn tab_to(&self, role: &str, name: &str) {
        let mut passed = Vec::new();
        for _ in 0..250 {
            self.browser.type_keys(&keys::TAB.to_string()).await;
            let (its_role, its_name) = self.browser.focused().await;
            if its_role == role && is_named(&its_name, name) {
                return;
            }
            passed.push(format!("{its_role} {its_name:?}"));
        }
        panic!("Tab never comes to the {role} {name:?}, but to {passed:#?}");
    }

    /// Waits until the visible text contains the words.
    pub(crate) async fn until_it_says(&self, words: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(words))).await;
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn until(&self, expression: &str) {
        let patience = PATIENCE.as_millis();
        let script = format!("return seen.until(() => {expression}, {patience})");
        let held = self.browser.run(&script, &[]).await;
        assert!(held == true, "not within {PATIENCE:?}: {expression}; but: {}", self.text().await);
    }

    /// Waits until an expression is true in a document that replaces this one, perhaps after others.
    pub(crate) async fn until_there(&self, expression: &str) {
        let began = Instant::now();
        while !self.browser.holds(expression).await {
            assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {expression}; but: {}", self.text().await);
        }
    }

    /// Text of the alert on the screen; empty if there is none.
    pub(crate) async fn alert(&self) -> String {
        let script =
            "return [...document.querySelectorAll('main [role=alert]')].map((part) => part.innerText.trim()).join(' ')";
        text_of(&self.browser.run(script, &[]).await)
    }

    /// Fails unless the control with this role and name has the focus.
    #[track_caller]
    pub(crate) fn expect_focus(&self, role: &str, name: &str) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        let (role, name) = (role.to_owned(), name.to_owned());
        async move {
            let (its_role, its_name) = self.browser.focused().await;
            assert!(
                its_role == role && is_named(&its_name, &name),
                "{place}: the focus is at the {its_role} {its_name:?} instead of the {role} {name:?}"
            );
        }
    }

    /// Signs in by email and password on the sign-in screen.
    pub(crate) async fn give_password(&self, email: &str) {
        self.fill("Email", email).await;
        self.fill("Password", PASSWORD).await;
        self.press("button", "Sign in").await;
    }

    /// The recovery codes that are shown.
    pub(crate) async fn recovery_codes(&self) -> Vec<String> {
        let shown = "return document.querySelector('[aria-labelledby=recovery-codes] pre').textContent";
        text_of(&self.browser.run(shown, &[]).await).split_whitespace().map(str::to_owned).collect()
    }

    /// Signs out, which leads to the sign-in screen.
    pub(crate) async fn sign_out(&self) {
        self.press("button", "Sign out").await;
        self.settle(Some("Sign in")).await;
    }

    /// Faults of the console since the last call.
    pub(crate) async fn faults(&self) -> Vec<String> {
        let noted = self.browser.run("return window.seen ? seen.faults.splice(0) : []", &[]).await;
        let mut faults: Vec<_> = noted.as_array().unwrap().iter().map(text_of).collect();
        let lines = self.browser.log().await;
        let lines = lines.iter().filter(|line| matches!(line["level"].as_str(), Some("SEVERE" | "WARNING")));
        faults.extend(lines.map(|line| text_of(&line["message"])).filter(|line| !is_refusal(line)));
        faults.extend(self.browser.strangers().into_iter().map(|host| format!("asks another host: {host}")));
        faults
    }
}

/// Returns true if the control called `text` is meant by `name`: labels may end with a note that a value is optional.
fn is_named(text: &str, name: &str) -> bool {
    text.trim() == name || text.trim() == format!("{name} optional")
}

/// The browser's line about a 4xx answer of the API is no fault (the browser writes one for each).
fn is_refusal(line: &str) -> bool {
    line.contains("/v1/") && line.contains("Failed to load resource: the server responded with a status of 4")
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
