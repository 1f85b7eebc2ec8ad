//! The server inside your own program: your routes and your shutdown beside its API.
//!
//! Run it with `cargo run -p messaging-examples --bin embed_server`. It serves on a free port, sends one
//! message to itself over HTTP and stops.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use messaging_engine::ops::messages::SendMessage;
use messaging_engine::work::Workers;
use messaging_engine::{App, Message, admin};
use messaging_http::{Client, Server, ServerOptions};
use messaging_store::{SqliteOptions, SqliteStore, key_file};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(directory.path().join("messaging.db")))?);
    // Secrets in the database are sealed under this key: it belongs into the backup.
    let key = key_file::open_or_create(&directory.path().join("secret.key"), store.as_ref()).await?;
    let app = App::builder(store, key)
        .transports(messaging_transport::defaults(&messaging_transport::Options::new("localhost")))
        .build()
        .await?;
    let dev = admin::prepare_dev(&app).await?;

    let server = Server::bind(app.clone(), ServerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0))))?;
    let url = format!("http://{}/v1", server.local_addr());
    let workers = Workers::start(&app, &Handle::current());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async {
        // Dropping the sender stops the server as well.
        let _ = stopped.await;
    }));
    println!("serving {url}");

    let key = dev.api_key.ok_or("a new workspace has a key")?;
    let client = Client::new(&url)?.token(key.expose())?;
    let message = Message::email("ann@example.com").subject("Order 17").text("Thanks");
    let accepted = client.run(SendMessage).body(message).idempotency_key("order-17").send().await?;
    println!("accepted {}", accepted.message_id);

    // What runs is finished; what is accepted is on disk and would be sent after the next start.
    drop(stop);
    serving.await?;
    workers.stop().await;
    Ok(())
}
