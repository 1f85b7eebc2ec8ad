//! Statements that find and remove the rows of a workspace, for every table of both schemas.
//!
//! Rows are removed in the order of this list, a page at a time: rows that are found through a row of another table
//! come before that table. Tables without rows of a workspace are named as well, each with a reason, so that a table
//! missing here fails a test.

use messaging_core::ids::WorkspaceId;

use crate::database::Statements;
use crate::fault::Fault;
use crate::sql::{Sql, key, params, sql};

/// Meaning of the parameter `$1` in the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The id as stores keep it.
    Id,
    /// The id as text.
    Text,
}

/// A table with rows of a workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned {
    /// The table.
    pub(crate) table: &'static str,
    /// Value of `$1` in the statements; `$2` is the number of rows in a page.
    pub(crate) by: By,
    /// Statements that remove a page on SQLite; empty where the store has no such table. The rows that the last one
    /// touches count.
    pub(crate) sqlite: &'static [&'static str],
    /// Statements that remove a page on PostgreSQL; empty where the store has no such table.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "the store is not built"))]
    pub(crate) postgres: &'static [&'static str],
}

macro_rules! sqlite {
    ($table:literal, $key:literal, $which:expr) => {
        &[concat!(
            "DELETE FROM ",
            $table,
            " WHERE (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE ",
            $which,
            " LIMIT $2)"
        )]
    };
}

macro_rules! postgres {
    ($table:literal, $which:expr) => {
        &[concat!(
            "DELETE FROM ",
            $table,
            " WHERE ctid = ANY (ARRAY (SELECT ctid FROM ",
            $table,
            " WHERE ",
            $which,
            " LIMIT $2))"
        )]
    };
}

/// A table of both stores: its name, its key on SQLite, and the condition for its rows.
macro_rules! both {
    ($table:literal, $key:literal, $which:expr) => {
        Owned { table: $table, by: By::Id, sqlite: sqlite!($table, $key, $which), postgres: postgres!($table, $which) }
    };
}

/// Like `both`, with the condition on the text of the id.
macro_rules! by_text {
    ($table:literal, $key:literal, $which:expr) => {
        Owned {
            table: $table,
            by: By::Text,
            sqlite: sqlite!($table, $key, $which),
            postgres: postgres!($table, $which),
        }
    };
}

/// A table of PostgreSQL alone.
macro_rules! only_postgres {
    ($table:literal, $which:expr) => {
        Owned { table: $table, by: By::Id, sqlite: &[], postgres: postgres!($table, $which) }
    };
}

/// Condition for rows that name the workspace.
macro_rules! workspace {
    () => {
        "workspace = $1"
    };
}

/// Condition for rows that name the workspace by its number.
macro_rules! number {
    () => {
        "workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1)"
    };
}

/// Condition for rows that name a contact by its number, which consists of the number of the workspace and a count.
macro_rules! contact {
    () => {
        "contact >= (SELECT number << 40 FROM workspace_numbers WHERE workspace = $1) \
         AND contact < (SELECT (number + 1) << 40 FROM workspace_numbers WHERE workspace = $1)"
    };
}

/// Condition for rows that name a block of contacts.
macro_rules! block {
    () => {
        "block >= (SELECT number << 35 FROM workspace_numbers WHERE workspace = $1) \
         AND block < (SELECT (number + 1) << 35 FROM workspace_numbers WHERE workspace = $1)"
    };
}

/// Condition for rows that name a row of another table of the workspace.
macro_rules! through {
    ($column:literal, $key:literal, $parent:literal) => {
        concat!($column, " IN (SELECT ", $key, " FROM ", $parent, " WHERE workspace = $1)")
    };
}

/// Like `through`, if that table names the workspace by its number.
macro_rules! through_number {
    ($column:literal, $parent:literal) => {
        concat!(
            $column,
            " IN (SELECT n FROM ",
            $parent,
            " WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))"
        )
    };
}

/// Condition for rows that name a node of an automation.
macro_rules! node {
    () => {
        "node IN (SELECT n FROM automation_nodes WHERE automation IN (SELECT n FROM automations WHERE workspace = $1))"
    };
}

/// Condition for lanes of the workspace, of both classes.
macro_rules! lane {
    () => {
        "(lane >= 't/' || $1 || '/' AND lane < 't/' || $1 || '0') OR (lane >= 'b/' || $1 || '/' AND lane < 'b/' || $1 || '0')"
    };
}

/// Counts the jobs of a workspace whose id is `$1` as text.
const JOBS_LEFT: Sql = sql!(concat!("SELECT count(*) FROM jobs WHERE ", lane!()));

/// Selects the jobs of a workspace on SQLite; `$1` is its id as text. The store leaves claimed jobs alone.
pub(crate) const JOBS: &str = concat!("SELECT lane, due_at, id FROM jobs WHERE ", lane!());

/// Selects the lanes of a workspace on SQLite that have no jobs; `$1` is its id as text.
pub(crate) const EMPTY_LANES: &str = concat!(
    "SELECT lane FROM lanes WHERE (",
    lane!(),
    ") AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.lane = lanes.lane) LIMIT $2"
);

/// Query of the credentials used for the workspace alone: its API keys, and its own id.
macro_rules! credentials {
    () => {
        "SELECT id FROM api_keys WHERE workspace = $1 UNION ALL SELECT $1"
    };
}

/// Condition for users whom the workspace created, according to the text in the record, and who are members nowhere.
macro_rules! left_alone {
    () => {
        "doc LIKE '%\"created_by\":\"' || $1 || '\"%'
            AND NOT EXISTS (SELECT 1 FROM members WHERE members.user_id = users.id)"
    };
}

/// All tables with rows of a workspace, in the order in which they are removed.
pub(crate) const OWNED: &[Owned] = &[
    // First, so that no work for the other rows continues. On SQLite, claimed jobs are left to end by themselves.
    Owned { table: "jobs", by: By::Text, sqlite: &[JOBS], postgres: postgres!("jobs", lane!()) },
    by_text!("tickets", "digest", "doc LIKE '%\"' || $1 || '\"%'"),
    both!("members", "workspace, user_id", workspace!()),
    by_text!("sessions", "token", concat!("user_id IN (SELECT id FROM users WHERE ", left_alone!(), ")")),
    by_text!("pending_sign_ins", "digest", concat!("user_id IN (SELECT id FROM users WHERE ", left_alone!(), ")")),
    by_text!(
        "recovery_codes",
        "user_id, digest",
        concat!("user_id IN (SELECT id FROM users WHERE ", left_alone!(), ")")
    ),
    by_text!("factors", "user_id, id", concat!("user_id IN (SELECT id FROM users WHERE ", left_alone!(), ")")),
    by_text!("users", "id", left_alone!()),
    // Replies to the workspace's keys and to the operator, then replies to users, whose routes name the workspace.
    Owned {
        table: "replies",
        by: By::Id,
        sqlite: sqlite!("replies", "n", concat!("credential IN (", credentials!(), ")")),
        postgres: postgres!("replies", concat!("credential = ANY (ARRAY (", credentials!(), "))")),
    },
    Owned {
        table: "replies",
        by: By::Text,
        sqlite: sqlite!("replies", "n", "instr(route, 'wsp_') > 0 AND substr(route, instr(route, 'wsp_'), 30) = $1"),
        postgres: postgres!("replies", "substring(route FROM 'wsp_[0-9A-Z]{26}') = $1"),
    },
    both!("api_key_uses", "id", through!("id", "id", "api_keys")),
    both!("api_key_operations", "id, operation", through!("id", "id", "api_keys")),
    both!("api_keys", "workspace, id", workspace!()),
    both!("channels", "workspace, channel", workspace!()),
    both!("sending_domains", "workspace, id", workspace!()),
    both!("ip_pools", "workspace, id", workspace!()),
    both!("ip_grants", "workspace, ip", workspace!()),
    both!("domain_reports", "workspace, domain, key", workspace!()),
    both!("dmarc_rows", "workspace, domain, day, reporter, source, result", workspace!()),
    both!("tls_rows", "workspace, domain, id", workspace!()),
    both!("custom_fields", "workspace, id", workspace!()),
    both!("api_request_bodies", "workspace, key", workspace!()),
    both!("api_requests", "workspace, key", workspace!()),
    both!("audit_log", "workspace, n", workspace!()),
    both!("audit_chains", "workspace", workspace!()),
    both!("template_versions", "workspace, template, version", workspace!()),
    both!("templates", "workspace, id", workspace!()),
    both!("image_bytes", "workspace, id", workspace!()),
    both!("images", "workspace, id", workspace!()),
    both!("urls", "workspace, key", workspace!()),
    both!("provider_links", "workspace, channel, provider, name", workspace!()),
    both!("inbound_notes", "workspace, channel, key", workspace!()),
    Owned {
        table: "soft_bounces",
        by: By::Id,
        sqlite: sqlite!("soft_bounces", "workspace, channel, address", workspace!()),
        postgres: postgres!("soft_bounces", workspace!()),
    },
    // Also rows whose owner was unknown. Records of other workspaces may name it.
    by_text!(
        "quarantined",
        "id",
        "doc LIKE '%\"workspace_id\":\"' || $1 || '\"%' OR (doc LIKE '%\"workspace_id\":null%' AND doc LIKE '%' || $1 || '%')"
    ),
    by_text!("suspensions", "scope", "scope LIKE '%\"workspace_id\":\"' || $1 || '\"%'"),
    both!("import_errors", "import, first_row", through!("import", "id", "imports")),
    both!("imports", "workspace, id", workspace!()),
    both!("captures", "workspace, message", workspace!()),
    both!("abandoned_blobs", "blob, workspace", workspace!()),
    both!("webhook_deliveries", "id", workspace!()),
    both!("webhook_failures", "workspace, webhook", workspace!()),
    both!("webhooks", "workspace, id", workspace!()),
    both!("message_events", "workspace, message, at, id", workspace!()),
    both!("message_attempts", "workspace, message, id", workspace!()),
    both!("copied_recipients", "workspace, key, message", workspace!()),
    both!("event_log", "workspace, n", workspace!()),
    both!("event_followers", "workspace", workspace!()),
    Owned {
        table: "suppressions",
        by: By::Id,
        sqlite: sqlite!("suppressions", "workspace, channel, digest", workspace!()),
        postgres: postgres!("suppressions", workspace!()),
    },
    both!("activity", "workspace, quarter, channel, source", workspace!()),
    both!("site_activity", "workspace, quarter, site", workspace!()),
    only_postgres!("message_states", workspace!()),
    // Together with their contents, which have no index by workspace.
    Owned {
        table: "messages",
        by: By::Id,
        sqlite: &[
            "DELETE FROM message_contents WHERE n IN (
                SELECT content FROM messages WHERE workspace = $1 ORDER BY id LIMIT $2)",
            "DELETE FROM messages WHERE (workspace, id) IN (
                SELECT workspace, id FROM messages WHERE workspace = $1 ORDER BY id LIMIT $2)",
        ],
        postgres: &[
            "DELETE FROM message_contents WHERE workspace = $1 AND message = ANY (ARRAY (
                SELECT id FROM messages WHERE workspace = $1 ORDER BY id LIMIT $2))",
            "DELETE FROM messages WHERE workspace = $1 AND id = ANY (ARRAY (
                SELECT id FROM messages WHERE workspace = $1 ORDER BY id LIMIT $2))",
        ],
    },
    both!("message_texts", "workspace, first", workspace!()),
    both!("automation_branches", "node, branch", node!()),
    both!("automation_notes", "automation, shard, n", through!("automation", "n", "automations")),
    both!("automation_date_fires", "automation, contact, due_at", through!("automation", "n", "automations")),
    both!("automation_entries", "automation, contact, key", through!("automation", "n", "automations")),
    both!("automation_messages", "message", through!("automation", "n", "automations")),
    both!("automation_run_inputs", "automation, run", through!("automation", "n", "automations")),
    both!("automation_run_steps", "automation, run, revision", through!("automation", "n", "automations")),
    both!("automation_run_counts", "automation, status", through!("automation", "n", "automations")),
    both!("automation_runs", "automation, id", through!("automation", "n", "automations")),
    only_postgres!("automation_version_counts", through!("automation", "n", "automations")),
    both!("automation_versions", "automation, version", through!("automation", "n", "automations")),
    only_postgres!("automation_node_counts", node!()),
    both!("automation_nodes", "n", through!("automation", "n", "automations")),
    both!("automation_deleted_contacts", "workspace, id", workspace!()),
    both!("campaign_activity", "campaign, quarter", through!("campaign", "n", "campaigns")),
    both!("campaign_addresses", "campaign, n", through!("campaign", "n", "campaigns")),
    both!("campaign_audience", "campaign, kind, due_at, piece", through!("campaign", "n", "campaigns")),
    both!("campaign_counts", "campaign, variant", through!("campaign", "n", "campaigns")),
    both!("campaign_engagements", "campaign, seen, message", through!("campaign", "n", "campaigns")),
    both!("campaign_left_out", "campaign, piece", through!("campaign", "n", "campaigns")),
    only_postgres!("campaign_link_counts", through!("campaign", "n", "campaigns")),
    both!("campaign_links", "campaign, variant, link", through!("campaign", "n", "campaigns")),
    both!("campaign_progress", "campaign", through!("campaign", "n", "campaigns")),
    both!("campaign_waiting", "campaign, track, due_at, message", through!("campaign", "n", "campaigns")),
    both!("forms", "workspace, id", workspace!()),
    both!("holds", "workspace, kind, id, holder_kind, holder", workspace!()),
    both!("automations", "n", workspace!()),
    both!("campaigns", "n", workspace!()),
    both!("contact_sends", "contact, channel", contact!()),
    both!("changed_contacts", "contact", contact!()),
    both!("changed_addresses", "n", number!()),
    only_postgres!("list_counts", through_number!("list", "lists")),
    both!("list_members", "list, contact", through_number!("list", "lists")),
    both!("list_subscriptions", "list, contact", through_number!("list", "lists")),
    both!("lists", "n", number!()),
    both!("tag_members", "tag, contact", through_number!("tag", "tags")),
    both!("tags", "n", number!()),
    only_postgres!("segment_sizes", through_number!("segment", "segments")),
    both!("segment_members", "segment, contact", through_number!("segment", "segments")),
    both!("segments", "n", number!()),
    both!("product_event_activity", "name, quarter", through_number!("name", "event_names")),
    both!("product_events", "n", contact!()),
    both!("event_unique_ids", "event", number!()),
    both!("event_names", "n", number!()),
    both!("deleted_contacts", "n", number!()),
    both!("contacts", "n", number!()),
    // After the contacts, because removed contacts leave notes here.
    both!("changed_contact_texts", "n", block!()),
    both!("contact_texts", "block", block!()),
    only_postgres!("contact_counts", number!()),
];

/// Statements that end the removal, in one transaction, with the workspace itself. `$1` is its id.
const LAST: [Sql; 2] = [
    sql!("UPDATE ending_workspaces SET state = 2 WHERE workspace = $1 AND state = 1"),
    sql!("DELETE FROM workspaces WHERE id = $1"),
];

/// Ends the removal of a workspace.
pub(crate) fn end(on: &mut dyn Statements, workspace: WorkspaceId) -> Result<(), Fault> {
    const NUMBER: Sql = sql!(
        sqlite: "UPDATE workspace_numbers SET contacts = 0, read_mask = 0 WHERE workspace = $1",
        postgres: "UPDATE workspace_numbers SET read_mask = 0 WHERE workspace = $1",
    );
    // A job that is still running, or was added late.
    on.expect(0, JOBS_LEFT, params![workspace.to_string()])?;
    on.run(NUMBER, params![key(workspace)])?;
    LAST.into_iter().try_for_each(|sql| on.run_one(sql, params![key(workspace)]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rusqlite::Connection;

    use super::*;

    /// Tables whose rows are not removed by a statement of the list, each with the reason.
    const OTHERWISE: &[(&str, &str)] = &[
        ("workspaces", "the last row to go"),
        ("ending_workspaces", "holds that the id of a workspace that is gone stays taken"),
        ("workspace_numbers", "the number stays taken with the id, so that no row that came late is somebody else's"),
        ("message_contents", "go with their messages"),
        ("lanes", "go with their jobs"),
        ("marked_deliveries", "follow deliveries by triggers"),
        ("blobs", "are removed through the port of blobs, whatever keeps them"),
        ("blob_pieces", "go with their blobs"),
        ("uploads", "are removed through the port of uploads, whatever keeps them"),
        ("upload_pieces", "go with their uploads"),
        ("installation", "of the installation"),
        ("sources", "of the installation"),
        ("paths", "of the installation"),
        ("sts_policies", "of domains of recipients, which all workspaces share"),
        ("sign_in_failures", "names addresses by digests and no workspace"),
        ("linked_identities", "of users who are nobody's own, since whoever is joined to a provider is vouched for"),
        ("health_probe", "of the installation"),
        ("refinery_schema_history", "of the schema"),
        ("schema_compatibility", "of the schema"),
        ("automation_note_number", "of the installation"),
        ("nodes", "processes put themselves there"),
        ("writers", "processes put themselves there"),
        ("takings", "processes tell each other of limits for a minute"),
        ("places", "of the installation"),
        ("log_era", "of the installation"),
    ];

    /// Tables that are read whole because they are small in every installation, and names that are no tables. Notes of
    /// changed contacts are gone some seconds after they came.
    const SMALL: &[&str] =
        &["abandoned_blobs", "changed_contact_texts", "quarantined", "suspensions", "tickets", "users", "CONSTANT"];

    fn known() -> BTreeSet<&'static str> {
        let owned: BTreeSet<_> = OWNED.iter().map(|owned| owned.table).collect();
        for (table, _) in OTHERWISE {
            assert!(!owned.contains(table), "{table} is named twice");
        }
        owned.into_iter().chain(OTHERWISE.iter().map(|(table, _)| *table)).collect()
    }

    #[test]
    fn the_rows_of_a_workspace_are_found_in_every_table_of_sqlite() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("messaging.db");
        drop(crate::SqliteStore::open(crate::SqliteOptions::new(&path)).unwrap());
        let connection = Connection::open(&path).unwrap();
        let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
        let tables: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(tables.len() > 70, "{}", tables.len());
        let known = known();
        for table in &tables {
            assert!(known.contains(table.as_str()), "how are rows of a workspace found in {table}?");
        }
        for owned in OWNED.iter().filter(|owned| !owned.sqlite.is_empty()) {
            assert!(tables.iter().any(|table| table == owned.table), "{} is not there", owned.table);
        }
        let last = LAST.map(|sql| sql.sqlite);
        for sql in OWNED.iter().flat_map(|owned| owned.sqlite).chain(&last).chain([&JOBS_LEFT.sqlite, &EMPTY_LANES]) {
            let plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"));
            let mut plan = plan.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let mut steps = plan.raw_query();
            while let Some(step) = steps.next().unwrap() {
                let step: String = step.get(3).unwrap();
                let is_small = |table: &&str| step.split(' ').any(|word| word == *table);
                assert!(!step.starts_with("SCAN") || SMALL.iter().any(is_small), "{sql} reads everything: {step}");
            }
        }
    }

    #[test]
    fn the_rows_of_a_workspace_are_found_in_every_table_of_postgres() {
        let mut tables = BTreeSet::new();
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres")).unwrap() {
            let schema = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let names = schema.lines().filter_map(|line| {
                line.replace("CREATE UNLOGGED TABLE ", "CREATE TABLE ")
                    .strip_prefix("CREATE TABLE ")
                    .and_then(|rest| rest.split(' ').next().map(str::to_owned))
            });
            tables.extend(names);
        }
        assert!(tables.len() > 70, "{}", tables.len());
        let known = known();
        for table in &tables {
            assert!(known.contains(table.as_str()), "how are rows of a workspace found in {table}?");
        }
        for owned in OWNED.iter().filter(|owned| !owned.postgres.is_empty()) {
            assert!(tables.contains(owned.table), "{} is not there", owned.table);
        }
    }
}
