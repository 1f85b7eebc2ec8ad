//! The library without HTTP: one email, accepted durably, delivered into the sandbox, read back.
//!
//! Run it with `cargo run -p messaging-examples --bin send_one`.

use std::error::Error;
use std::sync::Arc;

use messaging_engine::ops::messages::{GetMessage, MessagePath};
use messaging_engine::ops::sandbox::{GetSandboxMessage, SandboxPath};
use messaging_engine::{App, Caller, Message, admin};
use messaging_store::{SqliteOptions, SqliteStore, key_file};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A real program names a directory that it keeps.
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(directory.path().join("messaging.db")))?);
    // Secrets in the database are sealed under this key: it belongs into the backup.
    let key = key_file::open_or_create(&directory.path().join("secret.key"), store.as_ref()).await?;
    let app = App::builder(store, key)
        .transports(messaging_transport::defaults(&messaging_transport::Options::new("localhost")))
        .build()
        .await?;

    // A workspace with a verified sending domain whose email stays in the sandbox.
    let dev = admin::prepare_dev(&app).await?;
    let caller = Caller::Operator(Some(dev.workspace_id));

    let message = Message::email("ann@example.com").subject("Order 17").html("<p>Thanks, <b>Ann</b>!</p>");
    let accepted = app.send(message, &caller).await?;
    println!("accepted {}", accepted.message_id);

    // A server has workers for this.
    app.run_until_idle().await?;

    let path = MessagePath { id: accepted.message_id };
    let report = app.run(GetMessage).path(path).by(&caller).await?;
    for event in &report.events {
        println!("{} {:?}", event.at, event.kind);
    }
    let path = SandboxPath { workspace_id: dev.workspace_id, message_id: accepted.message_id };
    let captured = app.run(GetSandboxMessage).path(path).by(&caller).await?;
    println!("\n{}", String::from_utf8_lossy(&captured.source));
    Ok(())
}
