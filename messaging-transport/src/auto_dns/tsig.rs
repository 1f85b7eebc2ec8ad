//! TSIG: DNS messages signed with a shared secret (RFC 8945).
//!
//! The record is written and read by its octets, because the signature covers the message in wire form.

use messaging_core::domain::mail::auto_dns::TsigAlgorithm;
use ring::hmac;

/// Record type TSIG.
const TSIG: u16 = 250;

/// Class ANY.
const ANY: u16 = 255;

/// Maximum difference between the clocks of both sides, in seconds.
const FUDGE: u16 = 300;

/// A shared secret.
pub(super) struct TsigKey {
    name: Vec<u8>,
    algorithm: &'static str,
    key: hmac::Key,
}

/// Reason why an answer is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Distrust {
    /// The answer says that our signature was refused: the name of the error, with its meaning if the key is not to
    /// blame.
    Refused(&'static str),
    /// The answer has no valid signature.
    Unsigned,
}

impl TsigKey {
    pub(super) fn new(name: &str, algorithm: TsigAlgorithm, secret: &[u8]) -> Self {
        let (name, secret) = (wire_name(name), secret);
        let (algorithm, kind) = match algorithm {
            TsigAlgorithm::HmacSha256 => ("hmac-sha256", hmac::HMAC_SHA256),
            TsigAlgorithm::HmacSha512 => ("hmac-sha512", hmac::HMAC_SHA512),
        };
        Self { name, algorithm, key: hmac::Key::new(kind, secret) }
    }

    /// Signs a message at a time, in seconds since 1970, and returns the signature, which the signature of the answer
    /// covers.
    pub(super) fn sign(&self, message: &mut Vec<u8>, now: u64) -> Vec<u8> {
        let variables = self.variables(&wire_name(self.algorithm), now, FUDGE, 0, &[]);
        let mut context = hmac::Context::with_key(&self.key);
        context.update(message);
        context.update(&variables);
        let mac = context.sign().as_ref().to_vec();
        let id = [message[0], message[1]];
        let mut data = wire_name(self.algorithm);
        data.extend(&now.to_be_bytes()[2..]);
        data.extend(FUDGE.to_be_bytes());
        data.extend(length(&mac));
        data.extend(&mac);
        data.extend(id);
        data.extend([0; 4]);
        message.extend(&self.name);
        message.extend(TSIG.to_be_bytes());
        message.extend(ANY.to_be_bytes());
        message.extend([0; 4]);
        message.extend(length(&data));
        message.extend(&data);
        let count = u16::from_be_bytes([message[10], message[11]]) + 1;
        message[10..12].copy_from_slice(&count.to_be_bytes());
        mac
    }

    /// Checks the answer to a message that was signed with `request_mac`, and removes its signature.
    pub(super) fn verify(&self, answer: &[u8], request_mac: &[u8], now: u64) -> Result<Vec<u8>, Distrust> {
        let signature = Signature::of(answer).ok_or(Distrust::Unsigned)?;
        match signature.error {
            16 => return Err(Distrust::Refused("BADSIG")),
            17 => return Err(Distrust::Refused("BADKEY")),
            18 => return Err(Distrust::Refused("BADTIME: its clock and that of this server differ by minutes")),
            22 => return Err(Distrust::Refused("BADTRUNC")),
            _ => {}
        }
        let mut bare = answer[..signature.start].to_vec();
        let count = u16::from_be_bytes([bare[10], bare[11]]).checked_sub(1).ok_or(Distrust::Unsigned)?;
        bare[10..12].copy_from_slice(&count.to_be_bytes());
        bare[..2].copy_from_slice(&signature.id);
        let Signature { algorithm, time, fudge, error, other, mac, .. } = &signature;
        let mut signed = length(request_mac).to_vec();
        signed.extend(request_mac);
        signed.extend(&bare);
        signed.extend(self.variables(algorithm, *time, *fudge, *error, other));
        let is_ours = signature.name == self.name && *algorithm == wire_name(self.algorithm);
        let is_fresh = time.abs_diff(now) <= u64::from(*fudge);
        if !is_ours || !is_fresh || hmac::verify(&self.key, &signed, mac).is_err() {
            return Err(Distrust::Unsigned);
        }
        Ok(bare)
    }

    /// Returns the fields of the record that are signed besides the message (RFC 8945 section 4.3.3).
    fn variables(&self, algorithm: &[u8], time: u64, fudge: u16, error: u16, other: &[u8]) -> Vec<u8> {
        let mut octets = self.name.clone();
        octets.extend(ANY.to_be_bytes());
        octets.extend([0; 4]);
        octets.extend(algorithm);
        octets.extend(&time.to_be_bytes()[2..]);
        octets.extend(fudge.to_be_bytes());
        octets.extend(error.to_be_bytes());
        octets.extend(length(other));
        octets.extend(other);
        octets
    }
}

/// Returns the length of a field of a message as two octets; a message has less than 64 KiB.
fn length(of: &[u8]) -> [u8; 2] {
    u16::try_from(of.len()).unwrap_or(u16::MAX).to_be_bytes()
}

/// Returns a name in wire form, in lower case and without compression.
fn wire_name(name: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        octets.push(u8::try_from(label.len()).unwrap_or(63));
        octets.extend(label.to_ascii_lowercase().bytes().take(63));
    }
    octets.push(0);
    octets
}

/// The TSIG record at the end of a message.
struct Signature {
    start: usize,
    name: Vec<u8>,
    algorithm: Vec<u8>,
    time: u64,
    fudge: u16,
    mac: Vec<u8>,
    id: [u8; 2],
    error: u16,
    other: Vec<u8>,
}

impl Signature {
    /// Reads the signature; `None` if the message is damaged or its last record is no TSIG.
    fn of(message: &[u8]) -> Option<Self> {
        let mut reader = Reader { message, at: 4 };
        let [questions, answers, authorities, additionals] =
            [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
        for _ in 0..questions {
            reader.name()?;
            reader.take(4)?;
        }
        let others = usize::from(answers) + usize::from(authorities) + usize::from(additionals.checked_sub(1)?);
        for _ in 0..others {
            reader.name()?;
            reader.take(8)?;
            let size = reader.u16()?;
            reader.take(usize::from(size))?;
        }
        let start = reader.at;
        let name = reader.name()?;
        if reader.u16()? != TSIG {
            return None;
        }
        reader.take(8)?;
        let algorithm = reader.name()?;
        let time = reader.take(6)?.iter().fold(0, |time, octet| (time << 8) | u64::from(*octet));
        let fudge = reader.u16()?;
        let size = reader.u16()?;
        let mac = reader.take(usize::from(size))?.to_vec();
        let id = reader.take(2)?.try_into().ok()?;
        let error = reader.u16()?;
        let size = reader.u16()?;
        let other = reader.take(usize::from(size))?.to_vec();
        (reader.at == message.len()).then_some(Self { start, name, algorithm, time, fudge, mac, id, error, other })
    }
}

/// Reads a message from its beginning.
struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.message.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Reads a name in lower case. Of a compressed name only the labels before the pointer are read; no name of a
    /// signature is compressed.
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            let size = self.take(1)?[0];
            match size {
                0 => {
                    name.push(0);
                    return Some(name);
                }
                1..=63 if name.len() < 256 => {
                    name.push(size);
                    name.extend(self.take(usize::from(size))?.to_ascii_lowercase());
                }
                192.. => {
                    self.take(1)?;
                    return Some(name);
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one question of the root.
    fn message() -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend([0, 0, 6, 0, 1]);
        message
    }

    #[test]
    fn an_answer_is_believed_when_it_is_signed_over_the_request() {
        for algorithm in [TsigAlgorithm::HmacSha256, TsigAlgorithm::HmacSha512] {
            let key = TsigKey::new("Key.acme.test.", algorithm, b"secret");
            let mut request = message();
            let mac = key.sign(&mut request, 1_000);
            assert_eq!(request[10..12], [0, 1]);
            assert_eq!(Signature::of(&request).unwrap().mac, mac);
            // An answer by hand: signed over the signature of the request as well.
            let variables = key.variables(&wire_name(key.algorithm), 1_100, FUDGE, 0, &[]);
            let signed = [&length(&mac)[..], &mac, &message(), &variables].concat();
            let answer_mac = hmac::sign(&key.key, &signed);
            let mut answer = message();
            key.sign(&mut answer, 1_100);
            let place = answer.len() - answer_mac.as_ref().len() - 6;
            let end = answer.len() - 6;
            answer[place..end].copy_from_slice(answer_mac.as_ref());
            assert_eq!(key.verify(&answer, &mac, 1_000), Ok(message()));
            assert_eq!(key.verify(&answer, b"another request", 1_000), Err(Distrust::Unsigned));
            assert_eq!(key.verify(&answer, &mac, 2_000), Err(Distrust::Unsigned), "too old");
            assert_eq!(key.verify(&message(), &mac, 1_000), Err(Distrust::Unsigned));
            let other = TsigKey::new("key.acme.test", algorithm, b"another");
            assert_eq!(other.verify(&answer, &mac, 1_000), Err(Distrust::Unsigned));
            let at = answer.len() - 3;
            answer[at] = 17;
            assert_eq!(key.verify(&answer, &mac, 1_000), Err(Distrust::Refused("BADKEY")));
            answer[at] = 18;
            let late = key.verify(&answer, &mac, 1_000);
            assert!(matches!(late, Err(Distrust::Refused(words)) if words.contains("clock")), "{late:?}");
        }
    }

    #[test]
    fn damaged_messages_have_no_signature() {
        let mut request = message();
        TsigKey::new("k", TsigAlgorithm::HmacSha256, b"s").sign(&mut request, 1);
        for end in 0..request.len() {
            assert!(Signature::of(&request[..end]).is_none(), "{end}");
        }
    }
}
