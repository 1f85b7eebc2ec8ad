//! Style of doc comments: each paragraph names or describes its item and does not begin with a question word.

use std::fs;
use std::path::Path;

use crate::layers::{files, root};

/// Words that no paragraph of a doc comment begins with: a clause that they introduce has no subject of its own.
const QUESTIONS: [&str; 7] = ["Who", "What", "Where", "Why", "How", "Whether", "Whose"];

/// Advice for an author whose comment is refused.
const ADVICE: &str = "\
begin with what the item is or does:
  a type, field, constant or module: a noun phrase, as \"Reason stored with the suppression.\"
  a bool: \"True if the workspace is being deleted.\"
  a function: a verb, as \"Parses a header field.\" or \"Returns true if the key may send.\"";

/// Returns the paragraphs of doc comments of a source text, each with the number of its first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let words = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim);
        match words {
            Some(words) if !words.is_empty() && is_open => {
                if let Some((_, paragraph)) = found.last_mut() {
                    paragraph.push(' ');
                    paragraph.push_str(words);
                }
            }
            Some(words) if !words.is_empty() => found.push((number + 1, words.to_owned())),
            _ => {}
        }
        is_open = words.is_some_and(|words| !words.is_empty());
    }
    found
}

/// Returns true if a paragraph begins with one of [`QUESTIONS`].
fn is_question(paragraph: &str) -> bool {
    let first = paragraph.split(|letter: char| !letter.is_alphabetic()).next();
    first.is_some_and(|first| QUESTIONS.contains(&first))
}

#[test]
fn no_doc_comment_begins_with_a_question_word() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let mut questions = Vec::new();
    for path in all.iter().filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(path).expect("a source file");
        let of_file = paragraphs(&text).into_iter().filter(|(_, paragraph)| is_question(paragraph));
        questions.extend(of_file.map(|(line, paragraph)| format!("{path}:{line}: {paragraph}")));
    }
    assert!(questions.is_empty(), "{ADVICE}\n{}", questions.join("\n"));
}

#[test]
fn a_question_is_found_at_the_beginning_of_a_paragraph() {
    let text = [
        "//! A text.",
        "//!",
        "//! What's in it.",
        "",
        "/// Why.",
        "struct A;",
        "",
        "/// Number of messages that wait for this destination:",
        "/// How many is checked later.",
        "fn b() {}",
        "",
        "    /// Whether the message waits for a destination",
        "    /// that is closed.",
        "    c: bool,",
        "/// However long it is.",
        "// Who knows.",
    ];
    let found: Vec<_> = paragraphs(&text.join("\n")).into_iter().filter(|(_, one)| is_question(one)).collect();
    let expected =
        [(3, "What's in it."), (5, "Why."), (12, "Whether the message waits for a destination that is closed.")];
    assert_eq!(found, expected.map(|(line, paragraph)| (line, paragraph.to_owned())));
}
