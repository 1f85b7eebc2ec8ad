//! DNS providers, which write the records of sending domains (contract section 14.5).
//!
//! Each has a file, with its requests as the provider documents them. All but [`rfc2136`] speak HTTP through the
//! guarded client; the parts that they share, from the limits to the texts of errors, are in `api`. [`ZoneServers`]
//! reads back what was written.

mod api;
mod cloudflare;
mod digitalocean;
mod hetzner;
mod name_servers;
mod presentation;
pub mod rfc2136;
mod route53;
mod tsig;
mod xml;

use std::collections::HashMap;
use std::sync::Arc;

use messaging_core::domain::mail::auto_dns::DnsProviderName;
use messaging_core::ports::dns_provider::DnsProvider;

use crate::Options;
use api::Api;
use cloudflare::Cloudflare;
use digitalocean::DigitalOcean;
use hetzner::Hetzner;
use rfc2136::NameServer;
use route53::Route53;

pub use name_servers::ZoneServers;

/// Base URLs that replace the published ones of the providers' APIs, for tests.
pub type ApiBases = HashMap<DnsProviderName, String>;

/// Returns all DNS providers. An API is called at its published base unless `bases` names another.
pub fn providers(options: &Options, bases: &ApiBases) -> Vec<(DnsProviderName, Arc<dyn DnsProvider>)> {
    let api = |name: DnsProviderName, published: &str| {
        let base = bases.get(&name).map_or(published, String::as_str).trim_end_matches('/').to_owned();
        Api::new(Arc::clone(&options.fetch), base, Arc::clone(&options.clock))
    };
    DnsProviderName::ALL
        .into_iter()
        .map(|name| {
            let provider: Arc<dyn DnsProvider> = match name {
                DnsProviderName::Cloudflare => Arc::new(Cloudflare(api(name, cloudflare::BASE))),
                DnsProviderName::DigitalOcean => Arc::new(DigitalOcean(api(name, digitalocean::BASE))),
                DnsProviderName::Hetzner => Arc::new(Hetzner(api(name, hetzner::BASE))),
                DnsProviderName::Route53 => Arc::new(Route53(api(name, route53::BASE))),
                DnsProviderName::Rfc2136 => {
                    Arc::new(NameServer::new(options.dns.clone(), options.allow_private, Arc::clone(&options.clock)))
                }
            };
            (name, provider)
        })
        .collect()
}
