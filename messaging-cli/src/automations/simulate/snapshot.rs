//! Snapshot files: the answer of a simulation is written to a file, or compared with it and shown as a line diff.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::answer::Answer;
use crate::failure::Failure;
use crate::files;

/// Unchanged lines that the diff shows before and after a change.
const CONTEXT_LINES: usize = 3;
/// Most lines of a diff that are printed.
const MAX_DIFF_LINES: usize = 200;
/// Largest table of the line diff, in pairs of lines. In a larger one all lines between the common beginning and the
/// common end count as changed.
const MAX_PAIRS: usize = 4_000_000;

/// Compares an answer with the snapshot file, or writes the file with `update`. Returns the failure to report if they
/// differ or there is no file.
pub(super) fn compare(path: &Path, answer: &Answer<'_>, update: bool) -> Result<Option<Failure>, Failure> {
    // Sorted, because serde_json keeps the order of insertion if another crate of the build enables that.
    let mut now = serde_json::to_value(answer).map_err(|error| files::unwritable(path, error))?;
    now.sort_all_objects();
    let text = format!("{now:#}\n");
    if update {
        fs::write(path, text).map_err(|error| files::unwritable(path, error))?;
        return Ok(None);
    }
    if !path.is_file() {
        let rule = format!("the snapshot {} does not exist; --update writes it", path.display());
        return Ok(Some(Failure::Unsuccessful(rule)));
    }
    let before = files::read(path)?;
    let kept: Value = serde_json::from_str(&before).map_err(|error| files::unreadable(path, error))?;
    if kept == now {
        return Ok(None);
    }
    let shown = diff(&before, &text);
    let rule = format!(
        "the answer differs from the snapshot {} (- snapshot, + now):\n{shown}--update writes the new answer",
        path.display()
    );
    Ok(Some(Failure::Unsuccessful(rule)))
}

/// A line of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffLine<'a> {
    Unchanged(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// The diff of two texts by lines, with [`CONTEXT_LINES`] around each change; empty when they are equal.
fn diff(before: &str, after: &str) -> String {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let lines = diff_lines(&before, &after);
    let changed: Vec<_> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !matches!(line, DiffLine::Unchanged(_)))
        .map(|(at, _)| at)
        .collect();
    let mut text = String::new();
    let (mut last, mut shown) = (None, 0);
    for (at, line) in lines.iter().enumerate() {
        let next = changed.partition_point(|changed| *changed + CONTEXT_LINES < at);
        let is_near = changed.get(next).is_some_and(|changed| changed.abs_diff(at) <= CONTEXT_LINES);
        if !is_near {
            continue;
        }
        if shown == MAX_DIFF_LINES {
            text.push_str("  …\n");
            break;
        }
        if last.is_some_and(|last: usize| last + 1 < at) {
            text.push_str("  …\n");
        }
        let (mark, line) = match line {
            DiffLine::Unchanged(line) => (' ', line),
            DiffLine::Removed(line) => ('-', line),
            DiffLine::Added(line) => ('+', line),
        };
        let _ = writeln!(text, "{mark} {line}");
        last = Some(at);
        shown += 1;
    }
    text
}

/// All lines of both texts as unchanged, removed or added, by the longest common subsequence of lines.
fn diff_lines<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<DiffLine<'a>> {
    let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (before, after, mut lines) = {
        let same = before[..head].iter().map(|line| DiffLine::Unchanged(line));
        (&before[head..], &after[head..], same.collect::<Vec<_>>())
    };
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let (middle, rest) = (&before[..before.len() - tail], &before[before.len() - tail..]);
    let new = &after[..after.len() - tail];
    if middle.len().saturating_mul(new.len()) > MAX_PAIRS {
        lines.extend(middle.iter().map(|line| DiffLine::Removed(line)));
        lines.extend(new.iter().map(|line| DiffLine::Added(line)));
    } else {
        // `common[i * width + j]`: length of the longest common subsequence of `middle[i..]` and `new[j..]`.
        let width = new.len() + 1;
        let mut common = vec![0_u32; (middle.len() + 1) * width];
        for (i, one) in middle.iter().enumerate().rev() {
            for (j, other) in new.iter().enumerate().rev() {
                common[i * width + j] = if one == other {
                    common[(i + 1) * width + j + 1] + 1
                } else {
                    common[(i + 1) * width + j].max(common[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < middle.len() || j < new.len() {
            if i < middle.len() && j < new.len() && middle[i] == new[j] {
                lines.push(DiffLine::Unchanged(middle[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == new.len() || i < middle.len() && common[(i + 1) * width + j] >= common[i * width + j + 1] {
                lines.push(DiffLine::Removed(middle[i]));
                i += 1;
            } else {
                lines.push(DiffLine::Added(new[j]));
                j += 1;
            }
        }
    }
    lines.extend(rest.iter().map(|line| DiffLine::Unchanged(line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_removed_and_added_lines_with_their_context() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        assert_eq!(diff(before, before), "");
        assert_eq!(diff(before, &before.replace('5', "x")), "  2\n  3\n  4\n- 5\n+ x\n  6\n  7\n  8\n");
        assert_eq!(diff(before, &before.replace('9', "9\n10")), "  7\n  8\n  9\n+ 10\n");
        let both = before.replacen('1', "x", 1).replace('9', "y");
        assert_eq!(diff(before, &both), "- 1\n+ x\n  2\n  3\n  4\n  …\n  6\n  7\n  8\n- 9\n+ y\n");
        assert_eq!(diff("", "a"), "+ a\n");
    }
}
