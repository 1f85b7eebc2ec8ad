//! HTTP client in memory, in place of one that calls web addresses.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use messaging_core::ports::fetch::{Fetch, FetchError, FetchRequest, Fetched, UrlFault};
use messaging_transport::{Dns, GuardedFetch};
use tokio::sync::watch;

use super::scripted::Gate;

/// Records every request and answers as scripted; unless scripted, with 200 and `ok`. Judges URLs as a server does that
/// allows no private targets.
#[derive(Debug)]
pub struct MemoryFetch {
    state: Mutex<State>,
    /// Number of requests so far.
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<FetchRequest>,
    next: VecDeque<Result<Fetched, FetchError>>,
    always: HashMap<String, Result<Fetched, FetchError>>,
    gates: VecDeque<Gate>,
}

impl Default for MemoryFetch {
    fn default() -> Self {
        Self { state: Mutex::default(), count: watch::Sender::new(0) }
    }
}

/// Returns an answer with a status, headers and a body.
///
/// # Panics
///
/// If that is no status, or a header cannot be one.
pub fn fetched(status: u16, headers: &[(&'static str, &str)], body: &str) -> Fetched {
    let header = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"))
    };
    Fetched {
        url: String::new(),
        status: StatusCode::from_u16(status).expect("a status"),
        headers: headers.iter().map(header).collect::<HeaderMap>(),
        body: Bytes::from(body.to_owned()),
        truncated: false,
    }
}

impl MemoryFetch {
    /// Answers the next request with this status; several calls make a queue.
    pub fn next(&self, status: u16) {
        self.next_with(Ok(fetched(status, &[], "")));
    }

    /// Gives the next request this outcome; several calls make the same queue.
    pub fn next_with(&self, outcome: Result<Fetched, FetchError>) {
        self.lock().next.push_back(outcome);
    }

    /// Gives every request to a URL this outcome.
    pub fn always(&self, url: &str, outcome: Result<Fetched, FetchError>) {
        self.lock().always.insert(url.to_owned(), outcome);
    }

    /// Holds up the answer to the next request.
    pub fn gate(&self) -> Gate {
        let gate = Gate::default();
        self.lock().gates.push_back(gate.clone());
        gate
    }

    /// Returns every request since the last call.
    pub fn take(&self) -> Vec<FetchRequest> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Waits until there were `count` requests since the start.
    pub async fn received(&self, count: usize) {
        self.count.subscribe().wait_for(|&received| received >= count).await.expect("the sender is ours");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Fetch for MemoryFetch {
    fn check(&self, url: &str) -> Result<(), UrlFault> {
        GuardedFetch::builder(Dns::new(None)).build().check(url)
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        let (outcome, gate) = {
            let mut state = self.lock();
            let next = state.next.pop_front().or_else(|| state.always.get(&request.url).cloned());
            state.requests.push(request);
            (next.unwrap_or_else(|| Ok(fetched(200, &[], "ok"))), state.gates.pop_front())
        };
        self.count.send_modify(|count| *count += 1);
        if let Some(gate) = gate {
            gate.pass().await;
        }
        outcome
    }
}
