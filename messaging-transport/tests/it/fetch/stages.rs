//! A peer that leaves at each stage: the client reports correctly if the request may have arrived, and sends no request
//! twice.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::*;

/// When the peer closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Never,
    Accepted,
    Head,
    Request,
    Answer,
    AnswerBody,
}

/// A real server of hyper that closes its connection at one stage, or answers.
struct Peer {
    address: SocketAddr,
    /// Requests of which at least the head was read.
    heads: Arc<AtomicUsize>,
    versions: Arc<Mutex<Vec<Version>>>,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// A body that begins and never ends; who looks twice has the connection closed.
struct Half {
    sent: bool,
    close: Arc<Notify>,
}

impl Body for Half {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::replace(&mut self.sent, true) {
            self.close.notify_one();
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"half")))))
    }
}

impl Peer {
    async fn start(stage: Stage, is_http2: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (heads, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let versions = Arc::new(Mutex::new(Vec::new()));
        let mut task = JoinSet::new();
        let seen = (Arc::clone(&heads), Arc::clone(&versions), Arc::clone(&connections));
        task.spawn(async move {
            let mut served = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (heads, versions, connections) = seen.clone();
                connections.fetch_add(1, Ordering::SeqCst);
                if stage == Stage::Accepted {
                    continue;
                }
                served.spawn(async move {
                    let close = Arc::new(Notify::new());
                    let service = service_fn(|request: Request<Incoming>| {
                        heads.fetch_add(1, Ordering::SeqCst);
                        versions.lock().unwrap().push(request.version());
                        answer(stage, request, Arc::clone(&close))
                    });
                    let stream = TokioIo::new(stream);
                    tokio::select! {
                        () = close.notified() => {}
                        () = async {
                            if is_http2 {
                                drop(http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await);
                            } else {
                                drop(http1::Builder::new().serve_connection(stream, service).await);
                            }
                        } => {}
                    }
                });
            }
        });
        Self { address, heads, versions, connections, _task: task }
    }

    fn url(&self) -> String {
        format!("http://{}/send", self.address)
    }

    fn heads(&self) -> usize {
        self.heads.load(Ordering::SeqCst)
    }
}

type Answered = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>>;

async fn answer(stage: Stage, request: Request<Incoming>, close: Arc<Notify>) -> Result<Answered, Infallible> {
    let gone = |close: &Notify| {
        close.notify_one();
        std::future::pending::<Infallible>()
    };
    if stage == Stage::Head {
        match gone(&close).await {}
    }
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    match stage {
        Stage::Request => match gone(&close).await {},
        Stage::Answer | Stage::AnswerBody => {
            let half = Half { sent: stage == Stage::Answer, close };
            Ok(Response::builder().header("content-length", "100").body(half.boxed_unsync()).unwrap())
        }
        _ => Ok(Response::new(http_body_util::Full::new(body).boxed_unsync())),
    }
}

fn client() -> GuardedFetch {
    GuardedFetch::builder(Dns::new(None)).allow_private(true).build()
}

fn request_to(peer: &Peer, protocol: Protocol) -> FetchRequest {
    FetchRequest { protocol, ..request(&peer.url()) }
}

#[tokio::test]
async fn what_may_have_arrived_is_told_and_never_repeated() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for stage in [Stage::Head, Stage::Request, Stage::Answer, Stage::AnswerBody] {
            let peer = Peer::start(stage, protocol == Protocol::Http2).await;
            let error = client().fetch(request_to(&peer, protocol)).await.unwrap_err();
            assert_eq!(error, FetchError::Lost, "{protocol:?} {stage:?}");
            assert!(error.may_have_arrived());
            assert_eq!(peer.heads(), 1, "{protocol:?} {stage:?}: sent once");
        }
    }
}

#[tokio::test]
async fn what_is_said_not_to_have_arrived_has_not() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        // Chance decides if the request was written before the peer closed; the report must be right either way.
        for _ in 0..20 {
            let peer = Peer::start(Stage::Accepted, protocol == Protocol::Http2).await;
            let error = client().fetch(request_to(&peer, protocol)).await.unwrap_err();
            assert!([FetchError::Connection, FetchError::Lost].contains(&error), "{protocol:?} {error:?}");
            assert_eq!(peer.connections.load(Ordering::SeqCst), 1, "{protocol:?}: tried once");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        let error = client().fetch(FetchRequest { protocol, ..request(&url) }).await.unwrap_err();
        assert_eq!((error, error.may_have_arrived()), (FetchError::Connection, false), "nobody listens");
    }
}

#[tokio::test]
async fn silence_before_and_after_the_request_differs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limit = Duration::from_secs(1);
    let silent = tokio::spawn(async move {
        let mut read = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).await.unwrap_or_default();
            read.push((stream, count));
        }
    });
    // TLS is never agreed on, so nothing of the request can have been written.
    let stalled = FetchRequest { time_limit: limit, ..request(&format!("https://{address}/")) };
    assert_eq!(client().fetch(stalled).await.unwrap_err(), FetchError::Timeout);
    let stalled = FetchRequest { time_limit: limit, ..request(&format!("http://{address}/")) };
    let error = client().fetch(stalled).await.unwrap_err();
    assert_eq!((error, error.may_have_arrived()), (FetchError::NoAnswer, true));
    silent.abort();
}

#[tokio::test]
async fn one_connection_of_http_2_carries_many_requests() {
    let peer = Peer::start(Stage::Never, true).await;
    let client = client();
    assert_eq!(client.fetch(request_to(&peer, Protocol::Http2)).await.unwrap().status, StatusCode::OK);
    let many: Vec<_> = (0..50)
        .map(|number| {
            let body = Bytes::from(number.to_string());
            client.fetch(FetchRequest { body, ..request_to(&peer, Protocol::Http2) })
        })
        .collect();
    for (number, fetched) in futures_util::future::join_all(many).await.into_iter().enumerate() {
        assert_eq!(fetched.unwrap().body, number.to_string());
    }
    assert_eq!((peer.heads(), peer.connections.load(Ordering::SeqCst)), (51, 1));
    assert!(peer.versions.lock().unwrap().iter().all(|version| *version == Version::HTTP_2));
}

#[tokio::test]
async fn without_an_offer_in_the_handshake_http_1_is_spoken() {
    let public = Public::start().await;
    let url = "https://acme.test/hook";
    for protocol in [Protocol::Http1, Protocol::Negotiated] {
        let fetched = public.fetch.fetch(FetchRequest { protocol, ..request(url) }).await.unwrap();
        assert_eq!(fetched.status, StatusCode::OK, "{protocol:?}");
    }
    // A client that asks for HTTP/2 alone gets nothing else.
    let only = FetchRequest { protocol: Protocol::Http2, ..request(url) };
    let error = public.fetch.fetch(only).await.unwrap_err();
    assert!(!error.may_have_arrived(), "{error:?}");
    assert_eq!(public.server.requests().len(), 2);
}
