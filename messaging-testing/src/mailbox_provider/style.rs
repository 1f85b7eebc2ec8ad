//! Replies with which sites defer and refuse, as their postmasters publish them.

use std::net::IpAddr;

use crate::scripted::Stage;

use super::reputation::SitePolicy;

/// Operator whose limits and replies a simulated site has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteStyle {
    /// Google: 421 4.7.28, then 550 5.7.28.
    Gmail,
    /// Outlook.com: 451 4.7.650 and RP-001 to RP-003, then the block list S3150.
    Microsoft,
    /// Yahoo and AOL: 421 with `[TSS04]`, then 553 with `[BL21]`.
    Yahoo,
    /// Apple: 421 and 451 4.7.1, then 550 with `[CS01]`.
    Icloud,
    /// Postfix with a public block list.
    Postfix,
}

/// Reason why a site refuses something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Objection {
    /// The address has the maximum number of connections.
    Connections,
    /// The connection has carried the maximum number of messages.
    Messages,
    /// The address is above its allowance.
    TooFast,
    /// The address has little trust, and is above its allowance.
    LittleTrust,
    /// The address is blocked.
    Blocked,
    /// There is no such mailbox.
    UnknownMailbox,
}

impl SiteStyle {
    /// All styles.
    pub const ALL: [Self; 5] = [Self::Gmail, Self::Microsoft, Self::Yahoo, Self::Icloud, Self::Postfix];

    /// Returns the limits of such a site, on the careful side of what is published and observed.
    pub fn policy(self) -> SitePolicy {
        let policy = SitePolicy::default();
        match self {
            Self::Gmail | Self::Microsoft => SitePolicy { first_day: 500, ..policy },
            Self::Yahoo => SitePolicy { first_day: 250, messages_per_connection: 20, ..policy },
            Self::Icloud => SitePolicy { first_day: 250, messages_per_connection: 50, ..policy },
            Self::Postfix => policy,
        }
    }

    /// Returns true if the site reports complaints to the sender; Google and Apple do not.
    pub const fn has_feedback_loop(self) -> bool {
        !matches!(self, Self::Gmail | Self::Icloud)
    }

    /// Returns the stage at which a blocked address is refused.
    pub(super) const fn blocks_at(self) -> Stage {
        match self {
            Self::Yahoo | Self::Postfix => Stage::Greeting,
            Self::Gmail | Self::Microsoft | Self::Icloud => Stage::Mail,
        }
    }

    /// Returns the reply, `\n` between its lines.
    pub(super) fn reply(self, objection: Objection, source: IpAddr, recipient: &str, host: &str) -> String {
        let (code, text) = match self {
            Self::Gmail => gmail(objection, source),
            Self::Microsoft => microsoft(objection, source),
            Self::Yahoo => yahoo(objection, source),
            Self::Icloud => icloud(objection, source, recipient, host),
            Self::Postfix => postfix(objection, source, recipient, host),
        };
        // Google puts the enhanced code on every line.
        let lines: Vec<_> = text.split('\n').collect();
        let last = lines.len() - 1;
        let line = |(at, line): (usize, &&str)| format!("{code}{}{line}", if at < last { '-' } else { ' ' });
        lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn gmail(objection: Objection, source: IpAddr) -> (u16, String) {
    match objection {
        Objection::Connections | Objection::Messages => {
            (421, format!("4.7.0 [{source}] Try again later, closing connection. - gsmtp"))
        }
        Objection::TooFast => (
            421,
            format!(
                "4.7.28 [{source}] Our system has detected an unusual rate of\n\
                 4.7.28 unsolicited mail originating from your IP address. To protect our\n\
                 4.7.28 users from spam, mail sent from your IP address has been temporarily\n\
                 4.7.28 rate limited. Please visit\n\
                 4.7.28 https://support.google.com/mail/?p=UnsolicitedRateLimitError to\n\
                 4.7.28 review our Bulk Email Senders Guidelines. - gsmtp"
            ),
        ),
        Objection::LittleTrust => (
            421,
            format!(
                "4.7.0 [{source}] Our system has detected that this message is\n\
                 4.7.0 suspicious due to the very low reputation of the sending IP address.\n\
                 4.7.0 To protect our users from spam, mail sent from your IP address has\n\
                 4.7.0 been temporarily rate limited. Please visit\n\
                 4.7.0 https://support.google.com/mail/answer/188131 for more information. - gsmtp"
            ),
        ),
        Objection::Blocked => (
            550,
            format!(
                "5.7.28 [{source}] Our system has detected an unusual rate of\n\
                 5.7.28 unsolicited mail originating from your IP address. To protect our\n\
                 5.7.28 users from spam, mail sent from your IP address has been blocked.\n\
                 5.7.28 Please visit https://support.google.com/mail/?p=UnsolicitedIPError to\n\
                 5.7.28 review our Bulk Email Senders Guidelines. - gsmtp"
            ),
        ),
        Objection::UnknownMailbox => (
            550,
            "5.1.1 The email account that you tried to reach does not exist. Please try\n\
             5.1.1 double-checking the recipient's email address for typos or\n\
             5.1.1 unnecessary spaces. For more information, go to\n\
             5.1.1 https://support.google.com/mail/?p=NoSuchUser - gsmtp"
                .to_owned(),
        ),
    }
}

fn microsoft(objection: Objection, source: IpAddr) -> (u16, String) {
    match objection {
        Objection::Connections => (
            421,
            "RP-003 The mail server IP connecting to Outlook.com server has exceeded the connection limit allowed. \
             Reason for connection limitation is related to IP/domain reputation. If you are not an email/network \
             admin please contact your Email/Internet Service Provider for help."
                .to_owned(),
        ),
        Objection::Messages => (
            421,
            "RP-002 The mail server IP connecting to Outlook.com server has exceeded the rate limit allowed on this \
             connection. Reason for rate limitation is related to IP/domain reputation. If you are not an \
             email/network admin please contact your Email/Internet Service Provider for help."
                .to_owned(),
        ),
        Objection::TooFast => (
            451,
            format!(
                "4.7.650 The mail server [{source}] has been temporarily rate limited due to IP reputation. For e-mail \
                 delivery information, see https://aka.ms/postmaster (S775)"
            ),
        ),
        Objection::LittleTrust => (
            451,
            format!(
                "4.7.651 The mail server [{source}] has been temporarily rate limited due to IP reputation. For e-mail \
                 delivery information, see https://postmaster.live.com (S3114)"
            ),
        ),
        Objection::Blocked => (
            550,
            format!(
                "5.7.1 Unfortunately, messages from [{source}] weren't sent. Please contact your Internet service \
                 provider since part of their network is on our block list (S3150). You can also refer your provider \
                 to http://mail.live.com/mail/troubleshooting.aspx#errors."
            ),
        ),
        Objection::UnknownMailbox => {
            (550, "5.5.0 Requested action not taken: mailbox unavailable (S2017062302).".to_owned())
        }
    }
}

fn yahoo(objection: Objection, source: IpAddr) -> (u16, String) {
    const SEE: &str = "see https://postmaster.yahooinc.com/error-codes";
    let deferred = |tag: &str, number: &str| {
        let reason = "temporarily deferred due to unexpected volume or user complaints";
        format!("4.7.0 [{tag}] Messages from {source} {reason} - {number}; {SEE}")
    };
    match objection {
        Objection::Connections => {
            (451, "Resources temporarily not available - Please try again later [#4.16.5].".to_owned())
        }
        Objection::Messages => (421, "Max message per connection reached, closing transmission channel".to_owned()),
        Objection::TooFast => (421, deferred("TSS04", "4.16.55.1")),
        Objection::LittleTrust => (421, deferred("TSS05", "4.16.56.1")),
        Objection::Blocked => (
            553,
            format!(
                "5.7.1 [BL21] Connections will not be accepted from {source}, because the ip is in Spamhaus's list; {SEE}"
            ),
        ),
        Objection::UnknownMailbox => (552, "1 Requested mail action aborted, mailbox not found".to_owned()),
    }
}

fn icloud(objection: Objection, source: IpAddr, recipient: &str, host: &str) -> (u16, String) {
    const SEE: &str = "https://support.apple.com/en-us/HT204137";
    match objection {
        Objection::Connections => (421, format!("4.7.0 {host} Error: too many connections from {source}")),
        Objection::Messages => (421, format!("4.7.0 {host} Error: too many errors")),
        Objection::TooFast => {
            (421, format!("4.7.1 Messages to {recipient} deferred due to excessive volume. Try again later - {SEE}"))
        }
        Objection::LittleTrust => (451, "4.7.1 Service unavailable - try again later".to_owned()),
        Objection::Blocked => (550, format!("5.7.1 [CS01] Message rejected due to local policy. Please visit {SEE}")),
        Objection::UnknownMailbox => (550, format!("5.1.1 <{recipient}>: user does not exist")),
    }
}

fn postfix(objection: Objection, source: IpAddr, recipient: &str, host: &str) -> (u16, String) {
    match objection {
        Objection::Connections => (421, format!("4.7.0 {host} Error: too many connections from {source}")),
        Objection::Messages => (421, format!("4.7.0 {host} Error: too many messages over one connection")),
        Objection::TooFast => (450, format!("4.7.1 Error: too much mail from {source}")),
        Objection::LittleTrust => (451, format!("4.7.1 <{recipient}>: Recipient address rejected: try again later")),
        Objection::Blocked => (
            554,
            format!(
                "5.7.1 Service unavailable; Client host [{source}] blocked using zen.spamhaus.org; \
                 https://www.spamhaus.org/query/ip/{source}"
            ),
        ),
        Objection::UnknownMailbox => {
            (550, format!("5.1.1 <{recipient}>: Recipient address rejected: User unknown in local recipient table"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTIONS: [Objection; 6] = [
        Objection::Connections,
        Objection::Messages,
        Objection::TooFast,
        Objection::LittleTrust,
        Objection::Blocked,
        Objection::UnknownMailbox,
    ];

    fn said(style: SiteStyle, objection: Objection) -> String {
        style.reply(objection, IpAddr::from([192, 0, 2, 1]), "ann@b.test", "mx1.b.test")
    }

    #[test]
    fn blocks_and_unknown_mailboxes_are_final_and_the_rest_is_not() {
        for style in SiteStyle::ALL {
            for objection in OBJECTIONS {
                let is_final = matches!(objection, Objection::Blocked | Objection::UnknownMailbox);
                let reply = said(style, objection);
                assert!(reply.starts_with(if is_final { '5' } else { '4' }), "{style:?} {reply}");
            }
        }
    }

    #[test]
    fn every_line_has_the_code_and_only_the_last_one_a_space() {
        for style in SiteStyle::ALL {
            for objection in OBJECTIONS {
                let reply = said(style, objection);
                let count = reply.lines().count();
                for (at, line) in reply.lines().enumerate() {
                    assert_eq!(line[..3], reply[..3], "{reply}");
                    assert_eq!(&line[3..4], if at + 1 < count { "-" } else { " " }, "{reply}");
                    // RFC 5321 section 4.5.3.1.5.
                    assert!(line.len() <= 510, "{line}");
                }
            }
        }
    }

    #[test]
    fn sites_say_what_they_are_known_for() {
        for (style, objection, words) in [
            (SiteStyle::Gmail, Objection::TooFast, "421-4.7.28 [192.0.2.1] Our system"),
            (SiteStyle::Gmail, Objection::Blocked, "\n550 5.7.28 review"),
            (SiteStyle::Microsoft, Objection::TooFast, "451 4.7.650 The mail server [192.0.2.1]"),
            (SiteStyle::Microsoft, Objection::Connections, "421 RP-003 "),
            (SiteStyle::Microsoft, Objection::Blocked, "(S3150)"),
            (SiteStyle::Yahoo, Objection::TooFast, "421 4.7.0 [TSS04] Messages from 192.0.2.1"),
            (SiteStyle::Yahoo, Objection::Blocked, "553 5.7.1 [BL21]"),
            (SiteStyle::Icloud, Objection::TooFast, "421 4.7.1 Messages to ann@b.test"),
            (SiteStyle::Icloud, Objection::Blocked, "550 5.7.1 [CS01]"),
            (SiteStyle::Postfix, Objection::Blocked, "zen.spamhaus.org"),
        ] {
            let reply = said(style, objection);
            assert!(reply.contains(words), "{reply}");
        }
    }
}
