//! The numbered migrations of both databases, forward only, and the history that a database keeps of them.
//!
//! Table and checksums are those of the crate refinery, which applied them until it weighed more than what it did here.

use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};

use siphasher::sip::SipHasher13;

// SQLITE and POSTGRES, by number.
include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// A file of `migrations/`.
#[derive(Debug)]
pub(crate) struct Migration {
    pub(crate) version: i32,
    name: &'static str,
    sql: &'static str,
}

/// A row of the history.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) version: i32,
    pub(crate) name: String,
    pub(crate) checksum: String,
}

/// The history of a database is not that of this program.
#[derive(Debug, thiserror::Error)]
#[error(
    "its history has migration {version} ({name}), which this program does not have or has in another form; install the program that made it"
)]
pub(crate) struct Divergent {
    version: i32,
    name: String,
}

pub(crate) const HISTORY: &str = "CREATE TABLE IF NOT EXISTS refinery_schema_history (
    version int4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255))";

/// SQL for the latest number in a history, and whether it began with the schema of this program.
///
/// Development versions before 0.1.0 had many migrations, which are one now: their history begins under another name.
pub(crate) const LATEST: &str = "SELECT coalesce(max(version), 0),
    coalesce(max(CASE WHEN version = 1 THEN name END) = 'schema', true) FROM refinery_schema_history";

pub(crate) const APPLIED: &str = "SELECT version, name, checksum FROM refinery_schema_history ORDER BY version";

/// The number of the latest.
pub(crate) fn latest(all: &[Migration]) -> i64 {
    all.last().map_or(0, |migration| migration.version.into())
}

/// The statements that a database with such a history lacks, with those that note them there; `now` is SQL for a text in
/// RFC 3339.
pub(crate) fn missing(all: &[Migration], applied: &[Applied], now: &str) -> Result<String, Divergent> {
    let divergent = |version, name: &str| Divergent { version, name: name.to_owned() };
    for one in applied {
        let ours = all.iter().find(|ours| ours.version == one.version);
        if ours.is_none_or(|ours| ours.name != one.name || ours.checksum().to_string() != one.checksum) {
            return Err(divergent(one.version, &one.name));
        }
    }
    let current = applied.last().map_or(0, |last| last.version);
    let mut sql = String::new();
    for migration in &all[applied.len().min(all.len())..] {
        let Migration { version, name, sql: statements } = migration;
        // One that came in between would find a later schema than it was written for.
        if *version <= current {
            return Err(divergent(*version, name));
        }
        let checksum = migration.checksum();
        write!(
            sql,
            "{statements};\nINSERT INTO refinery_schema_history (version, name, applied_on, checksum)
             VALUES ({version}, '{name}', {now}, '{checksum}');\n"
        )
        .expect("texts take all");
    }
    Ok(sql)
}

impl Migration {
    fn checksum(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        self.name.hash(&mut hasher);
        self.version.hash(&mut hasher);
        self.sql.hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIGRATIONS: &[Migration] = &[
        Migration { version: 1, name: "schema", sql: "CREATE TABLE one (n INTEGER)" },
        Migration { version: 3, name: "two", sql: "CREATE TABLE two (n INTEGER)" },
        Migration { version: 4, name: "three", sql: "CREATE TABLE three (n INTEGER)" },
    ];

    fn applied(migrations: &[Migration]) -> Vec<Applied> {
        let row = |one: &Migration| Applied {
            version: one.version,
            name: one.name.to_owned(),
            checksum: one.checksum().to_string(),
        };
        migrations.iter().map(row).collect()
    }

    #[test]
    fn numbers_ascend_from_the_first_schema() {
        for all in [SQLITE, POSTGRES] {
            assert!(all.is_sorted_by(|one, other| one.version < other.version));
            assert_eq!((all[0].version, all[0].name), (1, "schema"));
        }
    }

    #[test]
    fn the_checksum_of_a_migration_stays() {
        // As a database has it that such a migration was applied to.
        assert_eq!(MIGRATIONS[0].checksum(), 7_375_403_999_684_719_559);
    }

    #[test]
    fn what_a_history_lacks_is_applied_in_order() {
        assert_eq!(missing(MIGRATIONS, &applied(MIGRATIONS), "'now'").unwrap(), "");
        let sql = missing(MIGRATIONS, &applied(&MIGRATIONS[..1]), "'now'").unwrap();
        let (two, three) = (sql.find("CREATE TABLE two").unwrap(), sql.find("CREATE TABLE three").unwrap());
        assert!(two == 0 && two < three && !sql.contains("CREATE TABLE one"), "{sql}");
        assert!(sql.contains("VALUES (3, 'two', 'now'"), "{sql}");
    }

    #[test]
    fn a_history_that_is_not_ours_is_refused() {
        let mut changed = applied(MIGRATIONS);
        changed[1].checksum = "1".to_owned();
        let mut renamed = applied(MIGRATIONS);
        renamed[1].name = "other".to_owned();
        let mut unknown = applied(MIGRATIONS);
        unknown[2].version = 9999;
        let mut with_a_gap = applied(MIGRATIONS);
        with_a_gap.remove(1);
        for history in [changed, renamed, unknown, with_a_gap] {
            missing(MIGRATIONS, &history, "'now'").unwrap_err();
        }
    }
}
