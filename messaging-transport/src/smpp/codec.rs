//! Codec of PDUs: each is cut out by its length before it is decoded, so that a malformed one does not affect the
//! others. Source: SMPP 3.4 section 3.2.

use std::io;

use rusmpp::tokio_codec::{CommandCodec, EncodeError};
use rusmpp::{Command, CommandId};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, Encoder};

/// Length of the header in octets, which is the shortest PDU.
const HEADER: usize = 16;

/// Maximum length of a PDU that is read: a message of 64 KiB and its other fields.
const MAX_PDU: usize = 66 << 10;

/// Reads and writes PDUs. An impossible length ends the connection, as the start of the next PDU is then unknown.
#[derive(Debug)]
pub(super) struct PduCodec;

/// A PDU that was received.
#[derive(Debug)]
pub(super) enum Received {
    /// A PDU that was decoded.
    Whole(Box<Command>),
    /// A PDU whose body does not have the form of its command.
    Malformed(Header),
}

/// Header of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: CommandId,
    pub(super) status: u32,
    pub(super) sequence: u32,
}

impl Received {
    pub(super) fn header(&self) -> Header {
        match self {
            Self::Whole(command) => {
                Header { id: command.id(), status: u32::from(command.status()), sequence: command.sequence_number() }
            }
            Self::Malformed(header) => *header,
        }
    }
}

impl Header {
    /// Returns true if the PDU is a response, by the highest bit of its command id.
    pub(super) fn is_answer(self) -> bool {
        u32::from(self.id) & 0x8000_0000 != 0
    }
}

impl Decoder for PduCodec {
    type Item = Received;
    type Error = io::Error;

    fn decode(&mut self, source: &mut BytesMut) -> io::Result<Option<Received>> {
        let Some([length, id, status, sequence]) = words(source) else { return Ok(None) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if !(HEADER..=MAX_PDU).contains(&length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no PDU has such a length"));
        }
        if source.len() < length {
            source.reserve(length - source.len());
            return Ok(None);
        }
        let mut pdu = source.split_to(length);
        let decoded = CommandCodec::new().with_max_length(MAX_PDU).decode(&mut pdu);
        Ok(Some(match decoded {
            Ok(Some(command)) => Received::Whole(Box::new(command)),
            Ok(None) | Err(_) => Received::Malformed(Header { id: CommandId::from(id), status, sequence }),
        }))
    }
}

/// Returns the four words of a header, once they have arrived.
fn words(source: &[u8]) -> Option<[u32; 4]> {
    let (words, _) = source.get(..HEADER)?.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_be_bytes(*word));
    Some([words.next()?, words.next()?, words.next()?, words.next()?])
}

impl Encoder<Command> for PduCodec {
    type Error = EncodeError;

    fn encode(&mut self, command: Command, target: &mut BytesMut) -> Result<(), EncodeError> {
        CommandCodec::new().encode(command, target)
    }
}

#[cfg(test)]
mod tests {
    use rusmpp::{CommandStatus, Pdu};

    use super::*;

    fn pdu(length: u32, id: u32, body: &[u8]) -> Vec<u8> {
        let header = [length, id, 0, 7].map(u32::to_be_bytes).concat();
        [header, body.to_vec()].concat()
    }

    /// Decodes input octet by octet.
    fn decoded(octets: &[u8]) -> io::Result<Vec<Received>> {
        let (mut codec, mut source, mut found) = (PduCodec, BytesMut::new(), Vec::new());
        for octet in octets {
            source.extend_from_slice(&[*octet]);
            found.extend(codec.decode(&mut source)?);
        }
        assert!(source.is_empty(), "{source:?}");
        Ok(found)
    }

    #[test]
    fn a_pdu_that_cannot_be_decoded_costs_nothing_but_itself() {
        let mut good = BytesMut::new();
        PduCodec.encode(Command::new(CommandStatus::EsmeRok, 3, Pdu::EnquireLink), &mut good).unwrap();
        let octets = [&good[..], &pdu(19, 5, b"abc"), &good].concat();
        let found = decoded(&octets).unwrap();
        let headers: Vec<_> = found.iter().map(|one| (one.header().id, one.header().sequence)).collect();
        assert_eq!(headers, [(CommandId::EnquireLink, 3), (CommandId::DeliverSm, 7), (CommandId::EnquireLink, 3)]);
        assert!(matches!(&found[..], [Received::Whole(_), Received::Malformed(_), Received::Whole(_)]), "{found:?}");
    }

    #[test]
    fn a_length_that_no_pdu_has_ends_the_connection() {
        for length in [0, 15, u32::try_from(MAX_PDU).unwrap() + 1, u32::MAX] {
            assert_eq!(decoded(&pdu(length, 5, b"")).unwrap_err().kind(), io::ErrorKind::InvalidData, "{length}");
        }
    }
}
