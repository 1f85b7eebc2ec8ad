//! Decides if a relay's refusal concerns the sender's account or the recipient.
//!
//! Anything that a relay says before it hears of a recipient can only be about the account. Later replies are judged by
//! their codes where those are plain (RFC 4954 section 6, RFC 5248), and by words that name what belongs to a sender: a
//! login, the permission to relay or to send as somebody, a sending quota, an account that is "yours". In doubt the
//! reply is about the recipient or the message, as it would be from a mail exchanger: a refusal that is put down to the
//! account is tried again until the message expires.

use std::time::Duration;

use messaging_core::ports::transport::{Acceptance, Answer, Outcome, OutcomeClass, Response, Scope};

/// Enhanced codes about the sender: its address, credentials, encryption, the account that logged in, permission to
/// send as somebody (the last one is Exchange's).
const SENDER_CODES: &[(u16, u16)] = &[(1, 7), (1, 8), (7, 8), (7, 9), (7, 10), (7, 11), (7, 13), (7, 14), (7, 60)];

/// Enhanced codes about the size or form of the message: a refusal of MAIL with one of them is about the message.
const MESSAGE_CODES: &[(u16, u16)] = &[(2, 3), (3, 4)];

/// Phrases that show that the reply quotes another server, which spoke of the recipient.
const QUOTES: &[&str] = &[" said:", "in reply to", "remote host", "remote server", "remote mail"];

/// Words that make a reply one about a recipient or the message's origin on the internet, whatever else it says.
const OTHERS: &[&str] = &["recipient", "receiv", "mailbox", "spf", "dkim", "dmarc", "you tried to reach"];

/// Phrases that deny access or demand payment: they are about the account, and nothing is sent over it before somebody
/// mends it.
const REFUSED: &[&str] = &[
    "authentication required",
    "authentication is required",
    "must authenticate",
    "authenticate first",
    "please authenticate",
    "not authenticated",
    "login required",
    "log in first",
    "credits exceeded",
    "billing",
    "your plan",
];

/// Further phrases that make a reply one about the account.
const OURS: &[&str] = &[
    "must issue a starttls",
    "relay access denied",
    "unable to relay",
    "cannot relay",
    "do not relay",
    "not owned by user",
    "to send as",
    "sendasdenied",
    "not authorized to send",
    "not authorised to send",
    "not authorized to perform",
    "is not verified",
    "sending limit",
    "sending quota",
    "sending rate",
    "message quota",
    "hourly limit",
    "daily limit",
    "monthly limit",
    "exceeded your",
    "your account",
    "sending account",
    "sender's account",
];

/// Phrases that mean a refusal together with the word "relay".
const RELAYING: &[&str] = &["denied", "not permitted", "not allowed", "prohibited", "refused"];

/// Enhanced codes of a refused login, and of an account that may no longer send.
const LOGIN_CODES: &[(u16, u16)] = &[(7, 8), (7, 9), (7, 10), (7, 11), (7, 13), (7, 14)];

/// Phrases that mean that the account is closed.
const CLOSED: &[&str] = &[
    "suspended",
    "account is disabled",
    "account has been disabled",
    "account is blocked",
    "account has been blocked",
];

/// Phrases that mean that the account sends faster than it may.
const RATES: &[&str] = &["sending rate", "rate limit", "rate exceeded", "too fast", "slow down"];

/// Phrases that mean that the account has used up its quota.
const QUOTAS: &[&str] = &["quota", "sending limit", "hourly limit", "daily limit", "monthly limit", "throttling"];

/// Time that an account rests which sends too fast.
const RATE_WAIT: Duration = Duration::from_secs(1);

/// Time that an account rests which has used up its quota.
const QUOTA_WAIT: Duration = Duration::from_mins(5);

/// Returns the outcome of a reply about the account, by its codes and words.
pub(super) fn of_us(response: Response) -> Outcome {
    let text = response.text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_permanent = response.code.is_none_or(|code| code >= 500);
    let is_login =
        is_login_code(&response) || (is_permanent && detail(&response).is_some_and(|code| LOGIN_CODES.contains(&code)));
    if is_login || has(REFUSED) || has(CLOSED) || (is_permanent && has(&["authentication failed"])) {
        return Outcome::of(OutcomeClass::Auth, response);
    }
    let throttled = |wait| Answer::new(OutcomeClass::Throttled(Scope::Account), response.clone()).wait(wait).into();
    if has(RATES) {
        return throttled(RATE_WAIT);
    }
    if has(QUOTAS) {
        return throttled(QUOTA_WAIT);
    }
    Outcome::provider_failed(response)
}

/// Returns the outcome of a relay's answer; `at_mail` is true if it is the reply to MAIL.
pub(super) fn judge(outcome: Outcome, at_mail: bool) -> Outcome {
    let Outcome::Answered(mut answer) = outcome else { return outcome };
    match answer.class {
        // The relay has accepted the message; a later report may tell more.
        OutcomeClass::Accepted(_) => {
            answer.class = OutcomeClass::Accepted(Acceptance::Relayed);
            answer.into()
        }
        OutcomeClass::Ambiguous => answer.into(),
        _ => {
            let is_ours =
                if at_mail { !is_about_message(&answer.response) } else { is_about_account(&answer.response) };
            if is_ours { of_us(answer.response) } else { answer.into() }
        }
    }
}

fn is_about_message(response: &Response) -> bool {
    match detail(response) {
        Some(code) => code.0 == 6 || MESSAGE_CODES.contains(&code),
        None => response.code == Some(552),
    }
}

fn is_about_account(response: &Response) -> bool {
    if is_login_code(response) {
        return true;
    }
    let text = response.text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(QUOTES) {
        return false;
    }
    if detail(response).is_some_and(|code| SENDER_CODES.contains(&code)) {
        return true;
    }
    // Postfix puts the refused address between "relay" and what it says of it.
    let is_relaying = text.contains("relay") && has(RELAYING);
    is_relaying || ((has(REFUSED) || has(OURS)) && !has(OTHERS))
}

/// Returns true for the codes of a missing or refused login (RFC 4954 section 6).
fn is_login_code(response: &Response) -> bool {
    matches!(response.code, Some(530 | 534 | 535 | 538))
}

/// Returns subject and detail of the enhanced code.
fn detail(response: &Response) -> Option<(u16, u16)> {
    let mut parts = response.enhanced.as_deref()?.split('.').skip(1).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(at_mail: bool, reply: &str, is_ours: bool) {
        let (code, text) = reply.split_once(' ').unwrap();
        let enhanced = text.split(' ').next().filter(|word| word.split('.').count() == 3);
        let response = Response {
            code: Some(code.parse().unwrap()),
            enhanced: enhanced.map(str::to_owned),
            text: text.to_owned(),
            host: None,
        };
        let judged = judge(Outcome::refused(response), at_mail);
        assert_eq!(is_about_us(judged.class().unwrap()), is_ours, "{reply}");
    }

    fn is_about_us(class: OutcomeClass) -> bool {
        use OutcomeClass::{Auth, Retry, Throttled};
        matches!(class, Auth | Retry(Scope::Account) | Throttled(Scope::Account))
    }

    #[test]
    fn an_account_stops_rests_or_goes_on() {
        let class = |reply: &str| {
            let (code, text) = reply.split_once(' ').unwrap();
            let enhanced = text.split(' ').next().filter(|word| word.split('.').count() == 3).map(str::to_owned);
            let (code, text) = (code.parse().ok(), text.to_owned());
            let answer = of_us(Response { code, enhanced, text, host: None });
            let Outcome::Answered(answer) = answer else { panic!("{answer:?}") };
            let wait = answer.asked_wait().map_or(0, |wait| wait.as_secs());
            format!("{:?} {wait}", answer.class)
        };
        for reply in [
            "530 5.7.0 Authentication Required",
            "535 5.7.8 Error: authentication failed",
            "550 5.7.0 Your account has been suspended",
            "451 Authentication failed: Maximum credits exceeded",
        ] {
            assert_eq!(class(reply), "Auth 0", "{reply}");
        }
        assert_eq!(class("454 Throttling failure: Maximum sending rate exceeded."), "Throttled(Account) 1");
        assert_eq!(class("454 Throttling failure: Daily message quota exceeded"), "Throttled(Account) 300");
        assert_eq!(class("550 5.4.5 Daily user sending limit exceeded."), "Throttled(Account) 300");
        // Others of the account may go: these are about one sender, one recipient, one moment.
        for reply in [
            "554 5.7.1 <ann@example.com>: Relay access denied",
            "553 5.7.1 <shop@acme.com>: Sender address rejected: not owned by user acme",
            "454 4.7.0 Temporary authentication failure",
            "421 4.3.2 closing",
        ] {
            assert_eq!(class(reply), "Retry(Account) 0", "{reply}");
        }
    }

    #[test]
    fn what_speaks_of_our_account_is_about_us() {
        for reply in [
            "530 5.7.0 Authentication Required",
            "535 5.7.8 Error: authentication failed",
            "538 5.7.11 Encryption required for requested authentication mechanism",
            "554 5.7.1 <ann@example.com>: Relay access denied",
            "550 5.7.1 Relaying denied",
            "550 5.7.1 Unable to relay for ann@example.com",
            "550 relay not permitted, authentication required",
            "553 5.7.1 <shop@acme.com>: Sender address rejected: not owned by user acme",
            "550 5.7.60 SMTP; Client does not have permissions to send as this sender",
            "554 Message rejected: Email address is not verified.",
            "454 Throttling failure: Daily message quota exceeded",
            "454 Throttling failure: Maximum sending rate exceeded.",
            "550 5.4.5 Daily user sending limit exceeded.",
            "451 Authentication failed: Maximum credits exceeded",
            "550 5.7.0 Your account has been suspended",
            "554 Access denied: User acme is not authorized to perform this action",
            "550 5.1.8 Access denied, bad outbound sender",
        ] {
            check(false, reply, true);
        }
    }

    #[test]
    fn what_speaks_of_a_recipient_or_the_message_is_not() {
        for reply in [
            "550 5.1.1 no such user",
            "550 5.2.1 The email account that you tried to reach is disabled",
            "552 5.2.2 The recipient's mailbox is over quota and has exceeded your limit",
            "550 5.7.1 Recipient has exceeded the daily limit of received messages",
            "550 5.7.26 Unauthenticated email from acme.com is not accepted: DMARC, authentication required",
            "550 5.7.1 Message rejected as spam by content scanning",
            "554 5.7.1 host mx.example.com said: 550 relay access denied",
            "450 4.2.1 The user you are trying to contact is receiving mail too quickly",
            "552 5.3.4 message too large",
            "550 user unknown",
        ] {
            check(false, reply, false);
        }
    }

    #[test]
    fn no_to_mail_is_about_us_unless_it_is_about_the_message() {
        check(true, "550 5.7.1 no", true);
        check(true, "451 4.3.0 later", true);
        check(true, "553 sorry", true);
        check(true, "552 too large", false);
        check(true, "552 5.3.4 too large", false);
        check(true, "554 5.6.7 no SMTPUTF8", false);
        check(true, "552 5.7.1 quota", true);
    }
}
