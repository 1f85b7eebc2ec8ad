//! The console in a browser: what people see and do, by whom it cannot be misused, and what it costs. And the pages of readers,
//! which need no script.
//!
//! Debian's `chromium` and `chromium-driver` are driven by [`webdriver`]; a machine without them passes these tests by and
//! says so, unless `REQUIRE_BROWSER` is set. So it is with what single tests want: `AXE` names axe-core's `axe.min.js`,
//! `OIDC_PROVIDER` the `lib/index.js` of oidc-provider, and [`codes`] needs `oathtool` and `zbarimg`. With
//! `MESSAGING_CONSOLE_DIR` the files of a directory are tested instead of those that are built in, without compiling again
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
