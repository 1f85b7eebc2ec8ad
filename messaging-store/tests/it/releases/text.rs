//! A database as SQL text, the same whenever it is written.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tokio_postgres::Client;

/// In the place of the time at which a migration was applied.
const APPLIED_ON: &str = "2026-01-01T00:00:00Z";

/// Tables of SQLite whose rows are of the process that wrote last.
const OF_THE_PROCESS: &[&str] = &["health_probe", "installation"];

/// Tables of PostgreSQL whose rows are of processes, come with the schema, or are written by triggers.
const LEFT_OUT: &[&str] = &[
    "changed_contact_texts",
    "log_era",
    "marked_deliveries",
    "message_states",
    "nodes",
    "places",
    "schema_compatibility",
    "takings",
    "writers",
];

/// The history of migrations, which no migration makes.
const HISTORY: &str = "CREATE TABLE refinery_schema_history (
    version int4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255));\n";

/// The statements that make a database on SQLite again.
pub(super) fn of_sqlite(connection: &Connection) -> String {
    let strings = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut text = String::new();
    for sql in
        strings("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
    {
        writeln!(text, "{sql};").unwrap();
    }
    for table in
        strings("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    {
        if OF_THE_PROCESS.contains(&table.as_str()) {
            continue;
        }
        let columns = strings(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let values: Vec<_> = columns
            .iter()
            .map(|column| match column.as_str() {
                "applied_on" => format!("quote('{APPLIED_ON}')"),
                _ => format!("quote(\"{column}\")"),
            })
            .collect();
        let rows = strings(&format!("SELECT {} FROM {table} ORDER BY 1", values.join(" || ', ' || ")));
        insert(&mut text, &table, &columns, "", &rows);
    }
    text
}

/// The statements that make a database on PostgreSQL again.
pub(super) async fn of_postgres(client: &Client) -> String {
    let strings = async |sql: &str| -> Vec<String> {
        client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    let mut text = HISTORY.to_owned() + &migrations();
    for table in strings("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename").await {
        if LEFT_OUT.contains(&table.as_str()) {
            continue;
        }
        let columns = strings(&format!(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0
                 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
        ))
        .await;
        let values: Vec<_> = columns
            .iter()
            .map(|column| match column.as_str() {
                "applied_on" => format!("quote_literal('{APPLIED_ON}')"),
                // Of the connection that wrote.
                "shard" => "'0'".to_owned(),
                _ => format!("quote_nullable(\"{column}\"::text)"),
            })
            .collect();
        let rows = strings(&format!("SELECT {} FROM {table} ORDER BY 1", values.join(" || ', ' || "))).await;
        insert(&mut text, &table, &columns, " OVERRIDING SYSTEM VALUE", &rows);
    }
    let sequences = "SELECT format('SELECT setval(%L, %s);', sequencename, last_value) FROM pg_sequences
        WHERE schemaname = 'public' AND last_value IS NOT NULL AND sequencename <> 'terms' ORDER BY sequencename";
    for sequence in strings(sequences).await {
        writeln!(text, "{sequence}").unwrap();
    }
    text
}

fn insert(text: &mut String, table: &str, columns: &[String], overriding: &str, rows: &[String]) {
    for row in rows {
        let columns = columns.join("\", \"");
        writeln!(text, "INSERT INTO {table} (\"{columns}\"){overriding} VALUES ({row});").unwrap();
    }
}

/// The migrations of PostgreSQL, in their order: what the schema of this version is made by.
fn migrations() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}
