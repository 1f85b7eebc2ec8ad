//! The guarded client against a peer that misbehaves.

mod answers;
mod guard;
mod redirects;
mod sharing;
mod stages;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use messaging_core::ports::fetch::{Fetch as _, FetchError, FetchRequest, Fetched, Protocol};
use messaging_testing::{ScriptedHttpServer, TestDns};
use messaging_transport::{Dns, GuardedFetch};

/// A public address of documentation pages; nothing is ever sent there.
const PUBLIC: &str = "93.184.216.34";

fn request(url: &str) -> FetchRequest {
    FetchRequest {
        protocol: Protocol::Http1,
        method: Method::POST,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{}"),
        time_limit: Duration::from_secs(15),
        body_limit: 4096,
        redirects: 0,
    }
}

/// A peer, and a client that may call it by its address.
struct Bed {
    server: ScriptedHttpServer,
    fetch: GuardedFetch,
}

impl Bed {
    async fn start() -> Self {
        let server = ScriptedHttpServer::start().await;
        let fetch = GuardedFetch::builder(Dns::new(None)).allow_private(true).build();
        Self { server, fetch }
    }

    async fn fetch(&self) -> Result<Fetched, FetchError> {
        self.fetch.fetch(request(&self.server.url("/hook"))).await
    }
}

/// A peer with TLS that seems to be on the public internet, and a client that keeps the rules.
struct Public {
    server: ScriptedHttpServer,
    dns: TestDns,
    fetch: GuardedFetch,
}

impl Public {
    async fn start() -> Self {
        let server = ScriptedHttpServer::tls(&["acme.test", "other.test"]).await;
        let dns = TestDns::start().await;
        dns.ttl(0);
        dns.addresses("acme.test", &[PUBLIC.parse().unwrap()]);
        let fetch = GuardedFetch::builder(Dns::new(Some(dns.addr())))
            .root(server.root().unwrap())
            .connect_instead(server.address())
            .build();
        Self { server, dns, fetch }
    }

    async fn fetch(&self, url: &str) -> Result<Fetched, FetchError> {
        self.fetch.fetch(request(url)).await
    }
}
