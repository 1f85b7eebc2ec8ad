//! Every screen with data, empty, for a user without access, and while the server fails, in every width and color
//! scheme.

use messaging_core::scope::Role;

use super::audit::audit;
use super::filled::{self, Ids, PEOPLE};
use super::page::{Answers, Page};
use crate::harness::TestServer;

/// A route of the console.
struct Screen {
    /// Its route; `{name}` is the id of the resource created under this name.
    route: &'static str,
    /// Text of the screen for a viewer who may not see everything; empty if viewers see all.
    to_viewers: &'static str,
    /// True if the screen sends a request before it is drawn.
    asks: bool,
}

const fn screen(route: &'static str, to_viewers: &'static str) -> Screen {
    Screen { route, to_viewers, asks: true }
}

/// A screen that is drawn without a request.
const fn form(route: &'static str, to_viewers: &'static str) -> Screen {
    Screen { route, to_viewers, asks: false }
}

/// All routes except the sign-in screen.
const SCREENS: &[Screen] = &[
    screen("#/", ""),
    screen("#/messages", ""),
    screen("#/messages/{message}", "pii:read"),
    screen("#/messages/{bounce}", "pii:read"),
    screen("#/messages/{deferred}", "pii:read"),
    screen("#/messages/{suppressed}", "pii:read"),
    form("#/send", "messages:send"),
    form("#/live", ""),
    screen("#/sandbox", ""),
    screen("#/sandbox/{message}", "pii:read"),
    screen("#/contacts", ""),
    screen("#/contacts/{contact}", ""),
    screen("#/import", "contacts:write"),
    screen("#/import?id={import}", ""),
    screen("#/lists", ""),
    screen("#/segments", ""),
    screen("#/segments/{segment}", ""),
    screen("#/suppressions", ""),
    screen("#/templates", ""),
    screen("#/templates/{template}", ""),
    screen("#/templates/{text_template}", ""),
    screen("#/campaigns", ""),
    screen("#/campaigns/{draft_campaign}", ""),
    screen("#/campaigns/{scheduled_campaign}", ""),
    screen("#/campaigns/{running_campaign}", ""),
    screen("#/campaigns/{sent_campaign}", ""),
    screen("#/automations", ""),
    screen("#/automations/{automation}", ""),
    screen("#/automations/{draft_automation}", ""),
    screen("#/automations/{automation}/runs/{run}", ""),
    screen("#/analytics", ""),
    screen("#/deliverability", ""),
    screen("#/domains", ""),
    screen("#/domains/{domain}", ""),
    screen("#/webhooks", ""),
    screen("#/webhooks/{webhook}", ""),
    screen("#/keys", "admin"),
    screen("#/members", "admin"),
    screen("#/channels", "admin"),
    screen("#/fields", ""),
    form("#/workspace", "admin"),
    screen("#/account", ""),
    screen("#/system", "operator"),
];

impl Screen {
    fn route(&self, ids: &Ids) -> String {
        ids.iter().fold(self.route.to_owned(), |route, (name, id)| route.replace(&format!("{{{name}}}"), id))
    }

    /// Returns true if the screen shows a single resource.
    fn is_of_one(&self) -> bool {
        self.route.contains('{')
    }
}

/// The addresses of all screens.
pub(super) fn routes(ids: &Ids) -> impl Iterator<Item = String> {
    SCREENS.iter().map(|screen| screen.route(ids))
}

/// Collects the faults of screens.
#[derive(Default)]
struct ScreenFaults(Vec<String>);

impl ScreenFaults {
    fn add(&mut self, screen: &Screen, faults: impl IntoIterator<Item = String>) {
        self.0.extend(faults.into_iter().map(|fault| format!("{}: {fault}", screen.route)));
    }

    async fn must_say(&mut self, page: &Page, screen: &Screen, words: &str) {
        let text = page.text().await;
        if !text.contains(words) {
            self.add(screen, [format!("does not say {words:?}: {}", text.chars().take(400).collect::<String>())]);
        }
    }

    #[track_caller]
    fn report(self) {
        assert!(self.0.is_empty(), "{} faults:\n{}", self.0.len(), self.0.join("\n"));
    }
}

/// Lets the rate limit of the person's requests recover.
fn rest(server: &TestServer) {
    server.clock.advance(std::time::Duration::from_secs(10));
}

#[tokio::test]
async fn every_screen_is_for_everybody_filled() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let mut faults = ScreenFaults::default();
    for screen in SCREENS {
        rest(&server);
        page.leave_for(&screen.route(&ids)).await;
        faults.add(screen, audit(&page, true).await);
    }
    faults.report();
}

#[tokio::test]
async fn every_screen_is_for_everybody_empty() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::newcomer(&server).await).await;
    let mut faults = ScreenFaults::default();
    for screen in SCREENS.iter().filter(|screen| !screen.is_of_one()) {
        rest(&server);
        page.leave_for(screen.route).await;
        faults.add(screen, audit(&page, true).await);
        // An empty screen says what to do; that of the installation is never empty.
        let ways = page
            .browser
            .run("return document.querySelectorAll('main :is(a[href], button, input, select)').length", &[]);
        if ways.await == 0 && screen.route != "#/system" {
            faults.add(screen, ["offers nothing to do".to_owned()]);
        }
    }
    faults.report();
}

#[tokio::test]
async fn a_viewer_sees_every_screen_and_no_address() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Viewer).await).await;
    let mut faults = ScreenFaults::default();
    for screen in SCREENS {
        rest(&server);
        page.leave_for(&screen.route(&ids)).await;
        faults.must_say(&page, screen, screen.to_viewers).await;
        let dom = page.dom().await;
        let host = format!("@{PEOPLE}");
        let ends = dom.match_indices(&host).map(|(at, _)| &dom[dom.floor_char_boundary(at.saturating_sub(40))..at]);
        faults.add(
            screen,
            ends.filter(|before| !before.ends_with("***")).map(|before| format!("shows an address: …{before}@")),
        );
        if dom.contains("4155550123") {
            faults.add(screen, ["shows a number".to_owned()]);
        }
        faults.add(screen, audit(&page, true).await);
    }
    faults.report();
}

/// Presses the button, if there is one at that moment.
const TRY_AGAIN: &str = "
    const button = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Try again');
    button?.click();
    return Boolean(button);";

#[tokio::test]
async fn every_screen_says_that_the_server_fails_and_goes_on_after_it() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let mut faults = ScreenFaults::default();
    for screen in SCREENS {
        rest(&server);
        let failing = page.answer(Answers::Failure).await;
        page.leave_for(&screen.route(&ids)).await;
        faults.add(screen, audit(&page, true).await);
        if screen.asks {
            faults.must_say(&page, screen, "internal_error").await;
            faults.must_say(&page, screen, "req_OFATEST").await;
            if !page.has("button", "Try again").await {
                faults.add(screen, ["offers no other try".to_owned()]);
            }
        }
        page.answer_as_ever(failing).await;
        // A screen that polls every second has perhaps recovered by itself.
        let mut tries = 0;
        while tries < 12 && page.browser.run(TRY_AGAIN, &[]).await == true {
            page.settle(None).await;
            tries += 1;
        }
        if page.text().await.contains("req_OFATEST") {
            faults.add(screen, [format!("does not go on after {tries} tries")]);
        }
    }
    faults.report();
}

#[tokio::test]
async fn every_screen_names_the_scope_that_is_missing() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.answer(Answers::MissingScope).await;
    let mut faults = ScreenFaults::default();
    for screen in SCREENS.iter().filter(|screen| screen.asks) {
        page.load(&screen.route(&ids)).await;
        faults.must_say(&page, screen, "contacts:read").await;
        faults.add(screen, page.faults().await);
    }
    faults.report();
}

#[tokio::test]
async fn signing_in_is_for_everybody() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    // A visitor who is not signed in is asked to sign in, wherever the link led.
    let mut faults = ScreenFaults::default();
    for screen in [form("#/sign-in", ""), form("#/messages", "")] {
        page.load(screen.route).await;
        assert!(page.has("textbox", "Email").await, "{}", page.text().await);
        faults.add(&screen, audit(&page, false).await);
    }
    faults.report();
}

/// Makes every fault that the checks look for, once.
const WRONG: &str = "
    const main = document.querySelector('main');
    const add = (name, attributes, text = '') => {
        const element = Object.assign(document.createElement(name), attributes);
        element.textContent = text;
        main.append(element);
        return element;
    };
    setTimeout(() => { throw new Error('thrown later') });
    Promise.reject(new Error('promised in vain'));
    console.error('said to developers');
    add('p').setAttribute('style', 'color: red');
    add('img', { alt: '', src: 'https://pictures.example/a.png' });
    fetch('https://api.example/').catch(() => {});
    add('button', { type: 'button' });
    const faint = add('p', {}, 'hardly to be read');
    faint.style.color = '#eee';
    faint.style.backgroundColor = '#fff';
    add('p', {}, 'undefined of 7');
    add('h1', {}, 'Another heading');
    add('div', {}, 'wide').style.width = '600px';
    return new Promise((resolve) => setTimeout(resolve, 100))";

#[tokio::test]
async fn what_is_wrong_with_a_screen_is_found() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.load("#/sign-in").await;
    page.browser.run(WRONG, &[]).await;
    let faults = audit(&page, false).await.join("\n");
    let mut wanted = vec![
        "thrown later",
        "promised in vain",
        "said to developers",
        "policy: style-src-attr refused",
        "policy: img-src refused https://pictures.example",
        "policy: connect-src refused https://api.example",
        "shows undefined of 7",
        "2 h1",
        "320: scrolls sideways: ",
    ];
    if super::audit::is_whole() {
        wanted.extend(["1280 light: axe button-name", "320 dark: axe color-contrast"]);
    }
    let missed: Vec<_> = wanted.into_iter().filter(|words| !faults.contains(words)).collect();
    assert_eq!(missed, [""; 0], "{faults}");
}
