//! Parser of received mail: header fields, parts of a body, and their encodings.

pub(crate) mod boundaries;
pub(crate) mod decode;
pub(crate) mod fields;
