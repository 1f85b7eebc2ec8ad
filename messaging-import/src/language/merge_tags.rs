//! Merge tags of Mailchimp: `*|FNAME|*`, `*|IF:PLAN=pro|* … *|ELSE:|* … *|END:IF|*`.

use super::{Expression, Fault, Known, MAX_DEPTH, Translated, line_of, push_literal, quoted, shown};

/// Tags for fields of a contact, each with the attribute that has the value here.
const FIELDS: [(&str, &str); 5] = [
    ("FNAME", "first_name"),
    ("LNAME", "last_name"),
    ("BIRTHDAY", "birthday"),
    ("ADDRESS", "address"),
    ("PHONE", "phone_number"),
];

/// Tags that are left out: the preview text has its own field here, and the badge is Mailchimp's.
const NOTHING: [&str; 3] = ["MC_PREVIEW_TEXT", "REWARDS", "REWARDS_TEXT"];

/// Note on a template that has the tag `*|MC:SUBJECT|*`.
const SUBJECT_NOTE: &str = "*|MC:SUBJECT|* is empty: the export has no subject, give the template one";

/// Translates a template.
pub(crate) fn translate(source: &str, known: Known<'_>) -> Result<Translated, Fault> {
    let mut out = Translated::default();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(start) = source[at..].find("*|").map(|found| at + found) {
        let fault = |what: String| Fault { line: line_of(source, start), what };
        push_literal(&mut out.text, &source[at..start]);
        let end = source[start..].find("|*").ok_or_else(|| fault("*| is not closed".to_owned()))?;
        at = start + end + 2;
        let tag = source[start + 2..start + end].trim();
        let done = translate_tag(tag, known, &mut out, &mut depth);
        done.map_err(|why| fault(format!("{}: {why}", shown(&source[start..at]))))?;
    }
    push_literal(&mut out.text, &source[at..]);
    if depth > 0 {
        return Err(Fault { line: line_of(source, source.len()), what: "*|END:IF|* is missing".to_owned() });
    }
    Ok(out)
}

fn translate_tag(tag: &str, known: Known<'_>, out: &mut Translated, depth: &mut usize) -> Result<(), String> {
    if let Some(given) = known.given.get(tag) {
        push_literal(&mut out.text, given);
        return Ok(());
    }
    let (word, rest) = tag.split_once(':').unwrap_or((tag, ""));
    let code = match (word, rest) {
        ("IF" | "IFNOT", _) if *depth >= MAX_DEPTH => return Err("is nested too deep".to_owned()),
        ("IF", rest) => {
            *depth += 1;
            format!("{{% if {} %}}", condition(rest, known)?)
        }
        ("IFNOT", rest) => {
            *depth += 1;
            format!("{{% if not ({}) %}}", condition(rest, known)?)
        }
        ("ELSEIF" | "ELSE" | "END", _) if *depth == 0 => return Err("belongs to nothing".to_owned()),
        ("ELSEIF", rest) => format!("{{% elif {} %}}", condition(rest, known)?),
        ("ELSE", "") => "{% else %}".to_owned(),
        ("END", "IF") => {
            *depth -= 1;
            "{% endif %}".to_owned()
        }
        ("MC", "SUBJECT") => {
            out.notes.insert(SUBJECT_NOTE);
            String::new()
        }
        ("LIST", "COMPANY" | "NAME") => "{{ workspace.name }}".to_owned(),
        ("TITLE" | "UPPER" | "LOWER", name) if !name.is_empty() => {
            let filter = word.to_ascii_lowercase();
            format!("{{{{ {} }}}}", field(name, known)?.through(&filter).code())
        }
        ("HTML", name) if !name.is_empty() => format!("{{{{ {} }}}}", field(name, known)?.through("safe").code()),
        (name, "") if NOTHING.contains(&name) => String::new(),
        (name, "") => format!("{{{{ {} }}}}", field(name, known)?.code()),
        _ => return Err(unknown(tag)),
    };
    out.text.push_str(&code);
    Ok(())
}

fn unknown(tag: &str) -> String {
    format!("is not understood; a text for it can be given by --set '{tag}=…'")
}

/// Returns the expression for a tag about the recipient.
fn field(name: &str, known: Known<'_>) -> Result<Expression, String> {
    let atom = |code: String| Ok(Expression::Atom(code));
    match name {
        "EMAIL" => return atom("contact.email".to_owned()),
        "UNSUB" => return atom("unsubscribe_url".to_owned()),
        name if name.contains(':') => return Err(unknown(name)),
        _ => {}
    }
    let key = FIELDS.iter().find(|(tag, _)| *tag == name).map(|(_, key)| *key);
    if let Some(key) = key {
        return atom(format!("contact.attributes.{key}"));
    }
    let key = name.to_ascii_lowercase();
    let is_known = super::is_name(&key) && known.attributes.is_none_or(|attributes| attributes.contains(&key));
    if is_known {
        atom(format!("contact.attributes.{key}"))
    } else {
        Err(format!("no column is called so; {}", unknown(name)))
    }
}

/// Returns the expression for a condition: `PLAN`, `PLAN=pro`, `PLAN!=pro`. Comparisons of numbers are not translated,
/// because a contact without a number would make the template fail.
fn condition(text: &str, known: Known<'_>) -> Result<String, String> {
    let text = text.trim();
    if NOTHING.contains(&text) {
        return Ok("false".to_owned());
    }
    if text.contains(['<', '>']) {
        return Err("numbers cannot be compared".to_owned());
    }
    let compared = text
        .split_once("!=")
        .map(|(name, value)| (name, "!=", value))
        .or_else(|| text.split_once('=').map(|(name, value)| (name, "==", value)));
    let Some((name, operator, value)) = compared else { return Ok(field(text, known)?.code()) };
    let (name, value) = (field(name.trim(), known)?.code(), value.trim().trim_matches('"'));
    Ok(format!("{name} {operator} {}", quoted(value)))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn read(source: &str) -> Result<String, String> {
        let given = BTreeMap::from([("LIST:ADDRESS".to_owned(), "Road 1".to_owned())]);
        let attributes = BTreeSet::from(["city".to_owned(), "plan".to_owned(), "age".to_owned()]);
        let read = translate(source, Known { given: &given, attributes: Some(&attributes) });
        read.map(|translated| translated.text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_people_write_becomes_jinja() {
        for (source, expected) in [
            ("Hi *|FNAME|* *|LNAME|*", "Hi {{ contact.attributes.first_name }} {{ contact.attributes.last_name }}"),
            ("*|EMAIL|* *|CITY|*", "{{ contact.email }} {{ contact.attributes.city }}"),
            ("<a href=\"*|UNSUB|*\">", "<a href=\"{{ unsubscribe_url }}\">"),
            (
                "*|TITLE:FNAME|* *|UPPER:CITY|*",
                "{{ contact.attributes.first_name | title }} {{ contact.attributes.city | upper }}",
            ),
            ("*|LIST:COMPANY|*, *|LIST:ADDRESS|*", "{{ workspace.name }}, Road 1"),
            (
                "*|IF:PLAN=pro|*a*|ELSEIF:AGE!=18|*b*|ELSE:|*c*|END:IF|*",
                "{% if contact.attributes.plan == 'pro' %}a{% elif contact.attributes.age != '18' %}b{% else %}c{% endif %}",
            ),
            ("*|IFNOT:FNAME|*a*|END:IF|*", "{% if not (contact.attributes.first_name) %}a{% endif %}"),
            (
                "<!--*|IF:MC_PREVIEW_TEXT|*--><i>*|MC_PREVIEW_TEXT|*</i><!--*|END:IF|*-->",
                "<!--{% if false %}--><i></i><!--{% endif %}-->",
            ),
            ("<title>*|MC:SUBJECT|*</title> {{ x }}", "<title></title> {{ '{{' }} x }}"),
        ] {
            assert_eq!(read(source).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (source, expected) in [
            (
                "a\n*|ARCHIVE|*",
                "line 2: *|ARCHIVE|*: no column is called so; is not understood; a text for it can be given by --set 'ARCHIVE=…'",
            ),
            (
                "*|DATE:d/m/y|*",
                "line 1: *|DATE:d/m/y|*: is not understood; a text for it can be given by --set 'DATE:d/m/y=…'",
            ),
            ("*|IF:FNAME|*", "line 1: *|END:IF|* is missing"),
            ("*|IF:AGE>=18|*", "line 1: *|IF:AGE>=18|*: numbers cannot be compared"),
            ("*|END:IF|*", "line 1: *|END:IF|*: belongs to nothing"),
            ("*|x", "line 1: *| is not closed"),
        ] {
            assert_eq!(read(source), Err(expected.to_owned()), "{source}");
        }
    }
}
