//! The console: an application for browsers that is a client of the API like any other.
//!
//! `console/` of this package holds its files as they are written: the browser loads modules, nothing is bundled. The
//! page is `/console/`; all other files are in a folder beside it that is named by their contents, so browsers keep
//! them for ever and never mix two versions. All addresses in it are relative, so it works wherever the server is
//! mounted and behind any proxy.
//!
//! This module does not know what the files do. It sets the security policies of their pages. Mail is shown in a
//! separate page that runs under a stricter policy, in a separate origin.

mod directory;
mod embedded;
mod encoding;
#[cfg(test)]
mod operations;
mod served_file;

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use self::served_file::{Compression, ServedFile};
use crate::reply::{self, Reply};

/// The path of the console; paths below it are answered, too.
pub(crate) const ROUTE: &str = "/console";

/// The paths for the router.
pub(crate) const PATHS: [&str; 3] = [ROUTE, "/console/", "/console/{*file}"];

/// The page of the console.
const INDEX: &str = "index.html";
/// The page that a mail is shown in.
const FRAME: &str = "frame.html";
/// The same page with a policy that allows pictures.
const FRAME_WITH_PICTURES: &str = "frame-pictures.html";

/// Placeholder in the page for the folder of the other files.
const PLACEHOLDER: &str = "__SET__";

/// Generated files that describe this program's operations. They are always the program's own.
const GENERATED: [&str; 3] = ["operations.js", "schemas.js", "providers.js"];

/// The console runs only its own scripts and calls only its own server; no text ever becomes part of a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";

/// A mail has its own styles and the pictures that it carries. It has an opaque origin.
const FRAME_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
    img-src data:; frame-ancestors 'self'";

/// The same with the pictures that a mail links to, if the user asks to see them.
const FRAME_WITH_PICTURES_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; \
    style-src 'unsafe-inline'; img-src data: https:; frame-ancestors 'self'";

const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The console that a server has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Console {
    /// The built-in console.
    #[default]
    BuiltIn,
    /// The files of a directory, read again for every request, so that people can change them. The generated files
    /// (`operations.js`, `schemas.js` and `providers.js`) are nevertheless those of this program.
    Directory(PathBuf),
    /// No console.
    Off,
}

/// The built-in files of the console, by their paths: a [`Console::Directory`] may begin with them.
pub fn files() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    embedded::files()
}

impl Console {
    /// True unless the console is off.
    pub(crate) fn is_on(&self) -> bool {
        *self != Self::Off
    }

    /// The name of the folder that the files are answered in.
    fn set(&self) -> &'static str {
        match self {
            Self::Directory(_) => directory::SET,
            Self::BuiltIn | Self::Off => embedded::SET,
        }
    }

    async fn index(&self, headers: &HeaderMap) -> Option<ServedFile> {
        match self {
            Self::BuiltIn => Some(embedded::index(encoding::accepts_gzip(headers))),
            Self::Directory(directory) => {
                let page = directory::read_later(directory, INDEX).await?;
                let page = String::from_utf8_lossy(&page).replace(PLACEHOLDER, directory::SET);
                Some(ServedFile { bytes: page.into(), compression: Compression::Never, caching: "no-store" })
            }
            Self::Off => None,
        }
    }

    async fn file(&self, file: &str, headers: &HeaderMap) -> Option<ServedFile> {
        match self {
            Self::BuiltIn => embedded::find(file, encoding::accepts_gzip(headers)),
            Self::Directory(_) if GENERATED.contains(&file) => {
                embedded::find(file, false).map(|file| ServedFile { caching: "no-store", ..file })
            }
            Self::Directory(directory) => {
                let bytes = directory::read_later(directory, file).await?;
                Some(ServedFile { bytes, compression: Compression::Never, caching: "no-store" })
            }
            Self::Off => None,
        }
    }
}

/// Fails if a directory holds no console.
pub(crate) fn check(directory: &Path) -> io::Result<()> {
    directory::read(directory, INDEX).map(drop)
}

/// Answers a path of the console, as it was requested: its files have names that need no escaping.
pub(crate) async fn answer(console: &Console, path: &str, headers: &HeaderMap) -> Reply {
    let below = path.strip_prefix(ROUTE).unwrap_or_default();
    let Some(name) = below.strip_prefix('/') else {
        // Relative, so it holds below any prefix; browsers keep the part behind `#`, which may be a ticket.
        return guarded(reply::redirect(HeaderValue::from_static("console/")), POLICY);
    };
    if name.is_empty() {
        let reply = reply_with(console.index(headers).await, INDEX);
        return opener_guarded(guarded(reply, POLICY));
    }
    let file = match name.split_once('/') {
        Some((set, file)) if set == console.set() => file,
        _ => "",
    };
    let (file, policy) = match file {
        FRAME => (FRAME, FRAME_POLICY),
        FRAME_WITH_PICTURES => (FRAME, FRAME_WITH_PICTURES_POLICY),
        // It is filled in only where it is the page.
        INDEX => ("", POLICY),
        other => (other, POLICY),
    };
    guarded(reply_with(console.file(file, headers).await, file), policy)
}

/// The reply for a file, or for none.
fn reply_with(file: Option<ServedFile>, name: &str) -> Reply {
    let Some(ServedFile { bytes, compression, caching }) = file else {
        let mut reply =
            reply::file(StatusCode::NOT_FOUND, TEXT, Bytes::from_static(b"The console has no such file.\n"));
        // A file that is missing now may exist after an update.
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        return reply;
    };
    let mut reply = reply::file(StatusCode::OK, content_type(name), bytes);
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if compression != Compression::Never {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    if compression == Compression::Gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    reply
}

/// Adds headers that protect the reader of an answer.
fn guarded(mut reply: Reply, policy: &'static str) -> Reply {
    let headers = reply.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}

/// Isolates the page from other windows. Not for frames, whose policy does so.
fn opener_guarded(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin"));
    reply
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The media type of a file, by its name.
fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/vnd.microsoft.icon",
        Some("woff2") => "font/woff2",
        _ => TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(console: &Console, path: &str) -> Reply {
        answer(console, path, &HeaderMap::new()).await
    }

    #[tokio::test]
    async fn only_the_page_itself_is_asked_for_again() {
        let page = get(&Console::BuiltIn, "/console/").await;
        assert_eq!((page.status(), &page.headers()["cache-control"]), (StatusCode::OK, &"no-cache".parse().unwrap()));
        let script = get(&Console::BuiltIn, &format!("/console/{}/app.js", embedded::SET)).await;
        assert_eq!(script.headers()["cache-control"], "public, max-age=31536000, immutable");
        assert_eq!(script.headers()["content-type"], "text/javascript; charset=utf-8");
    }

    #[tokio::test]
    async fn what_is_no_file_of_the_set_is_not_there() {
        let set = embedded::SET;
        for path in [
            "/console/app.js".to_owned(),
            "/console/0000000000000000/app.js".to_owned(),
            format!("/console/{set}"),
            format!("/console/{set}/"),
            format!("/console/{set}/index.html"),
            format!("/console/{set}/no.js"),
            format!("/console/{set}/%61pp.js"),
            format!("/console/{set}/../{set}/app.js"),
            format!("/console//{set}/app.js"),
        ] {
            let reply = get(&Console::BuiltIn, &path).await;
            assert_eq!(reply.status(), StatusCode::NOT_FOUND, "{path}");
            assert_eq!(reply.headers()["content-type"], TEXT, "{path}");
            assert_eq!(reply.headers()["content-security-policy"], POLICY, "{path}");
        }
    }

    #[test]
    fn every_file_has_a_type_that_browsers_know() {
        for (path, _) in files() {
            // The gallery is fetched as text.
            let is_text = path.contains("LICENSE") || path.rsplit('.').next() == Some("mjml");
            assert_eq!(content_type(path) == TEXT, is_text, "{path}");
        }
    }
}
