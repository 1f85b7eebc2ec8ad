//! Interface between the SMTP server and the service behind it.

use std::borrow::Cow;
use std::net::IpAddr;

use async_trait::async_trait;

/// Service of an SMTP server, which has a handler for each client.
pub(crate) trait Service: Send + Sync + 'static {
    /// Begins with a client, or again after TLS has begun: nothing that was said before counts.
    fn begin(&self, client: IpAddr) -> Box<dyn Handler>;
}

/// Reply to a command: its lines without their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The command succeeded.
    Done(Cow<'static, str>),
    /// The command was wrong; refusals are counted.
    Refused(Cow<'static, str>),
    /// The command was right, but is not carried out now.
    Later(Cow<'static, str>),
}

impl Reply {
    /// Reply when nothing was done because of a failure or shortage of the server.
    pub(crate) const TRY_LATER: Self = Self::Later(Cow::Borrowed("451 4.3.0 try again later"));

    /// Returns the reply to a command that succeeded.
    pub(crate) fn done(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Done(text.into())
    }

    /// Returns the reply to a wrong command.
    pub(crate) fn refused(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused(text.into())
    }

    /// True if the command was carried out.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// One client's side of a service. The server has already checked the order of commands, their syntax and the form of
/// content.
#[async_trait]
pub(crate) trait Handler: Send {
    /// Returns the text after the host name in the greeting.
    fn greeting(&self) -> &'static str;

    /// Returns true if a client has to sign in before it may send.
    fn wants_sign_in(&self) -> bool {
        false
    }

    /// Signs a client in by its password.
    async fn sign_in(&mut self, _password: &str) -> Reply {
        Reply::refused("502 5.5.1 not implemented")
    }

    /// Begins a transaction, if the reply is `Done`. `size` is the value of SIZE, 0 without it.
    async fn mail(&mut self, from: &str, size: usize) -> Reply;

    /// Adds a recipient; `most` is the maximum number of recipients.
    async fn recipient(&mut self, address: &str, most: usize) -> Reply;

    /// Returns true if at least one recipient was accepted.
    fn has_recipients(&self) -> bool;

    /// Returns how many octets of the content are wanted, or the reply that refuses it.
    async fn data(&mut self) -> Result<ContentLimits, Reply>;

    /// Reserves room for content that has become long; [`Self::reset`] releases it.
    async fn make_room(&mut self) -> Result<(), Reply> {
        Ok(())
    }

    /// Takes the content, without the dots that were added on the wire.
    async fn content(&mut self, source: Vec<u8>) -> Reply;

    /// Ends the transaction.
    fn reset(&mut self);
}

/// Amount of content that a handler accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentLimits {
    /// Octets that are kept; the rest is read and dropped.
    pub(crate) keep: usize,
    /// Octets above which the content is refused.
    pub(crate) limit: usize,
}
