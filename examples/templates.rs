//! A template from a file of the program, and a message made from it.
//!
//! Run it with `cargo run -p messaging-examples --bin templates`.

use std::error::Error;

use messaging::Message;
use messaging::Messaging;
use messaging::core::domain::channel::Channel;
use messaging::core::ids::TemplateId;
use messaging::ops::templates::{CreateTemplate, ListTemplates, TemplateInput, TemplatePath, UpdateTemplate};
use serde_json::json;

/// The design, written in MJML; it is part of the program, so that each version of the program has its version of the
/// mail.
const RECEIPT: &str = include_str!("templates/receipt.mjml");

/// Creates or updates the template, so that the workspace has this program's version. An unchanged template gets no new
/// version.
async fn keep_template(app: &Messaging) -> Result<TemplateId, Box<dyn Error>> {
    let template = TemplateInput::new("receipt").channel(Channel::Email).subject("Order {{ order.id }}").mjml(RECEIPT);
    let known = app.app().run(ListTemplates).by(app.caller()).await?;
    let Some(known) = known.data.iter().find(|template| template.name == "receipt") else {
        return Ok(app.app().run(CreateTemplate).body(template).by(app.caller()).await?.id);
    };
    let path = TemplatePath { workspace_id: app.workspace_id(), id: known.id };
    app.app().run(UpdateTemplate).path(path).body(template).by(app.caller()).await?;
    Ok(known.id)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let app = messaging::builder(directory.path()).workers(false).open().await?;
    let template = keep_template(&app).await?;
    assert_eq!(keep_template(&app).await?, template, "a second start finds it");

    let message = Message::email("ann@example.com")
        .template_id(template.to_string())
        .variable("name", "Ann")
        .variable("order", json!({"id": 17}));
    let id = app.send(message).await?.message_id;
    // In a long-running program the workers do this.
    app.app().run_until_idle().await?;
    println!("{}", String::from_utf8_lossy(&app.captured(id).await?.source));
    app.close().await;
    Ok(())
}
