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
#[error("its history has migration {version} ({name}), which this program knows otherwise or not at all")]
pub(crate) struct Divergent {
    version: i32,
    name: String,
}

pub(crate) const HISTORY: &str = "CREATE TABLE IF NOT EXISTS refinery_schema_history (
    version int4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255))";

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
    for Migration { version, name, sql: statements } in &all[applied.len().min(all.len())..] {
        // One that came in between would find a later schema than it was written for.
        if *version <= current {
            return Err(divergent(*version, name));
        }
        let checksum = Migration { version: *version, name, sql: statements }.checksum();
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

    fn applied(migrations: &[Migration]) -> Vec<Applied> {
        let row = |one: &Migration| Applied {
            version: one.version,
            name: one.name.to_owned(),
            checksum: one.checksum().to_string(),
        };
        migrations.iter().map(row).collect()
    }

    #[test]
    fn numbers_ascend() {
        for all in [SQLITE, POSTGRES] {
            assert!(all.is_sorted_by(|one, other| one.version < other.version));
        }
    }

    #[test]
    fn the_checksum_of_a_file_stays() {
        // As a database has it that was made by the first release.
        assert_eq!(SQLITE[0].checksum(), 3_757_305_635_776_979_695);
    }

    #[test]
    fn a_history_that_is_not_ours_is_refused() {
        assert_eq!(missing(SQLITE, &applied(SQLITE), "'now'").unwrap(), "");
        let older = applied(&SQLITE[..3]);
        assert!(missing(SQLITE, &older, "'now'").unwrap().starts_with(SQLITE[3].sql));
        let mut changed = applied(&SQLITE[..3]);
        changed[1].checksum = "1".to_owned();
        let mut unknown = applied(&SQLITE[..3]);
        unknown[2].version = 9999;
        let mut with_a_gap = applied(&SQLITE[..3]);
        with_a_gap.remove(1);
        for history in [changed, unknown, with_a_gap] {
            missing(SQLITE, &history, "'now'").unwrap_err();
        }
    }
}
