//! Builds a part of a message as `submit_sm` (SMPP 3.4 section 4.4).

use std::time::Duration;

use messaging_core::ports::transport::DeliveryOptions;
use rusmpp::pdus::SubmitSm;
use rusmpp::types::{COctetString, EmptyOrFullCOctetString, OctetString};
use rusmpp::values::{DataCoding, EsmClass, Npi, RegisteredDelivery, Ton};

use super::encoding::Parts;
use super::settings::Account;

/// `esm_class` of a part with a user data header.
const HAS_HEADER: u8 = 0x40;

/// `registered_delivery`: a receipt for success and for failure.
const RECEIPT: u8 = 1;

/// Error of a field that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Builds the PDU of a part.
pub(super) fn submit_sm(
    account: &Account,
    number: &str,
    parts: &Parts,
    body: &[u8],
    options: &DeliveryOptions,
) -> Result<SubmitSm, TooLong> {
    let (source, source_ton, source_npi) = address(&account.sender)?;
    let (destination, destination_ton, destination_npi) = address(number)?;
    let esm_class = if parts.bodies.len() > 1 { HAS_HEADER } else { 0 };
    let mut part = SubmitSm::builder()
        .source_addr_ton(source_ton)
        .source_addr_npi(source_npi)
        .source_addr(source)
        .dest_addr_ton(destination_ton)
        .dest_addr_npi(destination_npi)
        .destination_addr(destination)
        // Its default is not 0.
        .esm_class(EsmClass::from(esm_class))
        .registered_delivery(RegisteredDelivery::from(RECEIPT))
        .data_coding(DataCoding::from(parts.data_coding))
        .short_message(OctetString::from_slice(body).map_err(|_| TooLong)?);
    if let Some(ttl) = options.ttl.filter(|ttl| !ttl.is_zero()) {
        part = part.validity_period(EmptyOrFullCOctetString::from_string(validity(ttl)).map_err(|_| TooLong)?);
    }
    Ok(part.build())
}

/// Returns an address with the type of its number and its numbering plan: E.164, a short number, or a name.
fn address(text: &str) -> Result<(COctetString<1, 21>, Ton, Npi), TooLong> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (text, ton, npi) = match text.strip_prefix('+') {
        Some(digits) if is_number(digits) => (digits, Ton::International, Npi::Isdn),
        _ if is_number(text) => (text, Ton::Unknown, Npi::Isdn),
        _ => (text, Ton::Alphanumeric, Npi::Unknown),
    };
    Ok((COctetString::from_string(text.to_owned()).map_err(|_| TooLong)?, ton, npi))
}

/// Returns a time from now in the relative format (SMPP 3.4 section 7.1.1.1), at most four weeks.
fn validity(ttl: Duration) -> String {
    let seconds = ttl.as_secs().clamp(1, 28 * 86_400);
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    format!("0000{days:02}{hours:02}{:02}{:02}000R", seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::super::encoding::encode;
    use super::*;

    fn account(sender: &str) -> Account {
        Account {
            host: String::new(),
            port: 1,
            system_id: String::new(),
            password: String::new(),
            sender: sender.to_owned(),
            is_tls: false,
        }
    }

    #[test]
    fn a_part_says_what_it_is() {
        let parts = encode("жук", 1);
        let options = DeliveryOptions { ttl: Some(Duration::from_secs(90_061)), ..DeliveryOptions::default() };
        let part = submit_sm(&account("ACME"), "+49151", &parts, &parts.bodies[0], &options).unwrap();
        assert_eq!(u8::from(part.esm_class), 0, "nothing special");
        assert_eq!((u8::from(part.registered_delivery), u8::from(part.data_coding)), (1, 8));
        assert_eq!((part.source_addr.as_str(), u8::from(part.source_addr_ton)), ("ACME", 5));
        let destination = (part.destination_addr.as_str(), u8::from(part.dest_addr_ton), u8::from(part.dest_addr_npi));
        assert_eq!(destination, ("49151", 1, 1));
        assert_eq!(part.validity_period.as_str(), "000001010101000R");
        let long = encode(&"a".repeat(161), 1);
        let part = submit_sm(&account("+4930"), "+49151", &long, &long.bodies[1], &DeliveryOptions::default()).unwrap();
        assert_eq!((u8::from(part.esm_class), u8::from(part.source_addr_ton)), (0x40, 1));
        assert!(part.validity_period.is_empty());
        let short = submit_sm(&account("12345"), "+49151", &parts, b"x", &DeliveryOptions::default()).unwrap();
        assert_eq!((u8::from(short.source_addr_ton), short.source_addr.as_str()), (0, "12345"));
        let refused = submit_sm(&account(&"1".repeat(21)), "+49151", &parts, b"x", &DeliveryOptions::default());
        assert_eq!(refused.unwrap_err(), TooLong);
    }
}
