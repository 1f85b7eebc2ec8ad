//! Saving of templates: an author's input becomes a version that can be sent.

use super::compiled::Compiled;
use super::engine::on_large_stack;
use super::fault::Fault;
use super::warning::{Warning, WarningCode};
use super::{Design, Part, Parts, css, gate, lint, mjml};
use crate::domain::channel::Channel;
use crate::violation::{FieldCode, Violations};

/// Maximum number of names that are listed.
const MAX_SHOWN: usize = 1000;

/// A design with everything that is made from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The design; its HTML made from MJML if there is any.
    pub design: Design,
    /// The HTML that is sent, if it differs from the design's.
    pub ready: Option<String>,
    /// Names of values, declared and found.
    pub variables: Vec<String>,
    /// Properties that may harm delivery or display in the inbox.
    pub warnings: Vec<Warning>,
    /// Parts that it has.
    pub parts: Parts,
}

/// Checks a design and makes the version to send. Keeps a processor busy for a moment.
pub fn make(channel: Channel, design: Design) -> Result<Made, Violations> {
    on_large_stack(|| made(channel, design))
}

fn refuse(violations: &mut Violations, part: Part, fault: &Fault) {
    violations.add_at(part.pointer(), FieldCode::Syntax, fault, fault.position);
}

fn made(channel: Channel, mut design: Design) -> Result<Made, Violations> {
    let mut violations = Violations::new();
    let mut warnings = Vec::new();
    let mut inline_styles = None;
    if let Some(source) = &design.mjml {
        match gate::tokens(source).and_then(|tokens| mjml::render(source, &tokens)) {
            Ok(rendered) => {
                warnings.extend(lint::of_ignored(&rendered.ignored));
                design.html = Some(rendered.html);
                inline_styles = Some(rendered.inline_styles);
            }
            Err(fault) => refuse(&mut violations, Part::Mjml, &fault),
        }
    }
    let html_part = if design.mjml.is_some() { Part::Mjml } else { Part::Html };
    let mut ready = None;
    if let Some(html) = design.html.as_ref().filter(|_| channel == Channel::Email && violations.is_empty()) {
        match gate::tokens(html) {
            Ok(tokens) => {
                if design.inline_css {
                    let inlined = css::inline(html, &tokens, inline_styles.as_deref());
                    if let Some(reason) = inlined.left {
                        let message = format!("style sheets stay where they are: {reason}");
                        warnings.push(Warning::new(WarningCode::CssNotInlined, message));
                    }
                    ready = Some(inlined.html).filter(|inlined| inlined != html);
                }
                let shown = design.mjml.as_deref().unwrap_or(html);
                let sent = ready.as_deref().unwrap_or(html);
                match gate::tokens(shown) {
                    Ok(tokens) => warnings.extend(lint::of_html(sent, shown, &tokens, design.text.is_some())),
                    Err(fault) => refuse(&mut violations, html_part, &fault),
                }
            }
            Err(fault) => refuse(&mut violations, html_part, &fault),
        }
    }
    let compiled = match Compiled::of_design(&design, ready.as_deref(), channel) {
        Ok(compiled) => compiled,
        Err(faults) => {
            for (part, fault) in faults {
                let part = if part == Part::Html { html_part } else { part };
                refuse(&mut violations, part, &fault);
            }
            return Err(violations);
        }
    };
    if !violations.is_empty() {
        return Err(violations);
    }
    let found = compiled.variables();
    let is_declared = |name: &String| {
        design
            .declared
            .iter()
            .any(|known| name == known || name.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('.')))
    };
    if !design.declared.is_empty() {
        let undeclared: Vec<_> = found.iter().filter(|name| !is_declared(name)).cloned().collect();
        warnings.extend(lint::of_undeclared(&undeclared));
    }
    if channel == Channel::Email && design.html.is_some() && !compiled.uses_system("unsubscribe_url") {
        let message = "there is no unsubscribe_url; a template that is used for marketing needs one";
        warnings.push(Warning::new(WarningCode::NoUnsubscribeLink, message));
    }
    let mut variables = design.declared.clone();
    for name in found {
        if variables.len() < MAX_SHOWN && !variables.contains(&name) {
            variables.push(name);
        }
    }
    let parts = Parts { subject: design.subject.is_some(), html: design.html.is_some(), text: design.text.is_some() };
    Ok(Made { design, ready, variables, warnings, parts })
}
