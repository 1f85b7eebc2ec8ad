//! The `DKIM-Signature` field: a list of tags (RFC 6376 section 3.2), folded.

/// Column after which a line is folded if possible (RFC 5322 section 2.1.1 says 78).
const FOLD_AT: usize = 76;

/// Characters of base64 on a line of the signature, after ` b=`.
const BASE64_LINE: usize = 72;

/// Writes tags, and folds between them and within lists.
pub(super) struct TagList {
    text: String,
    column: usize,
}

impl TagList {
    /// Begins a field without tags.
    pub(super) fn new(name: &str) -> Self {
        let mut text = String::with_capacity(640);
        text.push_str(name);
        text.push(':');
        Self { column: text.len(), text }
    }

    /// Adds a tag whose value is kept in one piece.
    pub(super) fn tag(&mut self, name: &str, value: &str) {
        self.space(name.len() + value.len() + 2);
        self.push(name);
        self.push("=");
        self.push(value);
        self.push(";");
    }

    /// Adds a tag whose values are separated by colons; between them it may be folded.
    pub(super) fn list(&mut self, name: &str, values: &[&str]) {
        self.space(name.len() + 2 + values.first().map_or(0, |value| value.len()));
        self.push(name);
        self.push("=");
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.push(":");
                if self.column + value.len() + 1 > FOLD_AT {
                    self.fold();
                }
            }
            self.push(value);
        }
        self.push(";");
    }

    /// Adds a last tag on a line of its own, whose value is written later, and returns the field.
    pub(super) fn open(mut self, name: &str) -> String {
        self.fold();
        self.push(name);
        self.push("=");
        self.text
    }

    /// Separates a tag from the one before: by a space, or by a fold if `length` more octets do not fit the line.
    fn space(&mut self, length: usize) {
        if self.column + 1 + length > FOLD_AT {
            self.fold();
        } else {
            self.push(" ");
        }
    }

    fn fold(&mut self) {
        self.text.push_str("\r\n ");
        self.column = 1;
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.len();
    }
}

/// Writes the value of the last tag.
pub(super) fn write_folded(out: &mut Vec<u8>, base64: &str) {
    for (index, line) in base64.as_bytes().chunks(BASE64_LINE).enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\r\n ");
        }
        out.extend_from_slice(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_folded_where_they_part() {
        let mut tags = TagList::new("DKIM-Signature");
        tags.tag("v", "1");
        tags.tag("d", &"d".repeat(70));
        tags.tag("s", "s");
        tags.list("h", &["from"; 20]);
        let field = tags.open("b");
        let lines: Vec<_> = field.split("\r\n").collect();
        assert_eq!(
            lines,
            [
                "DKIM-Signature: v=1;".to_owned(),
                format!(" d={};", "d".repeat(70)),
                " s=s; h=from:from:from:from:from:from:from:from:from:from:from:from:from:".to_owned(),
                " from:from:from:from:from:from:from;".to_owned(),
                " b=".to_owned(),
            ]
        );
        assert!(lines.iter().all(|line| line.len() <= FOLD_AT));
    }

    #[test]
    fn base64_is_folded() {
        let mut out = Vec::new();
        write_folded(&mut out, &"A".repeat(100));
        assert_eq!(String::from_utf8(out).unwrap(), format!("{}\r\n {}", "A".repeat(72), "A".repeat(28)));
    }
}
