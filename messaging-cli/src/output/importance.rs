//! Which columns of a listing say most, for terminals that are too narrow for all of them.

use super::node::Node;

/// Members that identify a row; the first that is there counts.
const NAMES: &[&str] = &["id", "message_id", "import_id", "user_id", "campaign_id"];

/// The columns of each kind of id, the most important first. The others follow, in the order of the API.
pub(super) const ORDERS: &[(&str, &[&str])] = &[
    ("msg_", &["message_id", "status", "to", "subject", "channel", "created_at", "outcome"]),
    ("con_", &["id", "email", "phone", "external_id", "tags", "suppressed_channels", "created_at", "locale"]),
    ("cmp_", &["id", "campaign_id", "name", "status", "recipients", "waiting", "sent", "scheduled_at", "pause_reason"]),
    ("aut_", &["id", "name", "status", "version", "trigger", "updated_at"]),
    ("run_", &["id", "status", "node_id", "contact_id", "entered_at", "exit_reason", "ended_at"]),
    ("tpl_", &["id", "name", "channel", "version", "subject", "updated_at"]),
    ("seg_", &["id", "name", "size", "status", "kind", "calculated_at"]),
    ("lst_", &["id", "name", "contact_count"]),
    ("frm_", &["id", "name", "list_ids", "url"]),
    ("fld_", &["id", "key", "type", "label"]),
    ("sup_", &["id", "address", "channel", "reason", "created_at", "source"]),
    ("dom_", &["id", "domain", "status", "verified_at", "last_checked_at"]),
    ("whk_", &["id", "url", "status", "events"]),
    ("dlv_", &["id", "status", "event_type", "response_status", "error", "attempts", "next_attempt_at"]),
    ("evt_", &["id", "type", "timestamp"]),
    ("imp_", &["import_id", "status", "filename", "created", "updated", "failed", "total_rows", "failure_reason"]),
    ("key_", &["id", "name", "scopes", "revoked_at", "expires_at", "last_used_at", "prefix"]),
    ("wsp_", &["id", "name", "timezone", "created_at"]),
    ("usr_", &["user_id", "id", "email", "role", "name"]),
    ("fac_", &["id", "kind", "name", "confirmed_at", "last_used_at"]),
    ("ses_", &["id", "current", "last_used_at", "ip", "user_agent"]),
];

/// The place of each column by importance: 0 says most.
pub(super) fn ranks(rows: &[Node], columns: &[String]) -> Vec<usize> {
    let id = rows.first().and_then(|row| NAMES.iter().find_map(|name| row.member(name)));
    let order = match id {
        Some(Node::Text(id)) => ORDERS.iter().find(|(prefix, _)| id.starts_with(prefix)).map(|(_, order)| *order),
        _ => None,
    };
    let order = order.unwrap_or_default();
    let rank =
        |(at, column): (usize, &String)| order.iter().position(|named| named == column).unwrap_or(order.len() + at);
    columns.iter().enumerate().map(rank).collect()
}
