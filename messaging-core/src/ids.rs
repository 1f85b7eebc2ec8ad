//! Identifiers: a three-letter type, an underscore and a ULID in upper-case Crockford base32.
//!
//! Contract section 1.2. An id is 16 bytes inside the process and in the store; the text form exists
//! only at the edges. ULIDs of one process are strictly increasing, so "newest first" is "largest id
//! first" and no list needs a second sort column.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use ulid::Ulid;

use crate::entropy::Entropy;
use crate::time::Timestamp;

/// The text is not an id of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this type")]
pub struct MalformedId;

/// Operations of every id type; lets generic code (paths, stores) handle ids without naming their type.
pub trait Id: Copy + Ord + fmt::Display + FromStr<Err = MalformedId> {
    /// The three letters before the underscore.
    const PREFIX: &'static str;
    /// The 16 bytes of the ULID, big-endian: byte order is creation order.
    fn to_bytes(self) -> [u8; 16];
    /// Returns the time in it: milliseconds since 1970 when it was made.
    fn millis(self) -> i64 {
        let [a, b, c, d, e, f, ..] = self.to_bytes();
        i64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
    /// The inverse of [`Id::to_bytes`].
    fn from_bytes(bytes: [u8; 16]) -> Self;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;
            fn to_bytes(self) -> [u8; 16] {
                self.0.to_bytes()
            }
            fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0_u8; ulid::ULID_LEN];
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(self.0.array_to_str(&mut text))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;
            fn from_str(text: &str) -> Result<Self, MalformedId> {
                parse(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // At once: each message is stored and answered with several.
                const CODE_AT: usize = $prefix.len() + 1;
                let mut text = [b'_'; CODE_AT + ulid::ULID_LEN];
                let mut code = [0_u8; ulid::ULID_LEN];
                text[..$prefix.len()].copy_from_slice($prefix.as_bytes());
                text[CODE_AT..].copy_from_slice(self.0.array_to_str(&mut code).as_bytes());
                serializer.serialize_str(std::str::from_utf8(&text).map_err(ser::Error::custom)?)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": concat!("^", $prefix, "_[0-9A-HJKMNP-TV-Z]{26}$")})
            }
        }
    )*};
}

ids! {
    /// A person who signs in.
    UserId = "usr";
    /// A tenant: everything else belongs to one.
    WorkspaceId = "wsp";
    /// An API key.
    ApiKeyId = "key";
    /// A contact.
    ContactId = "con";
    /// A contact list.
    ListId = "lst";
    /// A custom field.
    FieldId = "fld";
    /// A segment.
    SegmentId = "seg";
    /// A template.
    TemplateId = "tpl";
    /// A campaign.
    CampaignId = "cmp";
    /// A message.
    MessageId = "msg";
    /// A message event or product event.
    EventId = "evt";
    /// An automation.
    AutomationId = "aut";
    /// An automation run.
    RunId = "run";
    /// A suppression.
    SuppressionId = "sup";
    /// A sending domain.
    DomainId = "dom";
    /// A webhook.
    WebhookId = "whk";
    /// A webhook delivery.
    DeliveryId = "dlv";
    /// An import.
    ImportId = "imp";
    /// An IP pool.
    PoolId = "ipp";
    /// A form by which readers subscribe to lists.
    FormId = "frm";
    /// An image.
    ImageId = "img";
    /// A job; never shown outside.
    JobId = "job";
    /// Stored bytes outside a row; never shown outside.
    BlobId = "blb";
    /// A session of a person.
    SessionId = "ses";
    /// A second factor of a person.
    FactorId = "fac";
    /// A request; shown in `X-Request-Id`.
    RequestId = "req";
    /// An entry of an audit log.
    AuditId = "aud";
}

impl EventId {
    /// Returns the time at which it was made, when its object was accepted.
    pub fn made_at(self) -> Timestamp {
        let millis = self.to_bytes()[..6].iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte));
        Timestamp::from_millis(millis)
    }

    /// Returns the largest id that could have been made at a moment; no object has it.
    pub fn last_of(at: Timestamp) -> Self {
        let mut bytes = [0xFF; 16];
        bytes[..6].copy_from_slice(&at.as_millis().max(0).to_be_bytes()[2..]);
        Self::from_bytes(bytes)
    }
}

impl BlobId {
    /// Returns an id with the same randomness and another time, under which the blob is kept.
    #[must_use]
    pub fn dated(self, at: Timestamp) -> Self {
        let mut bytes = self.to_bytes();
        bytes[..6].copy_from_slice(&at.as_millis().max(0).to_be_bytes()[2..]);
        Self::from_bytes(bytes)
    }
}

fn parse(text: &str, prefix: &str) -> Result<Ulid, MalformedId> {
    let code = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).ok_or(MalformedId)?;
    // The decoder is lenient (lower case, overflow of the top character); ids have one spelling.
    let ulid = Ulid::from_string(code).map_err(|_| MalformedId)?;
    let mut canonical = [0_u8; ulid::ULID_LEN];
    if ulid.array_to_str(&mut canonical) == code { Ok(ulid) } else { Err(MalformedId) }
}

/// Generator of ids: strictly increasing within the process, also when the clock stands still or steps back a little.
///
/// If the clock is set back by more than a minute, ids follow it: it was wrong before, and ids with its time would be
/// the newest until that time comes.
#[derive(Debug, Default)]
pub struct IdSource {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    last: u128,
    /// Stock of random bytes: fetching a few from the system costs as much as fetching many.
    noise: [u8; NOISE],
    used: usize,
}

/// Maximum number of milliseconds that the clock may step back while ids continue from the last one.
const STEP_BACK: u64 = 60_000;

/// Bytes of the stock; an id takes ten.
const NOISE: usize = 640;

impl Default for State {
    fn default() -> Self {
        Self { last: 0, noise: [0; NOISE], used: NOISE }
    }
}

impl State {
    /// Returns 80 random bits.
    fn noise(&mut self, entropy: &dyn Entropy) -> u128 {
        if self.used == NOISE {
            entropy.fill(&mut self.noise);
            self.used = 0;
        }
        let mut bytes = [0_u8; 16];
        bytes[6..].copy_from_slice(&self.noise[self.used..self.used + 10]);
        self.used += 10;
        u128::from_be_bytes(bytes)
    }
}

impl IdSource {
    /// Returns the next id of type `I`.
    pub fn next<I: Id>(&self, now: Timestamp, entropy: &dyn Entropy) -> I {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let noise = state.noise(entropy);
        let fresh = (u128::from(millis) << 80) | noise;
        // Same millisecond (or an older clock): step forward by a random amount, so that ids stay
        // unguessable and two nodes do not walk in step.
        let step = (noise & 0xFFFF_FFFF) + 1;
        let last_millis = u64::try_from(state.last >> 80).unwrap_or(u64::MAX);
        let is_set_back = millis.saturating_add(STEP_BACK) < last_millis;
        state.last = if fresh > state.last || is_set_back { fresh } else { state.last + step };
        I::from_bytes(state.last.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn text_and_bytes_round_trip() {
        let id: MessageId =
            IdSource::default().next(Timestamp::from_millis(1_700_000_000_000), &SystemEntropy::default());
        assert_eq!(id.to_string().parse::<MessageId>(), Ok(id));
        assert_eq!(MessageId::from_bytes(id.to_bytes()), id);
    }

    #[test]
    fn only_the_canonical_spelling_is_an_id() {
        let good = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
        assert_eq!(good.parse::<MessageId>().unwrap().to_string(), good);
        for bad in [
            "",
            "msg_",
            "01JB3Q8Z5N6W7X8Y9ZABCDEFGH",
            "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH",
            "msg_01jb3q8z5n6w7x8y9zabcdefgh",
            "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFG",
            "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGHH",
            "msg_81JB3Q8Z5N6W7X8Y9ZABCDEFGH",
            "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGU",
        ] {
            assert_eq!(bad.parse::<MessageId>(), Err(MalformedId), "{bad}");
        }
    }

    #[test]
    fn ids_follow_a_clock_that_is_set_back() {
        let source = IdSource::default();
        let entropy = SystemEntropy::default();
        let time = |millis| {
            let id: MessageId = source.next(Timestamp::from_millis(millis), &entropy);
            id.millis()
        };
        assert_eq!([time(500_000), time(440_000), time(439_999), time(440_000)], [500_000, 500_000, 439_999, 440_000]);
    }

    #[test]
    fn ids_increase_when_the_clock_does_not() {
        let source = IdSource::default();
        let entropy = SystemEntropy::default();
        let mut last = None;
        for millis in [5, 5, 5, 4, 3, 6, 6] {
            let id: MessageId = source.next(Timestamp::from_millis(millis), &entropy);
            assert!(Some(id) > last);
            last = Some(id);
        }
    }
}
