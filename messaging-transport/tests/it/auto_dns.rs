//! DNS providers: zones are found, read and written through the API of each.

mod bind;
mod name_servers;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::mail::auto_dns::{DnsCredentials, DnsProviderName, HostRecords};
use messaging_core::domain::mail::dns_record::RecordType::{self, Cname, Mx, Txt};
use messaging_core::ports::dns_provider::{DnsProvider, DnsProviderError, DnsZone};
use messaging_testing::fakes::{
    FakeAnswer, FakeCloudflare, FakeDigitalOcean, FakeDnsZone, FakeHetzner, FakeProvider, FakeRoute53,
};
use messaging_transport::auto_dns::{ApiBases, providers};
use messaging_transport::{Dns, GuardedFetch, Options};

const TOKEN: &str = "the-token";
const SECRET: &str = "the-secret";

/// Returns a provider that may be called on this machine; one of them at another base URL.
fn provider(name: DnsProviderName, base: Option<String>) -> Arc<dyn DnsProvider> {
    let mut options = Options::new("mx.service.test");
    options.allow_private = true;
    let fetch = GuardedFetch::builder(Dns::new(None)).allow_private(true).build();
    options.fetch = Arc::new(fetch);
    let bases: ApiBases = base.map(|base| (name, base)).into_iter().collect();
    let found = providers(&options, &bases).into_iter().find(|(found, _)| *found == name);
    found.unwrap().1
}

fn credentials(name: DnsProviderName, secret: &str) -> DnsCredentials {
    let json = match name {
        DnsProviderName::Route53 => serde_json::json!({"access_key_id": TOKEN, "secret_access_key": secret}),
        _ => serde_json::json!({"api_token": secret}),
    };
    serde_json::from_value(json).unwrap()
}

/// A provider with the zone `acme.test`, its fake, and its credentials.
struct Bed {
    name: DnsProviderName,
    fake: FakeProvider,
    zone: FakeDnsZone,
    provider: Arc<dyn DnsProvider>,
    secret: &'static str,
}

impl Bed {
    async fn start(name: DnsProviderName) -> Self {
        let zone = FakeDnsZone::new("acme.test");
        let z = zone.clone();
        let fake = match name {
            DnsProviderName::Cloudflare => FakeProvider::start(FakeCloudflare::new(TOKEN, z)).await,
            DnsProviderName::DigitalOcean => FakeProvider::start(FakeDigitalOcean::new(TOKEN, z)).await,
            DnsProviderName::Hetzner => FakeProvider::start(FakeHetzner::new(TOKEN, z)).await,
            DnsProviderName::Route53 => FakeProvider::start(FakeRoute53::new(TOKEN, SECRET, z)).await,
            DnsProviderName::Rfc2136 => panic!("no HTTP"),
        };
        let fake = fake.unwrap();
        let provider = provider(name, Some(fake.url()));
        let secret = if name == DnsProviderName::Route53 { SECRET } else { TOKEN };
        Self { name, fake, zone, provider, secret }
    }

    async fn open(&self) -> Box<dyn DnsZone> {
        self.provider.zone(&credentials(self.name, self.secret), "mail.acme.test").await.unwrap()
    }

    /// Returns a text as this API shows it.
    fn shown(&self, text: &str) -> String {
        if self.name == DnsProviderName::DigitalOcean { text.to_owned() } else { format!("\"{text}\"") }
    }
}

const HTTP: [DnsProviderName; 4] =
    [DnsProviderName::Cloudflare, DnsProviderName::DigitalOcean, DnsProviderName::Hetzner, DnsProviderName::Route53];

fn list(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

/// Checks what every zone must do: texts beside others, changed in place and removed, exchangers and aliases.
async fn write_and_read(zone: &dyn DnsZone, what: &str) {
    let put = async |host: &str, kind: RecordType, before: &[&str], after: &[&str]| {
        zone.replace(host, kind, &list(before), &list(after)).await
    };
    let host = "bounce.acme.test";
    assert_eq!(zone.at(host).await.unwrap(), HostRecords::default(), "{what}");
    let long = format!("v=DKIM1; k=rsa; p={}", "A".repeat(400));
    put(host, Txt, &[], &["note"]).await.unwrap();
    put(host, Txt, &["note"], &["note", &long]).await.unwrap();
    put(host, Mx, &[], &["10 mx.service.test"]).await.unwrap();
    let mut found = zone.at(host).await.unwrap();
    found.txt.sort();
    assert_eq!((found.txt, found.mx), (list(&["note", &long]), list(&["10 mx.service.test"])), "{what}");
    // Another program was faster.
    assert_eq!(put(host, Txt, &["note"], &["note", "x"]).await, Err(DnsProviderError::Changed), "{what}");
    assert_eq!(put(host, Mx, &[], &["10 b.test"]).await, Err(DnsProviderError::Changed), "{what}");
    put(host, Txt, &["note", &long], &["note", "v=spf1 -all"]).await.unwrap();
    put(host, Txt, &["note", "v=spf1 -all"], &["note"]).await.unwrap();
    put(host, Mx, &["10 mx.service.test"], &[]).await.unwrap();
    let found = zone.at(host).await.unwrap();
    assert_eq!((found.txt, found.mx), (list(&["note"]), list(&[])), "{what}");
    put("links.acme.test", Cname, &[], &["track.service.test"]).await.unwrap();
    assert_eq!(zone.at("links.acme.test").await.unwrap().cname, list(&["track.service.test"]), "{what}");
    // An alias stands alone, and the provider says so.
    let beside = put("links.acme.test", Txt, &[], &["x"]).await;
    assert!(
        matches!(beside, Err(DnsProviderError::Refused(_))) || zone.at("links.acme.test").await.unwrap().txt.is_empty()
    );
}

#[tokio::test]
async fn zones_are_written_and_read_back() {
    for name in HTTP {
        let bed = Bed::start(name).await;
        let zone = bed.open().await;
        assert_eq!(zone.name(), "acme.test");
        write_and_read(zone.as_ref(), name.name()).await;
        assert_eq!(bed.zone.values("bounce.acme.test", "TXT"), [bed.shown("note")], "{name:?}");
    }
}

#[tokio::test]
async fn what_others_have_is_read_and_left() {
    for name in HTTP {
        let bed = Bed::start(name).await;
        bed.zone.add("www.acme.test", "A", "192.0.2.1");
        bed.zone.add("acme.test", "TXT", &bed.shown("v=spf1 -all"));
        let zone = bed.open().await;
        assert!(zone.at("www.acme.test").await.unwrap().has_others, "{name:?}");
        assert_eq!(zone.at("acme.test").await.unwrap().txt, ["v=spf1 -all"], "{name:?}");
        zone.replace("acme.test", Txt, &list(&["v=spf1 -all"]), &list(&["v=spf1 -all", "b"])).await.unwrap();
        assert_eq!(bed.zone.values("acme.test", "TXT").len(), 2, "{name:?}");
        assert_eq!(bed.zone.values("www.acme.test", "A"), ["192.0.2.1"], "{name:?}");
    }
}

#[tokio::test]
async fn an_alias_that_cloudflare_answers_itself_is_told() {
    let bed = Bed::start(DnsProviderName::Cloudflare).await;
    let zone = bed.open().await;
    for is_proxied in [false, true] {
        let record = serde_json::json!({"id": "1", "name": "links.acme.test", "type": "CNAME", "ttl": 1,
            "content": "track.service.test", "proxied": is_proxied});
        let body = serde_json::json!({"success": true, "errors": [], "result": [record]});
        bed.fake.next_answer(FakeAnswer::json(200, &body));
        let found = zone.at("links.acme.test").await.unwrap();
        assert_eq!((found.cname, found.is_proxied), (list(&["track.service.test"]), is_proxied));
    }
}

#[tokio::test]
async fn a_no_with_a_status_of_success_is_a_no() {
    let bed = Bed::start(DnsProviderName::Cloudflare).await;
    let zone = bed.open().await;
    let body = r#"{"success": false, "errors": [{"code": 1004, "message": "DNS Validation Error"}], "result": null}"#;
    bed.fake.next_answer(FakeAnswer::text(200, "application/json", body));
    let refused = zone.at("bounce.acme.test").await;
    assert_eq!(refused, Err(DnsProviderError::Refused("DNS Validation Error (1004)".to_owned())));
}

#[tokio::test]
async fn credentials_and_zones_are_told_apart() {
    for name in HTTP {
        let bed = Bed::start(name).await;
        let wrong = bed.provider.zone(&credentials(name, "wrong"), "acme.test").await;
        assert!(matches!(wrong, Err(DnsProviderError::Credentials(words)) if words.len() > 5), "{name:?}");
        let none = bed.provider.zone(&credentials(name, bed.secret), "elsewhere.test").await;
        assert_eq!(none.map(|_| ()), Err(DnsProviderError::NoZone), "{name:?}");
        for status in [429, 500, 503] {
            bed.fake.next_answer(FakeAnswer::text(status, "text/plain", "no"));
            let away = bed.provider.zone(&credentials(name, bed.secret), "acme.test").await;
            assert!(matches!(away, Err(DnsProviderError::Away(_))), "{name:?} {status}");
        }
        let busy = FakeAnswer::text(429, "text/plain", "no").header("retry-after", "120");
        bed.fake.next_answer(busy);
        let later = bed.provider.zone(&credentials(name, bed.secret), "acme.test").await.map(|_| ());
        assert!(
            matches!(&later, Err(DnsProviderError::Later(_, wait)) if *wait == Duration::from_mins(2)),
            "{name:?} {later:?}"
        );
        bed.fake.next_answer(FakeAnswer::text(200, "text/plain", "no API"));
        let odd = bed.provider.zone(&credentials(name, bed.secret), "acme.test").await;
        assert!(odd.is_err(), "{name:?}");
    }
}
