//! The part of an S3 server that the store uses: objects are put, read and deleted.
//!
//! It checks that a request names its key and that the body is the signed one; the signature itself is not calculated.
//! `buckets.rs` also runs on a real server.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The only key with permissions.
pub(crate) const KEY: &str = "AKIATESTS";

/// Fault of a request, instead of its ordinary outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is answered with this status.
    Status(u16),
    /// It is executed, and the connection breaks before the answer.
    AnswerLost,
    /// A read is answered with other bytes.
    OtherBytes,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Bytes>,
    faults: VecDeque<Fault>,
}

/// A server that ends when it is dropped.
#[derive(Debug)]
pub(crate) struct BucketServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

impl BucketServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                let serve = service_fn(move |request| answer(Arc::clone(&state), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), serve));
            }
        });
        Self { address, state, accepting }
    }

    /// Environment variables that lead a program to this server.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let variables = [
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_REGION", "eu-central-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// The paths of the objects, with their bucket.
    pub(crate) fn objects(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Makes the next requests fail in these ways.
    pub(crate) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().faults.extend(faults);
    }

    /// Removes the faults that did not happen; returns their number.
    pub(crate) fn work(&self) -> usize {
        self.state.lock().unwrap().faults.drain(..).count()
    }
}

impl Drop for BucketServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let code = if status == StatusCode::NOT_FOUND { "NoSuchKey" } else { "Other" };
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{status}</Message></Error>");
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

async fn answer(state: Arc<Mutex<State>>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Broken> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let authorization = header("authorization").unwrap_or_default();
    let signed_body = header("x-amz-content-sha256").unwrap_or_default();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let query = request.uri().query().unwrap_or_default().trim_end_matches('=').to_owned();
    let body = request.into_body().collect().await.map_err(|_| Broken)?.to_bytes();
    if !authorization.starts_with(&format!("AWS4-HMAC-SHA256 Credential={KEY}/")) {
        return Ok(status(StatusCode::FORBIDDEN));
    }
    if signed_body != hex(ring::digest::digest(&ring::digest::SHA256, &body).as_ref()) {
        return Ok(status(StatusCode::BAD_REQUEST));
    }
    let mut state = state.lock().unwrap();
    let fault = state.faults.pop_front();
    if let Some(Fault::Status(code)) = fault {
        return Ok(status(StatusCode::from_u16(code).unwrap()));
    }
    let mut response = Response::new(Full::default());
    match method {
        Method::PUT => {
            state.objects.insert(path, body);
            response.headers_mut().insert("etag", "\"1\"".parse().unwrap());
        }
        Method::DELETE => {
            state.objects.remove(&path);
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        // Deletes several objects; the keys are within the bucket.
        Method::POST if query == "delete" => {
            let text = String::from_utf8_lossy(&body);
            let mut deleted = String::new();
            for key in text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
                state.objects.remove(&format!("{}/{key}", path.trim_end_matches('/')));
                deleted.extend(["<Deleted><Key>", key, "</Key></Deleted>"]);
            }
            *response.body_mut() = Full::new(format!("<DeleteResult>{deleted}</DeleteResult>").into());
        }
        Method::GET => {
            let Some(bytes) = state.objects.get(&path).cloned() else { return Ok(status(StatusCode::NOT_FOUND)) };
            let bytes = if fault == Some(Fault::OtherBytes) { Bytes::from_static(b"?") } else { bytes };
            *response.body_mut() = Full::new(bytes);
            response.headers_mut().insert("etag", "\"1\"".parse().unwrap());
            response.headers_mut().insert("last-modified", "Mon, 23 Nov 2026 10:00:00 GMT".parse().unwrap());
        }
        _ => return Ok(status(StatusCode::METHOD_NOT_ALLOWED)),
    }
    if fault == Some(Fault::AnswerLost) { Err(Broken) } else { Ok(response) }
}

/// Error that ends the connection without an answer.
#[derive(Debug, Clone, Copy)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken")
    }
}

impl std::error::Error for Broken {}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
