//! Answers as tables for people: a listing row by row, a resource member by member.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::explanation;
use super::importance;
use super::node::Node;
use super::record::record;

/// On a terminal a cell of a page is cut after this many characters; ids have 30.
const MAX_CELL: usize = 40;

/// The space between columns.
const GAP: usize = 2;

/// Indentation of the sentence below a row.
const INDENT: &str = "    ";

/// A listing as a table: one header, whatever number of pages follows it.
///
/// On a terminal columns without room or content are left out, and below a row stands the sentence that explains it.
/// Elsewhere nothing is cut, and every member has its column, so that a script finds it in the same place each time.
pub(super) struct Sheet {
    /// The width of the terminal, if it is one.
    width: Option<usize>,
    /// Columns without values are left out, as they are on a terminal.
    leaves_out_empty: bool,
    /// The columns with their widths; none before the first page.
    columns: Vec<(String, usize)>,
    /// Members that have values and no column.
    hidden: Vec<String>,
}

impl Sheet {
    /// A listing for a terminal of a width, or for a file or pipe.
    pub(super) const fn new(width: Option<usize>) -> Self {
        Self { width, leaves_out_empty: width.is_some(), columns: Vec::new(), hidden: Vec::new() }
    }

    /// Rows inside of a resource: they are as wide as they have to be.
    const fn nested() -> Self {
        Self { width: None, leaves_out_empty: true, columns: Vec::new(), hidden: Vec::new() }
    }

    /// True once the header was printed.
    pub(super) const fn is_begun(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The members that have values and no column.
    pub(super) fn hidden(&self) -> &[String] {
        &self.hidden
    }

    /// A page of rows; the first brings the header.
    pub(super) fn add(&mut self, rows: &[Node]) -> String {
        let rows: Vec<_> = rows.iter().map(explanation::in_columns).collect();
        let mut text = String::new();
        let names = self.names(&rows);
        if self.is_begun() {
            let is_new = |name: &String| !self.columns.iter().any(|(known, _)| known == name);
            let new: Vec<_> = names.into_iter().filter(is_new).filter(|name| !self.hidden.contains(name)).collect();
            self.hidden.extend(new);
        } else {
            self.begin(&rows, names);
            let header = self.columns.iter().map(|(name, width)| (name.to_uppercase(), *width));
            text.push_str(&line(header));
        }
        for row in &rows {
            text.push_str(&line(self.columns.iter().map(|(name, width)| (self.cell(row, name, *width), *width))));
            if let Some(width) = self.width {
                text.push_str(&sentence_below(row, width));
            }
        }
        text
    }

    /// The members of rows that have a column if there is room.
    fn names(&self, rows: &[Node]) -> Vec<String> {
        let mut names = columns(rows, self.leaves_out_empty);
        if self.width.is_some() {
            // They stand below the rows.
            names.retain(|name| !explanation::COLUMNS.contains(&name.as_str()));
        }
        names
    }

    /// Chooses the columns by the first page.
    fn begin(&mut self, rows: &[Node], names: Vec<String>) {
        let widest = |name: &String| {
            let cells = rows.iter().map(|row| self.cell(row, name, MAX_CELL).width()).max().unwrap_or(0);
            cells.max(name.width())
        };
        let widths: Vec<_> = names.iter().map(widest).collect();
        let is_shown = fitting(rows, &names, &widths, self.width);
        for ((name, width), is_shown) in names.into_iter().zip(widths).zip(is_shown) {
            if is_shown {
                self.columns.push((name, width));
            } else {
                self.hidden.push(name);
            }
        }
    }

    /// A cell; on a terminal it is cut where its column ends.
    fn cell(&self, row: &Node, name: &str, width: usize) -> String {
        let line = row.member(name).map_or_else(|| "-".to_owned(), Node::line);
        if self.width.is_some() && line.width() > width { cut(&line, width) } else { line }
    }
}

/// The beginning of a text that has no room, with a mark at its end.
fn cut(text: &str, width: usize) -> String {
    let mut used = 1;
    let kept = text.chars().take_while(|letter| {
        used += letter.width().unwrap_or(0);
        used <= width
    });
    kept.chain(['…']).collect()
}

/// The sentence that explains a row, if it says more than the row does, wrapped to the terminal.
fn sentence_below(row: &Node, width: usize) -> String {
    let Some(sentence) = explanation::more_than_status(row) else { return String::new() };
    wrapped(&sentence, width.saturating_sub(INDENT.len()).max(20))
        .iter()
        .map(|line| format!("{INDENT}{line}\n"))
        .collect()
}

/// A text in lines that are not wider than this, but for words that are.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Cells on one line, without spaces at its end.
fn line(cells: impl Iterator<Item = (String, usize)>) -> String {
    let mut line = String::new();
    for (cell, width) in cells {
        let space = width.saturating_sub(cell.width()) + GAP;
        line.push_str(&cell);
        line.extend(std::iter::repeat_n(' ', space));
    }
    format!("{}\n", line.trim_end())
}

/// Which columns have room: the least important go first, one always stays.
fn fitting(rows: &[Node], names: &[String], widths: &[usize], width: Option<usize>) -> Vec<bool> {
    let mut is_shown = vec![true; names.len()];
    let Some(width) = width else { return is_shown };
    let ranks = importance::ranks(rows, names);
    // The gap after the last column may go over the edge.
    let mut used = widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP);
    let mut by_rank: Vec<_> = (0..names.len()).collect();
    by_rank.sort_by_key(|at| ranks[*at]);
    for least in by_rank.into_iter().skip(1).rev() {
        if used <= width {
            break;
        }
        is_shown[least] = false;
        used -= widths[least] + GAP;
    }
    is_shown
}

/// A resource as pairs; lists of objects follow as separate tables, DNS records as blocks.
pub(super) fn resource(members: &[(String, Node)], width: Option<usize>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width.and_then(|width| u16::try_from(width).ok()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    let is_pair = |value: &Node| value.rows().is_none() && record(value, "").is_none();
    for (name, value) in members.iter().filter(|(_, value)| is_pair(value)) {
        table.add_row([name.clone(), named(name, value).block()]);
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
        for line in Sheet::nested().add(rows).lines() {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Of a whole resource within another one its name alone, which is the member that is called as it is: a sending domain
/// is its `domain`.
fn named<'a>(name: &str, value: &'a Node) -> &'a Node {
    match (value.member("id"), value.member(name)) {
        (Some(Node::Text(_)), Some(text @ Node::Text(_))) => text,
        _ => value,
    }
}

/// The members of the rows in their order, perhaps without those that are empty in every row.
fn columns(rows: &[Node], leaves_out_empty: bool) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        let Node::Object(members) = row else { continue };
        for (name, value) in members {
            if (!leaves_out_empty || value.line() != "-") && !columns.contains(name) {
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
