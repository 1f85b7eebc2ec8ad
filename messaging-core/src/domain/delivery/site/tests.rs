use super::parse::{MAX_REPLIES, MAX_RULES_BYTES, MAX_SITES};
use super::*;

fn reply(code: Option<u16>, enhanced: Option<&str>, text: &str) -> Response {
    Response { code, enhanced: enhanced.map(str::to_owned), text: text.to_owned(), host: None }
}

fn site(name: &str) -> SiteName {
    SiteName::parse(name).unwrap()
}

/// A published reply, its meaning, and the page where it stands.
struct Published<'a> {
    site: SiteName,
    page: &'a str,
    says: Meaning,
    reply: Response,
}

fn published(table: &str) -> Vec<Published<'_>> {
    let (mut of, mut page) = (site("example.com"), "");
    let mut all = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some(heading) = line.strip_prefix("== ") {
            let (name, at) = heading.split_once(" | ").unwrap_or_else(|| panic!("no page: {line}"));
            (of, page) = (site(name), at);
            continue;
        }
        let mut cells = line.splitn(4, '|').map(str::trim);
        let mut cell = || cells.next().unwrap_or_else(|| panic!("too few cells: {line}"));
        let says = serde_json::from_value(cell().into()).unwrap_or_else(|_| panic!("what it says: {line}"));
        let code = Some(cell()).filter(|code| !code.is_empty());
        let code = code.map(|code| code.parse().unwrap_or_else(|_| panic!("the code of: {line}")));
        let enhanced = Some(cell()).filter(|enhanced| !enhanced.is_empty());
        all.push(Published { site: of.clone(), page, says, reply: reply(code, enhanced, cell()) });
    }
    all
}

#[test]
fn published_replies_are_read_as_they_are_meant() {
    let rules = SiteRules::embedded();
    let all = published(include_str!("replies.txt"));
    assert!(all.len() >= 150, "{}", all.len());
    let mut wrong = Vec::new();
    for one in &all {
        assert!(one.page.starts_with("http"), "{}", one.page);
        let says = rules.judge(&one.site, &one.reply).map(|verdict| verdict.meaning);
        if says != Some(one.says) {
            wrong.push(format!("{}: {says:?} instead of {:?}: {}", one.site, one.says, one.reply.text));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The table of the classification of bounces: an address that is bad says nothing against the sender.
#[test]
fn bad_addresses_and_full_mailboxes_brake_no_path() {
    let rules = SiteRules::embedded();
    for line in include_str!("../bounce/published.txt").lines() {
        let cells: Vec<_> = line.splitn(4, '|').map(str::trim).collect();
        let [class @ ("invalid_recipient" | "mailbox_full" | "content"), code, enhanced, text] = cells[..] else {
            continue;
        };
        let enhanced = Some(enhanced).filter(|enhanced| !enhanced.is_empty());
        let verdict = rules.judge(&site("example.com"), &reply(code.parse().ok(), enhanced, text));
        let action = verdict.map_or(PathAction::None, |verdict| verdict.action);
        assert_eq!(action, PathAction::None, "{class}: {text}");
    }
}

#[test]
fn a_meaning_has_a_consequence() {
    use Meaning as M;
    use PathAction as A;
    for (meaning, for_now, for_good) in [
        (M::Rate, A::SlowDown, A::SlowDown),
        (M::Reputation, A::Rest, A::Rest),
        (M::BlockedIp, A::Rest, A::Stop),
        (M::BlockedDomain, A::Rest, A::Rest),
        (M::Authentication, A::None, A::None),
        (M::Content, A::None, A::None),
        (M::User, A::None, A::None),
    ] {
        assert_eq!((meaning.action(false), meaning.action(true)), (for_now, for_good), "{meaning:?}");
    }
}

#[test]
fn a_reply_that_says_nothing_has_no_verdict() {
    let rules = SiteRules::embedded();
    for (code, text) in [
        (451, "Requested action aborted: local error in processing"),
        (421, "Service not available, closing transmission channel"),
        (450, "4.3.0 Temporary system problem. Try again later"),
        (550, "Administrative prohibition"),
        (550, "Relaying denied"),
        (554, "Transaction failed"),
        (550, ""),
    ] {
        assert_eq!(rules.judge(&site("example.com"), &reply(Some(code), None, text)), None, "{text}");
    }
}

#[test]
fn codes_are_read_in_place_and_in_the_text() {
    let rules = SiteRules::embedded();
    let text = "[192.0.2.7 15] unusual";
    let rate = Some(Verdict { meaning: Meaning::Rate, action: PathAction::SlowDown });
    for one in [
        reply(Some(421), Some("4.7.28"), text),
        reply(Some(421), None, &format!("4.7.28 {text}")),
        reply(None, None, &format!("421-4.7.28 {text}")),
        reply(Some(421), None, &format!("4.7.28\r\n{text}")),
    ] {
        assert_eq!(rules.judge(&site("gmail"), &one), rate, "{one:?}");
    }
    // The code is Gmail's own; an address that looks like it is none.
    let other = reply(Some(421), None, "host 10.4.7.28 closes");
    assert_eq!(rules.judge(&site("gmail"), &other), None);
}

#[test]
fn long_replies_are_read_to_a_bound() {
    let rules = SiteRules::embedded();
    let text = format!("{}ü listed in zen.spamhaus.org", "x".repeat(1023));
    assert_eq!(rules.judge(&site("example.com"), &reply(Some(550), None, &text)), None);
}

#[test]
fn sites_are_found_by_their_exchangers() {
    let rules = SiteRules::embedded();
    let check = |exchangers: &[&str], expected: Option<&str>| {
        let found = rules.site_of(exchangers);
        assert_eq!(found.as_ref().map(SiteName::as_str), expected, "{exchangers:?}");
    };
    check(&["gmail-smtp-in.l.google.com"], Some("gmail"));
    check(&["ASPMX.L.GOOGLE.COM.", "alt1.aspmx.l.google.com."], Some("gmail"));
    check(&["acme-com.mail.protection.outlook.com"], Some("microsoft"));
    check(&["acme-com.b-v1.mx.microsoft"], Some("microsoft"));
    check(&["hotmail-com.olc.protection.outlook.com"], Some("microsoft"));
    check(&["mta5.am0.yahoodns.net"], Some("yahoo"));
    check(&["mx01.mail.icloud.com"], Some("icloud"));
    check(&["mx.notgoogle.com"], Some("notgoogle.com"));
    check(&["mx1.mail.acme.co.uk", "mx2.other.example"], Some("acme.co.uk"));
    check(&["mx1.acme.com", "aspmx.l.google.com"], Some("gmail"));
    check(&["192.0.2.9"], Some("192.0.2.9"));
    check(&["2001:db8::9"], Some("2001:db8::9"));
    check(&[], None);
    check(&[""], None);
    check(&["mx ünicode.example"], None);
}

#[test]
fn large_sites_take_more_from_a_source_that_warms_up() {
    let rules = SiteRules::embedded();
    for (name, factor) in [("gmail", 4), ("microsoft", 4), ("yahoo", 2), ("icloud", 2), ("gmx", 1), ("acme.com", 1)] {
        assert_eq!(rules.limits(&site(name)).warm_up, factor, "{name}");
    }
    assert_eq!(rules.limits(&site("acme.com")), SiteLimits::default());
    assert_eq!(rules.unknown().connections, 20);
}

#[test]
fn a_file_extends_the_rules_or_replaces_them() {
    let text = r#"
        [unknown]
        messages_per_minute = 60
        [[site]]
        name = "gmail"
        exchangers = ["gmail.test"]
        connections = 3
        [[site]]
        name = "acme"
        exchangers = ["acme.com"]
        messages_per_minute = 10
        [[reply]]
        site = "acme"
        text = "go away"
        says = "reputation"
        action = "stop"
        [[reply]]
        text = "greylisted"
        says = "rate"
    "#;
    let rules = SiteRules::parse(text).unwrap();
    assert_eq!(rules.limits(&site("acme")).messages_per_minute, Some(10));
    assert_eq!(rules.limits(&site("example.com")).messages_per_minute, Some(60));
    assert_eq!(rules.limits(&site("example.com")).connections, 20);
    // A site described anew has only the new exchangers; the others are as before.
    assert_eq!(rules.site_of(&["mx.gmail.test"]), Some(site("gmail")));
    assert_eq!(rules.site_of(&["aspmx.l.google.com"]), Some(site("google.com")));
    assert_eq!(rules.site_of(&["mta5.am0.yahoodns.net"]), Some(site("yahoo")));
    let judge = |name: &str, text: &str| rules.judge(&site(name), &reply(Some(451), None, text));
    let stop = Some(Verdict { meaning: Meaning::Reputation, action: PathAction::Stop });
    assert_eq!(judge("acme", "Go away"), stop);
    assert_eq!(judge("example.com", "Go away"), None);
    assert_eq!(judge("example.com", "Greylisted"), Some(Verdict::new(Meaning::Rate, false)));
    assert_eq!(judge("example.com", "Too many connections"), Some(Verdict::new(Meaning::Rate, false)));

    let alone = SiteRules::parse(&format!("replace = true\n{text}")).unwrap();
    assert_eq!(alone.sites().len(), 2);
    assert_eq!(alone.site_of(&["mta5.am0.yahoodns.net"]), Some(site("yahoodns.net")));
    assert_eq!(SiteRules::parse("").unwrap(), *SiteRules::embedded());
}

#[test]
fn a_fault_has_its_line_and_column() {
    for (text, line, column, word) in [
        ("nonsense", 1, 9, ""),
        ("x = 1", 1, 1, "unknown field"),
        ("[[site]]\nname = \"a\"", 1, 1, "exchangers"),
        ("[[site]]\nname = \"Ä\"\nexchangers = [\"a.co\"]", 2, 8, "name of a site"),
        ("[[site]]\nname = \"a\"\nexchangers = []", 3, 14, "1 to 100"),
        ("[[site]]\nname = \"a\"\nexchangers = [\"a.co\", \".b\"]", 3, 23, "expected a domain"),
        ("[[site]]\nname = \"a\"\nexchangers = [\"a.co\", \"a.co\"]", 3, 23, "another site"),
        ("[[site]]\nname = \"a\"\nexchangers = [\"a.co\"]\nconnections = 0", 4, 15, "1 to 1000"),
        ("[[site]]\nname = \"a\"\nexchangers = [\"a.co\"]\nconnections = \"x\"", 4, 15, "invalid type"),
        ("[unknown]\nmessages_per_minute = 60001", 2, 23, "1 to 60000"),
        ("[[reply]]\nsays = \"rate\"", 2, 8, "codes or a text"),
        ("[[reply]]\ntext = \"x\"\nsays = \"love\"", 3, 8, "unknown variant"),
        ("[[reply]]\ntext = \"(\"\nsays = \"rate\"", 2, 8, "regular expression"),
        ("[[reply]]\ntext = \"\"\nsays = \"rate\"", 2, 8, "1 to 1000"),
        ("[[reply]]\ncodes = [\"250\"]\nsays = \"rate\"", 2, 10, "expected a code"),
        ("[[reply]]\nsite = \"nobody\"\ntext = \"x\"\nsays = \"rate\"", 2, 8, "no site of this name"),
        (
            "[[site]]\nname = \"a\"\nexchangers = [\"a.co\"]\n[[site]]\nname = \"a\"\nexchangers = [\"b.co\"]",
            5,
            8,
            "already",
        ),
    ] {
        let fault = SiteRules::parse(text).unwrap_err();
        assert_eq!((fault.line, fault.column), (line, column), "{text}: {fault}");
        assert!(fault.problem.contains(word) && !fault.problem.contains('\n'), "{fault}");
    }
    assert!(SiteRules::parse(&"#".repeat(MAX_RULES_BYTES + 1)).is_err());
}

#[test]
fn rules_are_bounded() {
    let sites: String =
        (0..=MAX_SITES).map(|n| format!("[[site]]\nname = \"s{n}\"\nexchangers = [\"s{n}.co\"]\n")).collect();
    assert!(SiteRules::parse(&sites).unwrap_err().problem.contains("more than"));
    let replies = "[[reply]]\ntext = \"x\"\nsays = \"rate\"\n".repeat(MAX_REPLIES + 1);
    assert!(SiteRules::parse(&replies).unwrap_err().problem.contains("more than"));
}
