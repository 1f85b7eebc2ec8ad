//! DANE, MTA-STS and `require_tls`: a message goes over the TLS that is asked for, or not at all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use messaging_core::domain::delivery::attempt::TlsVerification;
use messaging_core::domain::mail::mta_sts::StsPolicy;
use messaging_core::ports::StsPolicyCache;
use messaging_core::ports::sts_policy_cache::PolicyUnread;
use messaging_core::ports::transport::{DeliveryOptions, OutcomeClass};
use messaging_testing::{Answer as HttpAnswer, DnsFailure, ScriptedHttpServer};
use messaging_transport::GuardedFetch;
use ring::digest::{SHA256, digest};

use super::*;

/// A digest that fits no certificate.
const WRONG: &[u8] = &[7; 32];

/// Returns the name of the first exchanger's TLSA records.
fn tlsa_name(bed: &Bed) -> String {
    format!("_{}._tcp.mx1.b.test", bed.port)
}

/// Starts a first exchanger that offers TLS, in a signed zone.
async fn signed_bed() -> Bed {
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().start_tls().named(&["mx1.b.test"])]).await;
    bed.dns.sign("b.test");
    bed
}

/// Returns a builder of a client that trusts the AD bit, so that it follows DANE.
fn trusting(bed: &Bed) -> DirectDeliveryBuilder {
    let dns = Dns::trusting_ad(Some(bed.dns.addr()));
    DirectDelivery::builder("client.test", dns).port(bed.port).timeouts(PATIENT).allow_private(true)
}

fn usual() -> Outgoing {
    message(&["a@b.test"], email())
}

fn requiring_tls() -> Outgoing {
    Outgoing { options: DeliveryOptions { require_tls: true, ..DeliveryOptions::default() }, ..usual() }
}

/// Checks that the message went out over a connection that was verified like this.
#[track_caller]
fn check_sent(sent: &Sent, verified: TlsVerification) {
    assert_eq!(words(sent), "accepted 250 2.0.0", "{sent:?}");
    let tls = sent.dialogs.last().and_then(|dialog| dialog.tls.clone()).expect("TLS");
    assert_eq!((tls.version.as_str(), tls.verified), ("TLSv1.3", verified), "{sent:?}");
    assert!(tls.cipher.is_some_and(|cipher| cipher.starts_with("TLS_")));
}

/// Checks that nothing of the message went out for want of TLS, and the reason.
#[track_caller]
fn check_kept_back(bed: &Bed, sent: &Sent, code: &str, reason: &str) {
    let answer = sent.outcomes[0].answer().unwrap();
    assert_eq!(answer.class, OutcomeClass::TlsRequired, "{sent:?}");
    assert_eq!(answer.response.enhanced.as_deref(), Some(code), "{sent:?}");
    assert!(answer.response.text.contains(reason), "{}", answer.response.text);
    assert!(sent.dialogs.iter().all(|dialog| dialog.outcome == AttemptOutcome::Deferred), "{sent:?}");
    for server in &bed.servers {
        assert!(server.messages().is_empty());
        assert!(!server.commands().iter().any(|command| command.starts_with("MAIL") || command == "DATA"));
    }
}

#[tokio::test]
async fn the_certificate_that_signed_records_name_is_verified() {
    let bed = signed_bed().await;
    let (certificate, root) = (bed.first().certificate().unwrap(), bed.first().root().unwrap());
    let hash = digest(&SHA256, &certificate);
    let (hash, certificate, root): (&[u8], &[u8], &[u8]) = (hash.as_ref(), certificate.as_ref(), root.as_ref());
    for records in [
        vec![(3, 0, 1, hash)],
        vec![(3, 0, 0, certificate)],
        vec![(2, 0, 0, root)],
        vec![(3, 0, 1, WRONG), (1, 0, 1, WRONG), (3, 0, 1, hash)],
    ] {
        bed.dns.ttl(0);
        bed.dns.tlsa(&tlsa_name(&bed), &records);
        check_sent(&attempt(&trusting(&bed).build(), &usual()).await, TlsVerification::Dane);
    }
}

#[tokio::test]
async fn another_certificate_gets_nothing() {
    let bed = signed_bed().await;
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 1, WRONG)]);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_kept_back(&bed, &sent, "4.7.5", "TLSA");
}

#[tokio::test]
async fn an_exchanger_without_tls_gets_nothing_under_dane() {
    let bed = Bed::start(1).await;
    bed.dns.sign("b.test");
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 1, WRONG)]);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_kept_back(&bed, &sent, "4.7.10", "STARTTLS");
}

#[tokio::test]
async fn a_failed_handshake_does_not_lead_to_plain_text_under_dane() {
    let bed = signed_bed().await;
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 1, WRONG)]);
    bed.first().next(Stage::StartTls, Action::reply("454 4.7.0 not now"));
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_kept_back(&bed, &sent, "4.7.10", "454");
    assert_eq!(bed.connections(), [1]);
}

#[tokio::test]
async fn records_that_cannot_be_looked_up_keep_mail_back() {
    let bed = signed_bed().await;
    // A validating resolver answers SERVFAIL if a signature is wrong.
    bed.dns.fail(&tlsa_name(&bed), DnsFailure::ServFail);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_kept_back(&bed, &sent, "4.7.5", "could not be looked up");
    assert_eq!(bed.connections(), [0]);
}

#[tokio::test]
async fn records_that_cannot_be_followed_ask_for_tls_alone() {
    let bed = signed_bed().await;
    bed.dns.tlsa(&tlsa_name(&bed), &[(1, 0, 1, WRONG)]);
    check_sent(&attempt(&trusting(&bed).build(), &usual()).await, TlsVerification::None);
    let bed = Bed::start(1).await;
    bed.dns.sign("b.test");
    bed.dns.tlsa(&tlsa_name(&bed), &[(1, 0, 1, WRONG)]);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_kept_back(&bed, &sent, "4.7.10", "STARTTLS");
}

#[tokio::test]
async fn what_is_not_signed_or_not_believed_does_not_count() {
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().start_tls().named(&["mx1.b.test"])]).await;
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 1, WRONG)]);
    check_sent(&attempt(&trusting(&bed).build(), &usual()).await, TlsVerification::None);
    // The list of exchangers and their addresses have to be signed as well.
    bed.dns.sign(&tlsa_name(&bed));
    check_sent(&attempt(&trusting(&bed).build(), &usual()).await, TlsVerification::None);
    bed.dns.sign("b.test");
    check_sent(&attempt(&bed.delivery(), &usual()).await, TlsVerification::None);
}

/// Starts a first exchanger that is an alias of `mail.c.test`, for which its server has the certificate.
async fn alias_bed() -> (Bed, String) {
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().start_tls().named(&["mail.c.test"])]).await;
    bed.dns.remove("mx1.b.test");
    bed.dns.cname("mx1.b.test", "mail.c.test");
    bed.dns.addresses("mail.c.test", &[address(1)]);
    bed.dns.sign("b.test");
    let name = format!("_{}._tcp.mail.c.test", bed.port);
    (bed, name)
}

#[tokio::test]
async fn an_alias_has_the_records_of_the_name_that_it_leads_to() {
    let (bed, name) = alias_bed().await;
    bed.dns.sign("c.test");
    bed.dns.ttl(0);
    // The records of the alias itself count if there are no others.
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 1, WRONG)]);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_kept_back(&bed, &sent, "4.7.5", "TLSA");
    // The certificate is for the name that has the records.
    let root = bed.first().root().unwrap();
    bed.dns.tlsa(&name, &[(2, 0, 0, root.as_ref())]);
    check_sent(&attempt(&trusting(&bed).build(), &usual()).await, TlsVerification::Dane);
    bed.dns.fail(&name, DnsFailure::ServFail);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    assert!(words(&sent).starts_with("tls_required"), "{sent:?}");
}

#[tokio::test]
async fn an_alias_that_leads_out_of_signed_zones_has_its_own_records() {
    let (bed, name) = alias_bed().await;
    bed.dns.ttl(0);
    bed.dns.tlsa(&name, &[(3, 0, 1, WRONG)]);
    check_sent(&attempt(&trusting(&bed).build(), &usual()).await, TlsVerification::None);
    let certificate = bed.first().certificate().unwrap();
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 0, certificate.as_ref())]);
    check_sent(&attempt(&trusting(&bed).build(), &usual()).await, TlsVerification::Dane);
}

#[tokio::test]
async fn addresses_that_cannot_be_looked_up_keep_mail_back() {
    let bed = signed_bed().await;
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 1, WRONG)]);
    bed.dns.fail("mx1.b.test", DnsFailure::ServFail);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_kept_back(&bed, &sent, "4.7.5", "could not be looked up");
}

#[tokio::test]
async fn the_next_exchanger_is_tried() {
    let servers = [1, 2].map(|n| ScriptedSmtpServer::builder().start_tls().named(&[&format!("mx{n}.b.test")]));
    let bed = Bed::with(servers.into()).await;
    bed.dns.sign("b.test");
    bed.dns.tlsa(&tlsa_name(&bed), &[(3, 0, 1, WRONG)]);
    let sent = attempt(&trusting(&bed).build(), &usual()).await;
    check_sent(&sent, TlsVerification::None);
    assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Deferred), ("mx2.b.test", AttemptOutcome::Delivered)]);
    assert!(bed.first().messages().is_empty());
}

#[tokio::test]
async fn a_certificate_that_is_valid_is_noted() {
    let bed = signed_bed().await;
    let delivery = bed.builder().extra_root(bed.first().root().unwrap()).build();
    check_sent(&attempt(&delivery, &usual()).await, TlsVerification::Pkix);
}

#[tokio::test]
async fn a_sender_may_ask_for_tls() {
    let bed = Bed::start(1).await;
    let sent = attempt(&bed.delivery(), &requiring_tls()).await;
    check_kept_back(&bed, &sent, "4.7.10", "STARTTLS");

    let bed = signed_bed().await;
    check_sent(&attempt(&bed.delivery(), &requiring_tls()).await, TlsVerification::None);
}

#[tokio::test]
async fn a_kept_connection_in_clear_is_not_used_for_who_asks_for_tls() {
    let bed = signed_bed().await;
    let delivery = bed.delivery();
    bed.first().next(Stage::StartTls, Action::reply("454 4.7.0 not now"));
    let sent = attempt(&delivery, &usual()).await;
    assert_eq!((words(&sent).as_str(), &sent.dialogs[0].tls), ("accepted 250 2.0.0", &None));
    check_sent(&attempt(&delivery, &requiring_tls()).await, TlsVerification::None);
    let received = bed.first().messages();
    assert_eq!(received.iter().map(|one| one.is_tls).collect::<Vec<_>>(), [false, true]);
    // Messages of other senders use that connection too.
    check_sent(&attempt(&delivery, &usual()).await, TlsVerification::None);
    assert_eq!(bed.connections(), [3]);
}

/// Policies in memory; they cannot be read while the switch is on.
#[derive(Debug, Default)]
struct Kept(Mutex<HashMap<String, StsPolicy>>, AtomicBool);

#[async_trait]
impl StsPolicyCache for Kept {
    async fn policy(&self, domain: &str) -> Result<Option<StsPolicy>, PolicyUnread> {
        if self.1.load(Ordering::Relaxed) { Err(PolicyUnread) } else { Ok(self.0.lock().unwrap().get(domain).cloned()) }
    }

    async fn keep(&self, policy: &StsPolicy) {
        self.0.lock().unwrap().insert(policy.domain.clone(), policy.clone());
    }
}

/// A domain with a web server that has its policy.
struct Sts {
    bed: Bed,
    web: ScriptedHttpServer,
    kept: Arc<Kept>,
}

impl Sts {
    async fn start(server: ScriptedSmtpServerBuilder, policy: &str) -> Self {
        let bed = Bed::with(vec![server]).await;
        let web = ScriptedHttpServer::tls(&["mta-sts.b.test"]).await;
        bed.dns.ttl(0);
        bed.dns.addresses("mta-sts.b.test", &[address(1)]);
        bed.dns.txt("_mta-sts.b.test", &["v=STSv1; id=1;"]);
        let sts = Self { bed, web, kept: Arc::default() };
        sts.publish(policy);
        sts
    }

    fn publish(&self, policy: &str) {
        let headers = vec![("content-type", "Text/Plain; charset=utf-8".to_owned())];
        self.web.always(HttpAnswer::Headers(200, headers, policy.to_owned()));
    }

    /// Returns a client that trusts the issuers of both servers' certificates, and has the kept policies.
    fn delivery(&self) -> DirectDelivery {
        let fetch = GuardedFetch::builder(Dns::new(Some(self.bed.dns.addr())))
            .allow_private(true)
            .root(self.web.root().unwrap())
            .connect_instead(self.web.address());
        let kept: Arc<dyn StsPolicyCache> = Arc::clone(&self.kept) as Arc<dyn StsPolicyCache>;
        let builder = self.bed.builder().mta_sts(Arc::new(fetch.build()), kept);
        match self.bed.first().root() {
            Some(root) => builder.extra_root(root).build(),
            None => builder.build(),
        }
    }
}

fn policy(mode: &str, mx: &str) -> String {
    format!("version: STSv1\r\nmode: {mode}\r\nmx: {mx}\r\nmax_age: 86400\r\n")
}

fn named(name: &str) -> ScriptedSmtpServerBuilder {
    ScriptedSmtpServer::builder().start_tls().named(&[name])
}

#[tokio::test]
async fn a_policy_is_fetched_once_and_followed() {
    let sts = Sts::start(named("mx1.b.test"), &policy("enforce", "*.b.test")).await;
    let delivery = sts.delivery();
    for _ in 0..2 {
        check_sent(&attempt(&delivery, &usual()).await, TlsVerification::MtaSts);
    }
    let requests = sts.web.requests();
    assert_eq!(requests.iter().map(|one| one.target.as_str()).collect::<Vec<_>>(), ["/.well-known/mta-sts.txt"]);
    assert_eq!(requests[0].header("host"), "mta-sts.b.test");
    // Another process finds it kept.
    check_sent(&attempt(&sts.delivery(), &usual()).await, TlsVerification::MtaSts);
    assert_eq!(sts.web.requests().len(), 1);
}

#[tokio::test]
async fn an_enforced_policy_keeps_mail_from_other_servers() {
    for (server, mx, code, reason) in [
        (named("mx1.b.test"), "mx2.b.test", "4.7.5", "does not list"),
        (named("elsewhere.test"), "mx1.b.test", "4.7.5", "not valid"),
        (ScriptedSmtpServer::builder(), "mx1.b.test", "4.7.10", "STARTTLS"),
    ] {
        let sts = Sts::start(server, &policy("enforce", mx)).await;
        let sent = attempt(&sts.delivery(), &usual()).await;
        check_kept_back(&sts.bed, &sent, code, reason);
    }
}

#[tokio::test]
async fn a_tested_policy_keeps_nothing_back() {
    for (server, mx, verified, reason) in [
        (named("mx1.b.test"), "mx1.b.test", Some(TlsVerification::MtaSts), None),
        (named("mx1.b.test"), "mx2.b.test", Some(TlsVerification::Pkix), Some("does not list")),
        (named("elsewhere.test"), "mx1.b.test", Some(TlsVerification::None), Some("not valid")),
        (ScriptedSmtpServer::builder(), "mx1.b.test", None, Some("speaks no TLS")),
    ] {
        let sts = Sts::start(server, &policy("testing", mx)).await;
        let sent = attempt(&sts.delivery(), &usual()).await;
        assert_eq!(words(&sent), "accepted 250 2.0.0");
        let dialog = sent.dialogs.last().unwrap();
        assert_eq!(dialog.tls.as_ref().map(|tls| tls.verified), verified, "{reason:?}");
        match reason {
            Some(reason) => assert!(dialog.tls_failure.as_deref().unwrap().contains(reason), "{dialog:?}"),
            None => assert_eq!(dialog.tls_failure, None),
        }
    }
}

#[tokio::test]
async fn a_policy_that_cannot_be_fetched_is_none_and_does_not_end_another() {
    let sts = Sts::start(ScriptedSmtpServer::builder(), "").await;
    for answer in [
        HttpAnswer::status(404),
        HttpAnswer::Headers(301, vec![("location", "https://mta-sts.b.test/other".to_owned())], String::new()),
        HttpAnswer::Headers(200, vec![("content-type", "text/html".to_owned())], policy("enforce", "mx1.b.test")),
        HttpAnswer::Status(200, "x".repeat(70_000)),
        HttpAnswer::Status(200, "no policy".to_owned()),
    ] {
        sts.web.always(answer.clone());
        // Each attempt has a new client with nothing in memory.
        let sent = attempt(&sts.delivery(), &usual()).await;
        assert_eq!(words(&sent), "accepted 250 2.0.0", "{answer:?}");
        assert!(sts.kept.0.lock().unwrap().is_empty(), "{answer:?}");
    }
    sts.publish(&policy("enforce", "mx9.b.test"));
    assert!(words(&attempt(&sts.delivery(), &usual()).await).starts_with("tls_required"));
    // First a new id whose policy cannot be fetched, then no record at all.
    sts.web.always(HttpAnswer::status(500));
    sts.bed.dns.txt("_mta-sts.b.test", &["v=STSv1; id=2;"]);
    assert!(words(&attempt(&sts.delivery(), &usual()).await).starts_with("tls_required"));
    sts.bed.dns.remove("_mta-sts.b.test");
    assert!(words(&attempt(&sts.delivery(), &usual()).await).starts_with("tls_required"));
    // The domain withdraws its policy.
    sts.publish("version: STSv1\nmode: none\nmax_age: 86400\n");
    sts.bed.dns.txt("_mta-sts.b.test", &["v=STSv1; id=3;"]);
    assert_eq!(words(&attempt(&sts.delivery(), &usual()).await), "accepted 250 2.0.0");
    assert_eq!(sts.kept.0.lock().unwrap()["b.test"].id, "3");
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_is_not_taken_for_none() {
    let sts = Sts::start(ScriptedSmtpServer::builder(), &policy("enforce", "mx1.b.test")).await;
    assert!(words(&attempt(&sts.delivery(), &usual()).await).starts_with("tls_required"));
    // An attacker who hides the record cannot take away the kept policy.
    sts.bed.dns.remove("_mta-sts.b.test");
    sts.kept.1.store(true, Ordering::Relaxed);
    let delivery = sts.delivery();
    check_kept_back(&sts.bed, &attempt(&delivery, &usual()).await, "4.7.5", "cannot be read");
    // The failure is not remembered: the policy that is kept holds as soon as it can be read.
    sts.kept.1.store(false, Ordering::Relaxed);
    check_kept_back(&sts.bed, &attempt(&delivery, &usual()).await, "4.7.10", "STARTTLS");
    // A domain without a policy gets its mail again.
    sts.kept.0.lock().unwrap().clear();
    assert_eq!(words(&attempt(&sts.delivery(), &usual()).await), "accepted 250 2.0.0");
}
