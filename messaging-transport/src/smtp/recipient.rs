//! Recipients of a message, as the wire spells them.

use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::ports::transport::{Email, Outgoing, TransportError};

use crate::mime;

/// One recipient of the envelope.
pub(crate) struct Recipient {
    /// The address as the engine gave it.
    pub(crate) given: String,
    /// The address as the wire spells it. It cannot end a command line.
    pub(crate) wire: String,
    /// Envelope sender of the recipient's copy, spelled the same way.
    pub(crate) from: String,
}

impl Recipient {
    /// Returns the recipients of a message. Core's types promise that an address cannot end a command; it is checked
    /// here once more.
    pub(crate) fn all(outgoing: &Outgoing, email: &Email) -> Result<Vec<Self>, TransportError> {
        let parse = |(index, given): (usize, &String)| {
            let address = EmailAddress::parse(given).map_err(|_| malformed())?;
            let from = email.envelope_from.of(index).ok_or_else(malformed)?;
            Ok(Self { given: given.clone(), wire: wire_address(&address)?, from: wire_address(from)? })
        };
        outgoing.recipients.iter().enumerate().map(parse).collect()
    }

    /// Returns the domain in A-labels.
    pub(crate) fn domain(&self) -> &str {
        self.wire.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

/// Returns an address as the wire spells it.
fn wire_address(address: &EmailAddress) -> Result<String, TransportError> {
    mime::wire_address(address).ok_or_else(malformed)
}

fn malformed() -> TransportError {
    TransportError::Content("an address of the envelope is malformed".to_owned())
}
