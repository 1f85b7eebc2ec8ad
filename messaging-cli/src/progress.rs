//! Progress on standard error, if that is a terminal: a bar with rounded numbers, drawn once the total is known, or a
//! counter.

use std::fmt::Write as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// The unit that a progress bar counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes of a file.
    Bytes,
    /// Rows or recipients.
    Items,
}

/// A progress bar or counter.
#[derive(Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Creates a bar that is not drawn yet.
    pub(crate) fn new(doing: &str, unit: Unit) -> Self {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {done}/{total}, {rate}/s");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let number = move |count: u64| if unit == Unit::Bytes { bytes(count) } else { items(count) };
        let style = style
            .with_key("done", move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = out.write_str(&number(state.pos()));
            })
            .with_key("total", move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = out.write_str(&number(state.len().unwrap_or_default()));
            })
            .with_key("rate", move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, saturated")]
                let _ = out.write_str(&number(state.per_sec().round().max(0.0) as u64));
            });
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
        bar.set_message(doing.to_owned());
        Self(bar)
    }

    /// Creates a counter for work whose total is unknown.
    pub(crate) fn counting(doing: &str) -> Self {
        let style = ProgressStyle::with_template("{msg} {human_pos}, {per_sec}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        bar.set_message(doing.to_owned());
        Self(bar)
    }

    /// Adds `more` to the count.
    pub(crate) fn count(&self, more: u64) {
        self.0.inc(more);
    }

    /// Sets the work done and the total. A total of 0 means that it is unknown, and changes nothing.
    pub(crate) fn set(&self, done: u64, total: u64) {
        if total == 0 {
            return;
        }
        if self.0.length().is_none() {
            self.0.set_length(total);
            self.0.reset();
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.set_length(total);
        self.0.set_position(done.min(total));
    }

    /// Adds `more` to the work done, if the total is known.
    pub(crate) fn add(&self, more: u64) {
        if let Some(total) = self.0.length() {
            self.set(self.0.position().saturating_add(more), total);
        }
    }

    /// Shows the text as the current activity.
    pub(crate) fn message(&self, doing: &str) {
        self.0.set_message(doing.to_owned());
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Formats a number with separators of thousands: `12,345`.
fn items(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes, with one decimal below 10 of a larger unit: `999 B`, `1.5 KiB`, `12 MiB`.
fn bytes(count: u64) -> String {
    let (mut unit, mut scale) = (0, 1_u64);
    while count / scale >= 1000 && unit < UNITS.len() - 1 {
        scale <<= 10;
        unit += 1;
    }
    let mut text = String::new();
    let tenths = (u128::from(count) * 10 + u128::from(scale) / 2) / u128::from(scale);
    let _ = if unit == 0 || tenths >= 100 {
        write!(text, "{}", (u128::from(count) + u128::from(scale) / 2) / u128::from(scale))
    } else {
        write!(text, "{}.{}", tenths / 10, tenths % 10)
    };
    format!("{text} {}", UNITS[unit])
}

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_round() {
        let of = |count| format!("{} {}", items(count), bytes(count));
        assert_eq!(of(0), "0 0 B");
        assert_eq!(of(999), "999 999 B");
        assert_eq!(of(1_000), "1,000 1.0 KiB");
        assert_eq!(of(1_536), "1,536 1.5 KiB");
        assert_eq!(of(12_345_678), "12,345,678 12 MiB");
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
    }

    #[test]
    fn nothing_is_drawn_before_the_total_is_known() {
        let progress = Progress::new("read", Unit::Items);
        for done in 0..3 {
            progress.set(done, 0);
            progress.add(1);
        }
        assert_eq!((progress.0.length(), progress.0.position()), (None, 0));
        progress.set(3, 10);
        progress.add(1);
        assert_eq!((progress.0.length(), progress.0.position()), (Some(10), 4));
    }
}
