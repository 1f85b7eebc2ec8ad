//! A body that is a file rather than JSON.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A file with the media type that it is sent with. As JSON, which no request is, it is base64.
#[derive(Clone, PartialEq, Eq)]
pub struct FileBody {
    /// Media type that a client declares; empty where the file was received.
    pub content_type: &'static str,
    /// Content of the file.
    pub bytes: Bytes,
}

impl fmt::Debug for FileBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

impl Serialize for FileBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.bytes))
    }
}

impl<'de> Deserialize<'de> for FileBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(de::Error::custom)?;
        Ok(Self { content_type: "", bytes: bytes.into() })
    }
}

impl JsonSchema for FileBody {
    fn schema_name() -> Cow<'static, str> {
        "FileBody".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "binary"})
    }
}
