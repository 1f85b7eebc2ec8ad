//! The library without HTTP: one email, accepted durably, delivered into the sandbox, read back.
//!
//! Run it with `cargo run -p messaging-examples --bin send_one`.

use std::error::Error;
use std::sync::Arc;

use messaging_engine::ops::Empty;
use messaging_engine::ops::messages::{GetMessage, MessagePath, SendMessage};
use messaging_engine::ops::sandbox::{GetSandboxMessage, SandboxPath};
use messaging_engine::{App, Caller, admin};
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

    let message = serde_json::from_value(serde_json::json!({
        "channel": "email",
        "to": "ann@example.com",
        "subject": "Order 17",
        "html": "<p>Thanks, <b>Ann</b>!</p>",
    }))?;
    let accepted = app.call::<SendMessage>(&caller, &Empty {}, &Empty {}, &message).await?;
    println!("accepted {}", accepted.message_id);

    // A server has workers for this.
    app.run_until_idle().await?;

    let path = MessagePath { id: accepted.message_id };
    let report = app.call::<GetMessage>(&caller, &path, &Empty {}, &Empty {}).await?;
    for event in &report.events {
        println!("{} {:?}", event.at, event.kind);
    }
    let path = SandboxPath { workspace_id: dev.workspace_id, message_id: accepted.message_id };
    let captured = app.call::<GetSandboxMessage>(&caller, &path, &Empty {}, &Empty {}).await?;
    println!("\n{}", String::from_utf8_lossy(&captured.source));
    Ok(())
}
