//! The tests of the console's own modules, `console/tests/`, which the browser imports as it imports the modules.

use std::path::Path;

use messaging_http::{Console, ServerOptions};

use super::filled;
use super::page::Page;
use crate::harness::any_port;

/// Script that runs the tests of a module: its exported functions, whose names say what holds. Returns the failures.
const RUN: &str = "return import(new URL(`files/tests/${arguments[0]}`, document.baseURI)).then(async (module) => {
        const tests = Object.entries(module);
        const failed = [];
        for (const [name, test] of tests) {
            try { await test(); } catch (error) { failed.push(`${name}: ${error.stack}`); }
        }
        return { count: tests.length, failed };
    })";

#[tokio::test]
async fn the_modules_do_what_their_tests_say() {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
    let mut modules: Vec<_> = std::fs::read_dir(console.join("tests"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("_test.js"))
        .collect();
    modules.sort();
    assert!(modules.len() >= 5, "{modules:?}");
    let options = ServerOptions { console: Console::Directory(console), ..ServerOptions::new(any_port()) };
    let server = filled::server_with(options).await;
    let Some(page) = Page::start(&server).await else { return };
    page.load("#/sign-in").await;
    let mut failed = Vec::new();
    for module in modules {
        let ran = page.browser.run(RUN, &[module.as_str().into()]).await;
        assert!(ran["count"].as_u64() > Some(0), "{module} has no test");
        let lines = ran["failed"].as_array().unwrap().iter();
        failed.extend(lines.map(|line| format!("{module}: {}", line.as_str().unwrap_or_default())));
    }
    assert_eq!(failed, [""; 0], "{}", failed.join("\n"));
}
