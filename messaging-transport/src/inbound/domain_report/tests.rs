//! Reports in the forms of the RFCs, and what is no report.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use messaging_core::domain::mail::dmarc::report::{ReportRows, TlsRow};

use super::shared::MAX_ROWS;
use super::*;

const DMARC: &str = include_str!("../../../tests/samples/domain_reports/aggregate.xml");
const DMARC_9990: &str = include_str!("../../../tests/samples/domain_reports/aggregate-9990.xml");
const TLS: &str = include_str!("../../../tests/samples/domain_reports/tls.json");

fn address(purpose: ReportPurpose, domain: &str) -> ReportAddress {
    ReportAddress {
        workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        domain_id: "dom_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        domain: domain.to_owned(),
        purpose,
    }
}

/// Reads a file that is attached to a mail about `example.com`.
fn attached(file: &[u8], purpose: ReportPurpose) -> Result<DomainReport, Unreadable> {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(file);
    let mut mail = "From: reports@example.net\r\nTLS-Report-Submitter: tls.example.net\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nA report.\r\n\
        --b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        .to_owned();
    for line in encoded.as_bytes().chunks(76) {
        mail.push_str(std::str::from_utf8(line).unwrap());
        mail.push_str("\r\n");
    }
    mail.push_str("--b--\r\n");
    super::read(&Mail::read(mail.as_bytes()), &address(purpose, "example.com"))
}

fn dmarc(file: &[u8]) -> Result<DomainReport, Unreadable> {
    attached(file, ReportPurpose::Dmarc)
}

fn tls(file: &[u8]) -> Result<DomainReport, Unreadable> {
    attached(file, ReportPurpose::TlsRpt)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// An archive with one member, whose length follows it where `is_streamed`.
fn zip(content: &[u8], is_streamed: bool) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    let packed = encoder.finish().unwrap();
    let name = b"example.net!example.com!1767225600!1767311999.xml";
    let length = |length: usize| if is_streamed { [0; 4] } else { u32::try_from(length).unwrap().to_le_bytes() };
    let mut file = b"PK\x03\x04\x14\x00".to_vec();
    file.extend([if is_streamed { 8 } else { 0 }, 0, 8, 0, 0, 0, 0, 0]);
    file.extend([0; 4]);
    file.extend(length(packed.len()));
    file.extend(length(content.len()));
    file.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    file.extend([0, 0]);
    file.extend(name);
    file.extend(packed);
    file.extend(b"PK\x01\x02 and what an archive has at its end");
    file
}

/// `192.0.2.1 12 none spf dkim aligned; …`
fn shown(report: &DomainReport) -> String {
    let words = |report: &ReportRows| match report {
        ReportRows::Dmarc(rows) => rows
            .iter()
            .map(|row| {
                let result = row.result;
                let mut text = format!("{} {} {}", row.source, row.messages, result.disposition.as_str());
                for (is, word) in [(result.spf, " spf"), (result.dkim, " dkim"), (result.is_aligned(), " aligned")] {
                    text.push_str(if is { word } else { "" });
                }
                text
            })
            .collect::<Vec<_>>(),
        ReportRows::Tls(rows) => rows
            .iter()
            .map(|TlsRow { mx, result, sessions, failures }| format!("{mx} {result} {sessions} {failures}"))
            .collect(),
    };
    words(&report.rows).join("; ")
}

#[test]
fn a_report_of_rfc_7489_is_read() {
    let report = dmarc(DMARC.as_bytes()).unwrap();
    assert_eq!(report.contact.as_deref(), Some("example.net"));
    assert_eq!(report.report_id, "3v98abbp8ya9n3va8yr8oa3ya");
    assert_eq!((report.begin.as_seconds(), report.end.as_seconds()), (1_767_225_600, 1_767_311_999));
    assert_eq!(
        shown(&report),
        "192.0.2.1 12 none spf dkim aligned; 192.0.2.1 3 quarantine spf; 2001:db8::7 40 none dkim aligned"
    );
}

#[test]
fn a_report_of_rfc_9990_is_read() {
    let report = dmarc(DMARC_9990.as_bytes()).unwrap();
    assert_eq!(report.contact.as_deref(), Some("receiver.example"));
    assert_eq!(shown(&report), "192.0.2.1 123 none spf dkim aligned; 203.0.113.9 7 reject");
}

#[test]
fn containers_do_not_matter() {
    let plain = dmarc(DMARC.as_bytes()).unwrap();
    let marked = [b"\xef\xbb\xbf".as_slice(), DMARC.as_bytes()].concat();
    for file in [gzip(DMARC.as_bytes()), zip(DMARC.as_bytes(), false), zip(DMARC.as_bytes(), true), marked] {
        assert_eq!(dmarc(&file).as_ref(), Ok(&plain));
    }
    let plain = tls(TLS.as_bytes()).unwrap();
    assert_eq!(tls(&gzip(TLS.as_bytes())).as_ref(), Ok(&plain));
}

#[test]
fn a_report_of_rfc_8460_is_read() {
    let report = tls(TLS.as_bytes()).unwrap();
    assert_eq!(report.contact.as_deref(), Some("company-x.example"));
    assert_eq!(report.report_id, "5065427c-23d3-47ca-b6e0-946ea0e8c4be");
    assert_eq!(
        shown(&report),
        "*.mail.example.com successful 5326 0; *.mail.example.com unspecified 3 3; \
         mx1.mail.example.com certificate-expired 100 100; mx2.mail.example.com starttls-not-supported 200 200"
    );
    let list = TLS.replace("\"*.mail.example.com\"", "[\"*.mail.example.com\", \"other.example\"]");
    assert_eq!(tls(list.as_bytes()).as_ref(), Ok(&report));
    let nobody = TLS.replace("sts-reporting@company-x.example", "https://company-x.example/");
    assert_eq!(tls(nobody.as_bytes()).unwrap().contact.as_deref(), Some("tls.example.net"));
}

#[test]
fn rows_about_others_are_left_out() {
    let to = |domain: &str, file: &str| {
        let mail = format!("Content-Type: text/xml\r\n\r\n{file}");
        super::read(&Mail::read(mail.as_bytes()), &address(ReportPurpose::Dmarc, domain)).map(|report| shown(&report))
    };
    assert_eq!(to("shop.example.com", DMARC).as_deref(), Ok("2001:db8::7 40 none dkim aligned"));
    assert_eq!(to("example.org", DMARC), Err(Unreadable::OtherDomain));
    assert_eq!(to("ample.com", DMARC), Err(Unreadable::OtherDomain));
    assert_eq!(tls(TLS.replace("\"example.com\"", "\"example.org\"").as_bytes()), Err(Unreadable::OtherDomain));
}

#[test]
fn bombs_are_refused() {
    let mut zeros = b"<?xml version=\"1.0\"?><feedback><!-- ".to_vec();
    zeros.resize(2 << 20, b' ');
    // A piece that is too long is not waited for.
    assert_eq!(dmarc(&gzip(&zeros)), Err(Unreadable::TooLarge));
    assert_eq!(dmarc(&zip(&zeros, false)), Err(Unreadable::TooLarge));
    // Neither is the end of what is too much.
    let element = format!("<version>{}</version>", "1".repeat(1000));
    let many = format!("<?xml version=\"1.0\"?><feedback>{}", element.repeat(70_000));
    assert_eq!(dmarc(&gzip(many.as_bytes())), Err(Unreadable::TooLarge));
    let text = format!("{{\"report-id\": \"{}", "a".repeat(65 << 20));
    assert_eq!(tls(&gzip(text.as_bytes())), Err(Unreadable::TooLarge));
}

#[test]
fn entities_are_refused_and_escapes_read() {
    let mut laughs = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY lol \"lol\">".to_owned();
    for level in 1..10 {
        write!(laughs, "<!ENTITY lol{level} \"{}\">", format!("&lol{};", level - 1).repeat(10)).unwrap();
    }
    laughs.push_str("]><feedback><report_metadata><org_name>&lol9;</org_name></report_metadata></feedback>");
    assert_eq!(dmarc(laughs.as_bytes()), Err(Unreadable::Entities));
    let unknown = DMARC.replace("3v98", "&lol;");
    assert_eq!(dmarc(unknown.as_bytes()), Err(Unreadable::Entities));
    let escaped = DMARC.replace("3v98", "&lt;&#65;&#x42;&amp;<![CDATA[<x>]]>");
    assert_eq!(dmarc(escaped.as_bytes()).unwrap().report_id, "<AB&<x>abbp8ya9n3va8yr8oa3ya");
}

#[test]
fn depth_and_rows_are_bounded() {
    let deep = format!("<?xml version=\"1.0\"?><feedback>{}", "<a>".repeat(16));
    assert_eq!(dmarc(deep.as_bytes()), Err(Unreadable::TooDeep));
    let (start, end) = DMARC.split_once("<record>").unwrap();
    let record = "<record><row><source_ip>192.0.2.1</source_ip><count>2</count></row></record>";
    // With the four that are there.
    let rows = |count: usize| format!("{start}{}<record>{end}", record.repeat(count - 4));
    let report = dmarc(&gzip(rows(MAX_ROWS).as_bytes())).unwrap();
    assert!(shown(&report).starts_with("192.0.2.1 199992 none; 192.0.2.1 12 none"), "{}", shown(&report));
    assert_eq!(dmarc(&gzip(rows(MAX_ROWS + 1).as_bytes())), Err(Unreadable::TooManyRows));
    let (start, end) = TLS.split_once("\"failure-details\": [").unwrap();
    let failure = "{\"result-type\": \"validation-failure\", \"failed-session-count\": 1},";
    let many = format!("{start}\"failure-details\": [{}{end}", failure.repeat(MAX_ROWS));
    assert_eq!(tls(&gzip(many.as_bytes())), Err(Unreadable::TooManyRows));
}

#[test]
fn what_is_damaged_is_refused() {
    let packed = gzip(DMARC.as_bytes());
    let archive = zip(DMARC.as_bytes(), false);
    let mut encrypted = archive.clone();
    encrypted[6] |= 1;
    let half = &DMARC.as_bytes()[..DMARC.len() / 2];
    for (file, reason) in [
        (&packed[..packed.len() / 2], Unreadable::Damaged),
        (&archive[..200], Unreadable::Damaged),
        (&archive[..20], Unreadable::Damaged),
        (&encrypted, Unreadable::Container),
        (half, Unreadable::Damaged),
        (b"<?xml version=\"1.0\"?><html></html>", Unreadable::Form),
        (b"<?xml version=\"1.0\"?><feedback></feedback>", Unreadable::Form),
        (b"<?xml version=\"1.0\"?><feedback></feed>", Unreadable::Damaged),
        (b"a report", Unreadable::NoReport),
        (b"", Unreadable::NoReport),
    ] {
        assert_eq!(dmarc(file), Err(reason), "{}", String::from_utf8_lossy(&file[..file.len().min(60)]));
    }
    for (file, reason) in [
        (TLS[..TLS.len() / 2].to_owned(), Unreadable::Damaged),
        (TLS.replace("report-id", "id"), Unreadable::Form),
        (TLS.replace("2026-01-01T00:00:00Z", "today"), Unreadable::Form),
        ("{}".to_owned(), Unreadable::Form),
    ] {
        assert_eq!(tls(file.as_bytes()), Err(reason), "{file}");
    }
}
