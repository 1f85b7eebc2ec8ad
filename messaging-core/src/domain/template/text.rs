//! Single texts that are templates, which automations write into contacts, messages and requests.

use minijinja::Value;

use super::budget::Limits;
use super::engine::{Kind, Program, RenderFault, on_large_stack};
use super::fault::Fault;
use super::values::Values;

/// A text that is a template, compiled.
#[derive(Debug)]
pub struct TextTemplate {
    program: Program,
    size: usize,
}

impl TextTemplate {
    /// True if a text has anything to compile: other texts are used unchanged.
    pub fn is_template(source: &str) -> bool {
        ["{{", "{%", "{#"].iter().any(|tag| source.contains(tag))
    }

    /// Compiles a text, on a thread of its own with a large stack; the caller waits.
    pub fn compile(source: &str) -> Result<Self, Fault> {
        let program = on_large_stack(|| Program::compile(source, Kind::Plain))?;
        Ok(Self { program, size: source.len() })
    }

    /// Returns the bytes of source.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Renders it.
    pub fn render(&self, values: &Values, limits: Limits) -> Result<String, RenderFault> {
        if values.is_too_large() {
            return Err(RenderFault::Limits);
        }
        let mut values = values.clone();
        values.set_work(limits.work);
        self.program.render(&Value::from_object(values), limits)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_rendered_with_the_values_of_an_event() {
        let values = Values::new(json!({"event": {"cart": {"id": "c-1"}}}).as_object().unwrap());
        let text = TextTemplate::compile("cart {{ event.cart.id }}{{ event.none }}").unwrap();
        assert_eq!(text.render(&values, Limits::SHORT).unwrap(), "cart c-1");
        assert!(TextTemplate::is_template("{% if a %}b{% endif %}") && !TextTemplate::is_template("a { b }"));
        assert!(TextTemplate::compile("{{ event. }}").is_err());
    }
}
