//! Minimal XML reader for the answers of Route 53: elements by name, without attributes.

/// Returns the contents of the elements of a name, outermost ones, in order; damaged XML ends the list.
pub(super) fn elements<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((content, after)) = next(rest, name) {
        found.push(content);
        rest = after;
    }
    found
}

/// Returns the content of the first element of a name.
pub(super) fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    next(text, name).map(|(content, _)| content)
}

/// Returns the text of the first element of a name, with its references resolved.
pub(super) fn text_of(text: &str, name: &str) -> Option<String> {
    element(text, name).map(|content| resolved(content.trim()))
}

/// Returns the first element of a name, and the text after it. Elements of one name are not nested here.
fn next<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(&format!("<{name}"))?;
        let head = &text[at + 1 + name.len()..];
        from = at + 1;
        // Not the beginning of a longer name.
        if !head.starts_with(['>', ' ', '/', '\t', '\r', '\n']) {
            continue;
        }
        let end = head.find('>')?;
        let body = &head[end + 1..];
        if head[..end].ends_with('/') {
            return Some(("", body));
        }
        let close = format!("</{name}>");
        let length = body.find(&close)?;
        return Some((&body[..length], &body[length + close.len()..]));
    }
}

/// Escapes a text as the content of an element.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn resolved(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#34;", "\"");
    plain.replace("&apos;", "'").replace("&#39;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_name() {
        let text =
            r#"<?xml version="1.0"?><A xmlns="x"><B><C>1 &amp; &quot;2&quot;</C></B><Bs/><B><C>3</C></B><D/></A>"#;
        let all: Vec<_> = elements(text, "B").iter().map(|one| text_of(one, "C").unwrap()).collect();
        assert_eq!(all, ["1 & \"2\"", "3"]);
        assert_eq!(element(text, "D"), Some(""));
        assert_eq!(element(text, "E"), None);
        assert_eq!(elements("<B>never ends", "B"), Vec::<&str>::new());
        assert_eq!(resolved(&escaped(r#"a<b>&"c""#)), r#"a<b>&"c""#);
    }
}
