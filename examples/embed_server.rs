//! The server inside your own program: your routes and your shutdown beside its API.
//!
//! Run it with `cargo run -p messaging-examples --bin embed_server`. It serves on a free port, sends one
//! message to itself over HTTP and stops.

use std::error::Error;
use std::net::SocketAddr;

use messaging::core::scope::Scope;
use messaging::http::{Client, Server, ServerOptions};
use messaging::ops::keys::ApiKeyInput;
use messaging::ops::messages::SendMessage;
use messaging::{Message, admin};
use tokio::sync::oneshot;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let app = messaging::open(directory.path()).await?;

    let server = Server::bind(app.app().clone(), ServerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0))))?;
    let url = format!("http://{}/v1", server.local_addr());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async {
        // Dropping the sender stops the server as well.
        let _ = stopped.await;
    }));
    println!("serving {url}");

    let key = ApiKeyInput::new("shop", vec![Scope::MessagesSend]);
    let key = admin::create_key(app.app(), app.workspace_id(), &key).await?.key.ok_or("a new key is shown")?;
    let client = Client::new(&url)?.token(key.expose())?;
    let message = Message::email("ann@example.com").subject("Order 17").text("Thanks");
    let accepted = client.run(SendMessage).body(message).idempotency_key("order-17").send().await?;
    println!("accepted {}", accepted.message_id);

    // Running requests are finished; accepted messages are on disk and would be sent after the next start.
    drop(stop);
    serving.await?;
    app.close().await;
    Ok(())
}
