//! The extent of a JSON text, counted before anything is built from it.
//!
//! Contract section 1.3, check 8. The memory of a parsed body follows from its values rather than from its bytes: an
//! object of one member takes hundreds of bytes and is written with six.

use memchr::memchr2;

/// Maximum number of values of a body: each object, list, text, number, boolean and null is one.
pub const MAX_VALUES: usize = 100_000;

/// Maximum nesting depth of a body. The outermost object is level one, its members level two.
pub const MAX_LEVELS: usize = 128;

/// Counts the values of a JSON text; `None` if there are too many, or too many levels. Invalid JSON is counted like the
/// JSON that it resembles.
pub fn count_values(text: &[u8]) -> Option<usize> {
    let (mut values, mut level, mut is_opened, mut at) = (1, 1_usize, false, 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        if byte.is_ascii_whitespace() {
            continue;
        }
        let is_closing = matches!(byte, b'}' | b']');
        // The first value of an object or a list; a comma announces each further one.
        values += usize::from(std::mem::take(&mut is_opened) && !is_closing);
        match byte {
            b'"' => at = after_string(text, at),
            b',' => values += 1,
            b'{' | b'[' => {
                level += 1;
                is_opened = true;
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
        if values > MAX_VALUES || level > MAX_LEVELS {
            return None;
        }
    }
    Some(values)
}

/// Returns the offset after the closing quotation mark of a string whose content begins at `at`.
fn after_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        // The escaped character.
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: usize) {
        assert_eq!(count_values(text.as_bytes()), Some(expected), "{text}");
    }

    #[test]
    fn each_value_counts_once_and_names_do_not() {
        check("{}", 1);
        check("[ ]", 1);
        check(r#"{"a":1}"#, 2);
        check(r#"{"":0,"":0}"#, 3);
        check(r#"{"a":[],"b":{"c":[1, "x", null]}}"#, 7);
        check(r#"{"a,[{":"\",[{\\","b":"]}"}"#, 3);
        check(r#""\"#, 1);
        check("", 1);
        check("]]]}", 1);
    }

    #[test]
    fn more_than_a_body_may_have_is_told() {
        let list = |length: usize| format!("[{}]", vec!["0"; length].join(","));
        check(&list(MAX_VALUES - 1), MAX_VALUES);
        assert_eq!(count_values(list(MAX_VALUES).as_bytes()), None);
        let nested = |lists: usize| format!("{}0{}", "[".repeat(lists), "]".repeat(lists));
        check(&nested(MAX_LEVELS - 1), MAX_LEVELS);
        assert_eq!(count_values(nested(MAX_LEVELS).as_bytes()), None);
        // The deepest text that is let through is one that the parser reads.
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_LEVELS - 1)).is_ok());
    }
}
