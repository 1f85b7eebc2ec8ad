//! Guesses the type of a column from its cells.

use messaging_core::domain::audience::custom_field::FieldType;
use serde_json::Value;

/// Most digits of a number. A longer one is an identifier, which a 64-bit float would round.
const MAX_DIGITS: usize = 15;

/// The guess from the cells so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Guess {
    /// Types that all cells so far can have; `None` before the first cell that is not empty.
    possible: Option<Vec<FieldType>>,
}

impl Guess {
    /// Takes a cell into account; an empty one is ignored.
    pub(super) fn add(&mut self, cell: &str) {
        let text = cell.trim();
        if text.is_empty() {
            return;
        }
        let possible = self
            .possible
            .get_or_insert_with(|| vec![FieldType::Number, FieldType::Boolean, FieldType::Date, FieldType::Datetime]);
        possible.retain(|kind| can_be(text, *kind));
    }

    /// The type of the column: string when the cells have different types or all are empty.
    pub(super) fn kind(&self) -> FieldType {
        self.possible.as_ref().and_then(|possible| possible.first()).copied().unwrap_or(FieldType::String)
    }
}

fn can_be(text: &str, kind: FieldType) -> bool {
    match kind {
        FieldType::Number => is_number(text),
        FieldType::Boolean => ["true", "false", "yes", "no"].iter().any(|word| word.eq_ignore_ascii_case(text)),
        FieldType::Date | FieldType::Datetime => kind.fault(&Value::String(text.to_owned())).is_none(),
        FieldType::String | FieldType::StringArray => true,
    }
}

/// Returns true if a text is a number that would be printed the same again: not a postal code such as `01234`, a phone
/// number, or a version such as `1.10`, which would become `1.1`.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "5"));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    let is_shown_otherwise = has_leading_zero || fraction.ends_with('0') || text == "-0";
    are_digits(whole) && are_digits(fraction) && !is_shown_otherwise && digits.len() <= MAX_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_type_that_all_of_its_cells_have() {
        for (cells, expected) in [
            (&["17", "-1.5", "", "0"][..], FieldType::Number),
            (&["01234", "99999"], FieldType::String),
            (&["+491701234567"], FieldType::String),
            (&["1234567890123456"], FieldType::String),
            (&["yes", "No"], FieldType::Boolean),
            (&["yes", "1"], FieldType::String),
            (&["2026-01-31", "2026-02-01"], FieldType::Date),
            (&["2026-01-31", "soon"], FieldType::String),
            (&["2026-01-31T09:15:00Z"], FieldType::Datetime),
            (&["", " "], FieldType::String),
            (&["1.", "2"], FieldType::String),
            (&["1.9", "1.10"], FieldType::String),
            (&["1.0"], FieldType::String),
            (&["-0"], FieldType::String),
            (&["0", "10", "-0.5"], FieldType::Number),
        ] {
            let mut guess = Guess::default();
            for cell in cells {
                guess.add(cell);
            }
            assert_eq!(guess.kind(), expected, "{cells:?}");
        }
    }
}
