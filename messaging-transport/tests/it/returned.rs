//! Whole mails as they are returned, in the forms that providers and programs document, and the reports that are read
//! from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use messaging_core::domain::delivery::bounce::classify;
use messaging_core::domain::mail::report::{Action, Report};
use messaging_transport::inbound::report::{MAX_READ, read};
use proptest::prelude::*;

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples/returned")
}

fn letters() -> BTreeMap<String, String> {
    let files = fs::read_dir(samples()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "eml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// `failed ann@example.com 550 5.1.1 InvalidRecipient ; delayed …`, `complaint abuse ann@example.com`, `other`
fn shown(report: &Report) -> String {
    let list = |addresses: &[String]| if addresses.is_empty() { "-".to_owned() } else { addresses.join(",") };
    match report {
        Report::Delivery(reports) => {
            let shown = reports.iter().map(|report| {
                let action = match report.action {
                    Action::Failed => "failed",
                    Action::Delayed => "delayed",
                    Action::Delivered | Action::Relayed | Action::Expanded => "delivered",
                };
                let mut line = format!("{action} {}", list(&report.addresses));
                let code = report.response.code.map(|code| code.to_string());
                for part in [code.as_deref(), report.response.enhanced.as_deref()] {
                    write!(line, " {}", part.unwrap_or("-")).unwrap();
                }
                if report.action == Action::Failed {
                    write!(line, " {:?}", classify(&report.response)).unwrap();
                }
                line
            });
            shown.collect::<Vec<_>>().join(" ; ")
        }
        Report::Complaint { feedback_type, recipients } => format!("complaint {feedback_type} {}", list(recipients)),
        Report::Other => "other".to_owned(),
    }
}

#[test]
fn every_letter_says_what_it_says() {
    let expected = fs::read_to_string(samples().join("expected.txt")).unwrap();
    let found: String = letters()
        .iter()
        .map(|(name, letter)| format!("{name}: {}\n", shown(&read(letter.replace('\n', "\r\n").as_bytes()))))
        .collect();
    let differences: Vec<_> = expected
        .lines()
        .zip(found.lines())
        .filter(|(expected, found)| expected != found)
        .map(|(expected, found)| format!("{expected}\n    {found}"))
        .collect();
    assert!(differences.is_empty(), "expected, and found:\n{}", differences.join("\n"));
    assert_eq!(expected.lines().count(), found.lines().count());
    assert!(found.lines().count() >= 60);
}

#[test]
fn how_lines_end_does_not_matter() {
    for (name, letter) in letters() {
        let crlf = letter.replace('\n', "\r\n");
        assert_eq!(shown(&read(letter.as_bytes())), shown(&read(crlf.as_bytes())), "{name}");
    }
}

#[test]
fn what_is_read_is_bounded() {
    for (name, letter) in letters() {
        // The form may stand behind the part that is read; then nothing is invented.
        let Some((header, body)) = letter.split_once("\n\n") else { continue };
        let long = format!("{header}\n\n{}\n{body}", "x".repeat(MAX_READ));
        let _ = read(long.as_bytes());
        let Report::Delivery(reports) = read(letter.as_bytes()) else { continue };
        for report in reports {
            assert!(report.response.text.chars().count() <= 512, "{name}");
            assert!(!report.response.text.contains(|c: char| c.is_control()), "{name}");
        }
    }
}

/// Letters that try to take long: many levels, many parts, many of everything that is looked for.
#[test]
fn no_letter_takes_long() {
    let fill = |text: &str| text.repeat(MAX_READ / text.len());
    let from = "From: MAILER-DAEMON@x.example\nSubject: failure notice\n";
    let multipart = "MIME-Version: 1.0\nContent-Type: multipart/report; boundary=b\n";
    let nested = "--b\nContent-Type: multipart/mixed; boundary=b\n\n";
    let started = std::time::Instant::now();
    for letter in [
        fill("a"),
        fill("\n"),
        fill("A: b\n"),
        fill("A:\n b\n"),
        format!("{from}\n{}", fill("a@b.co: ")),
        format!("{from}\n{}", fill("<a@b.co>:\n550 5.1.1\n\n")),
        format!("{from}\n{}", fill("@")),
        format!("{from}\n{}", fill("5.1.1.")),
        format!("{from}\n{}", fill("550 ")),
        format!("{from}\n{}", fill("(expanded from ")),
        format!("{from}Content-Type: text/html\n\n{}", fill("<p>")),
        format!("{from}Content-Type: text/html\n\n{}", fill("<a href='")),
        format!("{from}X-Failed-Recipients: {}\n\n", fill("a@b.co,")),
        format!("{from}{multipart}\n{}", fill("--b\n\n")),
        format!("{from}{multipart}\n{}", fill(nested)),
        format!(
            "{from}{multipart}\n--b\nContent-Type: message/delivery-status\n\n{}",
            fill("Final-Recipient: a@b.co\nStatus: 5.1.1\n")
        ),
        format!(
            "{from}{multipart}\n--b\nContent-Type: message/delivery-status\n\n{}",
            fill("\nFinal-Recipient: a@b.co\nStatus: 5.1.1\n")
        ),
        format!(
            "{from}{multipart}\n--b\nContent-Type: message/delivery-status\n\n{}",
            fill("Original-Recipient: utf-8; \\x{")
        ),
        format!("From: x\nSubject: {}\n\nx", fill("=?utf-8?Q?=41?= ")),
        format!("{from}Content-Type: text/plain; {}\n\nx", fill("a=\"\\\";")),
    ] {
        let _ = read(letter.as_bytes());
    }
    // A square of the length would be minutes.
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

proptest! {
    #[test]
    fn no_octets_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
    }

    /// Letters that are nearly right: a sample with a piece cut out, repeated, or put elsewhere.
    #[test]
    fn no_broken_letter_makes_it_panic(
        which in 0_usize..60, from in 0_usize..4000, length in 0_usize..600, to in 0_usize..4000,
        noise in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let letter = letters().into_values().nth(which).unwrap().into_bytes();
        let from = from % (letter.len() + 1);
        let piece = letter[from..(from + length).min(letter.len())].to_vec();
        let mut broken = letter;
        broken.drain(from..from + piece.len());
        let to = to % (broken.len() + 1);
        broken.splice(to..to, piece.iter().chain(&noise).chain(&piece).copied());
        let _ = read(&broken);
    }
}
