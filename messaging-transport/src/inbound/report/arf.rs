//! Complaints: feedback reports (RFC 5965), and the formats of feedback loops older than these.

use messaging_core::domain::mail::report::Report;

use super::addresses;
use super::mail::Mail;
use crate::mail::fields::{self, Fields};

/// Maximum number of complainants of one report that are read.
const MAX_RECIPIENTS: usize = 100;

/// Maximum length of a feedback type; the registered ones have at most twelve characters.
const MAX_TYPE: usize = 40;

/// Subjects of complaints without a machine-readable part, from feedback loops that send the message as it was.
const SUBJECTS: &[&str] =
    &["complaint about message from ", "email feedback report for ip ", "spam complaint about message"];

/// Fields of the returned message in which feedback loops name the complainant.
const COMPLAINANT: &[&str] =
    &["X-HmXmrOriginalRecipient", "X-Original-To", "X-Original-Recipient", "Delivered-To", "To"];

/// Returns the complaint that a mail makes, if it makes one.
pub(super) fn read(mail: &Mail<'_>) -> Option<Report> {
    let returned = mail.returned_header();
    if let Some(part) = mail.part(&["message/feedback-report"]) {
        let content = part.content();
        let (report, _) = fields::split(content.trim_ascii_start());
        return Some(complaint(feedback_type(&report), &report, returned.as_ref()));
    }
    let returned = returned?;
    let subject = mail.header.words("Subject").unwrap_or_default().to_lowercase();
    SUBJECTS
        .iter()
        .any(|known| subject.starts_with(known))
        .then(|| complaint("abuse".to_owned(), &Fields::default(), Some(&returned)))
}

fn complaint(feedback_type: String, report: &Fields, returned: Option<&Fields>) -> Report {
    let mut recipients = Vec::new();
    let mut add = |text: &str| {
        for address in addresses::list(text, MAX_RECIPIENTS) {
            if recipients.len() < MAX_RECIPIENTS && !recipients.contains(&address) {
                recipients.push(address);
            }
        }
    };
    ["Original-Rcpt-To", "Removal-Recipient"].iter().flat_map(|name| report.all(name)).for_each(&mut add);
    if let Some(returned) = returned {
        COMPLAINANT.iter().flat_map(|name| returned.all(name)).for_each(&mut add);
    }
    Report::Complaint { feedback_type, recipients }
}

/// Returns the feedback type (RFC 5965 section 3.1). Text that is no token becomes `other`, which the section
/// prescribes for unknown types.
fn feedback_type(report: &Fields) -> String {
    let given = report.get("Feedback-Type").unwrap_or("").trim().to_ascii_lowercase();
    let is_token = (1..=MAX_TYPE).contains(&given.len())
        && given.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if is_token { given } else { "other".to_owned() }
}
