//! Tests of all checks as tables: facts, expected status, words that the report must contain.

use std::net::IpAddr;
use std::time::Duration;

use super::*;
use crate::domain::installation::fence::Fence;
use crate::domain::mail::dmarc::PolicyRecord;
use crate::domain::mail::mta_sts::parse;
use crate::domain::mail::sending_domain::Check;
use crate::domain::mail::spf::{Answers, Evaluation, Step, evaluate};
use crate::domain::mail::verification::{Finding, Findings};
use crate::domain::security::api_key::{ApiKey, sample as a_key};
use crate::time::Timestamp;

#[track_caller]
fn check(report: &CheckReport, status: CheckStatus, words: &str) {
    assert_eq!(report.status, status, "{report:?}");
    let told = format!("{} {} {}", report.found, report.text, report.cure);
    assert!(told.contains(words), "{words:?} in {told:?}");
    assert!(report.text.ends_with('.') && !report.subject.is_empty(), "{report:?}");
    // A report of something wrong or not checked says what to do.
    assert!(!report.cure.is_empty() || status == CheckStatus::Ok, "{report:?}");
}

use CheckStatus::{Fault, Ok as Good, Skipped, Warning};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn public(text: &str) -> Address {
    Address { ip: ip(text), is_public: true }
}

#[test]
fn the_name_is_one_that_receivers_can_look_up() {
    check(&judge_name("mx.example.org", Some("mx.example.org")), Good, "fully qualified");
    check(&judge_name("mx2.example.org", Some("mx.example.org")), Good, "DNS records name mx.example.org");
    check(&judge_name("mx.example.org", None), Good, "");
    check(&judge_name("vm", None), Fault, "--hostname");
    check(&judge_name("vm", Some("mx.example.org")), Fault, "--hostname");
    check(&judge_name("mx.example.org", Some("vm")), Fault, "admin set-name");
}

#[test]
fn the_addresses_are_public_and_those_that_mail_leaves_from() {
    let judged = |found: Result<&[Address], &str>, outgoing: &[Address]| {
        let found = found.map(<[Address]>::to_vec).map_err(str::to_owned);
        judge_address("mx.example.org", &found, outgoing)
    };
    let (four, six) = (public("192.0.2.1"), public("2001:db8::1"));
    check(&judged(Ok(&[four, six]), &[four]), Good, "192.0.2.1, 2001:db8::1");
    check(&judged(Ok(&[four]), &[]), Good, "");
    check(&judged(Ok(&[]), &[four]), Fault, "publish an A record");
    check(&judged(Ok(&[Address { is_public: false, ..public("10.0.0.1") }]), &[]), Fault, "10.0.0.1");
    check(&judged(Ok(&[four]), &[four, six]), Fault, "leaves from 2001:db8::1");
    check(&judged(Err("no answer in time"), &[]), Fault, "no answer in time");
    check(&judged(Err("the server answered SERVFAIL"), &[]), Fault, "SERVFAIL");
    check(&judge_address("vm", &Ok(vec![four]), &[]), Skipped, "check name");
}

#[test]
fn an_address_is_called_by_the_host_name_and_back() {
    let here = ip("192.0.2.1");
    let judged = |names: &[(&str, &[&str])]| {
        let names =
            names.iter().map(|(name, back)| ((*name).to_owned(), Ok(back.iter().map(|text| ip(text)).collect())));
        judge_ptr(here, "mx.example.org", &Ok(names.collect()))
    };
    check(&judged(&[("mx.example.org", &["192.0.2.1"])]), Good, "and back");
    check(&judged(&[("other.example", &["192.0.2.1"]), ("mx.example.org", &["192.0.2.1"])]), Good, "");
    check(&judged(&[("static-1.isp.example", &["192.0.2.1"])]), Warning, "static-1.isp.example");
    check(&judged(&[("wrong.example", &["192.0.2.9"])]), Fault, "wrong.example");
    check(&judged(&[("mx.example.org", &[])]), Fault, "lead back");
    check(&judged(&[]), Fault, "has no name");
    check(&judge_ptr(here, "mx.example.org", &Err("no answer in time".to_owned())), Fault, "no answer in time");
    check(&judge_ptr(here, "h.test", &Ok(vec![("h.test".to_owned(), Err("SERVFAIL".to_owned()))])), Fault, "lead back");
}

fn evaluated(texts: &[&str]) -> Evaluation {
    let mut answers = Answers::default();
    answers.texts.insert("mx.example.org".to_owned(), texts.iter().map(|&text| text.to_owned()).collect());
    answers.addresses.insert("mx.example.org".to_owned(), vec![ip("192.0.2.1")]);
    answers.exchangers.insert("mx.example.org".to_owned(), Vec::new());
    match evaluate("mx.example.org", &answers) {
        Step::Done(done) => done,
        Step::Ask(missing) => panic!("{missing:?}"),
    }
}

#[test]
fn the_hosts_spf_record_lets_it_send() {
    let judged = |texts: &[&str], from: &[&str]| {
        let from: Vec<_> = from.iter().map(|text| public(text)).collect();
        judge_host_spf("mx.example.org", &Ok(evaluated(texts)), &from)
    };
    check(&judged(&["v=spf1 a -all"], &["192.0.2.1"]), Good, "lets this machine send");
    check(&judged(&["v=spf1 a -all"], &["192.0.2.1", "2001:db8::1"]), Fault, "ip6:2001:db8::1");
    check(&judged(&["v=spf1 a mx -all"], &["192.0.2.1"]), Fault, "mx finds nothing");
    check(&judged(&["v=spf1 -all"], &[]), Fault, "lets nobody send");
    check(&judged(&[], &[]), Fault, "v=spf1 a -all");
    check(&judged(&["v=spf1 a -all", "v=spf1 -all"], &[]), Fault, "several SPF records");
    check(&judged(&["v=spf1 b -all"], &[]), Fault, "damaged at b");
    check(&judged(&["v=spf1 exists:%{i}.x.example -all"], &["192.0.2.1"]), Warning, "macro");
    check(&judge_host_spf("mx.example.org", &Err("no answer in time".to_owned()), &[]), Fault, "no answer in time");
    check(&judge_host_spf("vm", &Ok(evaluated(&[])), &[]), Skipped, "check name");
}

#[test]
fn mail_leaves_when_a_mail_server_greets() {
    let tried = |greetings: &[Result<&str, &str>]| {
        let one = |greeting: &Result<&str, &str>| (ip("192.0.2.9"), greeting.map(str::to_owned).map_err(str::to_owned));
        judge_port25_out(&Outbound::Tried {
            host: "mx.probe.example:25".to_owned(),
            greetings: greetings.iter().map(one).collect(),
        })
    };
    check(&tried(&[Ok("220 mx.probe.example ESMTP")]), Good, "220 mx.probe");
    check(&tried(&[Err("refused"), Ok("220 x")]), Good, "");
    check(&tried(&[Ok("554 no")]), Fault, "does not want to talk");
    check(&tried(&[Err("no answer within 5 s")]), Fault, "block port 25");
    check(&tried(&[]), Fault, "No connection");
    check(&judge_port25_out(&Outbound::NotAsked), Skipped, "--probe DOMAIN");
    let none = Outbound::NoHost { domain: "probe.example".to_owned(), reason: "it has no MX".to_owned() };
    check(&judge_port25_out(&none), Fault, "it has no MX");
}

#[test]
fn returned_mail_reaches_this_server() {
    let judged = |fact| judge_inbound("mx.example.org", &fact);
    let greeted = |text: &str| InboundFact::Tried(25, Ok(text.to_owned()));
    check(&judged(greeted("220 mx.example.org ESMTP")), Good, "port 25");
    check(&judged(greeted("220 MX.example.org")), Good, "");
    check(&judged(greeted("220 other.example ESMTP")), Fault, "something else");
    check(&judged(greeted("421 busy")), Fault, "something else");
    check(&judged(InboundFact::Tried(25, Err("refused".to_owned()))), Fault, "firewall");
    check(&judged(InboundFact::Off), Warning, "--smtp-listen");
    check(&judged(InboundFact::NotRunning), Skipped, "start the server");
}

#[test]
fn the_public_url_has_a_certificate() {
    let judged = |fact: Option<&CertificateFact>| judge_tls("https://m.example.org", fact);
    check(&judged(Some(&CertificateFact::Valid { ends_soon: false })), Good, "valid");
    check(&judged(Some(&CertificateFact::Valid { ends_soon: true })), Warning, "14 days");
    check(&judged(Some(&CertificateFact::Refused("expired".to_owned()))), Fault, "expired");
    check(&judged(Some(&CertificateFact::Unreached("refused".to_owned()))), Warning, "refused");
    check(&judged(None), Warning, "--public-url");
}

#[test]
fn a_clock_may_be_off_by_two_seconds() {
    for (ahead, status, words) in [
        (0, Good, "right"),
        (-2_000, Good, ""),
        (2_001, Warning, "2.001 s ahead"),
        (-60_000, Warning, "60.000 s behind"),
        (60_001, Fault, "timedatectl"),
        (i64::MIN, Fault, "behind"),
    ] {
        check(&judge_clock("pool.ntp.org", Some(&Ok(ahead))), status, words);
    }
    check(&judge_clock("pool.ntp.org", Some(&Err("no answer".to_owned()))), Skipped, "no answer");
    check(&judge_clock("pool.ntp.org", None), Skipped, "No time server");
}

#[test]
fn the_clock_of_a_process_is_compared_with_the_databases() {
    for (clock_offset_ms, is_idle_for_it, status, words) in [
        (0, false, Good, "near enough"),
        (-900, false, Good, "near enough"),
        (30_000, true, Fault, "30.000 s behind the database's: the process answers requests and sends nothing"),
        (-30_000, true, Fault, "30.000 s ahead of the database's"),
    ] {
        check(&judge_node_clock(NodeFacts { name: "mx1", clock_offset_ms, is_idle_for_it }), status, words);
    }
}

#[test]
fn the_disk_has_more_than_the_reserve() {
    const MIB: u64 = 1 << 20;
    for (free, status) in [
        (Some(31 * MIB), Fault),
        (Some(32 * MIB), Warning),
        (Some(127 * MIB), Warning),
        (Some(128 * MIB), Good),
        (None, Skipped),
    ] {
        let words = if free.is_some() { "32 MiB reserve" } else { "df" };
        check(&judge_disk("/data", DiskFacts { free, reserve: 32 * MIB }), status, words);
    }
    check(&judge_disk("/data", DiskFacts { free: Some(u64::MAX), reserve: u64::MAX }), Good, "");
}

#[test]
fn files_are_closed_to_others() {
    let file = |mode: u32, most: u32, is_own: bool| FileFact { path: format!("/data/{most:o}"), mode, most, is_own };
    let judged = |files: &[FileFact]| judge_files("/data", &Ok(files.to_vec()));
    check(&judged(&[file(0o700, 0o700, true), file(0o600, 0o600, true)]), Good, "2 looked at");
    check(&judged(&[file(0o500, 0o700, true), file(0o400, 0o600, true)]), Good, "2 looked at");
    check(&judged(&[file(0o700, 0o700, true), file(0o644, 0o600, true)]), Fault, "chmod 600 /data/600");
    check(&judged(&[file(0o755, 0o700, true)]), Fault, "0755 /data/700");
    check(&judged(&[file(0o600, 0o600, false)]), Warning, "another user");
    check(&judged(&[]), Skipped, "--data");
    check(&judge_files("/data", &Err("permission denied".to_owned())), Fault, "permission denied");
}

#[test]
fn the_key_is_that_of_the_database() {
    let judged = |fact| judge_secret_key("/data/secret.key", &fact);
    check(&judged(SecretKeyFact::Fits), Good, "opens");
    check(&judged(SecretKeyFact::NotYet), Skipped, "first start");
    check(&judged(SecretKeyFact::Wrong), Fault, "another database");
    check(&judged(SecretKeyFact::Unusable("it is missing".to_owned())), Fault, "--secret-key-file");
    check(&judged(SecretKeyFact::Unknown("disk I/O error".to_owned())), Fault, "disk I/O error");
}

#[test]
fn a_resolver_answers() {
    check(&judge_resolver("192.0.2.53:53", &Ok(())), Good, "answers");
    check(&judge_resolver("192.0.2.53:53", &Err("no answer in time".to_owned())), Fault, "--dns");
}

#[test]
fn a_blocklist_lists_with_addresses_of_loopback() {
    let judged = |answer: Result<&[&str], &str>| {
        let answer = answer.map(|codes| codes.iter().map(|text| ip(text)).collect()).map_err(str::to_owned);
        judge_blocklist("bl.example", ip("192.0.2.1"), &answer)
    };
    check(&judged(Ok(&[])), Good, "does not list");
    check(&judged(Ok(&["127.0.0.2"])), Fault, "lists 192.0.2.1");
    check(&judged(Ok(&["127.255.255.254"])), Skipped, "refuses");
    check(&judged(Ok(&["198.51.100.1"])), Warning, "no blocklist answers");
    check(&judged(Err("no answer in time")), Skipped, "--dns");
}

#[test]
fn a_copy_is_told_with_its_cure() {
    let fence = Fence::held(Timestamp::from_millis(1_700_000_000_000));
    check(&judge_fence("/data/messaging.db", None), Good, "not fenced");
    let held = judge_fence("/data/messaging.db", Some(fence));
    check(&held, Fault, "messaging admin resume --queued cancel");
    check(&held, Fault, "2023-11-14");
    check(&judge_fence("/data/messaging.db", Some(fence.cancelling())), Warning, "sends again by itself");
}

#[test]
fn the_certificate_of_the_smtp_listeners_is_one_of_the_host_name_and_lasts() {
    let judged = |fact| judge_smtp_certificate("mx.example.org", &fact);
    let read = |days, trust| judged(SmtpCertificateFact::Read { days_left: Some(days), trust });
    check(&judged(SmtpCertificateFact::Off), Skipped, "--tls-cert");
    check(&judged(SmtpCertificateFact::Unusable("no such file".to_owned())), Fault, "no such file");
    check(&read(90, CertificateTrust::Trusted), Good, "90 days left");
    check(&read(14, CertificateTrust::Trusted), Good, "");
    check(&read(13, CertificateTrust::Trusted), Warning, "within 14 days");
    check(&read(-1, CertificateTrust::Trusted), Fault, "has ended");
    check(&read(90, CertificateTrust::OtherName), Fault, "not for mx.example.org");
    check(&read(90, CertificateTrust::Unknown), Fault, "fullchain.pem");
    check(&read(90, CertificateTrust::Refused("revoked".to_owned())), Fault, "revoked");
    check(&read(90, CertificateTrust::NotVerified("no roots".to_owned())), Skipped, "ca-certificates");
}

#[test]
fn what_is_published_for_mail_that_comes_here_is_held() {
    let tlsa = |fact| judge_tlsa("_25._tcp.mx.example.org", &fact);
    assert_eq!(tlsa(Ok(TlsaFact::Absent)), None);
    for (fact, status, words) in [
        (Ok(TlsaFact::Fits), Good, "names the certificate"),
        (Ok(TlsaFact::Misses("3 1 1 ab".to_owned())), Fault, "publish 3 1 1 ab at _25._tcp.mx.example.org"),
        (Ok(TlsaFact::Unusable), Warning, "prove nothing"),
        (Ok(TlsaFact::NoCertificate), Fault, "--tls-cert"),
        (Err("SERVFAIL".to_owned()), Warning, "SERVFAIL"),
    ] {
        check(&tlsa(fact).unwrap(), status, words);
    }
    let trusted = SmtpCertificateFact::Read { days_left: Some(90), trust: CertificateTrust::Trusted };
    let other = SmtpCertificateFact::Read { days_left: Some(90), trust: CertificateTrust::OtherName };
    let ended = SmtpCertificateFact::Read { days_left: Some(-1), trust: CertificateTrust::Trusted };
    let policy =
        |text: &str| parse(&format!("version: STSv1\nmax_age: 86400\n{text}")).map_err(|fault| fault.to_string());
    for (text, certificate, status, words) in [
        ("mode: enforce\nmx: *.example.org", &trusted, Good, "lists mx.example.org"),
        ("mode: enforce\nmx: mx.other.org", &trusted, Fault, "add mx: mx.example.org"),
        ("mode: testing\nmx: mx.other.org", &trusted, Warning, "in mode enforce"),
        ("mode: enforce\nmx: mx.example.org", &other, Fault, "certificate"),
        ("mode: testing\nmx: mx.example.org", &ended, Warning, "certificate"),
        ("mode: enforce\nmx: mx.example.org", &SmtpCertificateFact::Off, Fault, "certificate"),
        ("mode: none", &SmtpCertificateFact::Off, Good, "asks for nothing"),
        ("mode: enforce", &trusted, Warning, "https://mta-sts.bounce.example.org/"),
    ] {
        check(&judge_sts("bounce.example.org", "mx.example.org", &policy(text), certificate), status, words);
    }
}

struct Domain {
    dkim: Vec<Finding>,
    spf: Finding,
    mx: Finding,
    dmarc: Finding,
    policy: Result<Option<&'static str>, &'static str>,
    url: &'static str,
}

impl Domain {
    /// Returns a domain with this DMARC policy and everything else as it should be.
    fn sound(policy: &'static str) -> Self {
        let good = || Ok(Check::verified());
        Self {
            dkim: vec![good(), good()],
            spf: good(),
            mx: good(),
            dmarc: good(),
            policy: Ok(Some(policy)),
            url: "https://m.example.org",
        }
    }

    #[track_caller]
    fn check(self, id: CheckId, status: CheckStatus, words: &str) {
        let dkim = self.dkim.into_iter().enumerate().map(|(at, finding)| (format!("s{at}"), finding)).collect();
        let findings = Findings {
            dkim,
            spf: self.spf,
            dmarc: self.dmarc,
            return_path: self.mx,
            tracking: None,
            tls_rpt: absent(),
        };
        let policy = self.policy.map(|text| text.and_then(|text| policy(text, false)));
        let facts = DomainFacts {
            subject: "acme.test".to_owned(),
            domain: "acme.test".to_owned(),
            findings,
            policy: policy.map_err(str::to_owned),
            public_url: self.url.to_owned(),
        };
        let reports = judge_domain(&facts);
        assert_eq!(reports.each_ref().map(|report| report.id), CheckId::OF_DOMAIN);
        check(reports.iter().find(|report| report.id == id).unwrap(), status, words);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what a look-up finds may be an error")]
fn absent() -> Finding {
    Ok(Check::pending("There is none."))
}

#[test]
fn a_domain_whose_records_are_right_has_no_complaint() {
    for id in CheckId::OF_DOMAIN {
        Domain::sound("v=DMARC1; p=reject").check(id, Good, "");
    }
}

#[test]
fn keys_are_published() {
    let good = || Ok(Check::verified());
    Domain { dkim: vec![good(), absent()], ..Domain::sound("v=DMARC1; p=none") }.check(
        CheckId::Dkim,
        Warning,
        "selector s1",
    );
    Domain { dkim: vec![absent()], ..Domain::sound("v=DMARC1; p=none") }.check(CheckId::Dkim, Fault, "There is none.");
    Domain { dkim: vec![Err("SERVFAIL".to_owned())], ..Domain::sound("v=DMARC1; p=none") }.check(
        CheckId::Dkim,
        Fault,
        "SERVFAIL",
    );
}

#[test]
fn bounces_come_back() {
    Domain { mx: absent(), ..Domain::sound("v=DMARC1; p=none") }.check(CheckId::ReturnPath, Fault, "MX absent");
    Domain { spf: Ok(Check::failed("There are several.")), ..Domain::sound("v=DMARC1; p=none") }.check(
        CheckId::ReturnPath,
        Fault,
        "There are several.",
    );
    Domain { mx: Ok(Check::verified_but("Another goes first.")), ..Domain::sound("v=DMARC1; p=none") }.check(
        CheckId::ReturnPath,
        Warning,
        "Another goes first.",
    );
}

#[test]
fn the_next_step_of_a_policy_is_safe() {
    // A stricter policy is advised only if the domain's mail passes; with `p=none`, reports are advised before it.
    Domain::sound("v=DMARC1; p=none; rua=mailto:d@acme.test").check(CheckId::Dmarc, Good, "publish p=quarantine");
    Domain::sound("v=DMARC1; p=none").check(CheckId::Dmarc, Good, "rua=mailto:");
    Domain::sound("v=DMARC1; p=quarantine").check(CheckId::Dmarc, Good, "p=reject");
    let failing = |policy| Domain { dkim: vec![absent()], spf: absent(), ..Domain::sound(policy) };
    failing("v=DMARC1; p=none").check(CheckId::Dmarc, Warning, "fails DMARC");
    failing("v=DMARC1; p=quarantine").check(CheckId::Dmarc, Fault, "put it aside");
    failing("v=DMARC1; p=reject").check(CheckId::Dmarc, Fault, "refuse it");
    // SPF alone does not pass a strict policy, because the envelope is the bounce domain.
    Domain { dkim: vec![absent()], ..Domain::sound("v=DMARC1; p=reject; aspf=s") }.check(
        CheckId::Dmarc,
        Fault,
        "refuse it",
    );
    Domain { dkim: vec![absent()], ..Domain::sound("v=DMARC1; p=reject") }.check(CheckId::Dmarc, Good, "");
    Domain { dmarc: absent(), policy: Ok(None), ..Domain::sound("") }.check(
        CheckId::Dmarc,
        Warning,
        "_dmarc.acme.test",
    );
    let damaged = Ok(Check::failed("The DMARC policy is damaged."));
    Domain { dmarc: damaged, policy: Ok(None), ..Domain::sound("") }.check(CheckId::Dmarc, Fault, "damaged");
    Domain { dmarc: Err("SERVFAIL".to_owned()), ..Domain::sound("") }.check(CheckId::Dmarc, Fault, "SERVFAIL");
}

#[test]
fn mail_is_aligned_by_dkim_or_spf() {
    Domain::sound("v=DMARC1; p=none").check(CheckId::Alignment, Good, "DKIM, SPF");
    Domain::sound("v=DMARC1; p=none; adkim=s").check(CheckId::Alignment, Warning, "adkim=s");
    Domain::sound("v=DMARC1; p=none; aspf=s").check(CheckId::Alignment, Warning, "aspf=s");
    Domain { dkim: vec![absent()], ..Domain::sound("v=DMARC1; p=none") }.check(CheckId::Alignment, Warning, "Only SPF");
    Domain { spf: absent(), ..Domain::sound("v=DMARC1; p=none") }.check(CheckId::Alignment, Warning, "Only DKIM");
    Domain { dkim: vec![absent()], ..Domain::sound("v=DMARC1; p=none; aspf=s") }.check(
        CheckId::Alignment,
        Fault,
        "Neither",
    );
    Domain { policy: Err("SERVFAIL"), ..Domain::sound("") }.check(CheckId::Alignment, Fault, "SERVFAIL");
}

#[test]
fn one_click_needs_https_and_a_signature() {
    Domain { url: "http://m.example.org", ..Domain::sound("v=DMARC1; p=none") }.check(
        CheckId::OneClick,
        Warning,
        "--public-url",
    );
    Domain { dkim: vec![absent()], ..Domain::sound("v=DMARC1; p=none") }.check(CheckId::OneClick, Fault, "signature");
}

/// Returns the policy of a record at `acme.test`, for this domain or, if `is_above`, for a subdomain.
fn policy(text: &str, is_above: bool) -> Option<DmarcPolicy> {
    let domain = if is_above { "shop.acme.test" } else { "acme.test" };
    PolicyRecord::parse("acme.test", text).map(|record| DmarcPolicy::of(&record, domain))
}

#[test]
fn a_policy_is_read_as_receivers_read_it() {
    let read = policy;
    let policy = read("v=DMARC1; p=Reject; sp=quarantine; adkim=s; aspf=S; rua=mailto:a@b.test", false).unwrap();
    assert_eq!(
        (policy.action, policy.strict_dkim, policy.strict_spf, policy.has_reports),
        (DmarcAction::Reject, true, true, true)
    );
    let action = |text: &str, is_above| read(text, is_above).map(|policy| policy.action);
    assert_eq!(action("v=DMARC1; p=reject; sp=quarantine", true), Some(DmarcAction::Quarantine));
    assert_eq!(action("v=DMARC1; p=reject", true), Some(DmarcAction::Reject));
    assert_eq!(action("v=DMARC1; p=reject; t=y", false), Some(DmarcAction::Quarantine));
    assert_eq!(action("p=reject", false), None);
}

#[test]
fn keys_that_end_soon_are_named() {
    let now = Timestamp::from_millis(0);
    let day = Duration::from_hours(24);
    let key =
        |name: &str, days: u32| ApiKey { name: name.to_owned(), expires_at: Some(now + day * days), ..a_key(now) };
    check(&judge_api_keys(&[], false, now), Good, "No API key ends");
    let one = judge_api_keys(&[key("backend", 3)], false, now);
    check(&one, Warning, "within 3 days");
    assert_eq!(one.found, "backend (mk_live_ab12cd34ef56…) at 1970-01-04T00:00:00.000Z");
    let many: Vec<_> = (0..12).map(|n| key(&format!("k{n}"), 5)).collect();
    let found = |more| judge_api_keys(&many, more, now).found;
    assert!(found(false).contains("k9 ") && !found(false).contains("k10") && found(false).ends_with(", and 2 more"));
    assert!(found(true).ends_with(", and more than 2 more"));
}

#[test]
fn the_words_of_checks_are_those_of_the_contract() {
    let word = |id: CheckId| serde_json::to_value(id).unwrap();
    for id in CheckId::OF_HOST.into_iter().chain(CheckId::OF_DOMAIN) {
        assert_eq!(word(id), id.as_str());
    }
    for status in [Good, Warning, Fault, Skipped] {
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
    }
}
