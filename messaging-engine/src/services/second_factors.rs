//! Second factors: checking codes, and sign-ins that wait for one (contract section 25).
//!
//! A code is checked against the stored factor, and used up by a write in the commit of the action that it is for: of
//! two requests with the same code at the same moment one is refused.

use std::net::IpAddr;

use messaging_core::changes::{AccountWrite, Changes, Expect, Write};
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::api_key::random_text;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::factor::{
    Factor, FactorProof, FirstFactor, MAX_FACTORS, PENDING_FOR, PendingSignIn,
};
use messaging_core::domain::security::login_attempts::{SignInAttempt, SignInBlocks};
use messaging_core::domain::security::passkey::{
    Assertion, PasskeyUser, Site, challenge_of, creation_options, request_options,
};
use messaging_core::domain::security::secret::Secret;
use messaging_core::domain::security::secret_key::SEALED_MARKER;
use messaging_core::domain::security::totp::TotpSecret;
use messaging_core::domain::security::{recovery_code, totp};
use messaging_core::ids::{FactorId, Id as _, UserId};
use messaging_core::ports::store::{CommitError, PageRequest, StoreError, Stored};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Error;
use crate::services::sign_ins::refuse;
use crate::services::tickets::{SECRET_ALPHABET, SECRET_LENGTH};

/// Prefix of the token of a sign-in that waits for a factor.
const PENDING_MARKER: &str = "mf_";

/// Prefix of the token of a sign-in by a passkey alone.
pub(crate) const PASSKEY_MARKER: &str = "mp_";

/// Place that the tokens of sign-ins by a passkey alone are sealed for.
const PASSKEY_PLACE: &str = "passkey/sign-in";

/// First step of a sign-in by a person with a second factor.
#[derive(Debug, Default)]
pub(crate) struct FirstStep {
    /// True if the session becomes a cookie of a browser.
    pub(crate) cookie: bool,
    /// Factor that the first step has proved.
    pub(crate) first_factor: FirstFactor,
    /// True if the operator, by a link, or the single sign-on provider vouches for the person.
    pub(crate) is_vouched: bool,
    /// Hash of a password that is to be set.
    pub(crate) password_hash: Option<String>,
    /// Ticket of the first step, which it uses up.
    pub(crate) ticket: Option<Digest>,
}

impl App {
    /// Returns the factors of a user that can be used or confirmed, newest first.
    pub(crate) async fn live_factors(&self, user: UserId) -> Result<Vec<Stored<Factor>>, StoreError> {
        // Factors that were not confirmed in time are stored until they are swept.
        let (mut page, now) = (PageRequest { after: None, limit: 5 * MAX_FACTORS }, self.now());
        let mut live = Vec::new();
        loop {
            let slice = self.store().factors_of(user, page).await?;
            live.extend(slice.items.into_iter().filter(|factor| factor.record.is_live(now)));
            match slice.next {
                Some(next) if live.len() < MAX_FACTORS => page.after = Some(next),
                _ => return Ok(live),
            }
        }
    }

    /// Returns a new secret for codes, and its stored form.
    pub(crate) fn new_totp_secret(&self, user: UserId, id: FactorId) -> (TotpSecret, FactorProof) {
        let secret = TotpSecret::generate(self.entropy());
        let sealed = self.vault().seal(&Factor::place(user, id), &secret.to_base32(), self.entropy());
        (secret, FactorProof::Totp { sealed, used_step: None })
    }

    /// Returns the factor after a code of it was used; `None` if the code is not valid at `now`.
    pub(crate) fn use_code(&self, factor: Factor, code: &str, now: Timestamp) -> Option<Factor> {
        let FactorProof::Totp { sealed, used_step } = &factor.proof else { return None };
        let opened = self.vault().open(&Factor::place(factor.user_id, factor.id), sealed).ok();
        let Some(secret) = opened.as_deref().and_then(TotpSecret::from_base32) else {
            tracing::error!(factor = %factor.id, "the secret of a second factor is unusable");
            return None;
        };
        let step = secret.step_of(code, now, *used_step)?;
        let proof = FactorProof::Totp { sealed: sealed.clone(), used_step: Some(step) };
        Some(Factor { proof, ..factor.used(now) })
    }

    /// Checks a code of a confirmed factor or a recovery code of a user. Returns the write that uses it up, or `None`
    /// if it is not valid.
    pub(crate) async fn judge_code(
        &self,
        user: UserId,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Write>, StoreError> {
        if totp::is_code(code) {
            let factors = self.live_factors(user).await?;
            let mut confirmed = factors.into_iter().filter(|factor| factor.record.confirmed_at.is_some());
            return Ok(confirmed.find_map(|Stored { record, revision }| {
                let used = self.use_code(record, code, now)?;
                Some(Write::Account(AccountWrite::PutFactor(Box::new(used), Expect::Revision(revision))))
            }));
        }
        let Some(digest) = recovery_code::digest_of(user, code) else { return Ok(None) };
        let is_good = self.store().has_recovery_code(user, &digest).await?;
        Ok(is_good.then_some(Write::Account(AccountWrite::TakeRecoveryCode(user, digest))))
    }

    /// Stores the first step of a sign-in, in a commit of its own, and returns the error that asks for the second. The
    /// attempt stays counted as failed until then.
    pub(crate) async fn ask_second_factor(&self, user: &User, step: FirstStep, now: Timestamp) -> Result<Error, Error> {
        let FirstStep { cookie, first_factor, is_vouched, password_hash, ticket } = step;
        let token = format!("{PENDING_MARKER}{}", random_text(self.entropy(), SECRET_ALPHABET, SECRET_LENGTH));
        let pending = PendingSignIn {
            digest: Digest::of(&token),
            user_id: user.id,
            password_version: user.password_version,
            first_factor,
            cookie,
            is_vouched,
            password_hash,
            created_at: now,
            expires_at: now + PENDING_FOR,
        };
        let taken = ticket.map(|ticket| Write::Account(AccountWrite::TakeTicket(ticket)));
        let kept = Write::Account(AccountWrite::PutPendingSignIn(Box::new(pending)));
        match self.commit(taken.into_iter().chain([kept]).collect()).await {
            Ok(()) => {}
            // Another request has used the ticket.
            Err(CommitError::Conflict) => return Err(Error::LinkExpired),
            Err(error) => return Err(error.into_store_error().into()),
        }
        let factors = self.live_factors(user.id).await?;
        let confirmed = factors.iter().filter(|factor| factor.record.confirmed_at.is_some());
        let (mut kinds, mut passkeys) = (Vec::new(), Vec::new());
        for Stored { record, .. } in confirmed {
            kinds.push(record.kind());
            passkeys.extend(record.passkey().map(|passkey| passkey.credential.clone()));
        }
        kinds.sort_unstable();
        kinds.dedup();
        let site = self.passkey_site().filter(|_| !passkeys.is_empty());
        let options = site.map(|site| Box::new(request_options(&site, &challenge_of(&token), &passkeys)));
        Ok(Error::SecondFactorRequired { token: Secret::from(token), kinds, options })
    }

    /// Returns the site that browsers keep passkeys of this installation for.
    pub(crate) fn passkey_site(&self) -> Option<Site> {
        Site::of(&self.settings().public_url)
    }

    /// Returns a passkey to be created, and the options for the browser to create it.
    pub(crate) fn new_passkey(&self, site: &Site, user: &User, known: &[String]) -> (FactorProof, Map<String, Value>) {
        let nonce = random_text(self.entropy(), SECRET_ALPHABET, SECRET_LENGTH);
        let name = user.name.as_deref().unwrap_or(&user.email);
        let person = PasskeyUser { handle: user.id.to_bytes(), email: &user.email, name };
        let options = creation_options(site, &challenge_of(&nonce), person, known);
        (FactorProof::Passkey { nonce, passkey: None }, options)
    }

    /// Checks a signature of a passkey of a user. Returns the write that records its use, or `None` if it is not valid.
    pub(crate) async fn judge_assertion(
        &self,
        user: UserId,
        assertion: &Assertion,
        challenge: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<Write>, StoreError> {
        let Some(site) = self.passkey_site() else { return Ok(None) };
        for Stored { record, revision } in self.live_factors(user).await? {
            let Some(passkey) = record.passkey().filter(|passkey| passkey.credential == assertion.id) else { continue };
            match assertion.verify(&site, challenge, passkey) {
                Ok(after) => {
                    let proof = FactorProof::Passkey { nonce: String::new(), passkey: Some(after) };
                    let used = Factor { proof, ..record.used(now) };
                    let put = AccountWrite::PutFactor(Box::new(used), Expect::Revision(revision));
                    return Ok(Some(Write::Account(put)));
                }
                Err(fault) => tracing::info!(factor = %record.id, %fault, "a passkey was refused"),
            }
        }
        Ok(None)
    }

    /// Returns the token of a sign-in by a passkey alone, and its expiry. Nothing is stored before it is used: it is
    /// sealed, and its use leaves a row under its digest.
    pub(crate) fn new_passkey_token(&self, cookie: bool, now: Timestamp) -> (Secret, Timestamp) {
        let nonce = random_text(self.entropy(), SECRET_ALPHABET, SECRET_LENGTH);
        let expires_at = now + PENDING_FOR;
        let text = format!("{} {} {nonce}", expires_at.as_millis(), u8::from(cookie));
        let sealed = self.vault().seal(PASSKEY_PLACE, &text, self.entropy());
        let token = format!("{PASSKEY_MARKER}{}", sealed.trim_start_matches(SEALED_MARKER));
        (token.into(), expires_at)
    }

    /// Returns the expiry of a token of [`App::new_passkey_token`], and whether the session becomes a cookie; `None`
    /// for any other text.
    pub(crate) fn read_passkey_token(&self, token: &str) -> Option<(Timestamp, bool)> {
        let sealed = format!("{SEALED_MARKER}{}", token.strip_prefix(PASSKEY_MARKER)?);
        let text = self.vault().open(PASSKEY_PLACE, &sealed).ok()?;
        let mut words = text.split(' ');
        let expires_at = Timestamp::from_millis(words.next()?.parse().ok()?);
        Some((expires_at, words.next()? == "1"))
    }

    /// Returns a sign-in that waits for a code, with the number of codes tried.
    pub(crate) async fn pending_sign_in(&self, token: &Digest, now: Timestamp) -> Result<(PendingSignIn, u32), Error> {
        let found = self.store().pending_sign_in(token).await?;
        found.filter(|(pending, tries)| pending.takes_a_try(*tries, now)).ok_or(Error::SignInOver)
    }

    /// Counts a code of a sign-in as wrong, before it is checked, among the failed sign-ins of its email and its
    /// caller's network.
    ///
    /// A person whose email is guessed at from many places has waited before the first step, and does not wait again:
    /// the tries of one sign-in are few.
    pub(crate) async fn count_code(
        &self,
        token: &Digest,
        email: &str,
        client: Option<IpAddr>,
    ) -> Result<SignInAttempt, Error> {
        let attempt = SignInAttempt::new(email, client, self.now());
        let blocks = self.store().sign_in_blocks(&attempt).await?;
        refuse(SignInBlocks { account: None, ..blocks }, attempt)?;
        let attempt = attempt.after(blocks);
        let writes = [AccountWrite::CountSignIn(attempt), AccountWrite::CountCode(*token)].map(Write::Account);
        match self.commit(Changes::from_iter(writes)).await {
            Ok(()) => Ok(attempt),
            // Other tries were counted meanwhile.
            Err(CommitError::Conflict) => {
                self.pending_sign_in(token, attempt.at).await?;
                Err(Error::RateLimited { retry_after: 1 })
            }
            Err(error) => Err(error.into_store_error().into()),
        }
    }
}
