//! An HTTP server on loopback that counts its requests, and a bare client that posts to it.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::load::rate;

/// Time without a counted request after which a bench fails.
const SILENCE: Duration = Duration::from_mins(1);

/// Answer of a receiver to a request.
pub type Answer = Response<Full<Bytes>>;

/// A server that counts the requests it answers with 2xx.
#[derive(Debug)]
pub struct Receiver {
    /// Address at which it listens.
    pub address: SocketAddr,
    taken: Arc<watch::Sender<u64>>,
}

impl Receiver {
    /// Starts a server that answers each body as `answer` does, until the runtime ends.
    pub async fn start<A, F>(answer: A) -> io::Result<Self>
    where
        A: Fn(Bytes) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let taken = Arc::new(watch::Sender::new(0));
        let counted = Arc::clone(&taken);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let (answer, taken) = (answer.clone(), Arc::clone(&counted));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answer, taken) = (answer.clone(), Arc::clone(&taken));
                    async move {
                        let body = request.into_body().collect().await;
                        let answer = answer(body.map_or_else(|_| Bytes::new(), Collected::to_bytes)).await;
                        if answer.status().is_success() {
                            taken.send_modify(|count| *count += 1);
                        }
                        Ok::<_, Infallible>(answer)
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Ok(Self { address, taken })
    }

    /// Requests counted so far.
    pub fn count(&self) -> u64 {
        *self.taken.borrow()
    }

    /// Waits until this number of requests has been counted. Fails if none comes for a minute.
    pub async fn reach(&self, count: u64) -> Result<(), Box<dyn Error>> {
        let mut taken = self.taken.subscribe();
        while *taken.borrow_and_update() < count {
            let more = tokio::time::timeout(SILENCE, taken.changed()).await;
            more.map_err(|_| format!("{} of {count} were taken, then none for a minute", self.count()))??;
        }
        Ok(())
    }
}

/// Posts bodies over kept connections, one request at a time on each; answers requests a second.
pub async fn post(
    address: SocketAddr,
    connections: usize,
    requests: u64,
    body: impl Fn() -> Bytes + Clone + Send + 'static,
) -> Result<f64, Box<dyn Error>> {
    let left = Arc::new(AtomicU64::new(requests));
    let began = Instant::now();
    let tasks: Vec<_> = (0..connections)
        .map(|_| {
            let (left, body) = (Arc::clone(&left), body.clone());
            tokio::spawn(async move {
                let stream = TcpStream::connect(address).await.expect("the receiver listens");
                stream.set_nodelay(true).expect("a TCP socket");
                let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
                let (mut sender, connection) = opened.expect("a new connection");
                tokio::spawn(connection);
                let mut count = 0;
                while left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    let request =
                        Request::post("/").header("host", "localhost").header("content-type", "application/json");
                    let request = request.body(Full::new(body())).expect("a request");
                    let answer = sender.send_request(request).await.expect("an answer");
                    answer.into_body().collect().await.expect("a body");
                    sender.ready().await.expect("a connection that is kept");
                    count += 1;
                }
                count
            })
        })
        .collect();
    Ok(rate(tasks, began).await)
}
