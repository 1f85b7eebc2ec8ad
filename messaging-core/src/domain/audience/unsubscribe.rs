//! Ways by which a recipient unsubscribes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ways of contract section 4.2, event `unsubscribe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnsubscribeMethod {
    /// The mail program posted to the link of List-Unsubscribe (RFC 8058).
    OneClick,
    /// A person confirmed on the page behind the link.
    Link,
    /// A letter to the address of List-Unsubscribe (RFC 2369).
    Mailto,
    /// A message that is only a word such as STOP.
    Keyword,
    /// The recipient blocked us.
    Blocked,
    /// The recipient asked the provider.
    Provider,
}
