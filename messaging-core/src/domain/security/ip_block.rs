//! Entries of a key's IP allowlist.
//!
//! Contract section 2.1: IPv4 and IPv6 addresses or CIDR blocks.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::domain::security::api_key::parse_block;

/// An address or a block, in the spelling it was given in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IpBlock(String);

/// The text is neither an address nor a CIDR block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an IP address or CIDR block")]
pub struct MalformedBlock;

impl FromStr for IpBlock {
    type Err = MalformedBlock;
    fn from_str(text: &str) -> Result<Self, MalformedBlock> {
        parse_block(text).map(|_| Self(text.to_owned())).ok_or(MalformedBlock)
    }
}

impl From<IpBlock> for String {
    fn from(block: IpBlock) -> Self {
        block.0
    }
}

impl<'de> Deserialize<'de> for IpBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for IpBlock {
    fn schema_name() -> Cow<'static, str> {
        "IpBlock".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "ip-block"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_blocks_of_both_families() {
        for good in ["192.0.2.1", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::1", "2001:db8::/32", "::ffff:192.0.2.1"] {
            assert!(good.parse::<IpBlock>().is_ok(), "{good}");
        }
        for bad in
            ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "2001:db8::/129", "example.com", " 10.0.0.1", "10.0.0.256"]
        {
            assert!(bad.parse::<IpBlock>().is_err(), "{bad}");
        }
    }
}
