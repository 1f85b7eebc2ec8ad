//! Judgments of connections, outgoing, incoming and to the public URL, and of blocklists.

use std::net::IpAddr;

use super::{CheckId, CheckReport, LookUp, Looked, listed};

/// Result of trying to connect to another mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outbound {
    /// No domain was named whose mail server could be tried.
    NotAsked,
    /// The domain has no mail server, or it could not be looked up.
    NoHost {
        /// The domain.
        domain: String,
        /// Reason in words why there was no mail server to connect to.
        reason: String,
    },
    /// The mail server was tried: the greeting of each of its addresses, or the reason why there is none.
    Tried {
        /// Host and port.
        host: String,
        /// Greeting or failure of each address.
        greetings: Vec<(IpAddr, LookUp<String>)>,
    },
}

/// Judges whether a connection to another mail server can be made.
pub fn judge_port25_out(outbound: &Outbound) -> CheckReport {
    let looked = |subject: &str| Looked::at(CheckId::Port25Out, subject, "a greeting (220) of a mail server");
    match outbound {
        Outbound::NotAsked => looked("-").skipped(
            "No mail server was named that could be connected to.",
            "messaging doctor --probe DOMAIN, with a domain that receives mail",
        ),
        Outbound::NoHost { domain, reason } => looked(domain).found(reason.clone()).fault(
            format!("{domain} has no mail server that could be connected to: {reason}."),
            "name another domain with --probe",
        ),
        Outbound::Tried { host, greetings } => {
            let told = listed(greetings.iter().map(|(ip, greeting)| match greeting {
                Ok(greeting) => format!("{ip} {greeting}"),
                Err(reason) => format!("{ip} {reason}"),
            }));
            let looked = looked(host).found(told);
            let greeted = |greeting: &LookUp<String>| greeting.as_ref().is_ok_and(|line| line.starts_with("220"));
            if greetings.iter().any(|(_, greeting)| greeted(greeting)) {
                return looked.ok(format!("{host} answers."));
            }
            if greetings.iter().any(|(_, greeting)| greeting.is_ok()) {
                return looked.fault(
                    format!("{host} does not want to talk to this machine."),
                    "read its answer: a blocklist, a missing PTR record or too many connections are usual",
                );
            }
            looked.fault(
                format!("No connection to {host} can be made; mail cannot leave this way."),
                "most hosting companies block port 25: ask yours to open it, or send through a relay (channel email, provider \
                 smtp) or through a door of your own (--mx-override)",
            )
        }
    }
}

/// Result of connecting to the installation's own SMTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundFact {
    /// `--smtp-listen` is not set.
    Off,
    /// `--smtp-listen` is set, but no server runs here.
    NotRunning,
    /// Port, and the greeting or the reason why there is none.
    Tried(u16, LookUp<String>),
}

/// Judges whether the SMTP server for returned mail is reached at its own host name.
pub fn judge_inbound(hostname: &str, fact: &InboundFact) -> CheckReport {
    let looked = Looked::at(CheckId::Inbound, hostname, "our own greeting at the host name");
    match fact {
        InboundFact::Off => looked.warning(
            "No mail is received: bounces that come later, complaints and requests to unsubscribe by mail are lost.",
            "start the server with --smtp-listen 0.0.0.0:25, or let port 25 lead to it",
        ),
        InboundFact::NotRunning => {
            looked.skipped("No server is running on this data directory.", "start the server first")
        }
        InboundFact::Tried(port, Ok(greeting)) => {
            let looked = looked.found(greeting.clone());
            let name = greeting.strip_prefix("220").map(|rest| rest.trim_start_matches([' ', '-']));
            let name = name.and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            if name.eq_ignore_ascii_case(hostname) {
                return looked.ok(format!("{hostname} is reached at port {port}."));
            }
            looked.fault(
                format!("At {hostname} port {port} something else answers than this server."),
                format!(
                    "let {hostname} port {port} lead to --smtp-listen, and start the server with --hostname {hostname}"
                ),
            )
        }
        InboundFact::Tried(port, Err(reason)) => looked.found(reason.clone()).fault(
            format!("{hostname} port {port} is not reached: {reason}; mail that comes back is lost."),
            "open the port in the firewall, and check the addresses of the name (check address)",
        ),
    }
}

/// Result of a TLS handshake with the public URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateFact {
    /// The certificate is valid.
    Valid {
        /// True if the certificate expires within two weeks.
        ends_soon: bool,
    },
    /// Not valid for the name.
    Refused(String),
    /// No connection.
    Unreached(String),
}

/// Judges the certificate of the public URL; `None` if the URL has no TLS.
pub fn judge_tls(public_url: &str, fact: Option<&CertificateFact>) -> CheckReport {
    let looked = Looked::at(CheckId::Tls, public_url, "https with a certificate that is valid for its name");
    match fact {
        None => looked.found("http").warning(
            "The public URL has no TLS: API keys and links in mail travel in the clear.",
            "put a reverse proxy with a certificate in front, and start the server with --public-url https://…",
        ),
        Some(CertificateFact::Valid { ends_soon: false }) => looked.found("valid").ok("The certificate is valid."),
        Some(CertificateFact::Valid { ends_soon: true }) => looked.found("ends within 14 days").warning(
            "The certificate ends within 14 days.",
            "renew it; see why the renewal that usually does this has not happened",
        ),
        Some(CertificateFact::Refused(reason)) => looked.found(reason.clone()).fault(
            format!("The certificate is not valid: {reason}."),
            "get one for this name from an authority that is trusted",
        ),
        Some(CertificateFact::Unreached(reason)) => looked.found(reason.clone()).warning(
            format!("This machine does not reach the public URL: {reason}."),
            "if others do not reach it either, links in mail lead nowhere: check the name and the proxy",
        ),
    }
}

/// Remaining validity, in days, from which on a certificate needs no warning.
const RENEWED_DAYS: i64 = 14;

/// The certificate of the SMTP listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmtpCertificateFact {
    /// `--tls-cert` is not set.
    Off,
    /// The certificate cannot be used, with the reason.
    Unusable(String),
    /// The certificate can be used.
    Read {
        /// Days until its end, negative after it; `None` if the end cannot be read.
        days_left: Option<i64>,
        /// Result of the verification that a client would carry out.
        trust: CertificateTrust,
    },
}

/// Result of a client's verification of a certificate for the host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateTrust {
    /// The certificate is valid.
    Trusted,
    /// Issued for other names.
    OtherName,
    /// Its chain does not lead to an authority that this machine trusts.
    Unknown,
    /// Refused, with another reason.
    Refused(String),
    /// Not verified on this machine, with the reason.
    NotVerified(String),
}

/// Judges whether clients of the SMTP listeners can trust their certificate.
pub fn judge_smtp_certificate(hostname: &str, fact: &SmtpCertificateFact) -> CheckReport {
    let looked = Looked::at(
        CheckId::Certificate,
        hostname,
        "a certificate (--tls-cert) of the host name, with its chain, that is valid for two weeks more",
    );
    let (days_left, trust) = match fact {
        SmtpCertificateFact::Off => {
            return looked.found("none").skipped(
                "No certificate is set: mail arrives by SMTP without TLS.",
                "start the server with --tls-cert and --tls-key, the PEM files of a certificate of the host name",
            );
        }
        SmtpCertificateFact::Unusable(reason) => {
            return looked.found(reason.clone()).fault(
                format!("The certificate cannot be used, so the server does not start with it: {reason}."),
                "let --tls-cert name the certificate with its chain and --tls-key its key, both in PEM and readable by the \
                 user of the server",
            );
        }
        SmtpCertificateFact::Read { days_left, trust } => (*days_left, trust),
    };
    let told = days_left.map_or_else(|| "an end that cannot be read".to_owned(), |days| format!("{days} days left"));
    let looked = looked.found(told);
    let renew = "renew it; see why the renewal that usually does this has not happened. The server reads the new files by itself";
    if days_left.is_some_and(|days| days < 0) {
        return looked.fault("The certificate has ended: most clients do not connect with it.", renew);
    }
    match trust {
        CertificateTrust::OtherName => looked.fault(
            format!("The certificate is not for {hostname}: programs that submit mail refuse it."),
            format!("get one for {hostname}, or start the server with --hostname and the name that it is for"),
        ),
        CertificateTrust::Unknown => looked.fault(
            "The chain of the certificate does not lead to an authority that is trusted: programs that submit mail refuse it.",
            "let --tls-cert name the file with the whole chain (fullchain.pem), of an authority that is trusted",
        ),
        CertificateTrust::Refused(reason) => looked.fault(
            format!("The certificate is not valid: {reason}."),
            "get one for the host name from an authority that is trusted",
        ),
        _ if days_left.is_some_and(|days| days < RENEWED_DAYS) => {
            looked.warning(format!("The certificate ends within {RENEWED_DAYS} days."), renew)
        }
        CertificateTrust::NotVerified(reason) => looked.skipped(
            format!("Whether the certificate is trusted cannot be told here: {reason}."),
            "install the certificates of the authorities (ca-certificates)",
        ),
        CertificateTrust::Trusted => looked.ok(format!("The certificate is one of {hostname}.")),
    }
}

/// Judges a blocklist's answer about an address (RFC 5782).
pub fn judge_blocklist(zone: &str, address: IpAddr, answer: &LookUp<Vec<IpAddr>>) -> CheckReport {
    let looked = Looked::at(CheckId::Blocklist, format!("{address} at {zone}"), "not listed");
    match answer {
        Err(reason) => looked.found(format!("no answer ({reason})")).skipped(
            format!("{zone} could not be asked: {reason}."),
            "ask through a resolver of your own (--dns); many lists refuse public ones",
        ),
        Ok(codes) if codes.is_empty() => looked.found("not listed").ok(format!("{zone} does not list {address}.")),
        Ok(codes) => {
            let looked = looked.found(listed(codes));
            let is = |test: fn([u8; 4]) -> bool| {
                codes.iter().any(|code| matches!(code, IpAddr::V4(code) if test(code.octets())))
            };
            // 127.255.255.x: the list refuses who asks, by a habit of the large ones.
            if is(|octets| octets[..3] == [127, 255, 255]) {
                return looked.skipped(
                    format!("{zone} refuses to answer this resolver."),
                    "ask through a resolver of your own (--dns); many lists refuse public ones",
                );
            }
            if is(|octets| octets[0] == 127) {
                return looked.fault(
                    format!("{zone} lists {address}; receivers who ask it refuse its mail."),
                    format!("look the address up on the website of {zone}, end the cause, and ask to be taken off"),
                );
            }
            looked.warning(
                format!("{zone} answers with something that no blocklist answers with."),
                "is it the zone of a blocklist? A resolver that invents answers does this as well",
            )
        }
    }
}

/// Returns the report of the check when no blocklist is asked.
pub fn skipped_blocklist(text: &str, cure: &str) -> CheckReport {
    Looked::at(CheckId::Blocklist, "-", "not listed").skipped(text, cure)
}
