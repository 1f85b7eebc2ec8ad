//! The answer of a simulation as a file that is kept, and what is different.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::answer::Answer;
use crate::failure::Failure;
use crate::files;

/// Lines that are shown around a difference.
const AROUND: usize = 3;
/// Lines of a difference that are shown.
const MAX_SHOWN: usize = 200;
/// Pairs of lines that are compared to find what stayed; of more the whole is shown as changed.
const MAX_PAIRS: usize = 4_000_000;

/// Compares an answer with the file, or writes it; what failed, if it is different.
pub(super) fn compare(path: &Path, answer: &Answer<'_>, update: bool) -> Result<Option<Failure>, Failure> {
    // Sorted: whether objects keep an order of their own depends on what else is built with this.
    let mut now = serde_json::to_value(answer).map_err(|error| files::unwritable(path, error))?;
    now.sort_all_objects();
    let text = format!("{now:#}\n");
    if update {
        fs::write(path, text).map_err(|error| files::unwritable(path, error))?;
        return Ok(None);
    }
    if !path.is_file() {
        let rule = format!("there is no snapshot {}; --update writes it", path.display());
        return Ok(Some(Failure::Unsuccessful(rule)));
    }
    let before = files::read(path)?;
    let kept: Value = serde_json::from_str(&before).map_err(|error| files::unreadable(path, error))?;
    if kept == now {
        return Ok(None);
    }
    let shown = difference(&before, &text);
    let rule = format!("the answer is not that of {} (- kept, + now):\n{shown}--update keeps it", path.display());
    Ok(Some(Failure::Unsuccessful(rule)))
}

/// A line that stayed, went or came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// What is different between two texts, by lines, with some lines around.
fn difference(before: &str, after: &str) -> String {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let lines = compared(&before, &after);
    let changed: Vec<_> =
        lines.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Same(_))).map(|(at, _)| at).collect();
    let mut text = String::new();
    let (mut last, mut shown) = (None, 0);
    for (at, line) in lines.iter().enumerate() {
        let next = changed.partition_point(|changed| *changed + AROUND < at);
        let is_near = changed.get(next).is_some_and(|changed| changed.abs_diff(at) <= AROUND);
        if !is_near {
            continue;
        }
        if shown == MAX_SHOWN {
            text.push_str("  …\n");
            break;
        }
        if last.is_some_and(|last: usize| last + 1 < at) {
            text.push_str("  …\n");
        }
        let (mark, line) = match line {
            Line::Same(line) => (' ', line),
            Line::Gone(line) => ('-', line),
            Line::New(line) => ('+', line),
        };
        let _ = writeln!(text, "{mark} {line}");
        last = Some(at);
        shown += 1;
    }
    text
}

/// Which lines stayed: the longest row of lines that is in both.
fn compared<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (before, after, mut lines) = {
        let same = before[..head].iter().map(|line| Line::Same(line));
        (&before[head..], &after[head..], same.collect::<Vec<_>>())
    };
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let (middle, rest) = (&before[..before.len() - tail], &before[before.len() - tail..]);
    let new = &after[..after.len() - tail];
    if middle.len().saturating_mul(new.len()) > MAX_PAIRS {
        lines.extend(middle.iter().map(|line| Line::Gone(line)));
        lines.extend(new.iter().map(|line| Line::New(line)));
    } else {
        // How many lines are in both from here on.
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
                lines.push(Line::Same(middle[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == new.len() || i < middle.len() && common[(i + 1) * width + j] >= common[i * width + j + 1] {
                lines.push(Line::Gone(middle[i]));
                i += 1;
            } else {
                lines.push(Line::New(new[j]));
                j += 1;
            }
        }
    }
    lines.extend(rest.iter().map(|line| Line::Same(line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_went_and_came_with_lines_around() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        assert_eq!(difference(before, before), "");
        assert_eq!(difference(before, &before.replace('5', "x")), "  2\n  3\n  4\n- 5\n+ x\n  6\n  7\n  8\n");
        assert_eq!(difference(before, &before.replace('9', "9\n10")), "  7\n  8\n  9\n+ 10\n");
        let both = before.replacen('1', "x", 1).replace('9', "y");
        assert_eq!(difference(before, &both), "- 1\n+ x\n  2\n  3\n  4\n  …\n  6\n  7\n  8\n- 9\n+ y\n");
        assert_eq!(difference("", "a"), "+ a\n");
    }
}
