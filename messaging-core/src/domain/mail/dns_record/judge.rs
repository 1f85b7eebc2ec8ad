//! Verdicts on MX and CNAME records.

use std::net::IpAddr;

use crate::domain::mail::sending_domain::Check;

/// Returns the verdict on the mail exchangers of the bounce domain, of which we have to be one.
pub fn judge_return_path(hostname: &str, found: &[(u16, String)]) -> Check {
    let Some(ours) = found.iter().filter(|(_, host)| host == hostname).map(|(preference, _)| preference).min() else {
        return if found.is_empty() {
            Check::pending("There is no MX record here yet. Publish the record as shown.")
        } else {
            Check::failed(format!("The MX records here do not name {hostname}. Publish the record as shown."))
        };
    };
    if found.iter().any(|(preference, host)| preference < ours && host != hostname) {
        return Check::verified_but(format!(
            "Another MX record here goes before {hostname}, so bounces go there first. Remove it."
        ));
    }
    Check::verified()
}

/// Returns the verdict on the tracking host, which has to be an alias of our public host, or have the same addresses,
/// as some DNS providers resolve aliases themselves.
pub fn judge_tracking(public_host: &str, alias: Option<&str>, addresses: &[IpAddr], our_addresses: &[IpAddr]) -> Check {
    if alias == Some(public_host) {
        return Check::verified();
    }
    if !addresses.is_empty() && addresses.iter().all(|address| our_addresses.contains(address)) {
        return Check::verified();
    }
    match alias {
        None if addresses.is_empty() => {
            Check::pending("There is no CNAME record here yet. Publish the record as shown.")
        }
        Some(_) => Check::failed(format!(
            "The CNAME record here leads elsewhere than to {public_host}. Publish the record as shown."
        )),
        None => Check::failed(format!(
            "The addresses here are not those of {public_host}. Remove them and publish the record as shown."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::sending_domain::RecordStatus::{self, Failed, Pending, Verified};

    #[track_caller]
    fn check(judged: Check, expected: RecordStatus) {
        assert_eq!(judged.status, expected, "{judged:?}");
        if expected != Verified {
            assert!(judged.detail.is_some_and(|detail| detail.ends_with('.')));
        }
    }

    #[test]
    fn we_are_among_the_mail_exchangers() {
        for (found, expected, has_note) in [
            (&[][..], Pending, true),
            (&[(10, "mx.service.test")], Verified, false),
            (&[(5, "mx.service.test"), (20, "mx.service.test"), (20, "backup.test")], Verified, false),
            (&[(20, "mx.service.test"), (10, "other.test")], Verified, true),
            (&[(10, "other.test")], Failed, true),
            (&[(0, "")], Failed, true),
        ] {
            let found: Vec<_> = found.iter().map(|&(preference, host)| (preference, host.to_owned())).collect();
            let judged = judge_return_path("mx.service.test", &found);
            assert_eq!(judged.detail.is_some(), has_note, "{found:?}");
            check(judged, expected);
        }
    }

    #[test]
    fn tracking_is_our_alias_or_our_addresses() {
        let ips = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let (here, both) = (&["192.0.2.1"][..], &["192.0.2.1", "2001:db8::1"][..]);
        for (alias, addresses, ours, expected) in [
            (Some("t.service.test"), &[][..], &[][..], Verified),
            (None, here, both, Verified),
            (None, both, both, Verified),
            (Some("cdn.test"), here, both, Verified),
            (None, &[], both, Pending),
            (None, both, here, Failed),
            (None, here, &[], Failed),
            (Some("cdn.test"), &[], both, Failed),
            (Some("cdn.test"), &["192.0.2.9"], both, Failed),
        ] {
            check(judge_tracking("t.service.test", alias, &ips(addresses), &ips(ours)), expected);
        }
    }
}
