//! Tokens of the addresses that receive reports about a sending domain. They are in the DNS for years, so they name the
//! domain alone.

use subtle::ConstantTimeEq as _;

use ring::hmac;

use super::LinkKey;
use super::addresses::{ADDRESS_MAC, base32, from_base32};
use crate::ids::{DomainId, Id as _};

/// Kind of report that an address receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportPurpose {
    /// `dmarc+TOKEN@…`, aggregate reports of DMARC.
    Dmarc,
    /// `tlsrpt+TOKEN@…`, TLS reports.
    TlsRpt,
}

impl ReportPurpose {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Dmarc, Self::TlsRpt];

    /// Returns the word before the plus sign.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Dmarc => "dmarc",
            Self::TlsRpt => "tlsrpt",
        }
    }
}

impl LinkKey {
    /// Returns the local part of the address that receives reports about a domain: at most 49 characters, lower case,
    /// because mail systems may change the case.
    pub fn report_local_part(&self, purpose: ReportPurpose, domain: DomainId) -> String {
        let mut octets = domain.to_bytes().to_vec();
        octets.extend(mac(&self.0[0], purpose, domain));
        format!("{}+{}", purpose.word(), base32(&octets))
    }

    /// Returns the domain whose reports an address receives, if the local part is one of ours.
    pub fn read_report_local_part(&self, local_part: &str) -> Option<(ReportPurpose, DomainId)> {
        let (word, token) = local_part.split_once('+')?;
        let purpose = ReportPurpose::ALL.into_iter().find(|purpose| purpose.word().eq_ignore_ascii_case(word))?;
        let octets = from_base32(token, 16 + ADDRESS_MAC)?;
        let (id, said) = octets.split_at(16);
        let domain = DomainId::from_bytes(id.try_into().ok()?);
        self.0.iter().any(|key| bool::from(mac(key, purpose, domain).ct_eq(said))).then_some((purpose, domain))
    }
}

fn mac(key: &hmac::Key, purpose: ReportPurpose, domain: DomainId) -> [u8; ADDRESS_MAC] {
    let text = [b"reports\0", purpose.word().as_bytes(), b"\0", &domain.to_bytes()].concat();
    hmac::sign(key, &text).as_ref()[..ADDRESS_MAC].try_into().expect("SHA-256 has 32 octets")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::security::secret_key::{KeyRing, SecretKey};

    #[test]
    fn local_parts_round_trip_in_any_case_and_no_other_text_is_one() {
        let domain: DomainId = "dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let key = LinkKey::new(&[7; 32]);
        for purpose in ReportPurpose::ALL {
            let local = key.report_local_part(purpose, domain);
            assert!(local.len() <= 49, "{local}");
            assert_eq!(key.read_report_local_part(&local), Some((purpose, domain)));
            assert_eq!(key.read_report_local_part(&local.to_uppercase()), Some((purpose, domain)));
            assert_eq!(LinkKey::new(&[8; 32]).read_report_local_part(&local), None);
            for at in purpose.word().len() + 1..local.len() {
                let mut forged = local.clone().into_bytes();
                forged[at] = if forged[at] == b'a' { b'b' } else { b'a' };
                assert_eq!(key.read_report_local_part(std::str::from_utf8(&forged).unwrap()), None);
            }
        }
        let swapped = key.report_local_part(ReportPurpose::Dmarc, domain).replace("dmarc", "tlsrpt");
        for bad in ["", "dmarc", "dmarc+", "dmarc+0", &swapped] {
            assert_eq!(key.read_report_local_part(bad), None);
        }
    }

    #[test]
    fn an_address_of_an_older_key_is_still_read() {
        let domain: DomainId = "dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let (old, new) = (SecretKey::from_bytes([7; 32]), SecretKey::from_bytes([8; 32]));
        let before = LinkKey::new(old.as_bytes()).report_local_part(ReportPurpose::Dmarc, domain);
        let both = LinkKey::of(&KeyRing::new([new, old]).unwrap());
        assert_eq!(both.read_report_local_part(&before), Some((ReportPurpose::Dmarc, domain)));
    }
}
