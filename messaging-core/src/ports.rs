//! Ports: the traits by which core uses the outside world.

pub mod blobs;
pub mod clock;
pub mod dns_provider;
pub mod fetch;
pub mod host_probe;
pub mod inbound;
pub mod name_servers;
pub mod paths;
pub mod resolver;
pub mod settling;
pub mod store;
pub mod sts_policy_cache;
pub mod temporary;
pub mod transport;
pub mod uploads;

pub use blobs::BlobStore;
pub use clock::{Clock, Entropy};
pub use dns_provider::DnsProvider;
pub use fetch::Fetch;
pub use host_probe::HostProbe;
pub use name_servers::NameServers;
pub use resolver::Resolver;
pub use settling::settle_blobs;
pub use store::Store;
pub use sts_policy_cache::StsPolicyCache;
pub use temporary::{TemporaryStore, TemporaryStores};
pub use transport::Transport;
pub use uploads::Uploads;
