//! Doc comments say something alone: what an item is, not a question about it.

use std::fs;
use std::path::Path;

use crate::layers::{files, root};

/// A clause that begins with one of these and is shorter than this many words says nothing without the file around it.
const QUESTIONS: [&str; 7] = ["Who", "What", "Where", "Why", "How", "Whether", "Whose"];
const FEWEST_WORDS: usize = 6;

/// The paragraphs of doc comments of a source text, each with the number of its first line.
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

fn is_headless(paragraph: &str) -> bool {
    let mut words = paragraph.split_whitespace();
    let first = words.next().unwrap_or_default().trim_end_matches(['.', '?', ':', ',']);
    QUESTIONS.contains(&first) && words.count() + 1 < FEWEST_WORDS
}

#[test]
fn doc_comments_are_understood_alone() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let mut headless = Vec::new();
    for path in all.iter().filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(path).expect("a source file");
        let of_file = paragraphs(&text).into_iter().filter(|(_, paragraph)| is_headless(paragraph));
        headless.extend(of_file.map(|(line, paragraph)| format!("{path}:{line}: {paragraph}")));
    }
    assert!(
        headless.is_empty(),
        "say what the item is, as \"Reason stored with the suppression.\":\n{}",
        headless.join("\n")
    );
}

#[test]
fn a_question_of_a_few_words_is_found() {
    let text = "/// Why.\nstruct A;\n\n/// How many messages wait for this\n/// destination.\n/// Whether it is.\nfn b() {}\n//! A text.\n";
    let found: Vec<_> = paragraphs(text).into_iter().filter(|(_, one)| is_headless(one)).collect();
    assert_eq!(found, [(1, "Why.".to_owned())]);
}
