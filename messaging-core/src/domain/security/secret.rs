//! A text that must not be printed: passwords, tokens, API keys on their way in or out.

use std::borrow::Cow;
use std::fmt;

use crate::validate::Length;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// A secret in clear. Serializing it writes the text; `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret in clear.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The secret in clear as an owned text, for a caller that keeps it.
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Length for Secret {
    fn length(&self) -> Option<u64> {
        self.0.length()
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_it() {
        assert_eq!(format!("{:?}", Some(Secret::from("hunter22".to_owned()))), "Some(Secret(…))");
    }
}
