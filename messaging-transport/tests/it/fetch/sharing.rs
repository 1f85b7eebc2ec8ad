//! Connections that are kept, and those that many requests share.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use http_body_util::Empty;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use messaging_testing::{Answer, Gate};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;

/// Number of requests under way at the same time.
const MANY: usize = 200;

#[tokio::test]
async fn as_many_connections_are_kept_as_were_in_use() {
    let bed = Bed::start().await;
    for round in 1..=2 {
        let gate = Gate::default();
        bed.server.always(Answer::Wait(gate.clone()));
        let all_there = async {
            bed.server.received(MANY * round).await;
            gate.open();
        };
        let (answers, ()) = tokio::join!(join_all((0..MANY).map(|_| bed.fetch())), all_there);
        assert!(answers.iter().all(Result::is_ok));
    }
    let most = bed.server.requests().iter().map(|request| request.connection).max();
    assert_eq!(most, Some(MANY), "the second round needs no new ones");
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_as_long_as_the_peer_keeps_it() {
    let bed = Bed::start().await;
    let second = |header: Option<&'static str>, idle: u64| {
        let bed = &bed;
        async move {
            let headers = header.map(|value| ("Keep-Alive", value.to_owned())).into_iter().collect();
            bed.server.next(Answer::Headers(200, headers, String::new()));
            bed.fetch().await.unwrap();
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(idle)).await;
            tokio::time::resume();
            bed.fetch().await.unwrap();
            let connections: Vec<_> = bed.server.requests().iter().map(|request| request.connection).collect();
            connections[connections.len() - 1] == connections[connections.len() - 2]
        }
    };
    assert!(second(None, 58).await, "the peer says nothing");
    assert!(!second(None, 61).await);
    assert!(second(Some("timeout=5, max=100"), 3).await);
    assert!(!second(Some("timeout=5, max=100"), 5).await, "it is about to be closed");
    assert!(!second(Some("timeout=600"), 61).await);
}

/// HTTP/2 peer that answers once so many requests have arrived.
struct Http2Peer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Http2Peer {
    async fn start(streams: u32, together: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, there) = (Arc::clone(&connections), Arc::new(watch::Sender::new(0)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let there = Arc::clone(&there);
                let service = service_fn(move |_| {
                    let there = Arc::clone(&there);
                    async move {
                        there.send_modify(|count| *count += 1);
                        there.subscribe().wait_for(|count| *count >= together).await.unwrap();
                        Ok::<_, Infallible>(http::Response::new(Empty::<Bytes>::new()))
                    }
                });
                let mut builder = http2::Builder::new(TokioExecutor::new());
                builder.max_concurrent_streams(streams);
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, connections }
    }

    /// Returns how many connections it takes for `together` simultaneous requests and one after them.
    async fn connections_of(streams: u32, together: usize) -> usize {
        let peer = Self::start(streams, together).await;
        let fetch = GuardedFetch::builder(Dns::new(None)).allow_private(true).build();
        let request = || FetchRequest { protocol: Protocol::Http2, ..request(&format!("http://{}/", peer.address)) };
        let answers = join_all((0..together).map(|_| fetch.fetch(request()))).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert!(fetch.fetch(request()).await.is_ok());
        peer.connections.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn http2_connects_once_and_again_only_at_the_limit_of_its_streams() {
    assert_eq!(Http2Peer::connections_of(250, 90).await, 1);
    let more = Http2Peer::connections_of(100, 350).await;
    assert!((4..=5).contains(&more), "{more}");
}
