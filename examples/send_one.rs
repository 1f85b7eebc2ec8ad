//! One email, accepted durably, captured instead of sent, read back.
//!
//! Run it with `cargo run -p messaging-examples --bin send_one`.

use std::error::Error;

use messaging::Message;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A real program names a directory that it keeps, and backs it up.
    let directory = tempfile::tempdir()?;
    let app = messaging::open(directory.path()).await?;
    let mut events = app.events(None).await?;

    let message = Message::email("ann@example.com").subject("Order 17").html("<p>Thanks, <b>Ann</b>!</p>");
    // The key makes it safe to try again: a second call with it sends nothing.
    let id = app.send_once("order-17", message).await?.message_id;
    println!("accepted {id}");

    // The workers send it; the first page has the events so far.
    events.next().await?;
    let report = app.message(id).await?;
    println!("{:?}: {:?}", report.status, report.explanation);
    println!("\n{}", String::from_utf8_lossy(&app.captured(id).await?.source));
    app.close().await;
    Ok(())
}
