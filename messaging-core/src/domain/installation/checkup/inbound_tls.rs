//! Judgments of the records published for incoming mail: TLSA records (DANE) and MTA-STS policies. Senders that follow
//! them send nothing if the server does not comply.

use super::mail::{CertificateTrust, SmtpCertificateFact};
use super::{CheckId, CheckReport, CheckStatus, LookUp, Looked};
use crate::domain::mail::mta_sts::{StsMode, StsText};

/// TLSA records of the host name, compared with the certificate of the SMTP listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsaFact {
    /// There are none.
    Absent,
    /// One of them names the certificate.
    Fits,
    /// None of them names the certificate; holds a record that would.
    Misses(String),
    /// None of them can be followed (RFC 7672 section 3.1).
    Unusable,
    /// There are records, but no certificate is set.
    NoCertificate,
}

/// Judges whether the server complies with the TLSA records at a name; `None` if there are none.
pub fn judge_tlsa(name: &str, fact: &LookUp<TlsaFact>) -> Option<CheckReport> {
    let looked = Looked::at(CheckId::Certificate, name, "TLSA records that name the certificate (--tls-cert), or none");
    Some(match fact {
        Ok(TlsaFact::Absent) => return None,
        Ok(TlsaFact::Fits) => looked.found("fits").ok("A TLSA record names the certificate."),
        Ok(TlsaFact::Misses(record)) => looked.found("none that fits").fault(
            "No TLSA record names the certificate: senders that follow DANE send no mail here.",
            format!("publish {record} at {name}, and replace it before the key of the certificate changes"),
        ),
        Ok(TlsaFact::Unusable) => looked.found("none that can be followed").warning(
            "The TLSA records ask for TLS and prove nothing: mail servers follow the usages 2 and 3 alone.",
            "publish a record 3 1 1 of the certificate, or remove them",
        ),
        Ok(TlsaFact::NoCertificate) => looked.found("no certificate").fault(
            "There are TLSA records and no TLS: senders that follow DANE send no mail here.",
            "start the server with --tls-cert and --tls-key, or remove the records",
        ),
        Err(reason) => looked.found(format!("no answer ({reason})")).warning(
            format!(
                "{name} could not be looked up: {reason}. Senders that follow DANE wait as long as they see the same."
            ),
            "see the check resolver; when that is ok, the name servers of this name do not answer",
        ),
    })
}

/// Judges whether the server complies with the MTA-STS policy of a domain whose mail comes to `hostname`. `policy` is
/// the result of fetching it.
pub fn judge_sts(
    domain: &str,
    hostname: &str,
    policy: &LookUp<StsText>,
    certificate: &SmtpCertificateFact,
) -> CheckReport {
    let wanted = "an MTA-STS policy that lists the host name, whose certificate is trusted";
    let looked = Looked::at(CheckId::Certificate, format!("_mta-sts.{domain}"), wanted);
    let policy = match policy {
        Ok(policy) => policy,
        Err(reason) => {
            return looked.found(reason.clone()).warning(
                format!("The record says that there is an MTA-STS policy, and it cannot be fetched: {reason}."),
                format!("let https://mta-sts.{domain}/.well-known/mta-sts.txt answer with it, or remove the record"),
            );
        }
    };
    let (mode, bad, mail) = match policy.mode {
        StsMode::Enforce => ("enforce", CheckStatus::Fault, "send no mail here"),
        StsMode::Testing => ("testing", CheckStatus::Warning, "would send no mail here in mode enforce"),
        StsMode::None => return looked.found("none").ok("The MTA-STS policy asks for nothing."),
    };
    let looked = looked.found(mode);
    if !policy.lists(hostname) {
        let text = format!("The MTA-STS policy does not list {hostname}: senders that follow it {mail}.");
        return looked.end(bad, text, format!("add mx: {hostname} to the policy, and change the id of the record"));
    }
    if !is_trusted(certificate) {
        let text = format!("The certificate is not what the MTA-STS policy asks for: senders that follow it {mail}.");
        return looked.end(bad, text, format!("see the check certificate of {hostname}"));
    }
    looked.ok(format!("The MTA-STS policy lists {hostname}."))
}

/// True if a sender that verifies the certificate accepts it, as far as this machine can tell.
fn is_trusted(certificate: &SmtpCertificateFact) -> bool {
    match certificate {
        SmtpCertificateFact::Off | SmtpCertificateFact::Unusable(_) => false,
        SmtpCertificateFact::Read { days_left, trust } => {
            days_left.is_none_or(|days| days >= 0)
                && matches!(trust, CertificateTrust::Trusted | CertificateTrust::NotVerified(_))
        }
    }
}
