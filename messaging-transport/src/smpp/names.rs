//! Spellings of message ids. The same number may be hexadecimal in the answer to a submission and decimal in the
//! receipt, or have leading zeros in one of them.

/// Maximum number of digits of a number that is spelled otherwise: a 64-bit one in decimal.
const MAX_DIGITS: usize = 20;

/// Returns true if an id is certainly hexadecimal: all of its characters are hexadecimal digits, some of them letters.
pub(super) fn has_letters(name: &str) -> bool {
    is_number(name) && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Returns other ids that may mean the same, at most sixty. Digits alone are taken for the decimal spelling of a
/// hexadecimal number only if that has letters, and never with `is_hexadecimal`: without a letter the two cannot be
/// told apart, and the id must not match another message.
pub(super) fn other_spellings(name: &str, is_hexadecimal: bool) -> Vec<String> {
    let digits = name.trim_start_matches('0');
    if !is_number(name) || digits.is_empty() {
        return Vec::new();
    }
    let in_hexadecimal = |value: u64| [format!("{value:x}"), format!("{value:X}")];
    let mut spellings = Vec::new();
    if has_letters(name) {
        spellings.extend([digits.to_ascii_lowercase(), digits.to_ascii_uppercase()]);
        spellings.extend(u64::from_str_radix(digits, 16).ok().map(|value| value.to_string()));
    } else {
        spellings.push(digits.to_owned());
        let value = digits.parse().ok().filter(|_| !is_hexadecimal);
        spellings.extend(value.map(in_hexadecimal).into_iter().flatten().filter(|one| has_letters(one)));
    }
    let with_zeros = |digits: String| (digits.len()..=MAX_DIGITS).map(move |width| format!("{digits:0>width$}"));
    spellings.into_iter().flat_map(with_zeros).filter(|one| one != name).collect()
}

fn is_number(name: &str) -> bool {
    (1..=MAX_DIGITS).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_by_its_spellings() {
        for (one, other) in [
            ("1F3A", "7994"),
            ("1f3a", "7994"),
            ("00001F3A", "0000007994"),
            ("0000007994", "7994"),
            ("ABC", "abc"),
            ("0abc", "ABC"),
            ("ffffffffffffffff", "18446744073709551615"),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                assert!(other_spellings(one, false).iter().any(|found| found == other), "{one} {other}");
            }
        }
        assert!(!other_spellings("7994", true).iter().any(|found| found.contains(['f', 'F'])), "it is hexadecimal");
        assert!(other_spellings("7994", true).contains(&"007994".to_owned()));
    }

    #[test]
    fn what_may_mean_another_message_is_no_spelling() {
        let (long, sure) = ("1".repeat(MAX_DIGITS + 1), "f".repeat(MAX_DIGITS));
        for name in ["", "0", "000", "SM1", "12-3", "+12", "é", &long] {
            assert_eq!(other_spellings(name, false), Vec::<String>::new(), "{name}");
        }
        // 4096 is 1000 in hexadecimal digits, which may be a decimal name as well.
        let found = other_spellings("4096", false);
        assert!(found.iter().all(|one| one.trim_start_matches('0') == "4096"), "{found:?}");
        for name in ["1000", "abcdef", "12345678", &sure] {
            let found = other_spellings(name, false);
            assert!(found.len() <= 60 && !found.contains(&name.to_owned()), "{name}: {found:?}");
        }
    }
}
