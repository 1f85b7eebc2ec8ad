//! Parts of an email as its recipients see them: headers, HTML with redirected links, text.
//!
//! The parts are made for every attempt, and again to show the content of a message: both call the same function.

use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::mail::sending_domain::responsible;
use messaging_core::domain::mail::tracking::{self, Campaigned, Links, Tracked};
use messaging_core::domain::mail::{plain_text, unsubscribe_header};
use messaging_core::domain::message::Message;
use messaging_core::domain::message::content::RequestContent;
use messaging_core::ports::transport::Mailbox;
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::services::message_parts::{MessageParts, is_marketing, offers_unsubscribe};
use crate::services::templates::Unrendered;

/// Parts of an email that recipients see, besides attachments.
pub(crate) struct EmailParts {
    pub(crate) from: Mailbox,
    pub(crate) to: EmailAddress,
    pub(crate) cc: Vec<EmailAddress>,
    pub(crate) reply_to: Option<EmailAddress>,
    pub(crate) subject: String,
    /// Time when the message was accepted, so that every attempt is the same message.
    pub(crate) date: Timestamp,
    /// `Message-ID` without angle brackets.
    pub(crate) message_id: String,
    /// The sender's own headers, and those that offer to unsubscribe.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
    /// Target URLs of the redirected links, each once.
    pub(crate) urls: Vec<String>,
}

impl EmailParts {
    /// Returns all headers for people, in order, as text: neither encoded nor folded.
    pub(crate) fn all_headers(&self) -> Vec<(String, String)> {
        let list = |addresses: &[EmailAddress]| -> String {
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let from = match &self.from.name {
            Some(name) => format!("{name} <{}>", self.from.address),
            None => self.from.address.to_string(),
        };
        let mut headers = vec![("From", from), ("To", self.to.to_string())];
        if !self.cc.is_empty() {
            headers.push(("Cc", list(&self.cc)));
        }
        headers.extend(self.reply_to.as_ref().map(|address| ("Reply-To", address.to_string())));
        headers.push(("Subject", self.subject.clone()));
        headers.push(("Date", self.date.to_jiff().strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()));
        headers.push(("Message-ID", format!("<{}>", self.message_id)));
        let own = headers.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.headers.iter().cloned()).collect()
    }
}

impl App {
    /// Returns the parts of an email as it is sent; recipients in the set of left-out ones are in no header.
    pub(crate) async fn email_parts(
        &self,
        message: &Message,
        request: &RequestContent,
        left_out: &[String],
    ) -> Result<EmailParts, Unrendered> {
        let input = &request.input;
        let from = parsed(message.from_email.as_deref().unwrap_or_default())?;
        let domains = self.sending_domains(message.workspace_id).await?;
        let domain = responsible(&domains, &from.ascii_domain());
        let parts = self.message_parts(message, request).await?;
        let MessageParts { from_name, reply_to, subject, html, text, links: numbers } = parts;
        let html = html.as_deref().filter(|html| !html.is_empty());
        let text = text.filter(|text| !text.is_empty());
        // The text part is made of the HTML as it was given: its links are not redirected.
        let text = text.or_else(|| html.map(plain_text::from_html));
        let options = input.options.as_ref();
        let base = tracking::base(domain, &self.settings().public_url);
        let key = self.link_key();
        let links = Links {
            key: &key,
            base: &base,
            workspace: message.workspace_id,
            message: message.id,
            open: options
                .and_then(|options| options.track_opens)
                .unwrap_or_else(|| is_marketing(request) && domain.is_some_and(|domain| domain.open_tracking)),
            click: options
                .and_then(|options| options.track_clicks)
                .unwrap_or_else(|| domain.is_some_and(|domain| domain.click_tracking)),
        };
        let utm = request.campaign.as_ref().and_then(|campaign| campaign.plan.settings.utm.as_ref());
        let campaigned = Campaigned { utm, numbers: &numbers };
        let (html, urls) = match html.map(|html| tracking::rewrite(html, &links, campaigned)) {
            Some(Tracked { html, urls }) => (Some(html), urls),
            None => (None, Vec::new()),
        };
        let mut headers: Vec<_> =
            input.headers.iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(domain) = domain.filter(|_| offers_unsubscribe(request)) {
            let offer = unsubscribe_header::headers(&links, &domain.bounce_domain());
            headers.extend(offer.map(|(name, value)| (name.to_owned(), value)));
        }
        Ok(EmailParts {
            from: Mailbox { name: from_name.filter(|name| !name.is_empty()), address: from },
            to: parsed(&message.to)?,
            cc: input
                .cc
                .iter()
                .flatten()
                .filter(|copy| !left_out.contains(copy))
                .filter_map(|copy| EmailAddress::parse(copy).ok())
                .collect(),
            reply_to: reply_to.as_deref().and_then(|text| EmailAddress::parse(text).ok()),
            subject: subject.unwrap_or_default(),
            date: message.created_at,
            message_id: format!("{}@{}", message.id, self.installation_name().await?),
            headers,
            text,
            html,
            urls,
        })
    }
}

fn parsed(text: &str) -> Result<EmailAddress, Unrendered> {
    EmailAddress::parse(text).map_err(|_| Unrendered::Unsendable("a stored address does not parse".to_owned()))
}
