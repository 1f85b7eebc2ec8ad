//! A request's way through the server, check by check.
//!
//! The order is that of contract section 1.3, and it is all here: 1 route, 2 credentials, 3 address,
//! 4 rate limit, 5 to 7 workspace, role and scope, 8 size and media type. 9 to 13 are the operation's.

mod headers;
mod request_log;

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, CONNECTION, EXPECT, HOST, SET_COOKIE, USER_AGENT};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use ipnet::IpNet;
use messaging_core::domain::security::caller_network::CallerNetwork;
use messaging_core::error::Chain;
use messaging_core::ids::{ApiKeyId, UserId, WorkspaceId};
use messaging_core::scope::Access;
use messaging_engine::fair_semaphore::Owner;
use messaging_engine::ops::{self, BodyKind, Endpoint, Quota, SessionCookie};
use messaging_engine::spans::TARGET;
use messaging_engine::{Admitted, AnsweredRequest, App, Caller, Error};
use tokio::time::timeout;
use tracing::Instrument as _;

use self::headers::{bearer, has_type, idempotency_key, is_host, is_json, prefers_leniency, wants_csv};
use crate::archive;
use crate::body::{BodyBudget, BodyError, BodyTimes, Erased, RequestBody, Sender, drain};
use crate::callbacks::{self, CallbackCall, CallbackRoute};
use crate::caller_address::caller_address;
use crate::connection::activity::Activity;
use crate::console::{self, Console};
use crate::docs_page;
use crate::documents::Documents;
use crate::drop_in::{self, DropIn, Translated};
use crate::images;
use crate::metrics::{GaugeGuard, Metrics, UNMATCHED};
use crate::rate_limit::{RateLimiter, RequestTokens, Standing};
use crate::readers::{self, ReaderRequest, ReaderRoute};
use crate::reply::{self, Reply, X_REQUEST_ID};
use crate::request_id::request_id;
use crate::router::{RouteMatch, Router, Slot, Target};
use crate::service_options::ServiceOptions;
use crate::session_cookie;
use crate::single_sign_on::{self, BrowserRequest};
use crate::uploads;
use crate::visits::{self, Visit};

const X_WORKSPACE_ID: HeaderName = HeaderName::from_static("x-workspace-id");

/// Bytes of a request's target.
pub(crate) const MAX_TARGET: usize = 8 * 1024;

/// Time an answer waits for the end of an unwanted body, so that the connection can be used again.
const SKIP_TIME: Duration = Duration::from_millis(250);

/// The id of the operation whose failure has a special answer (contract section 3).
const HEALTH: &str = <ops::health::GetHealth as ops::Operation>::ID;

/// State that all requests of a server share.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) metrics: Metrics,
    pub(crate) budget: BodyBudget,
    pub(crate) times: BodyTimes,
    pub(crate) trusted_proxies: Vec<IpNet>,
    limiter: RateLimiter,
    documents: Documents,
    console: Console,
}

/// Facts about a request besides its answer: for common headers, the log and the metrics.
#[derive(Debug, Default)]
struct Notes {
    slot: Option<Slot>,
    route: Option<&'static str>,
    credential: Option<Credential>,
    /// True if the credential is the cookie of a browser.
    by_cookie: bool,
    standing: Option<Standing>,
    bytes_in: u64,
    /// True if the body was read to its end.
    read: bool,
    /// Entry for the log of requests, once the workspace is known.
    logged: Option<AnsweredRequest>,
}

/// The credential of a request, as the log names it.
#[derive(Debug, Clone, Copy)]
enum Credential {
    Key(ApiKeyId),
    User(UserId),
}

/// The origin of a request: the address of its caller and its connection.
#[derive(Debug, Clone, Copy)]
struct Origin<'a> {
    /// The caller's address (contract section 2.1).
    client: IpAddr,
    /// The connection.
    activity: &'a Activity,
}

/// Reason why there is no ordinary answer.
#[derive(Debug)]
enum Refusal {
    /// Answered with an error.
    Answer(Error),
    /// The body did not arrive in time.
    NoBody,
    /// Answered with only a status, and the end of the connection (contract section 22).
    Malformed(StatusCode),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Answer(error)
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Refused(error) => Self::Answer(error),
            BodyError::TimedOut => Self::NoBody,
            BodyError::Broken => Self::Malformed(StatusCode::BAD_REQUEST),
        }
    }
}

impl Pipeline {
    pub(crate) fn new(app: App, options: ServiceOptions) -> Self {
        let router = Router::new(options.console.is_on());
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since the epoch fit for a long time")]
        let started = app.now().as_millis() as f64 / 1000.0;
        let metrics = Metrics::new(router.targets(), started);
        let is_shared = app.store().shared_limits().is_some();
        Self {
            app,
            router,
            metrics,
            budget: BodyBudget::new(options.body_budget),
            times: options.body_times(),
            trusted_proxies: options.trusted_proxies,
            limiter: RateLimiter::new(is_shared),
            documents: Documents::new(options.prefix),
            console: options.console,
        }
    }

    /// Keeps the rate limits in step with other processes on the database, if there can be any: then it never ends.
    pub(crate) async fn share_limits(&self) {
        if let Some(shared) = self.app.store().shared_limits() {
            self.limiter.share(&*shared, || self.app.monotonic()).await;
        }
    }

    /// Answers a request on one of the server's own connections.
    pub(crate) async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: IpAddr,
        activity: Arc<Activity>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let form = check_form(&head);
        Ok(self.answer(form, &head, &mut Erased(body), peer, activity).await)
    }

    /// Answers a request that another server has received.
    pub(crate) async fn serve_mounted(&self, head: &Parts, body: &mut RequestBody, peer: IpAddr) -> Reply {
        // The form of the request, above all the host, was checked by the other server.
        self.answer(check_length(head), head, body, peer, Arc::new(Activity::new())).await
    }

    async fn answer(
        &self,
        form: Result<(), Refusal>,
        head: &Parts,
        body: &mut RequestBody,
        peer: IpAddr,
        activity: Arc<Activity>,
    ) -> Reply {
        let began = Instant::now();
        let running = Arc::clone(&activity).begin(head.version);
        let in_flight = GaugeGuard::enter(&self.metrics.in_flight);
        let mut notes = Notes::default();
        let request_id = request_id(&head.headers, &self.app);

        let span = tracing::info_span!(
            target: TARGET,
            "request",
            http.request.method = head.method.as_str(),
            http.route = tracing::field::Empty,
            http.response.status_code = tracing::field::Empty
        );
        let outcome = match form {
            Ok(()) => {
                // Pinned where it is made: it is large, and would be copied into the span.
                let running = pin!(self.run(head, body, peer, &request_id, &activity, &mut notes));
                running.instrument(span.clone()).await
            }
            Err(refusal) => Err(refusal),
        };
        let is_malformed = matches!(outcome, Err(Refusal::Malformed(_)));
        let mut reply = match outcome {
            Ok(reply) => reply,
            Err(refusal) => self.refuse(refusal, &request_id, &notes),
        };
        if head.version < Version::HTTP_2 && (is_malformed || !notes.read && !self.skip(head, body, &activity).await) {
            activity.leave_unread();
            reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let status = reply.status();
        span.record("http.route", notes.route.unwrap_or(UNMATCHED));
        span.record("http.response.status_code", status.as_u16());
        let log_id = request_id.clone();
        reply.headers_mut().insert(X_REQUEST_ID, request_id);
        if notes.by_cookie {
            reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if let Some(standing) = notes.standing.take() {
            reply::add_standing(&mut reply, standing);
        }
        let took = began.elapsed();
        self.metrics.answered(notes.slot, status, took);
        log(&head.method, status, &reply, took, log_id.to_str().unwrap_or_default(), &notes);
        if let Some(logged) = notes.logged.take() {
            self.app.log_request(request_log::answered(logged, &reply, took));
        }
        drop((in_flight, running));
        reply
    }

    async fn run(
        &self,
        head: &Parts,
        body: &mut RequestBody,
        peer: IpAddr,
        request_id: &HeaderValue,
        activity: &Activity,
        notes: &mut Notes,
    ) -> Result<Reply, Refusal> {
        // 1: the route.
        let matched = self.router.find(&head.method, self.documents.below_prefix(head.uri.path()))?;
        let client = caller_address(peer, &head.headers, &self.trusted_proxies);
        let origin = Origin { client, activity };
        notes.slot = Some(matched.slot);
        notes.route = Some(matched.target.route());
        let (endpoint, drop_in) = match matched.target {
            Target::Operation(endpoint) => (endpoint, None),
            Target::DropIn(drop_in) => (DropIn::endpoint(), Some(drop_in)),
            Target::OpenApi => return Ok(reply::json(StatusCode::OK, self.documents.openapi())),
            Target::Docs => return Ok(reply::page(self.documents.page(), docs_page::SCRIPT)),
            Target::Console => return Ok(console::answer(&self.console, matched.path, &head.headers).await),
            Target::Visit(visit) => return self.visit(visit, &matched, head, body, origin, notes).await,
            Target::Reader(route) => {
                return self.reader(route, &matched, head, body, (origin, request_id), notes).await;
            }
            Target::SignOn(route) => {
                let request_id = request_id.to_str().unwrap_or_default();
                let (is_https, has_console) = (self.is_https(), self.console.is_on());
                let request = BrowserRequest { head, client, request_id, is_https, has_console };
                let answer = single_sign_on::answer(&self.app, route, request);
                return Ok(self.survive(answer, route.route(), request_id).await?);
            }
            Target::Archive(route) => {
                let [workspace, campaign] =
                    ["workspace_id", "campaign_id"].map(|name| matched.parameter(name).unwrap_or_default());
                return Ok(archive::answer(&self.app, route, workspace, campaign, head).await);
            }
            Target::Upload => return self.upload(&matched, body, origin, notes).await,
            Target::Image => return self.image(&matched, head, client).await,
            Target::Callback(route) => return self.callback(route, &matched, head, body, origin, notes).await,
        };

        // 2: credentials.
        let caller = if endpoint.access == Access::Public {
            Caller::Anonymous
        } else {
            let cookie = session_cookie::token(&head.headers, self.is_https());
            notes.by_cookie = cookie.is_some();
            let token = match cookie {
                Some(token) => token,
                None => bearer(&head.headers)?,
            };
            match self.app.authenticate(token).await? {
                // API keys are not accepted as cookies.
                Caller::Key(_) if notes.by_cookie => return Err(Error::InvalidCredentials.into()),
                caller => caller,
            }
        };
        notes.credential = Credential::of(&caller);
        let request_text = request_id.to_str().unwrap_or_default();
        // A key has one workspace; that of a person is known once they are admitted.
        if let Caller::Key(key) = &caller {
            notes.logged =
                Some(request_log::begun(head, &matched, endpoint, (&caller, key.workspace_id), (request_text, client)));
        }
        // 3: the address. A refusal costs no token.
        if !caller.admits(client) {
            return Err(Error::IpNotAllowed.into());
        }
        // 4: the rate limit.
        let tokens = self.take_token(&caller, &mut notes.standing)?;
        // 5 to 7: the workspace, the role, the scope.
        // A value that is no text names no workspace either.
        let in_header = head.headers.get(X_WORKSPACE_ID).map(|value| value.to_str().unwrap_or_default());
        let admitted = self.app.admit(caller, endpoint, &matched.parameters, in_header).await?;
        if let Some(workspace) = admitted.workspace().filter(|_| notes.logged.is_none()) {
            let caller = (admitted.caller(), workspace);
            notes.logged = Some(request_log::begun(head, &matched, endpoint, caller, (request_text, client)));
        }

        // 8: size and media type.
        let sender =
            Sender { owner: owner_of(admitted.caller(), admitted.workspace()), network: CallerNetwork::of(client) };
        let received = if endpoint.body == BodyKind::None {
            Bytes::new()
        } else {
            let is_accepted = match endpoint.body {
                BodyKind::File(types) => has_type(&head.headers, types),
                _ => is_json(&head.headers),
            };
            let _awaited = activity.await_body();
            self.budget.receive(body, endpoint.body_limit, is_accepted, self.times, sender).await?
        };
        notes.read = endpoint.body != BodyKind::None;
        notes.bytes_in = received.len() as u64;
        let received = self.budget.in_turn(received, sender).await?;

        if let Some(logged) = &mut notes.logged {
            logged.request = request_log::kept(&received);
            logged.request_bytes = notes.bytes_in;
        }

        // 9 to 13: the operation.
        let idempotency_key = idempotency_key(&head.headers);
        let translated = match drop_in {
            Some(drop_in) => Some(drop_in.translate(received.clone(), &head.headers).await?),
            None => None,
        };
        let digested = drop_in.and(idempotency_key).map(drop_in::idempotency_key).transpose()?;
        let request = ops::Request {
            path: matched.path,
            path_parameters: matched.parameters,
            query: head.uri.query().unwrap_or_default(),
            body: translated.as_ref().map_or_else(|| received.clone(), Translated::body),
            idempotency_key: digested.as_ref().map(String::as_bytes).or(idempotency_key),
            client_ip: Some(client),
            user_agent: head.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()),
            request_id: Some(request_text),
            wants_csv: wants_csv(&head.headers),
            lenient: drop_in.is_none() && prefers_leniency(&head.headers),
            quota: tokens.as_ref().map(|tokens| -> &dyn Quota { tokens }),
        };
        let outcome = self.call(endpoint, &admitted, request, request_id).await;
        notes.standing = tokens.as_ref().map(RequestTokens::standing);
        if let Err(Error::RateLimited { .. }) = outcome {
            self.metrics.rate_limited.inc();
        }
        if let Some((drop_in, translated)) = drop_in.zip(translated) {
            return Ok(drop_in.answer(&translated, outcome)?);
        }
        Ok(self.reply(outcome?, notes))
    }

    /// The reply for an answer, with the cookie of its session.
    fn reply(&self, answer: ops::Answer, notes: &Notes) -> Reply {
        let cookie = match &answer.session_cookie {
            // A session that is ended by its token has no cookie to remove.
            Some(SessionCookie::Forget) if !notes.by_cookie => None,
            cookie => cookie.as_ref().and_then(|cookie| session_cookie::header(cookie, self.is_https())),
        };
        let mut reply = reply::answer(answer);
        if let Some(cookie) = cookie {
            reply.headers_mut().insert(SET_COOKIE, cookie);
            reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        reply
    }

    /// Takes a token of a caller who has a rate limit; more can be taken with the result.
    pub(crate) fn take_token(
        &self,
        caller: &Caller,
        standing: &mut Option<Standing>,
    ) -> Result<Option<RequestTokens<'_>>, Error> {
        let Some((id, limit)) = caller.credential().zip(caller.rate_limit()) else { return Ok(None) };
        let tokens = RequestTokens::take(&self.limiter, id, limit, self.app.monotonic());
        let now = standing.insert(tokens.standing());
        if !now.granted {
            self.metrics.rate_limited.inc();
            return Err(Error::RateLimited { retry_after: now.seconds });
        }
        Ok(Some(tokens))
    }

    /// Returns true if browsers reach the server by HTTPS, perhaps through a proxy.
    fn is_https(&self) -> bool {
        self.app.settings().public_url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    }

    /// Answers a link in a message. The link is the only credential: of the checks only route, size and time are left.
    async fn visit(
        &self,
        visit: Visit,
        matched: &RouteMatch<'_>,
        head: &Parts,
        body: &mut RequestBody,
        origin: Origin<'_>,
        notes: &mut Notes,
    ) -> Result<Reply, Refusal> {
        let mut form = Bytes::new();
        if visit.reads_form() {
            // Mail programs differ in how they declare the form, so any type is taken.
            let sender = Sender { owner: None, network: CallerNetwork::of(origin.client) };
            let _awaited = origin.activity.await_body();
            form = self.budget.receive(body, visits::MAX_FORM, true, self.times, sender).await?;
            notes.read = true;
            notes.bytes_in = form.len() as u64;
        }
        let visitor = visits::visitor(head, origin.client);
        let (token, language) = (matched.parameter("token").unwrap_or_default(), readers::preferred(&head.headers));
        Ok(visits::answer(&self.app, visit, token, visitor, language, &form).await)
    }

    /// Answers a page for readers. The link is the only credential, and forms are public.
    async fn reader(
        &self,
        route: ReaderRoute,
        matched: &RouteMatch<'_>,
        head: &Parts,
        body: &mut RequestBody,
        (origin, request_id): (Origin<'_>, &HeaderValue),
        notes: &mut Notes,
    ) -> Result<Reply, Refusal> {
        let mut received = Bytes::new();
        if route.reads_body() {
            let sender = Sender { owner: None, network: CallerNetwork::of(origin.client) };
            let _awaited = origin.activity.await_body();
            received = self.budget.receive(body, readers::MAX_BODY, true, self.times, sender).await?;
            notes.read = true;
            notes.bytes_in = received.len() as u64;
        }
        let token = matched.parameter("token").unwrap_or_default();
        let request = ReaderRequest { token, head, client: origin.client, body: &received, request_id };
        Ok(readers::answer(&self.app, route, request).await)
    }

    /// Receives a file for an import. The link is the only credential.
    async fn upload(
        &self,
        matched: &RouteMatch<'_>,
        body: &mut RequestBody,
        origin: Origin<'_>,
        notes: &mut Notes,
    ) -> Result<Reply, Refusal> {
        let token = matched.parameter("token").unwrap_or_default();
        let _awaited = origin.activity.await_body();
        let reply = uploads::answer(&self.app, token, origin.client, body, self.times, &mut notes.bytes_in).await?;
        notes.read = true;
        Ok(reply)
    }

    /// Answers with an image of a mail. The address is the only credential.
    async fn image(&self, matched: &RouteMatch<'_>, head: &Parts, client: IpAddr) -> Result<Reply, Refusal> {
        let token = matched.parameter("token").unwrap_or_default();
        let sender = Sender { owner: None, network: CallerNetwork::of(client) };
        Ok(images::answer(&self.app, token, &head.headers, &self.budget, sender).await?)
    }

    /// Receives a call of a provider. The token is checked before the body is read.
    async fn callback(
        &self,
        route: CallbackRoute,
        matched: &RouteMatch<'_>,
        head: &Parts,
        body: &mut RequestBody,
        origin: Origin<'_>,
        notes: &mut Notes,
    ) -> Result<Reply, Refusal> {
        let channel = route.channel().or(matched.parameter("channel")).unwrap_or_default();
        let token = matched.parameter("token").unwrap_or_default();
        let target = self.app.callback_target(channel, token).ok_or(Error::NotFound)?;
        let owner = Some(Owner::Workspace(target.workspace()));
        let sender = Sender { owner, network: CallerNetwork::of(origin.client) };
        // Providers differ in what they send, so any type is taken.
        let received = {
            let _awaited = origin.activity.await_body();
            self.budget.receive(body, callbacks::MAX_BODY, true, self.times, sender).await?
        };
        notes.read = true;
        notes.bytes_in = received.len() as u64;
        let received = self.budget.in_turn(received, sender).await?;
        let call = CallbackCall {
            // A HEAD is a GET whose answer has no body.
            method: if head.method == Method::HEAD { &Method::GET } else { &head.method },
            query: head.uri.query(),
            headers: &head.headers,
            body: &received,
        };
        Ok(reply::callback(self.app.receive_callback(target, token, call).await?))
    }

    /// Reads an unwanted body to its end. Returns true if the next request can follow.
    async fn skip(&self, head: &Parts, body: &mut RequestBody, activity: &Activity) -> bool {
        let _awaited = activity.await_body();
        // A client that asked first if it should send the body does not send it.
        body.is_end_stream()
            || !head.headers.contains_key(EXPECT) && timeout(SKIP_TIME, drain(body, self.times)).await.unwrap_or(false)
    }

    /// Runs the operation; a panic in it fails this request, not the server.
    async fn call(
        &self,
        endpoint: &'static Endpoint,
        admitted: &Admitted<'_>,
        request: ops::Request<'_>,
        request_id: &HeaderValue,
    ) -> Result<ops::Answer, Error> {
        // The operation has written nothing it did not commit, so nothing half done can be seen later.
        let request_id = request_id.to_str().unwrap_or_default();
        self.survive(pin!(admitted.run(request)), endpoint.id, request_id).await
    }

    /// Returns the result of an operation, or an internal error if it panics.
    pub(crate) async fn survive<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
        operation: &str,
        request_id: &str,
    ) -> Result<T, Error> {
        AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
            self.metrics.panics.inc();
            // A formatted text may hold data of the request.
            let text = panic.downcast_ref::<&str>().copied();
            tracing::error!(operation, request_id, panic = text, "an operation panicked");
            Err(Error::internal("the operation panicked"))
        })
    }

    fn refuse(&self, refusal: Refusal, request_id: &HeaderValue, notes: &Notes) -> Reply {
        let error = match refusal {
            Refusal::Answer(error) => error.for_caller(self.app.store().health()),
            Refusal::NoBody => return reply::timed_out(request_id),
            Refusal::Malformed(status) => return reply::bare(status),
        };
        if let Some(cause) = error.hidden_cause() {
            let request_id = request_id.to_str().unwrap_or_default();
            tracing::error!(route = notes.route, request_id, error = %Chain(cause), "a request failed");
        }
        match notes.slot.map(|slot| self.router.targets()[slot].1) {
            Some(Target::Operation(endpoint)) if endpoint.id == HEALTH => reply::unhealthy(),
            Some(Target::DropIn(drop_in)) => drop_in.refusal(&error),
            _ => reply::refusal(&error, request_id),
        }
    }

    /// The page for Prometheus.
    pub(crate) async fn metrics_page(&self) -> String {
        let mut page = self.app.metrics_page(self.budget.waits()).await;
        page.push_str(&self.metrics.page(self.budget.used(), crate::logging::dropped_lines()));
        page
    }
}

impl RouteMatch<'_> {
    fn parameter(&self, wanted: &str) -> Option<&str> {
        self.parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }
}

impl Credential {
    fn of(caller: &Caller) -> Option<Self> {
        match caller {
            Caller::Key(key) => Some(Self::Key(key.id)),
            Caller::Session(session) => Some(Self::User(session.user.id)),
            Caller::Anonymous | Caller::Operator(_) => None,
        }
    }
}

impl std::fmt::Display for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(id) => id.fmt(f),
            Self::User(id) => id.fmt(f),
        }
    }
}

fn check_length(head: &Parts) -> Result<(), Refusal> {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > MAX_TARGET { Err(Refusal::Malformed(StatusCode::URI_TOO_LONG)) } else { Ok(()) }
}

/// Checks the parts of a request's form that hyper does not check.
fn check_form(head: &Parts) -> Result<(), Refusal> {
    check_length(head)?;
    // RFC 9112 section 3.2. HTTP/1.0 has no Host, and HTTP/2 sends it elsewhere.
    let mut hosts = head.headers.get_all(HOST).iter();
    let is_fine = match (hosts.next(), hosts.next()) {
        (None, None) => head.version != Version::HTTP_11,
        (Some(host), None) => is_host(host.as_bytes()),
        _ => false,
    };
    if is_fine { Ok(()) } else { Err(Refusal::Malformed(StatusCode::BAD_REQUEST)) }
}

/// The owner whose share of memory and places a request counts against.
pub(crate) fn owner_of(caller: &Caller, workspace: Option<WorkspaceId>) -> Option<Owner> {
    let user = match caller {
        Caller::Session(session) => Some(Owner::User(session.user.id)),
        Caller::Anonymous | Caller::Key(_) | Caller::Operator(_) => None,
    };
    workspace.map(Owner::Workspace).or(user)
}

/// One line for each request: no body, no address, no key, and the template instead of the path.
fn log(method: &Method, status: StatusCode, reply: &Reply, took: Duration, request_id: &str, notes: &Notes) {
    tracing::debug!(
        target: "messaging_http::access",
        method = method.as_str(),
        route = notes.route.unwrap_or(UNMATCHED),
        status = status.as_u16(),
        duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        request_id,
        credential = notes.credential.as_ref().map(tracing::field::display),
        bytes_in = notes.bytes_in,
        bytes_out = reply.body().size_hint().exact(),
        "answered"
    );
}
