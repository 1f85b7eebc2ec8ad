//! Complaints of recipients, as a site's feedback loop reports them (RFC 5965).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use messaging_core::time::Timestamp;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Maximum octets of the header of a message that a report brings back.
const MAX_HEADER: usize = 8 * 1024;

/// Maximum octets of one reply.
const MAX_REPLY: u64 = 8 * 1024;

/// Time limit of a whole conversation.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message that its recipient reported as spam.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The time of the complaint; the simulation complains at once.
    pub at: Timestamp,
    /// Address that the message came from.
    pub source: IpAddr,
    /// Envelope sender of the message, which the report goes to.
    pub from: String,
    /// Recipient who complains.
    pub recipient: String,
    /// Header of the message, at most 8 KiB of it.
    pub header: String,
    /// Name of the site.
    pub site: String,
}

impl Complaint {
    pub(super) fn new(at: Timestamp, source: IpAddr, from: &str, recipient: &str, content: &[u8], site: &str) -> Self {
        let end = content.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(content.len()).min(MAX_HEADER);
        let header = String::from_utf8_lossy(&content[..end]).into_owned();
        Self { at, source, from: from.to_owned(), recipient: recipient.to_owned(), header, site: site.to_owned() }
    }

    /// Returns the report as a mail in the Abuse Reporting Format, with CRLF at the end of its lines.
    pub fn to_arf(&self) -> String {
        let Self { at, source, from, recipient, header, site } = self;
        let date = at.to_jiff().strftime("%a, %d %b %Y %H:%M:%S +0000");
        let header = header.replace("\r\n", "\n");
        let mail = format!(
            "From: <feedback@{site}>\nTo: <{from}>\nDate: {date}\nSubject: Complaint about a message\nMIME-Version: 1.0\n\
             Content-Type: multipart/report; report-type=feedback-report; boundary=\"=_report\"\n\n\
             --=_report\nContent-Type: text/plain; charset=us-ascii\n\n\
             This is an abuse report for a message from {source}.\n\n\
             --=_report\nContent-Type: message/feedback-report\n\n\
             Feedback-Type: abuse\nUser-Agent: Simulation/1.0\nVersion: 1\nOriginal-Mail-From: <{from}>\n\
             Original-Rcpt-To: <{recipient}>\nArrival-Date: {date}\nReporting-MTA: dns; {site}\nSource-IP: {source}\n\n\
             --=_report\nContent-Type: text/rfc822-headers\n\n{header}\n\n--=_report--\n"
        );
        mail.replace('\n', "\r\n")
    }

    /// Sends the report by SMTP to the server for returned mail at this address.
    ///
    /// Fails if the server refuses, ends the connection or says nothing for 20 s; the error has the reply.
    pub async fn post(&self, to: SocketAddr) -> io::Result<()> {
        timeout(PATIENCE, self.converse(to)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn converse(&self, to: SocketAddr) -> io::Result<()> {
        let mut stream = BufReader::new(TcpStream::connect(to).await?);
        expect(&mut stream, '2').await?;
        // RFC 5321 section 4.5.2.
        let letter = format!("{}.", self.to_arf().replace("\r\n.", "\r\n.."));
        let commands = [
            (format!("EHLO {}", self.site), '2'),
            ("MAIL FROM:<>".to_owned(), '2'),
            (format!("RCPT TO:<{}>", self.from), '2'),
            ("DATA".to_owned(), '3'),
            (letter, '2'),
            ("QUIT".to_owned(), '2'),
        ];
        for (command, kind) in commands {
            stream.write_all(command.as_bytes()).await?;
            stream.write_all(b"\r\n").await?;
            expect(&mut stream, kind).await?;
        }
        Ok(())
    }
}

/// Reads a reply of this kind, whatever its number of lines.
async fn expect(stream: &mut BufReader<TcpStream>, kind: char) -> io::Result<()> {
    let mut left = MAX_REPLY;
    loop {
        let mut line = String::new();
        let read = (&mut *stream).take(left).read_line(&mut line).await?;
        left = left.saturating_sub(read as u64);
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.as_bytes().get(3) == Some(&b'-') {
            continue;
        }
        return if line.starts_with(kind) { Ok(()) } else { Err(io::Error::other(line.trim_end().to_owned())) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_who_complains_and_brings_the_header_back() {
        let source = IpAddr::from([127, 0, 0, 3]);
        let content = b"Subject: Hello\r\nX-Order: 17\r\n\r\n.A text\r\n";
        let at = Timestamp::from_millis(1_769_850_900_000);
        let complaint = Complaint::new(at, source, "bounce+x@acme.test", "ann@b.test", content, "b.test");
        assert_eq!(complaint.header, "Subject: Hello\r\nX-Order: 17");
        let mail = complaint.to_arf();
        for line in [
            "Date: Sat, 31 Jan 2026 09:15:00 +0000",
            "Feedback-Type: abuse",
            "Original-Rcpt-To: <ann@b.test>",
            "Original-Mail-From: <bounce+x@acme.test>",
            "Source-IP: 127.0.0.3",
            "X-Order: 17",
        ] {
            assert!(mail.contains(&format!("\r\n{line}\r\n")), "{line}: {mail}");
        }
        assert!(!mail.replace("\r\n", "").contains(['\r', '\n']), "{mail}");
        assert!(!mail.contains("A text"), "{mail}");
    }
}
