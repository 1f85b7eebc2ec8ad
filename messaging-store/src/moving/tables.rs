//! Tables of PostgreSQL that are filled, and the sources of their rows.

use rusqlite::types::Value;

use crate::tables::contacts::text_columns;

/// A row of the source.
pub(crate) type SourceRow = Vec<Value>;

/// A table that is filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// The name of the table in PostgreSQL.
    pub name: &'static str,
    /// Its columns, separated by commas. PostgreSQL tells their types.
    pub columns: &'static str,
    /// The source of the rows that fill the table.
    pub rows: Rows,
}

/// The source of a table's rows: another table, a query, or files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rows {
    /// The columns of the table of the same name in SQLite.
    Same,
    /// A query that returns the columns in their order. It may call the functions of the source.
    Select(&'static str),
    /// The files of attachments.
    Blobs,
    /// The bytes of attachments.
    BlobPieces,
    /// The uploaded files.
    Uploads,
    /// The bytes of uploaded files.
    UploadPieces,
}

const fn same(name: &'static str, columns: &'static str) -> Table {
    table(name, columns, Rows::Same)
}

const fn table(name: &'static str, columns: &'static str, rows: Rows) -> Table {
    Table { name, columns, rows }
}

impl Table {
    /// The query for the source, if a query provides the rows.
    pub(crate) fn select(&self) -> Option<String> {
        match self.rows {
            Rows::Same => Some(format!("SELECT {} FROM {}", self.columns, self.name)),
            Rows::Select(sql) => Some(sql.to_owned()),
            Rows::Blobs | Rows::BlobPieces | Rows::Uploads | Rows::UploadPieces => None,
        }
    }
}

/// All tables that are filled. A counter that has one row on SQLite fills the first of its shards.
pub(crate) const TABLES: &[Table] = &[
    same("workspace_numbers", "number, workspace, read_mask"),
    table(
        "jobs",
        "lane, due_at, id, place, bulk, failures, dated_at, kind, payload",
        Rows::Select(
            "SELECT lane, due_at, id, place_of_lane(lane) AS place, is_bulk(lane) AS bulk, failures, dated_at, \
         kind, payload FROM jobs",
        ),
    ),
    same("suspensions", "scope, since"),
    same("users", "id, email, revision, doc"),
    same("sessions", "token, id, user_id, password_version, expires_at, used_at, doc"),
    same("tickets", "digest, expires_at, doc"),
    same("factors", "user_id, id, expires_at, revision, doc"),
    same("recovery_codes", "user_id, digest"),
    same("pending_sign_ins", "digest, user_id, expires_at, tries, doc"),
    same("linked_identities", "issuer, subject, user_id, linked_at"),
    same("workspaces", "id, revision, doc"),
    same("ending_workspaces", "workspace, deletes_at, state"),
    same("members", "workspace, user_id, owner, invited, revision, doc"),
    same("sign_in_failures", "n, at, network, site, email, account, slowed"),
    same("api_keys", "workspace, id, prefix, secret, revision, doc, ends_at, warn_at"),
    same("api_key_uses", "id, used_at"),
    same("api_key_operations", "id, operation, first_at, used_at, ip"),
    table(
        "installation",
        "name, value",
        Rows::Select("SELECT name, value FROM installation WHERE name IN ('key_check', 'secret_key', 'name', 'fence')"),
    ),
    same("channels", "workspace, channel, revision, doc"),
    same("sending_domains", "workspace, id, name, revision, doc"),
    same("ip_pools", "workspace, id, name, revision, doc"),
    same("ip_grants", "workspace, ip, granted_at"),
    same("sources", "ip, revision, doc"),
    same("paths", "ip, site, revision, sent_today, day, is_stopped, updated_at, state"),
    same("domain_reports", "workspace, domain, key, purpose, day, reporter, verified, at"),
    same("dmarc_rows", "workspace, domain, day, reporter, source, result, messages, last_seen"),
    same("tls_rows", "workspace, domain, id, day, reporter, mx, result, sessions, failures"),
    same("custom_fields", "workspace, id, key, revision, doc"),
    same(
        "api_requests",
        "workspace, key, id, at, method, path, operation, status, code, duration_ms, request_bytes, key_id, user_id, ip, \
         user_agent, idempotency_key, resource_id",
    ),
    same("api_request_bodies", "workspace, key, request, response"),
    same("audit_log", "workspace, n, at, actor_kind, actor, operation, resource_kind, resource, doc, hash"),
    same("audit_chains", "workspace, n, hash, anchor_n, anchor_hash"),
    same("templates", "workspace, id, channel, revision, version, removed_at"),
    same("template_versions", "workspace, template, version, head, doc"),
    same("images", "workspace, id, sha256, size, doc"),
    same("image_bytes", "workspace, id, bytes"),
    same("replies", "key, credential, route, created_at, expires_at, fingerprint, status, content_type, body"),
    same("urls", "workspace, key, url"),
    same("sts_policies", "domain, expires_at, doc"),
    same("provider_links", "workspace, message, at, channel, provider, name"),
    same("inbound_notes", "workspace, channel, key, at"),
    same("soft_bounces", "workspace, channel, digest, address, count"),
    same("quarantined", "id, doc"),
    same("imports", "workspace, id, revision, doc"),
    same("import_errors", "import, first_row, workspace, lines"),
    table("uploads", "import, workspace, id, kept, size", Rows::Uploads),
    table("upload_pieces", "import, workspace, upload, at, bytes", Rows::UploadPieces),
    table(
        "captures",
        "workspace, message, channel, captured_at, recipient, sender, subject, source",
        Rows::Select(
            "SELECT workspace, message, channel, captured_at, recipient, sender, subject,
            ifnull(source, source_in_file(workspace, message)) AS source
        FROM captures WHERE source IS NOT NULL OR has_file(workspace, message)",
        ),
    ),
    table("blobs", "id, workspace, message, pending, size", Rows::Blobs),
    table("blob_pieces", "blob, workspace, at, bytes", Rows::BlobPieces),
    same("abandoned_blobs", "blob, workspace"),
    // SQLite stores a number of the same length in place of a time that is not known yet.
    table(
        "messages",
        "workspace, id, revision, status, channel, created_at, updated_at, recipient, sender, contact, campaign, \
         automation, template, tags, metadata, variant, hold_reason, hold_until, hold_since, seen, links, skip, \
         sent_at, delivered_at, fallback_of, has_fallback, is_test",
        Rows::Select(
            "SELECT workspace, id, revision, status, channel, created_at, updated_at, recipient, sender, contact, \
             campaign, automation, template, tags, metadata, variant, hold_reason, hold_until, hold_since, seen, \
             links, skip, nullif(sent_at, -70368744177664) AS sent_at, nullif(delivered_at, \
             -70368744177664) AS delivered_at, fallback_of, has_fallback, is_test \
             FROM messages",
        ),
    ),
    same("message_contents", "message, workspace, request"),
    same("message_events", "workspace, message, at, id, kind, meta"),
    same("message_attempts", "workspace, message, id, attempt, at, provider, doc"),
    same("copied_recipients", "workspace, key, message"),
    table(
        "event_log",
        "workspace, era, xid, n, message, at, event",
        Rows::Select("SELECT workspace, 0 AS era, 0 AS xid, n, message, at, event FROM event_log"),
    ),
    same("event_followers", "workspace, until"),
    same("suppressions", "workspace, channel, digest, address, id, revision, doc"),
    same("webhooks", "workspace, id, revision, status, doc"),
    same("webhook_failures", "workspace, webhook, since"),
    same(
        "webhook_deliveries",
        "id, workspace, webhook, status, attempts, event, type, message, at, payload, \
         created_at, next_attempt_at, delivered_at, duration_ms, response_status, response_body, error, \
         replay_of, backlog, missed",
    ),
    same(
        "contacts",
        concat!(
            "n, workspace_number, id, revision, created_at, updated_at, marketing_email, sms, ",
            text_columns!(),
            ", tags, attributes"
        ),
    ),
    table(
        "contact_counts",
        "workspace_number, shard, contacts",
        Rows::Select("SELECT number AS workspace_number, 0 AS shard, contacts FROM workspace_numbers"),
    ),
    same("tags", "n, workspace_number, tag"),
    same("tag_members", "tag, contact"),
    same(
        "lists",
        "n, workspace_number, id, revision, removed, created_at, updated_at, name, is_public, is_double, description",
    ),
    table(
        "list_counts",
        "list, shard, members",
        Rows::Select("SELECT n AS list, 0 AS shard, contacts AS members FROM lists"),
    ),
    same("list_members", "list, contact"),
    same("list_subscriptions", "list, contact, revision, status, since, doc"),
    same("forms", "workspace, id, revision, doc"),
    same("event_names", "n, workspace_number, name"),
    same("product_events", "n, contact, name, at, id, properties"),
    same("event_unique_ids", "event, workspace_number, received_at, unique_id"),
    same("deleted_contacts", "n, workspace_number, id, merge_target"),
    same(
        "segments",
        "n, workspace_number, id, revision, removed, kind, status, read_mask, calculation, \
         calculated_at, created_at, updated_at, name, filter",
    ),
    table(
        "segment_sizes",
        "segment, shard, members",
        Rows::Select("SELECT n AS segment, 0 AS shard, members FROM segments"),
    ),
    same("segment_members", "segment, contact"),
    same("changed_contacts", "contact, read_mask, mark, depth"),
    same("changed_addresses", "n, workspace_number, channel, address, looked_through, at, depth"),
    same("campaign_audience", "campaign, kind, due_at, piece, places"),
    same("campaign_addresses", "n, campaign, digests"),
    same("campaign_left_out", "campaign, piece, entries"),
    same("campaigns", "n, workspace, id, revision, removed, status, doc, archived_at"),
    same("holds", "workspace, kind, id, holder_kind, holder"),
    same("campaign_progress", "campaign, revision, doc"),
    same("campaign_waiting", "campaign, track, due_at, message"),
    same("campaign_engagements", "campaign, seen, message"),
    same("contact_sends", "contact, channel, revision, times, last_at"),
    table(
        "campaign_counts",
        "campaign, variant, shard, waiting, sending, deferred, sent, delivered, bounces, complaints, failed, \
         cancelled, skipped_suppressed, skipped_no_consent, skipped_frequency_cap, unique_opens, unique_clicks, \
         unsubscribes, unique_machine_opens, opens, clicks, machine_opens",
        Rows::Select(
            "SELECT campaign, variant, 0 AS shard, waiting, sending, deferred, sent, delivered, bounces, \
         complaints, failed, cancelled, skipped_suppressed, skipped_no_consent, skipped_frequency_cap, \
         unique_opens, unique_clicks, unsubscribes, unique_machine_opens, opens, clicks, \
         machine_opens FROM campaign_counts",
        ),
    ),
    table(
        "activity",
        "workspace, quarter, channel, source, shard, sent, delivered, bounces, complaints, unique_opens, \
         unique_clicks, unsubscribes, opens, clicks",
        Rows::Select(
            "SELECT workspace, quarter, channel, source, 0 AS shard, sent, delivered, bounces, complaints, \
         unique_opens, unique_clicks, unsubscribes, opens, clicks FROM activity",
        ),
    ),
    table(
        "site_activity",
        "workspace, quarter, site, shard, accepted, delivered, deferred, bounced_hard, bounced_soft, \
         complaints, opened_human, over_tls, within_1, within_2, within_5, within_10, within_30, within_60, \
         within_300, within_900, within_3600, within_14400, within_86400, later",
        Rows::Select(
            "SELECT workspace, quarter, site, 0 AS shard, accepted, delivered, deferred, bounced_hard, \
         bounced_soft, complaints, opened_human, over_tls, within_1, within_2, within_5, within_10, within_30, \
         within_60, within_300, within_900, within_3600, within_14400, within_86400, later FROM site_activity",
        ),
    ),
    table(
        "campaign_activity",
        "campaign, quarter, shard, sent, delivered, bounces, complaints, unique_opens, unique_clicks, \
         unsubscribes, opens, clicks",
        Rows::Select(
            "SELECT campaign, quarter, 0 AS shard, sent, delivered, bounces, complaints, unique_opens, \
         unique_clicks, unsubscribes, opens, clicks FROM campaign_activity",
        ),
    ),
    same("campaign_links", "campaign, variant, link, url"),
    table(
        "campaign_link_counts",
        "campaign, variant, link, shard, clicks, unique_clicks",
        Rows::Select("SELECT campaign, variant, link, 0 AS shard, clicks, unique_clicks FROM campaign_links"),
    ),
    table(
        "product_event_activity",
        "name, quarter, shard, events",
        Rows::Select("SELECT name, quarter, 0 AS shard, events FROM product_event_activity"),
    ),
    table(
        "automation_run_counts",
        "automation, status, shard, runs",
        Rows::Select("SELECT automation, status, 0 AS shard, runs FROM automation_run_counts"),
    ),
    table(
        "automation_version_counts",
        "automation, version, shard, runs",
        Rows::Select("SELECT automation, version, 0 AS shard, runs FROM automation_versions"),
    ),
    table(
        "automation_node_counts",
        "node, shard, entered, waiting",
        Rows::Select("SELECT n AS node, 0 AS shard, entered, waiting FROM automation_nodes"),
    ),
    table(
        "automation_branches",
        "node, branch, shard, taken",
        Rows::Select("SELECT node, branch, 0 AS shard, taken FROM automation_branches"),
    ),
    same("automations", "n, workspace, id, revision, removed, status, version, entry, lanes, doc"),
    same("automation_versions", "automation, version, interest, doc"),
    same("automation_nodes", "n, automation, id"),
    same(
        "automation_runs",
        "automation, contact, id, revision, version, entered_at, arrived, due_at, ended_at, \
         node, status, depth, steps, entry_event, held, exit_reason, untold",
    ),
    same("automation_run_inputs", "automation, run, event, key"),
    same("automation_run_steps", "automation, run, revision, steps"),
    same("automation_messages", "message, automation, run, node"),
    same("automation_entries", "automation, contact, key, revision, entered_at"),
    same("automation_date_fires", "automation, contact, due_at, taken"),
    same("automation_deleted_contacts", "workspace, id, n"),
    same("automation_notes", "automation, n, contact, at, event, shard, kind, depth, may_enter, what"),
];

/// Tables, each with the column that a sequence numbers: the sequence continues after the largest number.
pub(crate) const NUMBERED: &[(&str, &str)] = &[
    ("workspace_numbers", "number"),
    ("sign_in_failures", "n"),
    ("tags", "n"),
    ("lists", "n"),
    ("event_names", "n"),
    ("product_events", "n"),
    ("segments", "n"),
    ("changed_addresses", "n"),
    ("campaign_addresses", "n"),
    ("campaigns", "n"),
    ("automations", "n"),
    ("automation_nodes", "n"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rusqlite::Connection;

    use super::*;

    /// Tables and columns of SQLite that are not moved, each with the reason. A star stands for all columns of a table.
    const LEFT_OUT: &[(&str, &str, &str)] = &[
        ("lanes", "*", "PostgreSQL has no rows of lanes: a lane is what its jobs name"),
        ("health_probe", "*", "it is written to find out whether the disk takes anything"),
        ("refinery_schema_history", "*", "each schema has its own history"),
        ("automation_note_number", "*", "the sequence of notes is set to it"),
        ("workspace_numbers", "newest", "the sequence of contacts is set to the largest"),
        ("messages", "content", "contents are found by their message"),
        ("message_contents", "n", "contents are found by their message"),
        ("message_attempts", "n", "attempts are found by their message"),
        ("captures", "n", "captures are found by their message"),
        ("replies", "n", "replies are found by their key"),
        ("template_versions", "n", "versions are found by their template"),
        ("image_bytes", "n", "octets are found by their image"),
        ("contact_texts", "*", "contacts are indexed where they come"),
        ("changed_contact_texts", "*", "contacts are indexed where they come"),
        ("message_texts", "*", "messages are indexed where they come"),
    ];

    /// Tables of PostgreSQL that no table of SQLite fills, and columns that have a default, each with the reason.
    const FILLED_OTHERWISE: &[(&str, &str, &str)] = &[
        ("refinery_schema_history", "*", "each schema has its own history"),
        ("schema_compatibility", "*", "the schema says it"),
        ("nodes", "*", "processes put themselves there"),
        ("writers", "*", "processes put themselves there"),
        ("takings", "*", "processes tell each other of limits"),
        ("places", "*", "the schema has all of them; `latest` is set"),
        ("log_era", "*", "the schema has the first era"),
        ("message_states", "*", "by the triggers of messages"),
        ("marked_deliveries", "*", "by the triggers of deliveries"),
        ("changed_contact_texts", "*", "by the triggers of contacts"),
        ("contact_texts", "*", "contacts are indexed as the triggers note them"),
        ("message_texts", "*", "messages that no block has are indexed"),
        ("jobs", "once", "a lane that has a job needs no second one, whatever added it"),
        ("jobs", "woken_at", "lanes are woken by bringing their jobs forward"),
        ("automation_notes", "tx", "the transaction that moves them wrote them"),
        ("contact_sends", "week", "PostgreSQL computes it"),
        ("blobs", "bucket", "bytes are moved into the database"),
    ];

    fn is_named(list: &[(&str, &str, &str)], table: &str, column: &str) -> bool {
        list.iter().any(|(t, c, _)| *t == table && (*c == "*" || *c == column))
    }

    fn words(sql: &str) -> BTreeSet<&str> {
        sql.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
    }

    /// The tables of a database and their columns.
    fn columns(connection: &Connection) -> Vec<(String, String)> {
        let sql = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table'";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn every_column_of_sqlite_is_moved_or_left_out_for_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("messaging.db");
        drop(crate::SqliteStore::open(crate::SqliteOptions::new(&path)).unwrap());
        let all = columns(&Connection::open(&path).unwrap());
        assert!(all.len() > 300, "{}", all.len());
        let selects: Vec<String> = TABLES.iter().filter_map(Table::select).collect();
        for (table, column) in &all {
            let from = format!("FROM {table}");
            let is_read = selects.iter().any(|select| {
                select.lines().any(|line| line.trim_end().ends_with(&from) || line.contains(&format!("{from} ")))
                    && words(select).contains(column.as_str())
            });
            let is_left_out = is_named(LEFT_OUT, table, column);
            assert!(is_read != is_left_out, "{table}.{column}: moved {is_read}, left out {is_left_out}");
        }
        for (table, column, _) in LEFT_OUT {
            let is_there = all.iter().any(|(t, c)| t == table && (*column == "*" || c == column));
            assert!(is_there, "{table}.{column} is not there");
        }
    }

    #[test]
    fn every_column_of_postgres_is_filled() {
        let schema: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres"))
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        let mut checked = 0;
        for definition in
            schema.iter().flat_map(|text| text.split("\nCREATE ").skip(usize::from(!text.starts_with("CREATE"))))
        {
            let definition = definition.trim_start_matches("CREATE ").trim_start_matches("UNLOGGED ");
            let Some(rest) = definition.strip_prefix("TABLE ") else { continue };
            let (name, rest) = rest.split_once(" (").unwrap();
            let body = rest.split_once("\n)").unwrap().0;
            let moved = TABLES.iter().find(|table| table.name == name);
            let moved: BTreeSet<&str> = moved.map(|table| words(table.columns)).unwrap_or_default();
            for line in body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--")) {
                let column = line.split(' ').next().unwrap();
                if column == "PRIMARY" || column == "UNIQUE" {
                    continue;
                }
                let is_otherwise = is_named(FILLED_OTHERWISE, name, column);
                assert!(moved.contains(column) != is_otherwise, "{name}.{column}: filled otherwise {is_otherwise}");
                checked += 1;
            }
        }
        assert!(checked > 300, "{checked}");
    }
}
