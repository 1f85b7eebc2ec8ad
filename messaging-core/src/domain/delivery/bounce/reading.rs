//! Text of a refusal as words: without case, accents, addresses, hosts and codes, which say nothing or mislead.

use std::borrow::Cow;
use std::ops::Range;

use crate::domain::mail::public_suffix::known_suffix;

/// Word that stands for an address, which may belong to anybody.
const SOMEBODY: &str = "@";

/// Letters with accents, and the plain letters that they are read as.
const FOLDED: &[(&str, &str)] = &[
    ("àáâãäåāąă", "a"),
    ("çćč", "c"),
    ("ďđ", "d"),
    ("èéêëēęě", "e"),
    ("ğ", "g"),
    ("ìíîïīı", "i"),
    ("ł", "l"),
    ("ñńň", "n"),
    ("òóôõöøő", "o"),
    ("ř", "r"),
    ("śšş", "s"),
    ("ß", "ss"),
    ("ťţ", "t"),
    ("ùúûüūůű", "u"),
    ("ýÿ", "y"),
    ("źżž", "z"),
    ("æ", "ae"),
    ("œ", "oe"),
    ("ё", "е"),
    ("\u{2018}\u{2019}`\u{b4}", "'"),
];

/// Last labels of host names that have no public suffix.
const LOCAL_SUFFIXES: [&str; 9] =
    ["local", "lan", "internal", "localdomain", "corp", "test", "example", "invalid", "home"];

/// Names of block lists, the only meaning that a host name can have.
const BLOCK_LISTS: [&str; 10] =
    ["spamhaus", "spamcop", "dnsbl", "rbl", "barracudacentral", "sorbs", "uceprotect", "abusix", "surbl", "openspf"];

/// The words of a text, clause by clause.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reading {
    clauses: Vec<Vec<String>>,
}

impl Reading {
    pub(super) fn of(text: &str) -> Self {
        let mut clauses = vec![Vec::new()];
        for token in without_dialog(text).split_whitespace() {
            // A dot, not an ellipsis, at the end of a word that has more than one letter.
            let is_end = token.ends_with([';', '!', '?', '。']) || (token.ends_with('.') && !token.ends_with(".."));
            if let Some(clause) = clauses.last_mut() {
                read_token(token, clause);
            }
            if is_end {
                clauses.push(Vec::new());
            }
        }
        clauses.retain(|clause| !clause.is_empty());
        Self { clauses }
    }

    /// Returns true if the text has no words.
    pub(super) fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// Returns true if one of the phrases, which commas separate, is in the text.
    pub(super) fn says(&self, phrases: &str) -> bool {
        self.clauses.iter().any(|clause| split(phrases).any(|phrase| places(clause, phrase).next().is_some()))
    }

    /// Returns true if a clause has one of the phrases `of` and one of `what`, with at most `gap` words between.
    pub(super) fn says_of(&self, of: &str, what: &str, gap: usize) -> bool {
        self.clauses.iter().any(|clause| {
            let subjects: Vec<_> = split(of).flat_map(|phrase| places(clause, phrase)).collect();
            !subjects.is_empty()
                && split(what).flat_map(|phrase| places(clause, phrase)).any(|said| {
                    subjects.iter().any(|subject| {
                        let between = subject.start.saturating_sub(said.end) + said.start.saturating_sub(subject.end);
                        between <= gap
                    })
                })
        })
    }
}

/// Beginnings and ends of quotations of the dialog, in the words of Postfix, Exim, and servers that show a transcript.
const DIALOG: &[(&str, &str)] = &[
    ("(in reply to ", ")"),
    ("in reply to ", "command"),
    ("in response to ", "command"),
    ("after rcpt to:<", ">"),
    ("after mail from:<", ": "),
    ("after end of data", ":"),
    ("after pipelined ", ": "),
    (">>> rcpt to:", "<<<"),
    (">>> mail from:", "<<<"),
    // In front of a server's words about an address.
    ("unknown address error", "error"),
];

/// Maximum length of a quotation, in octets: an address has at most 254.
const MAX_QUOTATION: usize = 320;

/// Removes quotations of the dialog, which name commands and addresses and say nothing about them.
fn without_dialog(text: &str) -> Cow<'_, str> {
    let lower = text.to_ascii_lowercase();
    if !DIALOG.iter().any(|(opening, _)| lower.contains(opening)) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((start, opening, end)) = DIALOG
        .iter()
        .filter_map(|(opening, end)| Some((at + lower[at..].find(opening)?, *opening, *end)))
        .min_by_key(|(start, ..)| *start)
    {
        kept.push_str(&text[at..start]);
        kept.push(' ');
        let inside = if opening.ends_with(end) { start + opening.len() - end.len() } else { start + opening.len() };
        at = match lower[inside..].find(end) {
            Some(length) if length <= MAX_QUOTATION => inside + length + end.len(),
            _ => start + opening.len(),
        };
    }
    kept.push_str(&text[at..]);
    Cow::Owned(kept)
}

fn split(phrases: &str) -> impl Iterator<Item = &str> {
    phrases.split(',').map(str::trim)
}

/// Returns the places of a phrase in a clause. A star at the end or the beginning of one of its words stands for
/// anything; languages without spaces have it at both.
fn places<'a>(clause: &'a [String], phrase: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let length = phrase.split(' ').count();
    clause
        .windows(length)
        .enumerate()
        .filter(move |(_, words)| words.iter().zip(phrase.split(' ')).all(|(word, pattern)| fits(word, pattern)))
        .map(move |(start, _)| start..start + length)
}

fn fits(word: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => word == pattern,
        (None, Some(start)) => word.starts_with(start),
        (Some(end), None) => word.ends_with(end),
        (Some(rest), Some(_)) => word.contains(rest.trim_end_matches('*')),
    }
}

/// Appends the words of a token, which is the text between two spaces.
fn read_token(token: &str, words: &mut Vec<String>) {
    if token.contains('@') && !token.starts_with('@') {
        words.push(SOMEBODY.to_owned());
        // `<a@b.co>:unknown`, `(a@b.co:unknown)`
        if let Some((_, after)) = token.rsplit_once('@').and_then(|(_, domain)| domain.split_once(['>', ':', ',', ';']))
        {
            read_token(after, words);
        }
        return;
    }
    if token.contains("://") || token.starts_with("www.") {
        words.extend(block_list_in(&token.to_lowercase()));
        return;
    }
    let folded = fold(token);
    for piece in folded.split([
        ':', '=', ',', ';', '(', ')', '[', ']', '<', '>', '"', '/', '|', '{', '}', '!', '?', '#', '。', '，', '：',
    ]) {
        let piece = piece.trim_matches(['.', '\'', '-', '*']);
        let lower = piece.to_lowercase();
        if is_host(&lower) {
            words.extend(block_list_in(&lower));
            continue;
        }
        for word in piece.split(|c: char| !(c.is_alphanumeric() || c == '\'')) {
            read_word(word, words);
        }
    }
}

/// Returns the block list that a host or page belongs to.
fn block_list_in(name: &str) -> Option<String> {
    let mut labels = name.split(|c: char| !c.is_ascii_alphanumeric());
    labels
        .find_map(|label| {
            // Short names are part of words that mean something else.
            BLOCK_LISTS.iter().find(|list| label == **list || (list.len() > 4 && label.contains(**list)))
        })
        .map(|list| (*list).to_owned())
}

/// Appends a word, or the words that it is made of: `RecipNotFound`, `doesn't`.
fn read_word(word: &str, words: &mut Vec<String>) {
    let mut start = 0;
    let mut was_lower = false;
    for (at, c) in word.char_indices() {
        if was_lower && c.is_uppercase() {
            read_simple(&word[start..at].to_lowercase(), words);
            start = at;
        }
        was_lower = c.is_lowercase();
    }
    read_simple(&word[start..].to_lowercase(), words);
}

fn read_simple(word: &str, words: &mut Vec<String>) {
    let mut push = |word: &str| {
        if !word.is_empty() && !word.bytes().all(|byte| byte.is_ascii_digit()) {
            words.push(word.to_owned());
        }
    };
    match word {
        "cannot" | "can't" | "cant" => ["can", "not"].into_iter().for_each(push),
        "won't" => ["will", "not"].into_iter().for_each(push),
        "doesnt" => ["does", "not"].into_iter().for_each(push),
        _ => {
            if let Some(verb) = word.strip_suffix("n't") {
                push(verb);
                push("not");
            } else if let Some(owner) = word.strip_suffix("'s") {
                push(owner);
                if ["it", "that", "there", "he", "she", "who"].contains(&owner) {
                    push("is");
                }
            } else {
                word.split('\'').for_each(push);
            }
        }
    }
    // `e-mail`, and an IP address is not somebody's address.
    if let [.., before, last] = &words[..] {
        match (before.as_str(), last.as_str()) {
            ("e", "mail" | "mails") => merge(words, "email"),
            ("ip", "address" | "addresses") => merge(words, "ip"),
            // Nobody's name.
            ("domain", "name" | "names") => merge(words, "domain"),
            ("host", "name" | "names") => merge(words, "hostname"),
            _ => {}
        }
    }
}

fn merge(words: &mut Vec<String>, into: &str) {
    words.truncate(words.len() - 2);
    words.push(into.to_owned());
}

fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        // Without its case a letter is in the table; whether a word has one inside matters for ASCII only.
        let lower = c.to_lowercase();
        for c in lower {
            match FOLDED.iter().find(|(letters, _)| letters.contains(c)) {
                Some((_, folded)) => out.push_str(folded),
                None => out.push(c),
            }
        }
    }
    out
}

/// Returns true if a word is the name of a host, or of a file. A text may lack the space after a full stop, so the last
/// label must be a known suffix.
fn is_host(word: &str) -> bool {
    let Some((before, last)) = word.rsplit_once('.') else { return false };
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    word.split('.').all(is_label)
        && (last.bytes().all(|byte| byte.is_ascii_digit())
            || LOCAL_SUFFIXES.contains(&last)
            || (before.len() > 1 && known_suffix(word).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let reading = Reading::of(text);
        let shown: Vec<_> = reading.clauses.iter().map(|words| words.join(" ")).collect();
        assert_eq!(shown.join(" | "), expected, "{text}");
    }

    #[test]
    fn texts_are_read_as_words() {
        check("", "");
        check("5.1.1 <ann@example.com>... User unknown", "@ user unknown");
        check("User unknown. Try again; please!", "user unknown | try again | please");
        check("This user doesn't have a yahoo.com account", "this user does not have a account");
        check("can't won't isn't users' recipient's", "can not will not is not users recipient");
        check("RESOLVER.ADR.RecipNotFound; not found", "resolver adr recip not found | not found");
        check("mail to <a@b.co>:unknown (a@b.co:blocked)", "mail to @ unknown @ blocked");
        check("over-quota non_existent e-mail IP address", "over quota non existent email ip");
        check("Blocked by zen.spamhaus.org, see https://marbles.co/unknown-user", "blocked by spamhaus see");
        check("mx1.example.com [192.0.2.1] said", "said");
        check("user not found.See the log", "user not found see the log");
        check("Le destinataire n’existe pas à l'adresse", "le destinataire n existe pas a l adresse");
        check("Postfach ungültig, Straße", "postfach ungultig strasse");
        check("Skrzynka nie istnieje: pełna", "skrzynka nie istnieje pelna");
        check("该用户不存在。", "该用户不存在");
        check("Domain name not found", "domain not found");
    }

    #[test]
    fn quotations_of_the_dialog_are_not_read() {
        check("no (in reply to RCPT TO command)", "no");
        check("no (in reply to MAIL FROM command) today", "no today");
        check("error after RCPT TO:<a@b.co>: host mx.b.co [192.0.2.9]: 550 no", "error host no");
        check("error after MAIL FROM:<a@b.co> SIZE=1871: host mx.b.co: 550 no", "error host no");
        check("(in reply to nothing that ends", "nothing that ends");
        check(">>> MAIL From:<a@b.co> <<< 550 Access denied", "access denied");
    }

    #[test]
    fn phrases_are_whole_words() {
        let reading = Reading::of("The mailbox is full. No such user");
        assert!(reading.says("is full") && reading.says("mail*") && reading.says("*box is"));
        assert!(!reading.says("mail") && !reading.says("full no") && reading.says("x, *such*"));
    }

    #[test]
    fn who_and_what_are_near_each_other() {
        let reading = Reading::of("The user that you want to reach is unknown. It was found");
        assert!(reading.says_of("user", "unknown", 6));
        assert!(!reading.says_of("user", "unknown", 5));
        assert!(reading.says_of("unknown", "user", 6));
        assert!(!reading.says_of("user", "found", 20));
        assert!(Reading::of("用户不存在").says_of("*用户*", "*不存在*", 0));
    }
}
