//! The console in a browser: screens and actions, attacks on it, and its size and speed. And the pages of readers,
//! which need no script.
//!
//! Debian's `chromium` and `chromium-driver` are driven by [`webdriver`]; on a machine without them these tests are
//! skipped with a note, unless `REQUIRE_BROWSER` is set. Single tests need more: `AXE` names axe-core's `axe.min.js`,
//! `OIDC_PROVIDER` the `lib/index.js` of oidc-provider, and [`codes`] needs `oathtool` and `zbarimg`. With
//! `MESSAGING_CONSOLE_DIR` the files of a directory are tested instead of the built-in ones, without compiling again
//! after an edit.

mod audit;
mod authenticator;
mod blocks;
mod budget;
mod codes;
mod documentation;
mod elsewhere;
mod filled;
mod hostile;
mod jobs;
mod keyboard;
mod known;
mod languages;
mod live;
mod many;
mod page;
mod parts;
mod passkeys;
mod people;
mod reading;
mod scale;
mod screens;
mod sessions;
mod sign_on;
mod sign_on_provider;
mod units;
mod views;
mod webdriver;
