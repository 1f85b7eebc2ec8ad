//! HTTP server of a fake provider.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::callbacks::{Shortcut, call, planned};
use super::case::{Case, Order, Refusal, Signature, Trouble};
use super::{CalledBack, FakeAnswer, FakeApi, FakeCallback, FakeRequest, Submission};

/// Maximum octets of a request's body that are read.
const BODY_LIMIT: usize = 4 << 20;

/// Number of requests and calls that are kept, the newest.
const REMEMBERED: usize = 10_000;

/// Maximum octets of requests' bodies that are kept.
const REMEMBERED_OCTETS: usize = 64 << 20;

/// Path at which a user lets a recipient write: `POST` with `{"from","text"}`.
const INBOUND: &str = "/fake/inbound";

/// Time by which a late answer is delayed, unless set.
const SLOW: Duration = Duration::from_secs(2);

/// A fake provider on a loopback socket. It ends when dropped.
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    api: Box<dyn FakeApi>,
    state: Mutex<State>,
    requests: watch::Sender<usize>,
    called: watch::Sender<usize>,
    next_id: AtomicU64,
    connections: AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    requests: VecDeque<FakeRequest>,
    /// Octets of the requests' bodies.
    octets: usize,
    called: VecDeque<CalledBack>,
    next: VecDeque<Case>,
    answers: VecDeque<FakeAnswer>,
    seen: HashSet<String>,
    slow: Option<Duration>,
    resets: usize,
    shortcut: Option<Shortcut>,
    inbound_url: Option<String>,
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeProvider").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.task.abort();
        lock(&self.shared.tasks).abort_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeProvider {
    /// Starts a provider on a free loopback port.
    pub async fn start(api: impl FakeApi) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            api: Box::new(api),
            state: Mutex::default(),
            requests: watch::Sender::new(0),
            called: watch::Sender::new(0),
            next_id: AtomicU64::new(1),
            connections: AtomicU64::new(0),
            tasks: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task: task.abort_handle() })
    }

    /// Returns the address that the fake listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL of its API, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Gives the next message this case, whoever its recipient is; several calls make a queue.
    pub fn next(&self, case: Case) {
        lock(&self.shared.state).next.push_back(case);
    }

    /// Answers the next request with this, without reading it; several calls make a queue.
    pub fn next_answer(&self, answer: FakeAnswer) {
        lock(&self.shared.state).answers.push_back(answer);
    }

    /// Resets the next connections before anything is read of them.
    pub fn reset_connections(&self, count: usize) {
        lock(&self.shared.state).resets = count;
    }

    /// Sets how long [`Trouble::Slow`] takes; two seconds unless set.
    pub fn slow(&self, time: Duration) {
        lock(&self.shared.state).slow = Some(time);
    }

    /// Sends calls whose URL begins with `base` to this socket, with the rest of the URL as their path: for a server
    /// behind a proxy, or one whose public URL is https.
    pub fn call_straight(&self, base: &str, address: SocketAddr) {
        lock(&self.shared.state).shortcut = Some(Shortcut { base: base.to_owned(), address });
    }

    /// Sets the URL that is called when `POST /fake/inbound` with `{"from","text"}` lets a recipient write.
    pub fn set_inbound_url(&self, url: &str) {
        lock(&self.shared.state).inbound_url = Some(url.to_owned());
    }

    /// Returns the URL at which a user lets a recipient write, see [`Self::set_inbound_url`].
    pub fn inbound_console(&self) -> String {
        format!("{}{INBOUND}", self.url())
    }

    /// Returns the newest 10,000 requests, oldest first; fewer if their bodies have more than 64 MiB together.
    pub fn requests(&self) -> Vec<FakeRequest> {
        lock(&self.shared.state).requests.iter().cloned().collect()
    }

    /// Waits until there were `count` requests since the start.
    pub async fn received(&self, count: usize) -> Vec<FakeRequest> {
        let _ = self.shared.requests.subscribe().wait_for(|&received| received >= count).await;
        self.requests()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns the newest 10,000 calls to the server under test, in the order of their answers.
    pub fn called_back(&self) -> Vec<CalledBack> {
        lock(&self.shared.state).called.iter().cloned().collect()
    }

    /// Waits until `count` calls to the server under test were answered since the start.
    pub async fn calls_answered(&self, count: usize) -> Vec<CalledBack> {
        let _ = self.shared.called.subscribe().wait_for(|&called| called >= count).await;
        self.called_back()
    }

    /// Lets a recipient write: the provider calls this callback address of the channel. `None` if it has no such call.
    pub async fn write(&self, url: &str, from: &str, text: &str, signature: Signature) -> Option<CalledBack> {
        Some(self.call(self.shared.api.inbound(url, from, text, signature)?).await)
    }

    /// Makes any call to the server under test.
    pub async fn call(&self, callback: FakeCallback) -> CalledBack {
        self.shared.call(callback).await
    }
}

impl Shared {
    async fn call(&self, callback: FakeCallback) -> CalledBack {
        let shortcut = lock(&self.state).shortcut.clone();
        let called = call(callback, shortcut.as_ref()).await;
        let mut state = lock(&self.state);
        if state.called.len() >= REMEMBERED {
            state.called.pop_front();
        }
        state.called.push_back(called.clone());
        drop(state);
        self.called.send_modify(|count| *count += 1);
        called
    }

    fn record(&self, request: FakeRequest) {
        let mut state = lock(&self.state);
        state.octets += request.body.len();
        state.requests.push_back(request);
        while state.requests.len() > REMEMBERED || (state.octets > REMEMBERED_OCTETS && state.requests.len() > 1) {
            state.octets -= state.requests.pop_front().map_or(0, |oldest| oldest.body.len());
        }
        drop(state);
        self.requests.send_modify(|count| *count += 1);
    }

    /// Lets a recipient write, and answers with the result of the call.
    async fn inbound(&self, request: &FakeRequest) -> FakeAnswer {
        let no = |status, error: &str| FakeAnswer::json(status, &json!({ "error": error }));
        let body = request.json();
        let (Some(from), Some(text)) = (body["from"].as_str(), body["text"].as_str()) else {
            return no(400, "give {\"from\",\"text\"}");
        };
        let Some(url) = lock(&self.state).inbound_url.clone() else {
            return no(404, "this provider was not told where to call");
        };
        let Some(callback) = self.api.inbound(&url, from, text, Signature::Valid) else {
            return no(404, "a recipient like that cannot write through this provider");
        };
        match self.call(callback).await.status {
            Some(status) if status.is_success() => FakeAnswer::json(200, &json!({"answered": status.as_u16()})),
            Some(status) => no(502, &format!("the call was answered {status}")),
            None => no(502, "the call was not answered"),
        }
    }

    /// Makes the calls that report about a message, one after another.
    fn report_later(self: &Arc<Self>, calls: Vec<FakeCallback>) {
        if calls.is_empty() {
            return;
        }
        let shared = Arc::clone(self);
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            for callback in calls {
                shared.call(callback).await;
            }
        });
    }

    /// Returns the answer to a request; `None` resets the connection.
    async fn answer(self: &Arc<Self>, request: FakeRequest) -> Option<FakeAnswer> {
        if request.path() == INBOUND {
            return Some(self.inbound(&request).await);
        }
        let scripted = lock(&self.state).answers.pop_front();
        if scripted.is_none()
            && let Some((callback, refusal)) = self.api.asks_first(&request)
            && !self.call(callback).await.status.is_some_and(|status| status.is_success())
        {
            self.record(request);
            return Some(refusal);
        }
        let read = if scripted.is_some() { None } else { Some(self.api.read(&request)) };
        self.record(request);
        let mut submission = match (scripted, read) {
            (Some(answer), _) | (None, Some(Err(answer))) => return Some(answer),
            (None, Some(Ok(submission))) => submission,
            (None, None) => return None,
        };
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        submission.id = format!("{number:08}");
        let (case, slow) = {
            let mut state = lock(&self.state);
            (state.next.pop_front().unwrap_or_else(|| Case::of(&submission.recipient)), state.slow.unwrap_or(SLOW))
        };
        match case {
            Case::Accepted(reports, order) => {
                let calls = planned(self.api.as_ref(), &submission, reports, order);
                if order == Order::BeforeAnswer {
                    for callback in calls {
                        self.call(callback).await;
                    }
                } else {
                    self.report_later(calls);
                }
                Some(self.api.accepted(&submission))
            }
            Case::Refused(refusal) => Some(self.refused(&submission, refusal)),
            Case::Trouble(trouble) => self.trouble(&submission, trouble, slow).await,
        }
    }

    fn refused(&self, submission: &Submission, refusal: Refusal) -> FakeAnswer {
        let answer = self.api.refused(submission, refusal);
        match refusal {
            Refusal::Throttled(wait) => match wait.header() {
                Some(value) => answer.header("retry-after", value),
                None => answer,
            },
            _ => answer,
        }
    }

    async fn trouble(
        self: &Arc<Self>,
        submission: &Submission,
        trouble: Trouble,
        slow: Duration,
    ) -> Option<FakeAnswer> {
        match trouble {
            Trouble::Slow => {
                tokio::time::sleep(slow).await;
                Some(self.api.accepted(submission))
            }
            Trouble::Silent => std::future::pending().await,
            Trouble::Reset => None,
            Trouble::ResetWhenTaken => {
                let reports = &[super::Report::Sent, super::Report::Delivered];
                self.report_later(planned(self.api.as_ref(), submission, reports, Order::InOrder));
                None
            }
            Trouble::Broken => {
                let whole = self.api.accepted(submission).body;
                let cut = whole.slice(..whole.len() / 2);
                Some(FakeAnswer::text(200, "application/json", cut))
            }
            Trouble::Huge => {
                let body = format!("{{\"padding\":\"{}\"}}", "x".repeat(3 << 20));
                Some(FakeAnswer::text(200, "application/json", body))
            }
            Trouble::Redirect => Some(FakeAnswer::text(307, "text/plain", "").header("location", "/elsewhere")),
            Trouble::RequestTimeout => Some(FakeAnswer::text(408, "text/plain", "request timeout")),
            Trouble::UnauthorizedOnce => {
                let is_first = {
                    let mut state = lock(&self.state);
                    if state.seen.len() >= REMEMBERED {
                        state.seen.clear();
                    }
                    state.seen.insert(submission.recipient.clone())
                };
                Some(if is_first { self.api.refused(submission, Refusal::Auth) } else { self.api.accepted(submission) })
            }
        }
    }
}

/// Accepts connections and owns their tasks, which end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No free file descriptor, or a peer that has left already.
            tokio::task::yield_now().await;
            continue;
        };
        let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        while connections.try_join_next().is_some() {}
        let is_reset = {
            let mut state = lock(&shared.state);
            let is_reset = state.resets > 0;
            state.resets = state.resets.saturating_sub(1);
            is_reset
        };
        if is_reset {
            let _ = stream.set_zero_linger();
            continue;
        }
        let _ = stream.set_nodelay(true);
        connections.spawn(serve(stream, number, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, connection: u64, shared: Arc<Shared>) {
    let (resets, reset) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
    let socket = Socket { stream, is_reset: Arc::clone(&resets) };
    let service = {
        let reset = Arc::clone(&reset);
        service_fn(move |request: Request<Incoming>| {
            let (shared, reset) = (Arc::clone(&shared), Arc::clone(&reset));
            async move {
                let answer = match read(request, connection).await {
                    Some(request) => shared.answer(request).await,
                    None => Some(FakeAnswer::text(413, "text/plain", "")),
                };
                if let Some(answer) = answer {
                    return Ok::<_, Infallible>(response(answer));
                }
                reset.notify_one();
                std::future::pending().await
            }
        })
    };
    let builder = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        // A peer that leaves early is no error here.
        _ = builder.serve_connection(TokioIo::new(socket), service) => {}
        () = reset.notified() => resets.store(true, Ordering::Relaxed),
    }
}

async fn read(request: Request<Incoming>, connection: u64) -> Option<FakeRequest> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_LIMIT).collect().await.ok()?.to_bytes();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    Some(FakeRequest {
        method: head.method,
        target,
        headers: head.headers,
        body,
        version: head.version,
        at: Instant::now(),
        connection,
    })
}

fn response(answer: FakeAnswer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = answer.status;
    let headers: &mut HeaderMap = response.headers_mut();
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if answer.status == StatusCode::NO_CONTENT {
        headers.remove(CONTENT_TYPE);
    }
    debug_assert!(!answer.status.is_redirection() || headers.contains_key(LOCATION));
    response
}

/// A connection that is reset instead of closed, if that was requested before it is dropped.
struct Socket {
    stream: TcpStream,
    is_reset: Arc<AtomicBool>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_reset.load(Ordering::Relaxed) {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
