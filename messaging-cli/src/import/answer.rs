//! What an answer of an import says.

use serde_json::Value;

use crate::failure::Failure;
use crate::reply::Reply;

/// The document of an answer; a refusal ends the command.
pub(super) fn accepted(reply: Reply) -> Result<Value, Failure> {
    if !reply.status.is_success() {
        return Err(Failure::Refused(reply));
    }
    serde_json::from_slice(&reply.body).map_err(|_| Failure::Unreachable("the answer is not understood".to_owned()))
}
