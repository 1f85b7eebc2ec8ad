//! A template ready to be rendered, and its renderings.

use minijinja::Value;

use super::budget::Limits;
use super::engine::{Kind, Program, RenderFault, on_large_stack};
use super::fault::Fault;
use super::values::{PREHEADER, Values};
use super::{Design, Part, Template, gate, links};
use crate::domain::channel::Channel;
use crate::domain::mail::plain_text;
use crate::domain::mail::tracking::NumberedLink;

/// The compiled parts of a template version.
#[derive(Debug)]
pub struct Compiled {
    channel: Channel,
    subject: Option<Program>,
    preheader: Option<Program>,
    html: Option<Program>,
    text: Option<Program>,
    /// Parts that only campaigns need; `None` if the template is compiled for other messages.
    campaign: Option<OfCampaign>,
    /// Size of the sources, in bytes.
    size: usize,
}

/// Further parts of a template that a campaign needs.
#[derive(Debug, Default)]
struct OfCampaign {
    /// Sender's display name of the campaign.
    from_name: Option<Program>,
    /// Sender's display name of the template itself, not rendered.
    own_from_name: Option<String>,
    reply_to: Option<String>,
    /// Addresses of the numbered links.
    links: Vec<String>,
}

/// Template texts of a campaign that replace parts of its template (contract section 12.3).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Replaced {
    /// The subject.
    pub subject: Option<String>,
    /// The sender's display name. A template has it as plain text, a campaign as template text.
    pub from_name: Option<String>,
}

/// A template rendered for one recipient.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendering {
    /// The subject, one line.
    pub subject: Option<String>,
    /// The preheader, one line.
    pub preheader: Option<String>,
    /// The HTML, with the preheader in it.
    pub html: Option<String>,
    /// The text. For an email whose template has none it is made from the HTML, unless a campaign sends the email.
    pub text: Option<String>,
    /// Sender's display name, one line: the campaign's, else the template's; only for campaigns.
    pub from_name: Option<String>,
    /// Positions of the numbered links in the HTML, in order; only for campaigns.
    pub links: Vec<NumberedLink>,
}

impl Compiled {
    /// Compiles a stored version, on a thread of its own with a large stack; the caller waits.
    pub fn of(template: &Template) -> Result<Self, Vec<(Part, Fault)>> {
        on_large_stack(|| Self::of_design(&template.design, template.ready.as_deref(), template.channel))
    }

    /// Compiles a stored version as a campaign sends it, with its links numbered; on a thread of its own with a large
    /// stack, for which the caller waits.
    pub fn of_campaign(template: &Template, replaced: &Replaced) -> Result<Self, Vec<(Part, Fault)>> {
        let design = Design { html: None, mjml: None, ..template.design.clone() };
        let html = template.ready.as_ref().or(template.design.html.as_ref());
        let design = Design { subject: replaced.subject.clone().or(design.subject), html: html.cloned(), ..design };
        on_large_stack(|| {
            let mut compiled = Self::of_design(&design, None, template.channel)?;
            let links = compiled.number_links(&design);
            let from_name = replaced.from_name.as_ref().map(|source| Program::compile(source, Kind::Plain));
            let from_name = from_name.transpose().map_err(|fault| vec![(Part::FromName, fault)])?;
            let (own_from_name, reply_to) = (design.from_name, design.reply_to);
            compiled.campaign = Some(OfCampaign { from_name, own_from_name, reply_to, links });
            Ok(compiled)
        })
    }

    /// Compiles the HTML once more with marks before its links, and returns the addresses of the links. If the marks
    /// exceed a limit, links have no numbers.
    fn number_links(&mut self, design: &Design) -> Vec<String> {
        let Some(html) = html_source(design.html.as_deref(), design) else { return Vec::new() };
        let Ok(tokens) = gate::tokens(&html) else { return Vec::new() };
        let marked = links::marked(&html, &tokens);
        match Program::compile_marked(&marked.source) {
            Ok(program) if !marked.urls.is_empty() => {
                self.html = Some(program);
                marked.urls
            }
            _ => Vec::new(),
        }
    }

    /// Compiles a design; `ready` is the HTML that is sent instead of the design's. Returns all faults.
    pub(super) fn of_design(
        design: &Design,
        ready: Option<&str>,
        channel: Channel,
    ) -> Result<Self, Vec<(Part, Fault)>> {
        let mut faults = Vec::new();
        let mut compile = |part: Part, source: Option<&str>, kind: Kind| {
            let compiled = Program::compile(source?, kind);
            compiled.map_err(|fault| faults.push((part, fault))).ok()
        };
        let subject = compile(Part::Subject, design.subject.as_deref(), Kind::Plain);
        let preheader = compile(Part::Preheader, design.preheader.as_deref(), Kind::Plain);
        let html = html_source(ready.or(design.html.as_deref()), design);
        let size =
            [&design.subject, &design.preheader, &html, &design.text].into_iter().flatten().map(String::len).sum();
        let html = compile(Part::Html, html.as_deref(), Kind::Markup);
        let text = compile(Part::Text, design.text.as_deref(), Kind::Plain);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self { channel, subject, preheader, html, text, campaign: None, size })
    }

    /// Returns the size of the sources in bytes; the compiled form is several times as large.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Returns the addresses of the numbered links, by number, as they stand in the template; only for campaigns.
    pub fn links(&self) -> &[String] {
        self.campaign.as_ref().map_or(&[], |campaign| &campaign.links)
    }

    /// Returns the template's address for replies, for a campaign that names none itself.
    pub fn reply_to(&self) -> Option<&str> {
        self.campaign.as_ref()?.reply_to.as_deref()
    }

    const fn sender_name(&self) -> Option<&Program> {
        match &self.campaign {
            Some(campaign) => campaign.from_name.as_ref(),
            None => None,
        }
    }

    fn programs(&self) -> impl Iterator<Item = (Part, &Program)> {
        let parts = [
            (Part::Subject, self.subject.as_ref()),
            (Part::Preheader, self.preheader.as_ref()),
            (Part::Html, self.html.as_ref()),
            (Part::Text, self.text.as_ref()),
            (Part::FromName, self.sender_name()),
        ];
        parts.into_iter().filter_map(|(part, program)| Some((part, program?)))
    }

    /// Returns the names of the values that are used, in the order of their first use.
    pub fn variables(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, program) in self.programs() {
            for name in &program.names().variables {
                if !names.contains(name) && name != PREHEADER {
                    names.push(name.clone());
                }
            }
        }
        names
    }

    /// Returns true if a part uses this system name.
    pub fn uses_system(&self, name: &str) -> bool {
        self.programs().any(|(_, program)| program.names().uses_system(name))
    }

    /// Returns true if a part uses a value that may depend on the contact.
    pub fn asks_contact(&self) -> bool {
        self.uses_system("contact") || self.programs().any(|(_, program)| program.names().asks_values)
    }

    /// Renders the subject alone; `None` if the template has none.
    pub fn render_subject(&self, values: Values, limits: Limits) -> Result<Option<String>, RenderFault> {
        let Some(program) = &self.subject else { return Ok(None) };
        if values.is_too_large() {
            return Err(RenderFault::Limits);
        }
        let mut values = values;
        values.set_work(limits.work);
        Ok(Some(one_line(&program.render(&Value::from_object(values), limits)?)))
    }

    /// Renders all parts. The limits apply to each part.
    pub fn render(&self, values: Values, limits: Limits) -> Result<Rendering, (Part, RenderFault)> {
        if values.is_too_large() {
            let part = self.programs().next().map_or(Part::Html, |(part, _)| part);
            return Err((part, RenderFault::Limits));
        }
        let mut values = values;
        values.set_work(limits.work);
        let plain = Value::from_object(values.clone());
        let one = |part: Part, program: Option<&Program>, values: &Value| match program {
            None => Ok(None),
            Some(program) => program.render(values, limits).map(Some).map_err(|fault| (part, fault)),
        };
        let subject = one(Part::Subject, self.subject.as_ref(), &plain)?.map(|subject| one_line(&subject));
        let preheader = one(Part::Preheader, self.preheader.as_ref(), &plain)?.map(|preheader| one_line(&preheader));
        let text = one(Part::Text, self.text.as_ref(), &plain)?;
        let from_name = one(Part::FromName, self.sender_name(), &plain)?.map(|name| one_line(&name));
        let from_name = from_name.or_else(|| self.campaign.as_ref()?.own_from_name.clone());
        let html = match &preheader {
            None => one(Part::Html, self.html.as_ref(), &plain)?,
            Some(preheader) => {
                values.set_preheader(preheader);
                one(Part::Html, self.html.as_ref(), &Value::from_object(values))?
            }
        };
        let (html, links) = html.map(links::take_marks).unzip();
        let text = match (&html, text) {
            // The text of a campaign's email is made later, because it also shows what the campaign adds to the HTML.
            (Some(html), text)
                if self.channel == Channel::Email
                    && self.campaign.is_none()
                    && text.as_ref().is_none_or(String::is_empty) =>
            {
                Some(plain_text::from_html(html))
            }
            (_, text) => text,
        };
        Ok(Rendering { subject, preheader, html, text, from_name, links: links.unwrap_or_default() })
    }
}

/// Returns the HTML to compile, with a place for the preheader if there is one.
fn html_source(html: Option<&str>, design: &Design) -> Option<String> {
    let html = html?;
    Some(if design.preheader.is_some() { with_preheader(html) } else { html.to_owned() })
}

/// Returns a text on one line, trimmed: line ends and other control characters become spaces, because a subject is one
/// header field.
fn one_line(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.trim().to_owned();
    }
    text.split(|c: char| c.is_control()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Returns the HTML with a place for the preheader right after `<body>`, or in front if there is no body.
fn with_preheader(html: &str) -> String {
    let end_of_body = gate::tokens(html).ok().and_then(|tokens| {
        let markup = super::markup::read(&super::markup::mask_template_tags(html, &tokens));
        markup.elements.into_iter().find(|element| element.name == "body").map(|element| element.range.end)
    });
    let at = end_of_body.filter(|at| html.is_char_boundary(*at)).unwrap_or(0);
    format!("{}{{{{ {PREHEADER} }}}}{}", &html[..at], &html[at..])
}
