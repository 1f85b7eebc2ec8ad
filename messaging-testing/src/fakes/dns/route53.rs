//! Fake of Amazon Route 53, API version 2013-04-01. It checks Signature Version 4 as Amazon does: over the request as
//! received.

use ring::digest::{SHA256, digest};
use ring::hmac;

use super::{FakeDnsRecord, FakeDnsZone, Obstacle, is_quoted, parameter, parts};
use crate::fakes::signed::hex;
use crate::fakes::{FakeAnswer, FakeApi, FakeRequest, Refusal, Submission, fresh};

/// The id of the zone.
const ZONE: &str = "Z1D633PJN98FT9";

/// An account with one public zone.
#[derive(Debug, Clone)]
pub struct FakeRoute53 {
    access_key_id: String,
    secret_access_key: String,
    zone: FakeDnsZone,
}

impl FakeRoute53 {
    /// Creates an account that the access key opens.
    pub fn new(access_key_id: &str, secret_access_key: &str, zone: FakeDnsZone) -> Self {
        let (access_key_id, secret_access_key) = (access_key_id.to_owned(), secret_access_key.to_owned());
        Self { access_key_id, secret_access_key, zone }
    }

    fn answer(&self, request: &FakeRequest) -> FakeAnswer {
        if let Err(code) = self.check(request) {
            return error(403, code, "The request signature we calculated does not match the signature you provided.");
        }
        match (request.method.as_str(), parts(request).as_slice()) {
            ("GET", [_, "hostedzonesbyname"]) => self.zones(&parameter(request, "dnsname")),
            (_, [_, "hostedzone", zone, ..]) if *zone != ZONE => error(404, "NoSuchHostedZone", "No hosted zone found"),
            ("GET", [_, _, _, "rrset"]) => self.sets(parameter(request, "name").trim_end_matches('.')),
            ("POST", [_, _, _, "rrset"]) => self.change(&String::from_utf8_lossy(&request.body)),
            _ => error(404, "UnknownOperationException", "No such operation"),
        }
    }

    /// Checks the signature of this request; `Err` is the code of the error.
    fn check(&self, request: &FakeRequest) -> Result<(), &'static str> {
        let header = request.header("authorization");
        let field = |name: &str| header.split([' ', ',']).find_map(|part| part.strip_prefix(name)).unwrap_or_default();
        let (scope, names, signature) = (field("Credential="), field("SignedHeaders="), field("Signature="));
        let mut scope_parts = scope.split('/');
        let (id, day) = (scope_parts.next().unwrap_or_default(), scope_parts.next().unwrap_or_default());
        let date = request.header("x-amz-date");
        if id != self.access_key_id {
            return Err("InvalidClientTokenId");
        }
        if !date.starts_with(day) || scope != format!("{id}/{day}/us-east-1/route53/aws4_request") {
            return Err("SignatureDoesNotMatch");
        }
        if !names.split(';').any(|name| name == "host") || !names.split(';').any(|name| name == "x-amz-date") {
            return Err("SignatureDoesNotMatch");
        }
        let (path, query) = request.target.split_once('?').unwrap_or((request.target.as_str(), ""));
        let mut pairs: Vec<_> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        pairs.sort_unstable();
        let headers: String = names.split(';').map(|name| format!("{name}:{}\n", request.header(name))).collect();
        let content = hex(digest(&SHA256, &request.body).as_ref());
        let canonical = format!("{}\n{path}\n{}\n{headers}\n{names}\n{content}", request.method, pairs.join("&"));
        let scope = scope.split_once('/').map_or("", |(_, scope)| scope);
        let text =
            format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(digest(&SHA256, canonical.as_bytes()).as_ref()));
        let sign = |key: &[u8], text: &str| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
        };
        let first = format!("AWS4{}", self.secret_access_key).into_bytes();
        let key = scope.split('/').fold(first, |key, part| sign(&key, part));
        if hex(&sign(&key, &text)) == signature { Ok(()) } else { Err("SignatureDoesNotMatch") }
    }

    /// Returns the zones in the order of their names, beginning at a name.
    fn zones(&self, from: &str) -> FakeAnswer {
        let zone = |id: &str, name: &str, private: bool| {
            format!(
                "<HostedZone><Id>/hostedzone/{id}</Id><Name>{name}.</Name><CallerReference>x</CallerReference><Config>\
                 <PrivateZone>{private}</PrivateZone></Config></HostedZone>"
            )
        };
        let name = &*self.zone.name;
        let ours = if from.trim_end_matches('.') == name {
            // A private zone of the same name.
            zone("ZPRIVATE", name, true) + &zone(ZONE, name, false)
        } else {
            String::new()
        };
        xml(
            200,
            &format!(
                "<ListHostedZonesByNameResponse><HostedZones>{ours}{}</HostedZones>\
            <IsTruncated>false</IsTruncated></ListHostedZonesByNameResponse>",
                zone("ZOTHER", "zz.test", false)
            ),
        )
    }

    /// Returns the record sets from a name on: those of the name, and one of another.
    fn sets(&self, from: &str) -> FakeAnswer {
        let mut records = self.zone.at(from);
        records.sort_by(|one, other| one.kind.cmp(&other.kind));
        let mut all = String::new();
        for group in records.chunk_by(|one, other| one.kind == other.kind) {
            all.push_str(&set(group));
        }
        let other =
            FakeDnsRecord { id: 0, host: "zz.zz".to_owned(), kind: "A".to_owned(), value: "192.0.2.1".to_owned() };
        all.push_str(&set(&[other]));
        xml(
            200,
            &format!(
                "<ListResourceRecordSetsResponse><ResourceRecordSets>{all}</ResourceRecordSets>\
            <IsTruncated>false</IsTruncated></ListResourceRecordSetsResponse>"
            ),
        )
    }

    /// Carries out a batch as a whole, or nothing of it.
    fn change(&self, body: &str) -> FakeAnswer {
        let before = self.zone.lock().clone();
        for change in body.split("<Change>").skip(1) {
            let set = between(change, "<ResourceRecordSet>", "</ResourceRecordSet>");
            let host = between(set, "<Name>", "</Name>").trim_end_matches('.').to_owned();
            let kind = between(set, "<Type>", "</Type>").to_owned();
            let values: Vec<_> = set
                .split("<Value>")
                .skip(1)
                .map(|rest| unescaped(between(&format!("<Value>{rest}"), "<Value>", "</Value>")))
                .collect();
            let problem = match between(change, "<Action>", "</Action>") {
                "DELETE" => self.delete(&host, &kind, &values),
                "CREATE" => self.create(&host, &kind, &values),
                _ => Some("Unknown action".to_owned()),
            };
            if let Some(problem) = problem {
                *self.zone.lock() = before;
                return xml(
                    400,
                    &format!(
                        "<InvalidChangeBatch><Messages><Message>{problem}</Message></Messages></InvalidChangeBatch>"
                    ),
                );
            }
        }
        xml(
            200,
            "<ChangeResourceRecordSetsResponse><ChangeInfo><Status>PENDING</Status></ChangeInfo></ChangeResourceRecordSetsResponse>",
        )
    }

    fn delete(&self, host: &str, kind: &str, values: &[String]) -> Option<String> {
        if self.zone.values(host, kind) != values {
            return Some(format!(
                "Tried to delete resource record set [name='{host}.', type='{kind}'] but it was not found"
            ));
        }
        self.zone.remove(host, kind);
        None
    }

    fn create(&self, host: &str, kind: &str, values: &[String]) -> Option<String> {
        let is_right = |value: &String| match kind {
            "TXT" => is_quoted(value),
            _ => !value.is_empty(),
        };
        if !self.zone.holds(host) || values.is_empty() || !values.iter().all(is_right) {
            return Some("Invalid Resource Record".to_owned());
        }
        if !self.zone.values(host, kind).is_empty() {
            return Some(format!(
                "Tried to create resource record set [name='{host}.', type='{kind}'] but it already exists"
            ));
        }
        if self.zone.obstacle(host, kind, "") == Some(Obstacle::Alias) {
            return Some("RRSet of type CNAME conflicts with other records".to_owned());
        }
        for value in values {
            let (host, kind, value) = (host.to_owned(), kind.to_owned(), value.clone());
            self.zone.lock().push(FakeDnsRecord { id: fresh(), host, kind, value });
        }
        None
    }
}

/// Records of one name and type.
fn set(records: &[FakeDnsRecord]) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let values: String = records
        .iter()
        .map(|record| format!("<ResourceRecord><Value>{}</Value></ResourceRecord>", escaped(&record.value)))
        .collect();
    let (host, kind) = (&records[0].host, &records[0].kind);
    format!(
        "<ResourceRecordSet><Name>{host}.</Name><Type>{kind}</Type><TTL>300</TTL><ResourceRecords>{values}</ResourceRecords>\
         </ResourceRecordSet>"
    )
}

/// Returns the text between two marks; empty if one is missing.
fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    text.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map_or("", |(inner, _)| inner)
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn xml(status: u16, content: &str) -> FakeAnswer {
    FakeAnswer::text(status, "text/xml", format!("<?xml version=\"1.0\"?>\n{content}"))
}

fn error(status: u16, code: &str, message: &str) -> FakeAnswer {
    let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>");
    xml(status, &format!("<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>"))
}

impl FakeApi for FakeRoute53 {
    fn read(&self, request: &FakeRequest) -> Result<Submission, FakeAnswer> {
        Err(self.answer(request))
    }

    fn accepted(&self, _: &Submission) -> FakeAnswer {
        xml(200, "")
    }

    fn refused(&self, _: &Submission, _: Refusal) -> FakeAnswer {
        error(400, "InvalidInput", "invalid")
    }
}
