//! Texts that are templates, rendered within bounds: those that automations write into contacts, messages and requests.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::domain::template::budget::Limits;
use messaging_core::domain::template::engine::RenderFault;
use messaging_core::domain::template::text::TextTemplate;
use messaging_core::domain::template::values::{ContactValues, Values};
use serde_json::{Map, Value};

use crate::app::App;

/// Reason why a text is not rendered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextFault {
    /// The text cannot be rendered: the template is faulty for these values.
    #[error("{0}")]
    Broken(String),
    /// The queue for such work is full; it can be tried again.
    #[error("there is no room to render it")]
    Busy,
}

/// Returns the values for the templates of an automation: `event`, other given values, and the contact, whose addresses
/// the redactor masks.
pub(crate) fn values_of_run(
    event: &Map<String, Value>,
    given: &Map<String, Value>,
    contact: &Contact,
    redactor: Redactor,
) -> Values {
    let mut all = given.clone();
    all.insert("event".to_owned(), Value::Object(event.clone()));
    Values::new(&all).contact(&ContactValues::shown(contact, redactor))
}

impl App {
    /// Renders a text that may be a template.
    pub(crate) async fn render_text(&self, source: &str, values: &Values) -> Result<String, TextFault> {
        if !TextTemplate::is_template(source) {
            return Ok(source.to_owned());
        }
        let compiled = self.compiled_text(source).await?;
        match compiled.render(values, Limits::SHORT) {
            Err(RenderFault::Limits) => {}
            rendered => return rendered.map_err(|fault| broken(&fault)),
        }
        let values = values.clone();
        let rendered = self.template_work().run(move || compiled.render(&values, Limits::WHOLE)).await;
        rendered.map_err(|_| TextFault::Busy)?.map_err(|fault| broken(&fault))
    }

    async fn compiled_text(&self, source: &str) -> Result<Arc<TextTemplate>, TextFault> {
        if let Some(compiled) = self.compiled_texts().get(source) {
            return Ok(compiled);
        }
        let text = source.to_owned();
        let compiled = self.template_work().run(move || TextTemplate::compile(&text)).await;
        let compiled = Arc::new(compiled.map_err(|_| TextFault::Busy)?.map_err(|fault| broken(&fault))?);
        self.compiled_texts().put(source, &compiled);
        Ok(compiled)
    }

    /// Renders the texts in a value.
    pub(crate) fn render_value<'a>(
        &'a self,
        value: &'a Value,
        values: &'a Values,
    ) -> BoxFuture<'a, Result<Value, TextFault>> {
        Box::pin(async move {
            Ok(match value {
                Value::String(source) => Value::String(self.render_text(source, values).await?),
                Value::Array(items) => {
                    let mut rendered = Vec::with_capacity(items.len());
                    for item in items {
                        rendered.push(self.render_value(item, values).await?);
                    }
                    Value::Array(rendered)
                }
                Value::Object(members) => Value::Object(self.render_members(members, values).await?),
                other => other.clone(),
            })
        })
    }

    /// Renders the texts in the members of an object.
    pub(crate) async fn render_members(
        &self,
        members: &Map<String, Value>,
        values: &Values,
    ) -> Result<Map<String, Value>, TextFault> {
        let mut rendered = Map::new();
        for (name, member) in members {
            rendered.insert(name.clone(), self.render_value(member, values).await?);
        }
        Ok(rendered)
    }
}

fn broken(fault: &dyn std::fmt::Display) -> TextFault {
    TextFault::Broken(format!("a template {fault}"))
}
