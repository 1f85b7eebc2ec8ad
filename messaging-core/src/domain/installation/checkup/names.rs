//! Judgments of the names and addresses under which mail leaves.

use std::net::IpAddr;

use super::{CheckId, CheckReport, LookUp, Looked, listed};
use crate::domain::mail::dns_record::spf_problem;
use crate::domain::mail::domain_name::is_fully_qualified;
use crate::domain::mail::spf::evaluation::MAX_VOID_LOOKUPS;
use crate::domain::mail::spf::{Evaluation, Permission, Problem};

/// An address and whether others can reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// True if it is on the public internet, or counts as if it were.
    pub is_public: bool,
}

/// A name of an address, and the addresses that the name leads back to.
pub type LedBack = (String, LookUp<Vec<IpAddr>>);

/// Judges the name in EHLO and that of the installation, which is `None` before the first start.
///
/// RFC 5321 sections 2.3.5 and 4.1.1.1.
pub fn judge_name(hostname: &str, installation: Option<&str>) -> CheckReport {
    let found = match installation {
        Some(name) if name != hostname => format!("{hostname}, installation {name}"),
        _ => hostname.to_owned(),
    };
    let looked = Looked::at(CheckId::Name, hostname, "a fully qualified host name").found(found);
    if !is_fully_qualified(hostname) {
        return looked.fault(
            format!("{hostname} is no name that receivers could look up; many refuse mail of such a host."),
            "start the server with --hostname and a name in a domain of yours, such as mx.example.org",
        );
    }
    match installation {
        Some(name) if !is_fully_qualified(name) => looked.fault(
            format!(
                "The name of the installation, {name}, is none that others could look up; DNS records cannot name it."
            ),
            format!("messaging admin set-name --name {hostname}"),
        ),
        Some(name) if name != hostname => {
            looked.ok(format!("This machine is {hostname}; Message-IDs and DNS records name {name}."))
        }
        _ => looked.ok(format!("{hostname} is fully qualified.")),
    }
}

/// Judges the addresses of the host name, compared with those that connections leave from.
pub fn judge_address(hostname: &str, addresses: &LookUp<Vec<Address>>, outgoing: &[Address]) -> CheckReport {
    let looked = Looked::at(CheckId::Address, hostname, "A or AAAA records with the addresses that mail leaves from");
    if !is_fully_qualified(hostname) {
        return looked.skipped("The host name cannot be looked up.", "see the check name");
    }
    let addresses = match addresses {
        Ok(addresses) => addresses,
        Err(reason) => return looked.unanswered(hostname, reason),
    };
    let looked = looked.found(listed(addresses.iter().map(|address| address.ip)));
    if addresses.is_empty() {
        return looked.fault(
            format!("{hostname} has no address."),
            format!("publish an A record (and AAAA, if mail leaves by IPv6) for {hostname}"),
        );
    }
    let private: Vec<_> = addresses.iter().filter(|address| !address.is_public).map(|address| address.ip).collect();
    if !private.is_empty() {
        return looked.fault(
            format!("{hostname} has addresses that the internet cannot reach: {}.", listed(&private)),
            "publish the public address of this machine instead; behind a router that is the router's",
        );
    }
    let strange: Vec<_> =
        outgoing.iter().filter(|from| !addresses.iter().any(|known| known.ip == from.ip)).map(|from| from.ip).collect();
    if strange.is_empty() {
        return looked
            .ok(format!("{hostname} has the addresses that mail leaves from, as far as this machine knows them."));
    }
    looked.fault(
        format!("Mail leaves from {}, which is no address of {hostname}.", listed(&strange)),
        format!("publish it in the A or AAAA records of {hostname}, or let mail leave from one of its addresses"),
    )
}

/// Judges the names of an address, each with the addresses that it leads back to.
pub fn judge_ptr(address: IpAddr, hostname: &str, names: &LookUp<Vec<LedBack>>) -> CheckReport {
    let looked = Looked::at(
        CheckId::Ptr,
        address.to_string(),
        "a PTR record with the host name, which leads back to the address",
    );
    let names = match names {
        Ok(names) => names,
        Err(reason) => return looked.unanswered(&format!("the name of {address}"), reason),
    };
    let looked = looked.found(listed(names.iter().map(|(name, _)| name)));
    let cure =
        format!("have the PTR record of {address} set to {hostname}: that is done by whoever gave you the address");
    if names.is_empty() {
        return looked.fault(format!("{address} has no name (PTR); large receivers refuse its mail."), cure);
    }
    let leads_back = |back: &LookUp<Vec<IpAddr>>| back.as_ref().is_ok_and(|back| back.contains(&address));
    if names.iter().any(|(name, back)| name == hostname && leads_back(back)) {
        return looked.ok(format!("{address} is {hostname}, and back."));
    }
    match names.iter().find(|(_, back)| leads_back(back)) {
        Some((name, _)) => looked.warning(
            format!("{address} is called {name}, not {hostname}; most receivers take that, some trust it less."),
            cure,
        ),
        None => looked.fault(
            format!(
                "{address} is called {}, which does not lead back to it; large receivers refuse its mail.",
                names[0].0
            ),
            cure,
        ),
    }
}

/// Returns the report of the check when there is no address to look up.
pub fn skipped_ptr(hostname: &str) -> CheckReport {
    Looked::at(CheckId::Ptr, hostname, "a PTR record with the host name, which leads back to the address")
        .skipped("No public address of this machine is known.", "see the check address")
}

/// Judges the SPF record that all sending domains include.
pub fn judge_host_spf(name: &str, evaluated: &LookUp<Evaluation>, addresses: &[Address]) -> CheckReport {
    let looked = Looked::at(
        CheckId::Spf,
        name,
        "one SPF record that lets the addresses of this machine send, such as v=spf1 a -all",
    );
    if !is_fully_qualified(name) {
        return looked.skipped("The installation has no name that can be looked up.", "see the check name");
    }
    let evaluated = match evaluated {
        Ok(evaluated) => evaluated,
        Err(reason) => return looked.unanswered(&format!("the SPF record of {name}"), reason),
    };
    let publish = format!("publish one TXT record at {name}: v=spf1 a -all");
    match &evaluated.problem {
        Some(Problem::NoRecord { host }) if host == name => {
            return looked.fault(
                format!("{name} has no SPF record, so the SPF records of all sending domains, which include it, fail."),
                publish,
            );
        }
        Some(problem) => {
            return looked
                .fault(format!("Receivers refuse the SPF record of {name}: {}.", spf_problem(problem)), publish);
        }
        None => {}
    }
    let looked = looked.found(format!("{} look-ups, {} of them void", evaluated.lookups, evaluated.voids.len()));
    if let Some(void) = evaluated.voids.first() {
        return looked.fault(
            format!(
                "In the SPF record of {}, {} finds nothing; receivers allow {MAX_VOID_LOOKUPS} such look-ups in all.",
                void.host, void.term
            ),
            "remove the term, or publish what it names",
        );
    }
    if !evaluated.permits_somebody() {
        return looked.fault(format!("The SPF record of {name} lets nobody send."), publish);
    }
    let refused: Vec<_> =
        addresses.iter().map(|address| address.ip).filter(|ip| evaluated.permits(*ip) == Permission::Refused).collect();
    if !refused.is_empty() {
        return looked.fault(
            format!("The SPF record of {name} does not let {} send, from where mail leaves.", listed(&refused)),
            format!("add {} to the record", listed(refused.iter().map(|ip| mechanism(*ip)))),
        );
    }
    let unknown = addresses.iter().any(|address| evaluated.permits(address.ip) == Permission::Unknown);
    if unknown {
        return looked.warning(
            format!("Whether the SPF record of {name} lets this machine send depends on a macro or on ptr."),
            publish,
        );
    }
    looked.ok(format!("The SPF record of {name} lets this machine send."))
}

fn mechanism(ip: IpAddr) -> String {
    if ip.is_ipv4() { format!("ip4:{ip}") } else { format!("ip6:{ip}") }
}
