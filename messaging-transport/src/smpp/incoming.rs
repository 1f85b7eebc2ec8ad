//! Content of `deliver_sm`: receipts (SMPP 3.4 appendix B) and messages of recipients.

use messaging_core::domain::channel::inbound_message::InboundEvent;
use messaging_core::domain::delivery::outcome::{Answer, OutcomeClass, ProviderAnswer, Response};
use rusmpp::pdus::DeliverSm;
use rusmpp::tlvs::TlvValue;
use rusmpp::values::Ton;

use super::answer::{receipt_class, stat_of};
use super::encoding::decode;

/// Bits of `esm_class`: a receipt, an intermediate notification, and a user data header.
const IS_RECEIPT: u8 = 0x04;
const IS_NOTIFICATION: u8 = 0x20;
const HAS_HEADER: u8 = 0x40;

/// The content of a `deliver_sm` from a message center.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// Final state of the part with this id.
    Ended { id: String, answer: Answer },
    /// A message of a recipient.
    Message { from: String, event: InboundEvent },
    /// Nothing to report.
    Nothing,
}

/// Reads a `deliver_sm`.
pub(super) fn read(pdu: &DeliverSm) -> Incoming {
    let esm_class = u8::from(pdu.esm_class);
    let mut payload = pdu.short_message().as_ref();
    let (mut id, mut state) = (None, None);
    for tlv in pdu.tlvs() {
        match tlv.value() {
            Some(TlvValue::MessagePayload(given)) if payload.is_empty() => payload = given.value.as_ref(),
            Some(TlvValue::ReceiptedMessageId(given)) => id = Some(given.as_str().to_owned()),
            Some(TlvValue::MessageState(given)) => state = Some(stat_of(u8::from(*given))),
            _ => {}
        }
    }
    if esm_class & IS_NOTIFICATION != 0 {
        return Incoming::Nothing;
    }
    if esm_class & IS_RECEIPT != 0 || id.is_some() {
        let text = String::from_utf8_lossy(payload);
        return receipt(&text, id, state);
    }
    let has_header = esm_class & HAS_HEADER != 0;
    // Parts are not put together: a part of a longer message is reported as a message without text.
    let body = if has_header && is_of_several(payload) {
        String::new()
    } else {
        decode(u8::from(pdu.data_coding), has_header, payload)
    };
    let from = pdu.source_addr.as_str();
    let is_number = !from.is_empty() && from.bytes().all(|byte| byte.is_ascii_digit());
    // Short numbers have no country code.
    let is_international = is_number && (pdu.source_addr_ton == Ton::International || from.len() >= 10);
    let from = if is_international { format!("+{from}") } else { from.to_owned() };
    if from.is_empty() { Incoming::Nothing } else { Incoming::Message { from, event: InboundEvent::Text(body) } }
}

/// Returns true if a user data header says that the message has more than one part (3GPP TS 23.040 sections 9.2.3.24.1
/// and 9.2.3.24.8).
fn is_of_several(payload: &[u8]) -> bool {
    let Some((&length, rest)) = payload.split_first() else { return false };
    let mut header = rest.get(..usize::from(length)).unwrap_or_default();
    while let [name, size, rest @ ..] = header {
        let Some((value, others)) = rest.split_at_checked(usize::from(*size)) else { return false };
        match (name, value) {
            (0x00, [_, total, _]) | (0x08, [_, _, total, _]) => return *total > 1,
            _ => header = others,
        }
    }
    false
}

/// Reads the text of a receipt; the optional parameters take precedence.
fn receipt(text: &str, id: Option<String>, state: Option<&str>) -> Incoming {
    let id = id.or_else(|| member(text, "id:").map(ToOwned::to_owned)).filter(|id| !id.is_empty());
    let stat = state.or_else(|| member(text, "stat:")).unwrap_or_default().to_ascii_uppercase();
    let (Some(id), Some(class)) = (id, receipt_class(&stat)) else { return Incoming::Nothing };
    let code = member(text, "err:").filter(|code| !code.is_empty() && code.bytes().any(|byte| byte != b'0'));
    let said = match (class, code) {
        (OutcomeClass::Accepted(_), _) | (_, None) => stat,
        (_, Some(code)) => format!("{stat} (error {code})"),
    };
    let provider = ProviderAnswer { code: code.map(ToOwned::to_owned), ..ProviderAnswer::default() };
    Incoming::Ended { id, answer: Answer::new(class, Response::of_text(&said)).provider(provider) }
}

/// Returns the word behind a name, in any case; at most 64 characters long, like ids of messages.
fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text.to_ascii_lowercase().find(name)?;
    let value = text.get(at + name.len()..)?.split_whitespace().next()?;
    (value.len() <= 64).then_some(value)
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::delivery::outcome::{Acceptance, SoftCause};
    use rusmpp::tlvs::MessageDeliveryRequestTlvValue as Tlv;
    use rusmpp::types::{AnyOctetString, COctetString, OctetString};
    use rusmpp::values::{DataCoding, EsmClass, MessagePayload, MessageState};

    use super::*;

    fn deliver(esm_class: u8, text: &[u8]) -> DeliverSm {
        DeliverSm::builder()
            .source_addr(COctetString::from_string("4915112345678".to_owned()).unwrap())
            .esm_class(EsmClass::from(esm_class))
            .short_message(OctetString::from_slice(text).unwrap())
            .build()
    }

    fn ended(incoming: Incoming) -> (String, OutcomeClass, Option<String>) {
        match incoming {
            Incoming::Ended { id, answer } => (id, answer.class, answer.of_provider().unwrap().code.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn receipts_are_read_from_their_text() {
        let text = |stat: &str, err: &str| {
            format!(
                "id:ab12 sub:001 dlvrd:001 submit date:2601010000 done date:2601010000 stat:{stat} err:{err} text:Hi"
            )
        };
        for (stat, err, expected, code) in [
            ("DELIVRD", "000", OutcomeClass::Accepted(Acceptance::Delivered), None),
            ("UNDELIV", "033", OutcomeClass::Soft(SoftCause::Unknown), Some("033")),
            ("EXPIRED", "000", OutcomeClass::Soft(SoftCause::Unreachable), None),
            ("REJECTD", "1", OutcomeClass::Soft(SoftCause::Policy), Some("1")),
            ("undeliv", "000", OutcomeClass::Soft(SoftCause::Unknown), None),
        ] {
            let read = ended(read(&deliver(IS_RECEIPT, text(stat, err).as_bytes())));
            assert_eq!(read, ("ab12".to_owned(), expected, code.map(ToOwned::to_owned)), "{stat}");
        }
        for odd in [text("ENROUTE", "000"), text("ACCEPTD", "000"), "stat:DELIVRD".to_owned(), String::new()] {
            assert_eq!(read(&deliver(IS_RECEIPT, odd.as_bytes())), Incoming::Nothing, "{odd}");
        }
        let notification = read(&deliver(IS_NOTIFICATION, text("DELIVRD", "0").as_bytes()));
        assert_eq!(notification, Incoming::Nothing);
    }

    #[test]
    fn the_optional_parameters_of_a_receipt_count_before_its_text() {
        let mut pdu = deliver(IS_RECEIPT, b"id:other stat:UNDELIV");
        pdu.push_tlv(Tlv::ReceiptedMessageId(COctetString::from_string("mine".to_owned()).unwrap()));
        pdu.push_tlv(Tlv::MessageState(MessageState::Delivered));
        assert_eq!(ended(read(&pdu)).0, "mine");
        assert_eq!(ended(read(&pdu)).1, OutcomeClass::Accepted(Acceptance::Delivered));
    }

    #[test]
    fn messages_of_recipients_are_read() {
        let wrote = |incoming: Incoming| match incoming {
            Incoming::Message { from, event: InboundEvent::Text(text) } => (from, text),
            other => panic!("{other:?}"),
        };
        assert_eq!(wrote(read(&deliver(0, b"STOP"))), ("+4915112345678".to_owned(), "STOP".to_owned()));
        for (part, text) in [
            (&[5, 0, 3, 1, 1, 1, b'O', b'K'][..], "OK"),
            (&[4, 5, 2, 0, 0, b'O', b'K'], "OK"),
            (&[5, 0, 3, 1, 2, 1, b'O', b'K'], ""),
            (&[6, 8, 4, 0, 1, 3, 2, b'O', b'K'], ""),
            (&[9, 5, 2, 0, 0, 0, 3, 1, 2, 1, b'O', b'K'], ""),
        ] {
            assert_eq!(wrote(read(&deliver(HAS_HEADER, part))).1, text, "{part:?}");
        }
        let mut long = deliver(0, b"");
        long.data_coding = DataCoding::Ucs2;
        long.push_tlv(Tlv::MessagePayload(MessagePayload::new(AnyOctetString::from_slice(&[0x04, 0x36]))));
        long.source_addr = COctetString::from_string("12345".to_owned()).unwrap();
        assert_eq!(wrote(read(&long)), ("12345".to_owned(), "ж".to_owned()));
    }
}
