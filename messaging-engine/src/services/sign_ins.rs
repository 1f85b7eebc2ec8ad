//! Counting sign-ins: an attempt counts as failed from its beginning, in a commit of its own.

use std::net::IpAddr;

use messaging_core::changes::{AccountWrite, Changes, Write};
use messaging_core::domain::security::login_attempts::{SignInAttempt, SignInBlocks};
use messaging_core::ports::store::CommitError;

use crate::app::App;
use crate::error::Error;

impl App {
    /// The attempt to sign in with an email, lower case, unless there were too many failures. Nothing is counted
    /// yet: most attempts of a flood end here, without a commit.
    pub(crate) async fn admit_sign_in(&self, email: &str, client: Option<IpAddr>) -> Result<SignInAttempt, Error> {
        let attempt = SignInAttempt::new(email, client, self.now());
        let blocks = self.store().sign_in_blocks(&attempt).await?;
        refuse(blocks, attempt)?;
        Ok(attempt.after(blocks))
    }

    /// Counts the attempt as failed before its password is looked at.
    pub(crate) async fn count_sign_in(&self, attempt: SignInAttempt) -> Result<(), Error> {
        match self.commit(Changes::from_iter([Write::Account(AccountWrite::CountSignIn(attempt))])).await {
            Ok(()) => Ok(()),
            // Others were counted meanwhile.
            Err(CommitError::Conflict) => {
                refuse(self.store().sign_in_blocks(&attempt).await?, attempt)?;
                Err(Error::RateLimited { retry_after: 1 })
            }
            Err(error) => Err(error.into_store_error().into()),
        }
    }
}

pub(super) fn refuse(blocks: SignInBlocks, attempt: SignInAttempt) -> Result<(), Error> {
    blocks.wait(attempt.at).map_or(Ok(()), |retry_after| Err(Error::RateLimited { retry_after }))
}
