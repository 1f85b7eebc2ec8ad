//! Mail to the operator: the fields needed to forward it, and to notice a loop.

use bytes::Bytes;
use mail_parser::parsers::MessageStream;
use messaging_core::ports::inbound::RoleMail;

use crate::mail::fields;

/// Maximum size of a mail to the operator, in octets.
pub(super) const MAX_SIZE: usize = 1 << 20;

/// Reads a mail with the envelope sender `sender`.
pub(super) fn read(sender: Option<String>, source: Bytes) -> RoleMail {
    let (header, _) = fields::split(&source);
    let answer_to = header.get("Reply-To").or_else(|| header.get("From"));
    RoleMail {
        sender,
        reply_to: answer_to.and_then(first_address),
        subject: header.words("Subject").filter(|subject| !subject.is_empty()),
        is_automatic: header.get("Auto-Submitted").is_some_and(|value| !value.trim().eq_ignore_ascii_case("no")),
        handed_on: header.all("X-Loop").map(|address| address.trim().to_owned()).collect(),
        hops: header.all("Received").count(),
        source: source.clone(),
    }
}

/// Returns the first address of a field.
pub(super) fn first_address(value: &str) -> Option<String> {
    let line = format!("{value}\n");
    let read = MessageStream::new(line.as_bytes()).parse_address();
    Some(read.as_address()?.first()?.address()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_read() {
        let mail =
            b"Received: from a\r\nReceived: from b\r\nFrom: \"A, B\" <a@b.io>\r\nSubject: =?utf-8?q?=C3=BC?=\r\n\
            X-Loop: postmaster@mx.test\r\nAuto-Submitted: No\r\n\r\nx\r\n";
        let read = read(Some("env@b.io".to_owned()), Bytes::from_static(mail));
        assert_eq!((read.reply_to.as_deref(), read.subject.as_deref()), (Some("a@b.io"), Some("\u{fc}")));
        assert_eq!((read.is_automatic, read.hops, read.handed_on), (false, 2, vec!["postmaster@mx.test".to_owned()]));
        let automatic = super::read(None, Bytes::from_static(b"Auto-Submitted: auto-replied (vacation)\r\n\r\n"));
        assert!(automatic.is_automatic && automatic.reply_to.is_none());
    }
}
