//! Choice of the sender of an email.
//!
//! Contract section 4.1 (`from_email`, `sending_domain_id`).

use crate::domain::channel::address::EmailAddress;
use crate::domain::mail::sending_domain::{DomainStatus, SendingDomain, responsible};
use crate::error::DomainError;

/// Local part of a default sender.
const DEFAULT_LOCAL_PART: &str = "noreply";

/// Decides the sender: the requested address, else `noreply@` the named domain, else `noreply@` the only verified
/// domain. It must belong to a verified domain, and to the named one if one is named.
pub fn decide(
    asked: Option<&EmailAddress>,
    named: Option<&SendingDomain>,
    domains: &[SendingDomain],
) -> Result<EmailAddress, DomainError> {
    if named.is_some_and(|domain| domain.status != DomainStatus::Verified) {
        return Err(DomainError::SenderDomainNotVerified);
    }
    let Some(asked) = asked else {
        let mut verified = domains.iter().filter(|domain| domain.status == DomainStatus::Verified);
        let domain = match (named, verified.next(), verified.next()) {
            (Some(named), _, _) => named,
            (None, Some(only), None) => only,
            (None, _, _) => return Err(DomainError::SenderMissing),
        };
        return EmailAddress::parse(&format!("{DEFAULT_LOCAL_PART}@{}", domain.domain))
            .map_err(|_| DomainError::SenderMissing);
    };
    let host = asked.ascii_domain();
    let allowed = match named {
        Some(named) => named.covers(&host),
        None => responsible(domains, &host).is_some_and(|domain| domain.status == DomainStatus::Verified),
    };
    if allowed { Ok(asked.clone()) } else { Err(DomainError::SenderDomainNotVerified) }
}

/// Returns true if a sender decided on earlier may still send.
pub fn may_send(sender: &EmailAddress, domains: &[SendingDomain]) -> bool {
    responsible(domains, &sender.ascii_domain()).is_some_and(|domain| domain.status == DomainStatus::Verified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn domain(name: &str, status: DomainStatus) -> SendingDomain {
        let (id, workspace) = ("dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
        let (id, workspace) = (id.parse().unwrap(), workspace.parse().unwrap());
        SendingDomain { status, ..SendingDomain::new(id, workspace, name, Timestamp::from_millis(0)) }
    }

    #[track_caller]
    fn check(
        asked: Option<&str>,
        named: Option<usize>,
        domains: &[SendingDomain],
        expected: Result<&str, DomainError>,
    ) {
        let asked = asked.map(|text| EmailAddress::parse(text).unwrap());
        let decided = decide(asked.as_ref(), named.map(|index| &domains[index]), domains);
        assert_eq!(decided.as_ref().map(EmailAddress::as_str).map_err(Clone::clone), expected);
    }

    #[test]
    fn decides_by_the_contract() {
        use DomainError::{SenderDomainNotVerified, SenderMissing};
        use DomainStatus::{Failed, Pending, Verified};
        let one = [domain("acme.com", Verified)];
        let two = [domain("acme.com", Verified), domain("acme.org", Verified)];
        let mixed = [domain("acme.com", Verified), domain("mail.acme.com", Pending), domain("acme.org", Failed)];

        check(None, None, &[], Err(SenderMissing));
        check(None, None, &one, Ok("noreply@acme.com"));
        check(None, None, &two, Err(SenderMissing));
        check(None, Some(1), &two, Ok("noreply@acme.org"));
        check(None, None, &mixed, Ok("noreply@acme.com"));
        check(None, Some(1), &mixed, Err(SenderDomainNotVerified));

        check(Some("a@acme.com"), None, &one, Ok("a@acme.com"));
        check(Some("a@ACME.com"), None, &one, Ok("a@ACME.com"));
        check(Some("a@eu.acme.com"), None, &one, Ok("a@eu.acme.com"));
        check(Some("a@notacme.com"), None, &one, Err(SenderDomainNotVerified));
        // The longest match is pending, though a shorter one is verified.
        check(Some("a@mail.acme.com"), None, &mixed, Err(SenderDomainNotVerified));
        check(Some("a@acme.org"), None, &mixed, Err(SenderDomainNotVerified));
        check(Some("a@acme.com"), Some(1), &two, Err(SenderDomainNotVerified));
        check(Some("a@acme.org"), Some(1), &two, Ok("a@acme.org"));
    }
}
