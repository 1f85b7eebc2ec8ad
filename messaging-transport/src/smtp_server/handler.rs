//! What a server does with what it hears.

use std::borrow::Cow;
use std::net::IpAddr;

use async_trait::async_trait;

/// What a server is there for.
pub(crate) trait Service: Send + Sync + 'static {
    /// Begins with a client, or anew after TLS has begun: nothing that was said before counts.
    fn begin(&self, client: IpAddr) -> Box<dyn Handler>;
}

/// A reply to a command: its lines without their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The command succeeded.
    Done(Cow<'static, str>),
    /// It was wrong; these are counted.
    Refused(Cow<'static, str>),
    /// It was right and is not done now.
    Later(Cow<'static, str>),
}

impl Reply {
    /// What a client hears when nothing was done for a reason of ours.
    pub(crate) const TRY_LATER: Self = Self::Later(Cow::Borrowed("451 4.3.0 try again later"));

    /// The reply to what was done.
    pub(crate) fn done(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Done(text.into())
    }

    /// The reply to what is wrong.
    pub(crate) fn refused(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused(text.into())
    }

    /// True if the command was carried out.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// One client's side of a service. The order of commands, their syntax and the form of content were judged before.
#[async_trait]
pub(crate) trait Handler: Send {
    /// What follows the name in the greeting.
    fn greeting(&self) -> &'static str;

    /// Whether a client has to sign in before it may send.
    fn wants_sign_in(&self) -> bool {
        false
    }

    /// Signs a client in by its password.
    async fn sign_in(&mut self, _password: &str) -> Reply {
        Reply::refused("502 5.5.1 not implemented")
    }

    /// A transaction begins, if this is done. `size` is what SIZE announced, 0 without it.
    async fn mail(&mut self, from: &str, size: usize) -> Reply;

    /// One more recipient. `most` is how many there may be.
    async fn recipient(&mut self, address: &str, most: usize) -> Reply;

    /// Whether the envelope has at least one recipient that was accepted.
    fn has_recipients(&self) -> bool;

    /// Content is about to come: how many octets of it are wanted, or why it is not.
    async fn data(&mut self) -> Result<ContentLimits, Reply>;

    /// Makes room for content that has become long. Whatever holds the room is let go by [`Self::reset`].
    async fn make_room(&mut self) -> Result<(), Reply> {
        Ok(())
    }

    /// The content, without the dots that were added on the wire.
    async fn content(&mut self, source: Vec<u8>) -> Reply;

    /// The transaction is over.
    fn reset(&mut self);
}

/// How much of a content is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentLimits {
    /// Octets that are kept; the rest is read and dropped.
    pub(crate) keep: usize,
    /// Octets above which the content is refused.
    pub(crate) limit: usize,
}
