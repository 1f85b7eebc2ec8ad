//! Lists of tags, `v=DKIM1; k=rsa; p=MIIB…`: DKIM key records and DMARC policies.
//!
//! RFC 6376 section 3.2, whose syntax RFC 7489 section 6.4 borrows.

/// Maximum number of tags of one list; records in use have fewer than ten.
const MAX_TAGS: usize = 64;

/// Parses the tags of a list in order, names as written, values without the white space around them.
///
/// `None` if the text is no tag list, repeats a name or has more than 64 tags.
pub fn parse(text: &str) -> Option<Vec<(&str, &str)>> {
    let text = text.trim_matches(is_white).strip_suffix(';').unwrap_or(text);
    let mut tags: Vec<(&str, &str)> = Vec::new();
    for part in text.split(';') {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (name.trim_matches(is_white), value.trim_matches(is_white));
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_value = value.chars().all(|c| c.is_ascii_graphic() || is_white(c));
        if !is_name || !is_value || tags.len() == MAX_TAGS || tags.iter().any(|(known, _)| *known == name) {
            return None;
        }
        tags.push((name, value));
    }
    Some(tags)
}

/// Returns the value of the tag with this name, which is case-sensitive.
pub fn value<'a>(tags: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    tags.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Returns a value without any white space.
pub(crate) fn without_white(value: &str) -> String {
    value.chars().filter(|c| !is_white(*c)).collect()
}

/// Returns true for folding white space.
fn is_white(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_with_any_white_space() {
        let tags = parse(" v=DKIM1;k = rsa ;\r\n\tp=AB CD== ; ").unwrap();
        assert_eq!(tags, [("v", "DKIM1"), ("k", "rsa"), ("p", "AB CD==")]);
        assert_eq!(value(&tags, "p").map(without_white).as_deref(), Some("ABCD=="));
        assert_eq!(value(&tags, "P"), None, "names have a case");
        assert_eq!(parse("p=").unwrap(), [("p", "")]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let many = "a=1;".to_owned() + &(0..64).map(|n| format!("b{n}=1;")).collect::<String>();
        for bad in ["", ";", "v", "v=1;;p=2", "=1", "1a=2", "v=1; v=2", "a b=1", "v=\u{e4}", &many] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
