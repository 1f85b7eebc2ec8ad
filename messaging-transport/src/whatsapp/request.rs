//! Builds the body of one request for a message from content.

use messaging_core::ports::transport::{Button, Media, MediaKind, ProviderTemplate, WhatsappContent};
use serde_json::{Value, json};

/// Returns the body. `reference` comes back with every receipt.
pub(super) fn of(to: &str, content: &WhatsappContent, reference: &str) -> Value {
    let mut body = match content {
        WhatsappContent::Text { text, button: Some(button), media, .. } => interactive(text, button, media.as_ref()),
        WhatsappContent::Text { text, button: None, media: Some(media), .. } => {
            let mut object = json!({"link": media.url});
            if !text.is_empty() {
                object["caption"] = json!(text);
            }
            json!({"type": name_of(media.kind), name_of(media.kind): object})
        }
        WhatsappContent::Text { text, button: None, media: None, preview } => {
            json!({"type": "text", "text": {"body": text, "preview_url": preview}})
        }
        WhatsappContent::Template(template) => json!({"type": "template", "template": of_template(template)}),
    };
    body["messaging_product"] = json!("whatsapp");
    body["recipient_type"] = json!("individual");
    body["to"] = json!(to.trim_start_matches('+'));
    body["biz_opaque_callback_data"] = json!(reference);
    body
}

const fn name_of(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image",
        MediaKind::Video => "video",
        MediaKind::Document => "document",
    }
}

/// Returns a text with a button that opens a page, below a medium if there is one.
fn interactive(text: &str, button: &Button, media: Option<&Media>) -> Value {
    let mut interactive = json!({
        "type": "cta_url",
        "body": {"text": text},
        "action": {"name": "cta_url", "parameters": {"display_text": button.text, "url": button.url}},
    });
    if let Some(media) = media {
        let name = name_of(media.kind);
        interactive["header"] = json!({"type": name, name: {"link": media.url}});
    }
    json!({"type": "interactive", "interactive": interactive})
}

fn of_template(template: &ProviderTemplate) -> Value {
    let text = |value: &String| json!({"type": "text", "text": value});
    let mut components = Vec::new();
    if let Some(header) = &template.header {
        components.push(json!({"type": "header", "parameters": [header_parameter(header)]}));
    }
    if !template.body.is_empty() {
        let values: Vec<_> = template.body.iter().map(text).collect();
        components.push(json!({"type": "body", "parameters": values}));
    }
    for (index, value) in template.buttons.iter().enumerate() {
        let (index, parameters) = (index.to_string(), [text(value)]);
        components.push(json!({"type": "button", "sub_type": "url", "index": index, "parameters": parameters}));
    }
    let mut given = json!({"name": template.name, "language": {"code": template.language}});
    if !components.is_empty() {
        given["components"] = json!(components);
    }
    given
}

/// Returns the value of a template's header: the URL of a medium, recognized by the end of its path, or a text.
fn header_parameter(value: &str) -> Value {
    const ENDINGS: [(&str, MediaKind); 7] = [
        (".jpg", MediaKind::Image),
        (".jpeg", MediaKind::Image),
        (".png", MediaKind::Image),
        (".mp4", MediaKind::Video),
        (".3gp", MediaKind::Video),
        (".3gpp", MediaKind::Video),
        (".pdf", MediaKind::Document),
    ];
    let path = url::Url::parse(value).ok().filter(|url| url.scheme() == "https").map(|url| url.path().to_lowercase());
    let kind = path.and_then(|path| ENDINGS.iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, kind)| *kind));
    match kind {
        Some(kind) => json!({"type": name_of(kind), name_of(kind): {"link": value}}),
        None => json!({"type": "text", "text": value}),
    }
}
