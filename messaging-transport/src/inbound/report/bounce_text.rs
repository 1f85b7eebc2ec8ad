//! Parses bounces that are written for people only.
//!
//! Hosts announced failures in prose before there was a format for it, and many still do. Such mails have some things
//! in common: they come from a daemon, they name the address at the beginning of a line or in a header, the reason
//! stands behind it or below it, and the returned message follows.

use messaging_core::domain::delivery::bounce::{BounceClass, classify};
use messaging_core::domain::mail::report::{Action, RecipientReport};
use messaging_core::ports::transport::Response;

use super::mail::Mail;
use super::{addresses, codes, dsn, phrases};

/// Maximum length of the text that is examined, in octets; the reason stands at the beginning.
const MAX_TEXT: usize = 32 * 1024;

/// Maximum number of recipients read from one mail; a message of ours has at most 101.
const MAX_RECIPIENTS: usize = 200;

/// Length of a recipient's reason, in octets, from which no more lines are added.
const MAX_REASON: usize = 2000;

/// Maximum length of the label before an address that begins a paragraph, in characters.
const MAX_LABEL: usize = 40;

/// Labels of addresses that are not the recipient's.
const OTHER_LABELS: &[&str] = &[
    "from",
    "sender",
    "reply-to",
    "return-path",
    "message-id",
    "de",
    "von",
    "absender",
    "da",
    "от",
    "отправитель",
    "mail from",
    "in-reply-to",
    "references",
    "contact",
    "x-mailer",
    "差出人",
    "发件人",
];

/// Returns the recipients' reports of a mail without a machine-readable part, if it is a bounce.
pub(super) fn read(mail: &Mail<'_>) -> Option<Vec<RecipientReport>> {
    let prose = Prose::of(mail);
    let named = failed_recipients(mail);
    if named.is_empty() && !prose.is_bounce(mail) {
        return None;
    }
    // The machine-readable form was sent as text.
    if let Some(form) = prose.form() {
        let reports = dsn::read(form.as_bytes());
        if !reports.is_empty() {
            return Some(reports);
        }
    }
    let action = if prose.is_delay() { Action::Delayed } else { Action::Failed };
    let mut paragraphs = prose.paragraphs();
    if !named.is_empty() {
        let known = |paragraph: &Paragraph<'_>| {
            paragraph.addresses.iter().any(|address| named.iter().any(|name| name.eq_ignore_ascii_case(address)))
        };
        paragraphs.retain(known);
        for name in named {
            let has_one =
                paragraphs.iter().any(|one| one.addresses.iter().any(|known| known.eq_ignore_ascii_case(&name)));
            if !has_one {
                paragraphs.push(Paragraph { addresses: vec![name], lines: Vec::new(), length: 0 });
            }
        }
    } else if paragraphs.iter().any(Paragraph::has_reason) {
        paragraphs.retain(Paragraph::has_reason);
    }
    if paragraphs.is_empty() {
        let addresses = prose.any_address(mail).into_iter().collect();
        paragraphs.push(Paragraph { addresses, lines: Vec::new(), length: 0 });
    }
    paragraphs.truncate(MAX_RECIPIENTS);
    let is_only = paragraphs.len() == 1;
    let report = |paragraph: Paragraph<'_>| RecipientReport {
        response: prose.response(&paragraph, is_only),
        addresses: paragraph.addresses,
        action,
    };
    Some(paragraphs.into_iter().map(report).collect())
}

/// Returns what the prose of a notification says about a recipient, for notifications whose form does not give the
/// reason.
pub(super) fn explain(mail: &Mail<'_>, addresses: &[String]) -> Response {
    let prose = Prose::of(mail);
    let paragraphs = prose.paragraphs();
    let is_only = paragraphs.len() <= 1;
    let of_recipient = paragraphs
        .into_iter()
        .find(|one| one.addresses.iter().any(|known| addresses.iter().any(|name| name.eq_ignore_ascii_case(known))));
    prose.response(&of_recipient.unwrap_or_default(), is_only)
}

/// Returns the addresses in `X-Failed-Recipients`, which Exim and Gmail write.
fn failed_recipients(mail: &Mail<'_>) -> Vec<String> {
    mail.header
        .all("X-Failed-Recipients")
        .flat_map(|value| addresses::list(value, MAX_RECIPIENTS))
        .take(MAX_RECIPIENTS)
        .collect()
}

/// The words of the reporting host, without the message it returns.
struct Prose {
    text: String,
    lower: String,
    subject: String,
}

/// Lines about one recipient.
#[derive(Debug, Default)]
struct Paragraph<'a> {
    addresses: Vec<String>,
    lines: Vec<&'a str>,
    length: usize,
}

impl Prose {
    fn of(mail: &Mail<'_>) -> Self {
        let whole = mail.text();
        let mut text = String::new();
        for line in whole.lines() {
            if text.len() >= MAX_TEXT || begins_returned(line) {
                break;
            }
            let line = &line[..line.floor_char_boundary(MAX_TEXT)];
            // Control characters and zero-width ones would hide words.
            text.extend(
                line.chars()
                    .filter(|c| *c == '\t' || !c.is_control())
                    .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}')),
            );
            text.push('\n');
        }
        let subject = mail.header.words("Subject").unwrap_or_default().to_lowercase();
        Self { lower: text.to_lowercase(), text, subject }
    }

    fn is_bounce(&self, mail: &Mail<'_>) -> bool {
        let header = &mail.header;
        let announces_itself =
            ["X-Autoreply", "X-Autorespond", "X-Autoresponder", "X-Auto-Reply", "X-Vacation", "X-AutoReply-From"]
                .iter()
                .any(|name| header.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("no")))
                || header.get("Precedence").is_some_and(|value| value.trim().eq_ignore_ascii_case("auto_reply"));
        let from = header.words("From").unwrap_or_default().to_lowercase();
        let sender = addresses::find(&from).first().map_or("", |range| &from[range.clone()]);
        let local_part = sender.split('@').next().unwrap_or("").trim();
        let (name, is_bare) = (from.replace(sender, ""), sender.is_empty());
        let is_daemon = phrases::is_daemon(if is_bare { from.trim() } else { local_part }, &name);
        let is_about_bounce = phrases::is_bounce_subject(&self.subject);
        // A bounce quotes the subject of our message, which may look like that of an automatic reply.
        if announces_itself || (phrases::is_auto_reply(&self.subject) && !(is_daemon && is_about_bounce)) {
            return false;
        }
        let codes = codes::find(&self.text);
        if is_daemon {
            return is_about_bounce || !codes.is_empty() || says_why(&self.text) || phrases::is_failure(&self.lower);
        }
        let is_answer =
            ["re:", "aw:", "fw:", "fwd:", "antw:", "sv:", "tr:"].iter().any(|mark| self.subject.starts_with(mark));
        let is_null_sender = header.get("Return-Path").is_some_and(|path| path.trim() == "<>");
        let is_automatic = header.get("Auto-Submitted").is_some_and(|value| !value.trim().eq_ignore_ascii_case("no"));
        is_about_bounce
            && !is_answer
            && (is_null_sender || is_automatic || !codes.is_empty())
            && (!codes.is_empty() || says_why(&self.text))
    }

    fn is_delay(&self) -> bool {
        let codes = codes::find(&self.text);
        let is_final = codes.enhanced.as_deref().is_some_and(|code| code.starts_with('5'))
            || (codes.enhanced.is_none() && codes.basic.is_some_and(|code| code >= 500));
        !is_final
            && (phrases::is_delay(&self.subject)
                || (phrases::is_delay(&self.lower) && !phrases::is_failure(&self.subject)))
    }

    /// Returns the fields of RFC 3464, if they stand in the text.
    fn form(&self) -> Option<&str> {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let lower = line.get(..20).unwrap_or(line).to_ascii_lowercase();
            if lower.starts_with("final-recipient:")
                || lower.starts_with("original-recipient:")
                || lower.starts_with("reporting-mta:")
            {
                return Some(&self.text[at..]);
            }
            at += line.len();
        }
        None
    }

    /// Returns a paragraph for each address that begins a line, up to the empty line behind the reason.
    fn paragraphs(&self) -> Vec<Paragraph<'_>> {
        let mut found: Vec<Paragraph<'_>> = Vec::new();
        let mut open: Option<usize> = None;
        for line in self.text.lines() {
            let Some((address, rest)) = head(line) else {
                let Some(paragraph) = open.map(|at| &mut found[at]) else { continue };
                if !line.trim().is_empty() {
                    paragraph.push(line);
                } else if paragraph.has_reason() {
                    open = None;
                }
                continue;
            };
            match found.iter().position(|one| one.addresses[0].eq_ignore_ascii_case(&address)) {
                // The reason speaks of the address.
                Some(at) if open == Some(at) => found[at].push(line),
                // The address is named again, in a transcript or for administrators, and the codes stand there.
                Some(at) if !found[at].has_codes() => {
                    found[at].push(rest);
                    open = Some(at);
                }
                Some(_) => open = None,
                None if found.len() < MAX_RECIPIENTS => {
                    let mut paragraph = Paragraph { addresses: vec![address], ..Paragraph::default() };
                    paragraph.push(rest);
                    open = Some(found.len());
                    found.push(paragraph);
                }
                None => break,
            }
        }
        for paragraph in &mut found {
            paragraph.add_aliases();
        }
        found
    }

    /// Returns the first address in the text that may be the recipient's: none of the mail's own `To` and `From`.
    fn any_address(&self, mail: &Mail<'_>) -> Option<String> {
        let ours = mail.header.words("To").unwrap_or_default().to_lowercase();
        let from = mail.header.words("From").unwrap_or_default().to_lowercase();
        let is_other = |address: &str| {
            let address = address.to_lowercase();
            !ours.contains(&address) && !from.contains(&address) && addresses::may_be_recipient(&address)
        };
        addresses::list(&self.text, 20).into_iter().find(|address| is_other(address))
    }

    /// Returns the reason for one recipient. Codes count before words; if the mail has only one recipient, so do codes
    /// that stand apart from the words about it.
    fn response(&self, paragraph: &Paragraph<'_>, is_only: bool) -> Response {
        let own = paragraph.lines.join(" ");
        // If the recipient's own lines give no reason, it may stand elsewhere; if none does, they are still shown.
        let has_codes = || !codes::find(&self.text).is_empty();
        let says_elsewhere = || has_codes() || says_why(&self.text);
        let is_own = if paragraph.has_reason() {
            paragraph.has_codes() || !is_only || !has_codes()
        } else {
            !own.is_empty() && !says_elsewhere()
        };
        let text = if is_own { own.as_str() } else { self.text.as_str() };
        let mut response = codes::response(text);
        let is_mute = response.code.is_none() && response.enhanced.is_none();
        if is_mute && classify(&response) == BounceClass::Unknown {
            let code = phrases::code_of(&own.to_lowercase()).or_else(|| phrases::code_of(&self.lower));
            response.enhanced = code.map(ToOwned::to_owned);
        }
        response
    }
}

impl<'a> Paragraph<'a> {
    fn push(&mut self, line: &'a str) {
        if self.length < MAX_REASON && !line.trim().is_empty() {
            self.length += line.len();
            self.lines.push(line.trim());
        }
    }

    fn has_codes(&self) -> bool {
        !codes::find(&self.lines.join(" ")).is_empty()
    }

    fn has_reason(&self) -> bool {
        self.has_codes() || says_why(&self.lines.join(" "))
    }

    /// Adds the address of `(expanded from <alias@example.com>)`, which is the one that we sent to.
    fn add_aliases(&mut self) {
        for line in &self.lines {
            let Some(at) = ["expanded from", "generated from"].iter().find_map(|words| line.find(words)) else {
                continue;
            };
            let until = line[at..].find(')').map_or(line.len(), |end| at + end);
            for alias in addresses::list(&line[at..until], 3) {
                if !self.addresses.contains(&alias) {
                    self.addresses.push(alias);
                }
            }
        }
    }
}

/// Returns true if words without a code tell the reason.
fn says_why(text: &str) -> bool {
    let text: String = text.chars().take(MAX_REASON).collect();
    let response = Response { text, ..Response::default() };
    classify(&response) != BounceClass::Unknown || phrases::code_of(&response.text.to_lowercase()).is_some()
}

/// Returns the address that a line begins with, perhaps behind a label, and the text that follows it.
fn head(line: &str) -> Option<(String, &str)> {
    let first = addresses::find(line).into_iter().next()?;
    let address = &line[first.clone()];
    let before = line[..first.start].trim_end_matches(['<', '"', '\'', '[', '(', ' ', '\t']).trim_end();
    let before = before.strip_suffix("mailto:").unwrap_or(before).trim_end_matches(['<', '"', '[', '(', ' ']);
    let before = before.trim_start_matches(|c: char| c.is_whitespace() || "-*•·>#<|.".contains(c));
    let is_head = before.is_empty()
        || (before.chars().count() <= MAX_LABEL && before.ends_with([':', ';', '：']) && !is_other_label(before));
    if !is_head || !addresses::may_be_recipient(address) {
        return None;
    }
    Some((
        address.to_owned(),
        line[first.end..].trim_start_matches(['>', '"', '\'', ']', ')', ':', ';', ',', '.', ' ', '\t']),
    ))
}

fn is_other_label(label: &str) -> bool {
    let label = label.trim_end_matches([':', ';', ' ', '：']).to_lowercase();
    OTHER_LABELS.iter().any(|other| label == *other || label.ends_with(&format!(" {other}")))
}

/// Returns true if the returned message begins with this line: it is announced, or its header begins.
fn begins_returned(line: &str) -> bool {
    if ["Received: ", "Return-Path: ", "DKIM-Signature: ", "X-Received: ", "ARC-Seal: "]
        .iter()
        .any(|name| line.starts_with(name))
    {
        return true;
    }
    let bare = line.trim_matches(|c: char| !c.is_alphanumeric() && c != ':').to_lowercase();
    // `----- Original message -----`, but not "the original message was received at".
    let is_title = bare == "original message" || bare == "original message:" || bare == "message headers";
    is_title || phrases::begins_returned(&bare)
}
