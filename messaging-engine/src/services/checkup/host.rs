//! Checks of the host that mail leaves from.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use messaging_core::domain::installation::checkup::{
    Address, CertificateFact, CheckReport, InboundFact, LookUp, Outbound, judge_address, judge_blocklist, judge_clock,
    judge_disk, judge_files, judge_host_spf, judge_inbound, judge_name, judge_port25_out, judge_ptr, judge_resolver,
    judge_secret_key, judge_smtp_certificate, judge_sts, judge_tls, judge_tlsa, skipped_blocklist, skipped_ptr,
};
use messaging_core::domain::mail::domain_name::{is_fully_qualified, reversed};
use messaging_core::domain::mail::mta_sts::policy_id;
use messaging_core::domain::mail::sending_domain::BOUNCE_LABEL;
use messaging_core::domain::mail::spf::{Evaluation, Step, evaluate};
use messaging_core::ports::HostProbe;
use messaging_core::ports::resolver::{LookupError, Resolver};

use crate::app::checks::CheckOptions;
use crate::services::spf_looks;

/// Time limit for one look-up.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Number of the host's addresses that are checked; it has a few.
const MAX_ADDRESSES: usize = 8;

/// Number of an address's names that are looked up in turn.
const MAX_NAMES: usize = 8;

/// Largest number of blocklists that are queried.
pub const MAX_BLOCKLISTS: usize = 16;

/// The port of mail servers.
const SMTP: u16 = 25;

/// The port of time servers.
const NTP: u16 = 123;

/// The host to check, and the means of the checks.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// DNS resolver.
    pub resolver: &'a dyn Resolver,
    /// Access to sockets, files and the clock.
    pub probe: &'a dyn HostProbe,
    /// Options of the checks, such as blocklists and the time server; all of them may be left out.
    pub options: &'a CheckOptions,
    /// EHLO name.
    pub hostname: &'a str,
    /// Name of the installation; `None` before its first start.
    pub installation: Option<&'a str>,
    /// Base URL of public links.
    pub public_url: &'a str,
}

/// Runs the checks of the host and reports in the order of contract section 22. Needs no database. Takes some seconds,
/// at most half a minute.
pub async fn check_host(host: &Host<'_>) -> Vec<CheckReport> {
    let name = judge_name(host.hostname, host.installation);
    let (of_names, port25_out, inbound, tls, clock, machine, resolver, certificates) = tokio::join!(
        of_names(host),
        async { judge_port25_out(&outbound(host).await) },
        inbound(host),
        tls(host),
        clock(host),
        machine(host),
        resolver(host),
        certificates(host),
    );
    let OfNames { address, ptr, spf, blocklist } = of_names;
    let before = [name, address].into_iter().chain(ptr).chain([spf, port25_out, inbound, tls, clock]);
    before.chain(machine).chain([resolver]).chain(blocklist).chain(certificates).collect()
}

/// Looks up the addresses of a name; an error says why there is no answer.
async fn addresses(host: &Host<'_>, name: &str) -> LookUp<Vec<IpAddr>> {
    let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if let Ok(address) = literal.parse() {
        return Ok(vec![address]);
    }
    let mut found = answer(host.resolver.addresses(name)).await?;
    found.truncate(MAX_ADDRESSES);
    Ok(found)
}

async fn answer<T>(question: impl Future<Output = Result<T, LookupError>>) -> LookUp<T> {
    match tokio::time::timeout(ANSWER_WITHIN, question).await {
        Ok(answer) => answer.map_err(|LookupError(reason)| reason),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

/// Reports that depend on the names and addresses of the host.
struct OfNames {
    address: CheckReport,
    ptr: Vec<CheckReport>,
    spf: CheckReport,
    blocklist: Vec<CheckReport>,
}

async fn of_names(host: &Host<'_>) -> OfNames {
    let judged = |ip: IpAddr| Address { ip, is_public: host.probe.counts_as_public(ip) };
    let is_named = is_fully_qualified(host.hostname);
    let of_hostname = async { if is_named { addresses(host, host.hostname).await } else { Ok(Vec::new()) } };
    let (found, leaving) = tokio::join!(of_hostname, host.probe.outgoing_addresses());
    let found: LookUp<Vec<_>> = found.map(|found| found.into_iter().map(judged).collect());
    // The machine's own addresses say something only if they are not translated by a router.
    let mut leaving: Vec<_> = leaving.into_iter().filter(|ip| is_global(*ip)).map(judged).collect();
    // If sources are named, mail leaves from nowhere else, and each has a name of its own.
    let sources = &host.options.sources;
    if !sources.is_empty() {
        leaving.clear();
    }
    let address = judge_address(host.hostname, &found, &leaving);
    let of_sources: Vec<_> = sources.iter().filter_map(|source| source.ip.ip()).map(judged).collect();
    let known = of_sources.iter().chain(found.iter().flatten()).chain(&leaving);
    let mut public: Vec<_> = known.filter(|address| address.is_public).copied().collect();
    public.sort_by_key(|address| address.ip);
    public.dedup();
    public.truncate(MAX_ADDRESSES + sources.len());
    let name = host.installation.unwrap_or(host.hostname);
    let (ptr, spf, blocklist) = tokio::join!(ptr(host, &public), spf(host, name), blocklists(host, &public));
    OfNames { address, ptr, spf: judge_host_spf(name, &spf, &public), blocklist }
}

/// Returns true if an address is global, so that no other machine on the internet has it, whatever counts as public
/// here.
fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified() || ip.is_documentation())
                // Shared by the customers of a provider (RFC 6598), benchmarks (RFC 2544).
                && !(ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64)
                && !(ip.octets()[0] == 198 && ip.octets()[1] & 0xFE == 18)
        }
        IpAddr::V6(ip) => ip.segments()[0] & 0xE000 == 0x2000 && ip.segments()[..2] != [0x2001, 0x0db8],
    }
}

async fn ptr(host: &Host<'_>, public: &[Address]) -> Vec<CheckReport> {
    if public.is_empty() {
        return vec![skipped_ptr(host.hostname)];
    }
    let ips: Vec<_> = public.iter().map(|address| address.ip).collect();
    join_all(ips.into_iter().map(|ip| ptr_of(*host, ip))).await
}

async fn ptr_of(host: Host<'_>, ip: IpAddr) -> CheckReport {
    let names = match answer(host.resolver.names(ip)).await {
        Ok(mut names) => {
            names.truncate(MAX_NAMES);
            Ok(join_all(names.into_iter().map(|name| back(host, name))).await)
        }
        Err(reason) => Err(reason),
    };
    let source = host.options.sources.iter().find(|source| source.ip.ip() == Some(ip));
    judge_ptr(ip, source.map_or(host.hostname, |source| source.name.as_str()), &names)
}

/// Looks up the addresses of a name.
async fn back(host: Host<'_>, name: String) -> (String, LookUp<Vec<IpAddr>>) {
    let back = answer(host.resolver.addresses(&name)).await;
    (name, back)
}

async fn spf(host: &Host<'_>, name: &str) -> LookUp<Evaluation> {
    if !is_fully_qualified(name) {
        return Ok(Evaluation::default());
    }
    spf_looks::followed(host.resolver, |answers| match evaluate(name, answers) {
        Step::Done(done) => Ok(done),
        Step::Ask(missing) => Err(missing),
    })
    .await
}

async fn blocklists(host: &Host<'_>, public: &[Address]) -> Vec<CheckReport> {
    let zones = &host.options.blocklists;
    if zones.is_empty() {
        return vec![skipped_blocklist("No blocklist was named.", "messaging doctor --blocklists ZONE,…")];
    }
    if public.is_empty() {
        return vec![skipped_blocklist("No public address of this machine is known.", "see the check address")];
    }
    let of_zone = |zone: &String| public.iter().map(|address| (zone.clone(), address.ip)).collect::<Vec<_>>();
    let pairs: Vec<_> = zones.iter().take(MAX_BLOCKLISTS).flat_map(of_zone).collect();
    join_all(pairs.into_iter().map(|(zone, ip)| blocklist(*host, zone, ip))).await
}

async fn blocklist(host: Host<'_>, zone: String, ip: IpAddr) -> CheckReport {
    let name = format!("{}.{zone}", reversed(ip));
    judge_blocklist(&zone, ip, &answer(host.resolver.addresses(&name)).await)
}

/// Tries to reach a mail server.
async fn outbound(host: &Host<'_>) -> Outbound {
    if let Some((name, port)) = &host.options.mx_override {
        let shown = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        return match host.probe.system_addresses(name).await {
            Ok(found) if !found.is_empty() => greeted(host, shown, &found, *port).await,
            Ok(_) => Outbound::NoHost { domain: shown, reason: "its name has no address".to_owned() },
            Err(reason) => Outbound::NoHost { domain: shown, reason },
        };
    }
    let Some(domain) = host.options.probe.clone() else { return Outbound::NotAsked };
    let none = |reason: &str| Outbound::NoHost { domain: domain.clone(), reason: reason.to_owned() };
    let exchangers = match answer(host.resolver.mx(&domain)).await {
        Ok(exchangers) => exchangers,
        Err(reason) => return none(&reason),
    };
    // RFC 7505, and RFC 5321 section 5.1 for a domain without MX records.
    let exchanger = match exchangers.into_iter().min() {
        Some((_, name)) if name.is_empty() => return none("it says that it receives no mail"),
        Some((_, name)) => name,
        None => domain.clone(),
    };
    match addresses(host, &exchanger).await {
        Ok(found) if found.is_empty() => none("its mail server has no address"),
        Ok(found) => {
            let public: Vec<_> = found.into_iter().filter(|ip| host.probe.counts_as_public(*ip)).collect();
            if public.is_empty() {
                return none("its mail server has private addresses only");
            }
            greeted(host, format!("{exchanger}:{SMTP}"), &public, SMTP).await
        }
        Err(reason) => none(&reason),
    }
}

/// Reads the greetings of the first IPv4 and the first IPv6 address.
async fn greeted(host: &Host<'_>, shown: String, found: &[IpAddr], port: u16) -> Outbound {
    let first = |is_v4: bool| found.iter().find(move |ip| ip.is_ipv4() == is_v4).copied();
    let chosen: Vec<_> = [first(true), first(false)].into_iter().flatten().collect();
    let greetings = join_all(chosen.into_iter().map(|ip| greeting(*host, ip, port))).await;
    Outbound::Tried { host: shown, greetings }
}

async fn greeting(host: Host<'_>, ip: IpAddr, port: u16) -> (IpAddr, LookUp<String>) {
    (ip, host.probe.smtp_greeting(SocketAddr::new(ip, port)).await)
}

/// Tries to reach our own server for returned mail by its name.
async fn inbound(host: &Host<'_>) -> CheckReport {
    let fact = match host.probe.inbound_port().await {
        None => InboundFact::Off,
        Some(Err(())) => InboundFact::NotRunning,
        Some(Ok(port)) => InboundFact::Tried(port, own_greeting(host, port).await),
    };
    judge_inbound(host.hostname, &fact)
}

/// Returns the greeting if every address of the host name answers, or the first failure.
async fn own_greeting(host: &Host<'_>, port: u16) -> LookUp<String> {
    if !is_fully_qualified(host.hostname) {
        return Err("the name cannot be looked up".to_owned());
    }
    let found = addresses(host, host.hostname).await?;
    if let Some(private) = found.iter().find(|ip| !host.probe.counts_as_public(**ip)) {
        return Err(format!("{private} is not on the public internet"));
    }
    let mut last = Err("the name has no address".to_owned());
    for (ip, greeting) in join_all(found.into_iter().map(|ip| greeting(*host, ip, port))).await {
        last = Ok(greeting.map_err(|reason| format!("{ip}: {reason}"))?);
    }
    last
}

async fn tls(host: &Host<'_>) -> CheckReport {
    let Some((name, port)) = https(host.public_url) else { return judge_tls(host.public_url, None) };
    let fact = match addresses(host, &name).await {
        Ok(found) => {
            let found: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
            host.probe.certificate(name.trim_matches(['[', ']']), &found).await
        }
        Err(reason) => CertificateFact::Unreached(reason),
    };
    judge_tls(host.public_url, Some(&fact))
}

/// Host and port of an https URL.
fn https(url: &str) -> Option<(String, u16)> {
    let uri = url.parse::<http::Uri>().ok()?;
    let is_https = uri.scheme_str().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    is_https.then(|| Some((uri.host()?.to_owned(), uri.port_u16().unwrap_or(443))))?
}

/// Checks the certificate of the SMTP listeners, and the policies published for mail that comes here.
async fn certificates(host: &Host<'_>) -> Vec<CheckReport> {
    let certificate = host.probe.smtp_certificate(host.hostname).await;
    let mut reports = vec![judge_smtp_certificate(host.hostname, &certificate)];
    if !is_fully_qualified(host.hostname) || host.probe.inbound_port().await.is_none() {
        return reports;
    }
    let domain = format!("{BOUNCE_LABEL}.{}", host.installation.unwrap_or(host.hostname));
    let policy = async {
        // A missing answer is reported by the other checks.
        policy_id(&answer(host.resolver.txt(&format!("_mta-sts.{domain}"))).await.ok()?)?;
        Some(host.probe.sts_policy(&domain).await)
    };
    let (tlsa, policy) = tokio::join!(host.probe.tlsa(host.hostname), policy);
    reports.extend(judge_tlsa(&format!("_{SMTP}._tcp.{}", host.hostname), &tlsa));
    reports.extend(policy.map(|policy| judge_sts(&domain, host.hostname, &policy, &certificate)));
    reports
}

async fn clock(host: &Host<'_>) -> CheckReport {
    let Some(server) = &host.options.time_server else { return judge_clock("-", None) };
    let ahead = match addresses(host, server).await {
        Ok(found) => match found.iter().find(|ip| ip.is_ipv4()).or(found.first()) {
            Some(ip) => host.probe.clock_ahead(SocketAddr::new(*ip, NTP)).await,
            None => Err("its name has no address".to_owned()),
        },
        Err(reason) => Err(reason),
    };
    judge_clock(server, Some(&ahead))
}

async fn machine(host: &Host<'_>) -> [CheckReport; 3] {
    let CheckOptions { data, database, secret_key, .. } = host.options;
    let (disk, files, key) = tokio::join!(host.probe.disk(), host.probe.files(), host.probe.secret_key());
    [judge_disk(database, disk), judge_files(data, &files), judge_secret_key(secret_key, &key)]
}

/// Asks for the TXT records of the root: it has none, which every resolver knows or finds out at once.
async fn resolver(host: &Host<'_>) -> CheckReport {
    judge_resolver(&host.options.resolver, &answer(host.resolver.txt(".")).await.map(drop))
}
