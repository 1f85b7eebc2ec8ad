//! Words by which the kinds of returned mail are told apart, in the languages that reports are seen in.
//!
//! They decide only if a mail is a bounce, a delay or an automatic reply. The cause of a bounce is classified in
//! `messaging-core`; here are only words of other languages that stand for a code of RFC 3463.

mod letters;
mod others;
mod reasons;

use self::letters::{BOUNCE_SUBJECTS, DAEMON_NAMES, DAEMONS, DELAYS, FAILURES};
use self::others::{AUTO_REPLIES, RETURNED};
use self::reasons::{MAILBOX_FULL, UNKNOWN_DOMAIN, UNKNOWN_USER};

fn has(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// Returns true if reports are sent from such an address; both arguments in lower case.
pub(super) fn is_daemon(local_part: &str, display_name: &str) -> bool {
    DAEMONS.contains(&local_part)
        || local_part.starts_with("microsoftexchange")
        || local_part.starts_with("mailer-daemon")
        || has(display_name, DAEMON_NAMES)
}

/// Returns true if a subject (lower case) is that of a bounce.
pub(super) fn is_bounce_subject(subject: &str) -> bool {
    has(subject, BOUNCE_SUBJECTS)
}

/// Returns true if a text (lower case) speaks of a delay and not of a failure.
pub(super) fn is_delay(text: &str) -> bool {
    has(text, DELAYS) && !has(text, FAILURES)
}

/// Returns true if a text (lower case) speaks of a failure.
pub(super) fn is_failure(text: &str) -> bool {
    has(text, FAILURES) || has(text, BOUNCE_SUBJECTS)
}

/// Returns true if a subject (lower case) is that of an automatic reply.
pub(super) fn is_auto_reply(subject: &str) -> bool {
    has(subject, AUTO_REPLIES)
}

/// Returns true if the returned message begins with a line (lower case, without rules around).
pub(super) fn begins_returned(line: &str) -> bool {
    RETURNED.iter().any(|phrase| line.starts_with(phrase))
}

/// Returns the code of RFC 3463 that a text (lower case) in another language stands for.
pub(super) fn code_of(text: &str) -> Option<&'static str> {
    if has(text, UNKNOWN_DOMAIN) {
        Some("5.1.2")
    } else if has(text, MAILBOX_FULL) {
        Some("5.2.2")
    } else if has(text, UNKNOWN_USER) {
        Some("5.1.1")
    } else {
        None
    }
}
