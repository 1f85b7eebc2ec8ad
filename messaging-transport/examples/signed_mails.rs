//! Writes signed mails, for verifiers of others to check.
//!
//! Usage: `signed_mails DIRECTORY`. Writes `000.eml` to `199.eml`, each signed with both algorithms, and
//! `records.txt` with the name and the text of each DNS record, parted by a tab. The same every time.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::mail::dkim::{Algorithm, Signer, generate};
use messaging_core::ports::clock::Entropy;
use messaging_core::ports::transport::{AttachedFile, Email, Mailbox};
use messaging_core::time::Timestamp;
use messaging_transport::mime;

const DOMAIN: &str = "mail.acme.example";
const MAILS: usize = 200;
const SEED: u64 = 20_260_131;

const SENTENCES: &[&str] = &[
    "Your order has been shipped.",
    "Schöne Grüße aus Köln, und weiß der Kuckuck was noch!",
    "Ça a été livré à l'été, près de la forêt.",
    "¿Cuándo llegará mi pedido? ¡Mañana!",
    "Zażółć gęślą jaźń.",
    "Съешь же ещё этих мягких французских булок.",
    "ご注文ありがとうございます。",
    "您的订单已经发货。",
    "تم شحن طلبك",
    "Η παραγγελία σας έχει αποσταλεί.",
    "🎉 100 % off == 50 % of nothing 🎉",
    "From here to there",
    "=?utf-8?Q?not_encoded?=",
    "A tab\tand  two spaces ",
];

const FILENAMES: &[&str] = &[
    "invoice.pdf",
    "Übersicht 2026.pdf",
    "счёт-фактура.txt",
    "請求書.csv",
    "a \"quoted\" \\ name.bin",
    "un nom de fichier assez long pour ne pas tenir sur une seule ligne de l'en-tête.html",
];

const CONTENT_TYPES: &[&str] = &[
    "application/pdf",
    "text/plain; charset=iso-8859-1",
    "text/html; charset=utf-8",
    "application/octet-stream",
    "image/png",
    "text/csv; charset=windows-1252",
];

/// Deterministic random numbers by `SplitMix64`.
#[derive(Debug)]
struct Dice(Mutex<u64>);

impl Dice {
    fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or(0)
    }

    fn one_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a>(&self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn bytes(&self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes);
        bytes
    }
}

impl Entropy for Dice {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).ok_or("usage: signed_mails DIRECTORY")?;
    let directory = Path::new(&directory);
    let dice = Dice(Mutex::new(SEED));
    let mut records = String::new();
    let mut signers = Vec::new();
    for (selector, algorithm) in [("rsa", Algorithm::RsaSha256), ("ed25519", Algorithm::Ed25519Sha256)] {
        let key = generate(algorithm, &dice);
        writeln!(records, "{selector}._domainkey.{DOMAIN}\tv=DKIM1; k={}; p={}", algorithm.key_tag(), key.public)?;
        signers.push(Arc::new(Signer::new(DOMAIN, selector, algorithm, &key.private)?));
    }
    std::fs::write(directory.join("records.txt"), records)?;
    for number in 0..MAILS {
        let mut email = email(&dice, number)?;
        email.signers.clone_from(&signers);
        std::fs::write(directory.join(format!("{number:03}.eml")), mime::build(&email)?)?;
    }
    Ok(())
}

fn email(dice: &Dice, number: usize) -> Result<Email, Box<dyn Error>> {
    let address = |text: &str| EmailAddress::parse(text).map_err(|_| format!("{text} is no address"));
    let mut headers = Vec::new();
    if dice.one_in(2) {
        headers.push(("List-Unsubscribe".into(), unsubscribe(dice)));
        headers.push(("List-Unsubscribe-Post".into(), "List-Unsubscribe=One-Click".into()));
    }
    for index in 0..dice.below(4) {
        headers.push((format!("X-Note-{index}"), phrase(dice, 12)));
    }
    let to = if dice.one_in(10) { "jürgen@grüße.example" } else { "ann@example.com" };
    let kind = dice.below(4);
    Ok(Email {
        envelope_from: address("bounce@bounce.mail.acme.example")?.into(),
        from: Mailbox {
            name: (!dice.one_in(4)).then(|| phrase(dice, 3)),
            address: address(&format!("shop@{DOMAIN}"))?,
        },
        to: address(to)?,
        cc: (0..dice.below(4)).map(|n| address(&format!("copy{n}@example.net"))).collect::<Result<_, _>>()?,
        reply_to: dice.one_in(3).then(|| address("help@exämple.de")).transpose()?,
        subject: phrase(dice, 10),
        date: Timestamp::from_millis(1_769_850_900_000 + i64::try_from(number)? * 61_001),
        message_id: format!("msg_{number:026}@{DOMAIN}"),
        headers,
        text: (kind != 0).then(|| text(dice)),
        html: (kind != 1).then(|| format!("<html><body>\n<p>{}</p>\n</body></html>", text(dice))),
        // Every number of files up to ten, twice as often none.
        attachments: (0..number % 12 % 11).map(|_| file(dice)).collect(),
        signers: Vec::new(),
    })
}

fn unsubscribe(dice: &Dice) -> String {
    let token: String = dice.bytes(80).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("<https://track.acme.example/u/{token}>, <mailto:unsubscribe+{}@bounce.{DOMAIN}>", &token[..40])
}

/// Up to `most` sentences on one line.
fn phrase(dice: &Dice, most: usize) -> String {
    let sentences: Vec<_> = (0..=dice.below(most)).map(|_| dice.pick(SENTENCES)).collect();
    sentences.join(" ").replace('\t', " ").chars().take(900).collect()
}

/// Lines of all kinds, and sometimes empty ones at the end.
fn text(dice: &Dice) -> String {
    let mut text = String::new();
    for _ in 0..dice.below(40) {
        match dice.below(12) {
            0 => text.push_str(&"x".repeat(dice.below(3000))),
            1 => text.push('.'),
            2 => text.push_str("..two dots, trailing spaces   "),
            3 => text.push_str("\t indented,\twith\t\ttabs \t"),
            4 => text.push_str("From the beginning of a line"),
            5 => text.push_str(&phrase(dice, 20)),
            6 => text.push_str("  "),
            7 => {}
            // Mostly ASCII, so that some mails need no encoding.
            _ => text.push_str("The quick brown fox jumps over the lazy dog, and nothing else happens."),
        }
        text.push_str(dice.pick(&["\n", "\n", "\r\n"]));
    }
    if dice.one_in(3) {
        text.push_str("\n \n\t\n\n");
    }
    // A third without letters that need an encoding.
    if dice.one_in(3) { text.chars().filter(char::is_ascii).collect() } else { text }
}

fn file(dice: &Dice) -> AttachedFile {
    let content = if dice.one_in(2) { text(dice).into_bytes() } else { dice.bytes(dice.below(20_000)) };
    AttachedFile {
        filename: dice.pick(FILENAMES).into(),
        content_type: dice.pick(CONTENT_TYPES).into(),
        content: Bytes::from(content),
        content_id: None,
    }
}
