//! Second factors of users, their recovery codes, and sign-ins that wait for a factor.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::security::digest::Digest;
use messaging_core::domain::security::factor::{Factor, MAX_TRIES, PendingSignIn};
use messaging_core::ids::{FactorId, Id as _, UserId};
use messaging_core::ports::store::{PageRequest, SecondFactors, Slice, StoreError, Stored};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more};
use crate::row::{count, document, get, record, stored};
use crate::sql::{Sql, key, params, sql};

pub(crate) fn put(on: &mut dyn Statements, factor: &Factor, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(factor.user_id), key(factor.id), factor.expires_at(), document(factor)?];
    match expect {
        Expect::Absent => {
            on.run(sql!("INSERT INTO factors (user_id, id, expires_at, revision, doc) VALUES ($1, $2, $3, 1, $4)"), row)
        }
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE factors SET expires_at = $3, doc = $4, revision = revision + 1
                     WHERE user_id = $1 AND id = $2 AND revision = $5"
                ),
                row,
            )
        }
    }
}

pub(crate) fn delete(on: &mut dyn Statements, user: UserId, id: FactorId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM factors WHERE user_id = $1 AND id = $2"), params![key(user), key(id)])
}

/// Removes all that there is of a user.
pub(crate) fn delete_all(on: &mut dyn Statements, user: UserId) -> Result<(), Fault> {
    const OF_USER: [Sql; 3] = [
        sql!("DELETE FROM pending_sign_ins WHERE user_id = $1"),
        sql!("DELETE FROM recovery_codes WHERE user_id = $1"),
        sql!("DELETE FROM factors WHERE user_id = $1"),
    ];
    OF_USER.into_iter().try_for_each(|sql| on.run(sql, params![key(user)]))
}

pub(crate) fn put_recovery_codes(on: &mut dyn Statements, user: UserId, codes: &[Digest]) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM recovery_codes WHERE user_id = $1"), params![key(user)])?;
    for code in codes {
        on.run(
            sql!("INSERT INTO recovery_codes (user_id, digest) VALUES ($1, $2)"),
            params![key(user), code.as_bytes().as_slice()],
        )?;
    }
    Ok(())
}

pub(crate) fn take_recovery_code(on: &mut dyn Statements, user: UserId, code: &Digest) -> Result<(), Fault> {
    on.run_one(
        sql!("DELETE FROM recovery_codes WHERE user_id = $1 AND digest = $2"),
        params![key(user), code.as_bytes().as_slice()],
    )
}

pub(crate) fn put_pending(on: &mut dyn Statements, pending: &PendingSignIn) -> Result<(), Fault> {
    let PendingSignIn { digest, user_id, expires_at, .. } = pending;
    on.run(
        sql!("INSERT INTO pending_sign_ins (digest, user_id, expires_at, tries, doc) VALUES ($1, $2, $3, 0, $4)"),
        params![digest.as_bytes().as_slice(), key(*user_id), *expires_at, document(pending)?],
    )
}

pub(crate) fn count_code(on: &mut dyn Statements, token: &Digest) -> Result<(), Fault> {
    on.run_one(
        sql!("UPDATE pending_sign_ins SET tries = tries + 1 WHERE digest = $1 AND tries < $2"),
        params![token.as_bytes().as_slice(), MAX_TRIES],
    )
}

pub(crate) fn take_pending(on: &mut dyn Statements, token: &Digest) -> Result<(), Fault> {
    on.run_one(sql!("DELETE FROM pending_sign_ins WHERE digest = $1"), params![token.as_bytes().as_slice()])
}

#[async_trait]
impl<D: Database> SecondFactors for SqlStore<D> {
    async fn factors_of(&self, user: UserId, page: PageRequest) -> Result<Slice<Stored<Factor>>, StoreError> {
        const SQL: Sql =
            sql!("SELECT revision, doc FROM factors WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let query = Query::new(SQL, params![key(user), below(&page), one_more(&page)], stored::<Factor>);
        self.page(query, page, |factor| factor.record.id.to_bytes()).await
    }

    async fn factor(&self, user: UserId, id: FactorId) -> Result<Option<Stored<Factor>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM factors WHERE user_id = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(user), key(id)], stored)).await
    }

    async fn factors(&self, page: PageRequest) -> Result<Slice<Factor>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM factors WHERE id < $1 ORDER BY id DESC LIMIT $2");
        let query = Query::new(SQL, params![below(&page), one_more(&page)], |row| record::<Factor>(row, 0));
        self.page(query, page, |factor| factor.id.to_bytes()).await
    }

    async fn has_recovery_code(&self, user: UserId, code: &Digest) -> Result<bool, StoreError> {
        const SQL: Sql = sql!("SELECT 1 FROM recovery_codes WHERE user_id = $1 AND digest = $2");
        let query = Query::new(SQL, params![key(user), code.as_bytes().as_slice()], |_| Ok(()));
        Ok(self.one(query).await?.is_some())
    }

    async fn recovery_code_count(&self, user: UserId) -> Result<u64, StoreError> {
        const SQL: Sql = sql!("SELECT count(*) FROM recovery_codes WHERE user_id = $1");
        Ok(self.one(Query::new(SQL, params![key(user)], |row| count(row, 0))).await?.unwrap_or(0))
    }

    async fn pending_sign_in(&self, token: &Digest) -> Result<Option<(PendingSignIn, u32)>, StoreError> {
        const SQL: Sql = sql!("SELECT doc, tries FROM pending_sign_ins WHERE digest = $1");
        let query = Query::new(SQL, params![token.as_bytes().as_slice()], |row| {
            Ok((record::<PendingSignIn>(row, 0)?, get(row, 1)?))
        });
        self.one(query).await
    }
}
