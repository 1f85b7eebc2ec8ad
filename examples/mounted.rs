//! The API mounted under a path of an existing server, here an axum one.
//!
//! Run it with `cargo run -p messaging-examples --bin mounted`. It serves on a free port, sends one message to itself
//! over HTTP, and stops when running requests are finished.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use axum::{Router, serve};
use messaging::core::scope::Scope;
use messaging::http::{ApiService, Client, PeerAddress, ServiceOptions};
use messaging::ops::keys::ApiKeyInput;
use messaging::ops::messages::SendMessage;
use messaging::{Message, admin};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Passes the peer address to the API: keys may be bound to addresses, and concurrency limits are per network.
async fn tell_peer(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(PeerAddress(peer.ip()));
    next.run(request).await
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let root = format!("http://{}", listener.local_addr()?);
    let url = format!("{root}/mail");

    let directory = tempfile::tempdir()?;
    // Links in messages lead to the API below the path.
    let app = messaging::builder(directory.path()).public_url(url.as_str()).open().await?;

    let api = ApiService::new(app.app().clone(), ServiceOptions::mounted_at("/mail"));
    let mounted = Router::new().fallback_service(api).layer(middleware::from_fn(tell_peer));
    let router = Router::new().route("/", get(async || "Hello")).nest("/mail", mounted);

    let (stop, stopped) = oneshot::channel::<()>();
    let stopping = app.clone();
    let serving = serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).with_graceful_shutdown(
        async move {
            // Dropping the sender stops the server as well.
            let _ = stopped.await;
            // Long polls for events are answered at once; other requests run to completion.
            stopping.app().end_waits();
        },
    );
    let serving = tokio::spawn(serving.into_future());
    println!("serving {root}, the API below {url}/v1");

    let key = ApiKeyInput::new("shop", vec![Scope::MessagesSend]);
    let key = admin::create_key(app.app(), app.workspace_id(), &key).await?.key.ok_or("a new key is shown")?;
    let client = Client::new(&format!("{url}/v1"))?.token(key.expose())?;
    let message = Message::email("ann@example.com").subject("Order 17").text("Thanks");
    let accepted = client.run(SendMessage).body(message).idempotency_key("order-17").send().await?;
    println!("accepted {}", accepted.message_id);
    // A client keeps its connections, and the server waits for open ones.
    drop(client);

    drop(stop);
    serving.await??;
    // Accepted messages are on disk, and would be sent after the next start.
    app.close().await;
    println!("stopped");
    Ok(())
}
