//! Accessibility audit of a screen by axe-core, and checks that axe-core does not make.
//!
//! axe-core (MPL-2.0) is no part of this project: `AXE` names its file `axe.min.js` of version 4.14, as the npm package
//! `axe-core` has it.

use std::io::Write as _;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::page::Page;
use super::webdriver::Browser;

/// The source of axe-core; `None` if it is not installed.
static AXE: OnceLock<Option<String>> = OnceLock::new();

fn axe() -> Option<&'static str> {
    let read = || {
        let Some(path) = std::env::var_os("AXE") else {
            assert!(std::env::var_os("REQUIRE_BROWSER").is_none(), "AXE names no axe.min.js");
            let _ =
                writeln!(std::io::stderr(), "SKIPPED: axe-core's part of the tests, because AXE names no axe.min.js");
            return None;
        };
        Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    AXE.get_or_init(read).as_deref()
}

/// Returns true if axe-core is installed, so that screens are audited.
pub(crate) fn is_whole() -> bool {
    axe().is_some()
}

/// The rules of axe-core that a screen is checked against.
#[derive(Debug, Clone, Copy)]
enum Rules {
    All,
    /// The rules that may differ between light and dark.
    Colors,
}

/// A function that runs axe's rules; frames with foreign content are left out.
const RUN: &str = "
    const options = { iframes: false, resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } };
    if (arguments[0]) options.runOnly = { type: 'rule', values: arguments[0] };
    return axe.run(document, options).then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
        nodes.slice(0, 3).map((node) => `axe ${id}: ${help}: ${node.target.join(' ')} ${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 300)}`)));";

async fn accessibility(browser: &Browser, rules: Rules) -> Vec<String> {
    let Some(axe) = axe() else { return Vec::new() };
    if browser.run("return typeof axe", &[]).await == "undefined" {
        browser.run(axe, &[]).await;
    }
    let rules = match rules {
        Rules::All => Value::Null,
        Rules::Colors => json!(["color-contrast", "link-in-text-block"]),
    };
    texts(&browser.run(RUN, &[rules]).await)
}

/// Audits a document given as markup, wide and narrow, light and dark.
pub(crate) async fn audit_markup(browser: &Browser, markup: &str) -> Vec<String> {
    const WRITE: &str = "document.open(); document.write(arguments[0]); document.close();";
    browser.open("about:blank").await;
    browser.run(WRITE, &[json!(markup)]).await;
    let mut found = Vec::new();
    for width in [1280, 320] {
        browser.narrow(width, 800).await;
        for scheme in ["light", "dark"] {
            browser.prefer(scheme).await;
            let faults = accessibility(browser, Rules::All).await;
            found.extend(faults.into_iter().map(|fault| format!("{width} {scheme}: {fault}")));
        }
        found.extend(texts(&browser.run(WIDTH, &[]).await).into_iter().map(|fault| format!("{width}: {fault}")));
    }
    found
}

/// Faults of a screen: words of a programming language instead of values, names of the API outside of code and of user
/// content, and more or fewer than one heading.
const SHAPE: &str = r"
    const faults = [];
    const text = document.body.innerText;
    const leak = /.{0,40}(\bundefined\b|\[object \w+\]|\bNaN\b|\bInvalid Date\b|\{\w+\}).{0,40}/.exec(text.replace(/\{\{.*?\}\}/g, ''));
    if (leak) faults.push(`shows ${leak[0]}`);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const { data, parentElement: element } = texts.currentNode;
        const name = /\b[a-z]+(_[a-z]+)+\b/.exec(data);
        if (name && !arguments[1].includes(name[0]) && !element.closest('code, pre, textarea, script, style, datalist, bdi, [dir]')) faults.push(`speaks of ${name[0]}: ${data.slice(0, 80)}`);
    }
    const headings = document.querySelectorAll('h1');
    if (headings.length !== 1) faults.push(`${headings.length} h1`);
    if (!document.querySelector('main')) faults.push('no main');
    if (arguments[0] && !document.querySelector('nav[aria-label=Main]')) faults.push('no navigation Main');
    if (arguments[0] && !/^skip/i.test(document.querySelector('a[href], button, input, summary')?.textContent.trim())) faults.push('a skip link does not come first');
    if (document.querySelectorAll('[aria-live]').length > 1) faults.push('several live regions');
    return faults;";

/// Names in user content of the tests.
const GIVEN: [&str; 8] = [
    "order_placed",
    "order_paid",
    "cart_updated",
    "first_name",
    "order_id",
    // Usual names of link parameters.
    "utm_source",
    "utm_medium",
    "utm_campaign",
];

/// Elements that do not fit into the width of the window.
const WIDTH: &str = "
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const wide = [...document.body.querySelectorAll('*')].filter((element) => element.getBoundingClientRect().right > clientWidth + 1);
    const named = wide.slice(-3).map((element) => element.outerHTML.slice(0, 120));
    return [`scrolls sideways: ${scrollWidth} in ${clientWidth}: ${named.join(' … ')}`];";

/// Audits the screen that is drawn, wide and narrow, light and dark.
pub(crate) async fn audit(page: &Page, is_signed_in: bool) -> Vec<String> {
    let mut found = audit_narrow_and_wide(page).await;
    found.extend(texts(&page.browser.run(SHAPE, &[json!(is_signed_in), json!(GIVEN)]).await));
    found
}

/// Audits the screen without the checks of `SHAPE`.
pub(crate) async fn audit_narrow_and_wide(page: &Page) -> Vec<String> {
    let mut found = Vec::new();
    for (width, height) in [(1280, 900), (320, 700)] {
        page.narrow(width, height).await;
        page.settle(None).await;
        for (scheme, rules) in [("light", Rules::All), ("dark", Rules::Colors)] {
            // Colors come from the style sheet alone, so there is nothing to wait for.
            page.prefer(scheme).await;
            let faults = accessibility(&page.browser, rules).await;
            found.extend(faults.into_iter().map(|fault| format!("{width} {scheme}: {fault}")));
        }
        found.extend(texts(&page.browser.run(WIDTH, &[]).await).into_iter().map(|fault| format!("{width}: {fault}")));
    }
    page.narrow(1280, 900).await;
    page.prefer("light").await;
    found.extend(page.faults().await);
    found
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().unwrap().iter();
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}
