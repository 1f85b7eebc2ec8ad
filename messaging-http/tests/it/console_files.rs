//! The files of the console, over the wire.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use messaging_http::{ApiService, Console, ServerOptions, ServiceOptions, console};
use tower_service::Service;

use crate::harness::{TestServer, any_port};
use crate::wire::Response;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";
const FRAME_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
    img-src data:; frame-ancestors 'self'";

async fn get(server: &TestServer, path: &str) -> Response {
    server.request("GET", path, &[], None).await
}

/// A server with this console.
async fn with(console: Console) -> TestServer {
    TestServer::with(ServerOptions { console, ..ServerOptions::new(any_port()) }).await
}

/// A directory with the built-in files.
fn exported(directory: &Path) -> Console {
    for (path, bytes) in console::files() {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    Console::Directory(directory.to_owned())
}

/// The addresses in a page, relative to it.
fn links(page: &Response) -> Vec<String> {
    let text = String::from_utf8(page.body.clone()).unwrap();
    let values = ["href=\"", "src=\""].map(|name| text.split(name).skip(1).map(|rest| rest.split('"').next().unwrap()));
    let mut links: Vec<_> = values.into_iter().flatten().filter(|link| !link.starts_with("data:")).collect();
    links.dedup();
    links.into_iter().map(|link| format!("/console/{link}")).collect()
}

/// The folder in which a page finds the other files.
fn set(page: &Response) -> String {
    links(page).iter().find_map(|link| link.strip_suffix("/app.js").map(ToOwned::to_owned)).unwrap()
}

#[tokio::test]
async fn the_page_names_files_that_are_kept_for_good() {
    let server = TestServer::start().await;
    let page = get(&server, "/console/").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("cross-origin-opener-policy"), Some("same-origin"));
    let links = links(&page);
    let set = set(&page);
    // Modules that the first script imports, directly or indirectly, are requested at once.
    for module in ["app.js", "app.css", "lib/api.js", "operations.js"] {
        assert!(links.contains(&format!("{set}/{module}")), "{module}: {links:?}");
    }
    for link in &links {
        let file = get(&server, link).await;
        assert_eq!(file.status, 200, "{link}");
        assert_eq!(file.header("cache-control"), Some("public, max-age=31536000, immutable"), "{link}");
        assert_eq!(file.header("content-security-policy"), Some(POLICY), "{link}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"), "{link}");
    }
    let head = server.request("HEAD", &links[0], &[], None).await;
    let file = get(&server, &links[0]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some(&*file.body.len().to_string())));
}

#[tokio::test]
async fn a_link_with_a_ticket_leads_to_the_page() {
    let server = TestServer::start().await;
    let moved = get(&server, "/console").await;
    // Without a fragment: a browser then keeps the one that it has, which may be a ticket.
    assert_eq!((moved.status, moved.header("location")), (302, Some("console/")));
    assert_eq!(moved.header("referrer-policy"), Some("no-referrer"));
}

#[tokio::test]
async fn files_are_compressed_for_those_who_take_it() {
    let server = TestServer::start().await;
    let set = set(&get(&server, "/console/").await);
    for path in [format!("{set}/operations.js"), "/console/".to_owned()] {
        let plain = server.request("GET", &path, &[("accept-encoding", "br, gzip;q=0")], None).await;
        assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("accept-encoding")), "{path}");
        let small = server.request("GET", &path, &[("accept-encoding", "gzip, deflate, br")], None).await;
        assert_eq!((small.header("content-encoding"), small.header("vary")), (Some("gzip"), Some("accept-encoding")));
        assert_eq!(small.header("content-type"), plain.header("content-type"));
        let mut text = Vec::new();
        GzDecoder::new(&*small.body).read_to_end(&mut text).unwrap();
        assert!(text == plain.body && small.body.len() < plain.body.len(), "{path}");
    }
}

#[tokio::test]
async fn mail_is_shown_under_a_policy_of_its_own() {
    let server = TestServer::start().await;
    let page = get(&server, "/console/").await;
    assert_eq!(page.header("content-security-policy"), Some(POLICY));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let set = set(&page);
    let frame = get(&server, &format!("{set}/frame.html")).await;
    assert_eq!((frame.status, frame.header("content-security-policy")), (200, Some(FRAME_POLICY)));
    let with_pictures = get(&server, &format!("{set}/frame-pictures.html")).await;
    let policy = FRAME_POLICY.replace("img-src data:;", "img-src data: https:;");
    assert_eq!((with_pictures.status, with_pictures.header("content-security-policy")), (200, Some(&*policy)));
    assert_eq!(frame.body, with_pictures.body);
    for answer in [&frame, &with_pictures] {
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        // Otherwise a document with an opaque origin could not load its own script.
        assert_eq!(answer.header("cross-origin-resource-policy"), None);
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_in_plain_text() {
    let server = TestServer::start().await;
    let set = set(&get(&server, "/console/").await);
    for path in ["/console/0000000000000000/app.js", &format!("{set}/no.js"), &format!("{set}/..%2fapp.js")] {
        let missing = get(&server, path).await;
        assert_eq!(
            (missing.status, missing.header("content-type")),
            (404, Some("text/plain; charset=utf-8")),
            "{path}"
        );
        assert_eq!(missing.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(missing.header("content-security-policy"), Some(POLICY), "{path}");
    }
    let post = server.request("POST", "/console/", &[], None).await;
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
}

#[tokio::test]
async fn an_edit_in_a_directory_is_seen_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = with(exported(directory.path())).await;
    let page = get(&server, "/console/").await;
    let set = set(&page);
    assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")));
    assert_eq!(page.header("content-security-policy"), Some(POLICY));
    fs::write(directory.path().join("app.js"), "// edited").unwrap();
    fs::write(directory.path().join("lib/new.js"), "// new").unwrap();
    for (file, expected) in [("app.js", "// edited"), ("lib/new.js", "// new")] {
        let file = get(&server, &format!("{set}/{file}")).await;
        assert_eq!((file.status, &*file.body), (200, expected.as_bytes()));
        assert_eq!(file.header("cache-control"), Some("no-store"));
    }
    let index = fs::read_to_string(directory.path().join("index.html")).unwrap();
    fs::write(directory.path().join("index.html"), index.replace("<title>", "<title>Changed ")).unwrap();
    let page = get(&server, "/console/").await;
    assert!(String::from_utf8_lossy(&page.body).contains("<title>Changed "));
    let frame = get(&server, &format!("{set}/frame.html")).await;
    assert_eq!(frame.header("content-security-policy"), Some(FRAME_POLICY));
    fs::remove_file(directory.path().join("index.html")).unwrap();
    assert_eq!(get(&server, "/console/").await.status, 404);
}

#[tokio::test]
async fn what_describes_the_operations_is_the_programs_own() {
    let directory = tempfile::tempdir().unwrap();
    let server = with(exported(directory.path())).await;
    let set = set(&get(&server, "/console/").await);
    for name in ["operations.js", "schemas.js"] {
        fs::write(directory.path().join(name), "// of another version").unwrap();
        let own = console::files().find(|(path, _)| *path == name).unwrap().1;
        let answered = get(&server, &format!("{set}/{name}")).await;
        assert!(answered.body == own, "{name}");
        assert_eq!(answered.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn no_address_leads_out_of_the_directory() {
    let around = tempfile::tempdir().unwrap();
    fs::write(around.path().join("secret.txt"), "secret").unwrap();
    let directory = around.path().join("console");
    let server = with(exported(&directory)).await;
    std::os::unix::fs::symlink("../secret.txt", directory.join("link.txt")).unwrap();
    let set = set(&get(&server, "/console/").await);
    for file in
        ["../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "lib/../../secret.txt", "..\\secret.txt", "link.txt"]
    {
        let answer = get(&server, &format!("{set}/{file}")).await;
        assert_eq!(answer.status, 404, "{file}");
    }
}

/// The answer of a mounted service.
async fn call(service: &ApiService, path: &str) -> http::Response<Full<Bytes>> {
    let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    let Ok(response) = Service::call(&mut service.clone(), request).await;
    response
}

#[tokio::test]
async fn below_a_prefix_everything_is_relative() {
    let server = TestServer::start().await;
    let service = ApiService::new(server.app.clone(), ServiceOptions::mounted_at("/mail"));
    let moved = call(&service, "/mail/console").await;
    assert_eq!((moved.status(), &moved.headers()["location"]), (StatusCode::FOUND, &"console/".parse().unwrap()));
    let page = call(&service, "/mail/console/").await;
    assert_eq!(page.status(), StatusCode::OK);
    let Ok(body) = page.into_body().collect().await;
    let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
    assert!(!text.contains("=\"/"), "{text}");
    let without = ApiService::new(server.app.clone(), ServiceOptions::mounted_at("/mail").console(Console::Off));
    assert_eq!(call(&without, "/mail/console/").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_server_without_a_console_knows_no_such_path() {
    let server = with(Console::Off).await;
    for path in ["/console", "/console/", "/console/a/app.js"] {
        assert_eq!(get(&server, path).await.code(), "route_not_found", "{path}");
    }
}

#[tokio::test]
async fn all_files_are_counted_as_one_route() {
    let server = TestServer::start().await;
    let service = ApiService::new(server.app.clone(), ServiceOptions::default());
    for path in ["/console", "/console/", "/console/unknown/app.js"] {
        call(&service, path).await;
    }
    let metrics = service.metrics().await;
    let counted: Vec<_> = metrics
        .lines()
        .filter(|line| line.starts_with("messaging_http_requests_total") && line.contains("console"))
        .collect();
    assert_eq!(
        counted,
        ["2xx", "3xx", "4xx"].map(|class| format!(
            "messaging_http_requests_total{{method=\"GET\",route=\"/console\",status=\"{class}\"}} 1"
        ))
    );
}
