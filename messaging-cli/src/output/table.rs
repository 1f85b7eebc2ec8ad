//! Answers as tables for people: a page row by row, a resource member by member.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

use super::importance;
use super::node::Node;
use super::record::record;

/// On a terminal a cell of a page is cut after this many characters; ids have 30.
const MAX_CELL: usize = 40;

/// The space between columns.
const GAP: usize = 2;

/// A page as a table, and the names of the columns that had no room. Without a width nothing is cut.
pub(super) fn page(rows: &[Node], width: Option<usize>) -> (String, Vec<String>) {
    let columns = columns(rows);
    let cell = |row: &Node, column: &str| {
        let line = row.member(column).map_or_else(|| "-".to_owned(), Node::line);
        if width.is_some() && line.chars().count() > MAX_CELL {
            line.chars().take(MAX_CELL - 1).chain(['…']).collect()
        } else {
            line
        }
    };
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let needed = |column: &String| {
        let widest = rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
        widest.max(column.chars().count()) + GAP
    };
    let (shown, hidden) = fitting(rows, columns, width, needed);
    table.set_header(shown.iter().map(|column| column.to_uppercase()));
    for row in rows {
        table.add_row(shown.iter().map(|column| cell(row, column)));
    }
    (trimmed(&mut table), hidden)
}

/// The columns that have room, and those that do not: the least important go first, one always stays.
fn fitting(
    rows: &[Node],
    columns: Vec<String>,
    width: Option<usize>,
    needed: impl Fn(&String) -> usize,
) -> (Vec<String>, Vec<String>) {
    let Some(width) = width else { return (columns, Vec::new()) };
    let ranks = importance::ranks(rows, &columns);
    let widths: Vec<_> = columns.iter().map(needed).collect();
    let mut is_shown = vec![true; columns.len()];
    // The gap after the last column may go over the edge.
    let mut used: usize = widths.iter().sum::<usize>().saturating_sub(GAP);
    let mut by_rank: Vec<_> = (0..columns.len()).collect();
    by_rank.sort_by_key(|at| ranks[*at]);
    for least in by_rank.into_iter().skip(1).rev() {
        if used <= width {
            break;
        }
        is_shown[least] = false;
        used -= widths[least];
    }
    let (shown, hidden): (Vec<_>, Vec<_>) = columns.into_iter().zip(is_shown).partition(|(_, is_shown)| *is_shown);
    let names = |columns: Vec<(String, bool)>| columns.into_iter().map(|(name, _)| name).collect();
    (names(shown), names(hidden))
}

/// A resource as pairs; lists of objects follow as tables of their own, DNS records as blocks.
pub(super) fn resource(members: &[(String, Node)], width: Option<usize>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width.and_then(|width| u16::try_from(width).ok()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    let is_pair = |value: &Node| value.rows().is_none() && record(value, "").is_none();
    for (name, value) in members.iter().filter(|(_, value)| is_pair(value)) {
        table.add_row([name.clone(), value.block()]);
    }
    let mut text = trimmed(&mut table);
    for (name, value) in members {
        if is_pair(value) {
            continue;
        }
        let rows = value.rows().unwrap_or(std::slice::from_ref(value));
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(name);
        text.push('\n');
        if let Some(records) = rows.iter().map(|row| record(row, "  ")).collect::<Option<String>>() {
            text.push_str(&records);
            continue;
        }
        for line in page(rows, None).0.lines() {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The members of the rows in their order, without those that are empty in every row.
fn columns(rows: &[Node]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        let Node::Object(members) = row else { continue };
        for (name, value) in members {
            if value.line() != "-" && !columns.contains(name) {
                columns.push(name.clone());
            }
        }
    }
    // A member that is empty in the first row and not in a later one still stands where the API has it.
    if let Some(Node::Object(first)) = rows.first() {
        columns.sort_by_key(|column| first.iter().position(|(name, _)| name == column).unwrap_or(usize::MAX));
    }
    columns
}

/// The table with a line feed after each line and no spaces at their ends.
fn trimmed(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
