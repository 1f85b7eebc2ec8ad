//! The HTTP side: the server, the OpenAPI document, a typed client, and the program `messaging-server`.
//!
//! No operation is named here. The router, the access check, the document and the client read
//! [`messaging_engine::ops::all`]; an operation added there is answered, documented and callable.
//!
//! To serve an application of your own:
//!
//! ```no_run
//! # async fn example(app: messaging_engine::App) -> std::io::Result<()> {
//! use messaging_http::{Server, ServerOptions};
//!
//! let server = Server::bind(app, ServerOptions::new(([127, 0, 0, 1], 8080).into()))?;
//! println!("http://{}/docs", server.local_addr());
//! server.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

mod archive;
mod body;
mod callbacks;
mod caller_address;
pub mod client;
mod connection;
mod connection_limiter;
pub mod console;
mod docs_page;
mod documents;
mod drop_in;
mod images;
pub mod logging;
mod metrics;
pub mod openapi;
#[cfg(feature = "otlp")]
mod otlp;
mod pipeline;
mod rate_limit;
mod reader_page;
mod readers;
mod reply;
mod request_id;
mod router;
mod server;
mod service;
mod service_options;
mod session_cookie;
pub mod settings;
mod single_sign_on;
pub mod standalone;
mod submission;
mod uploads;
mod visits;

pub use client::{Client, ClientError};
pub use console::Console;
pub use server::{Listener, Server, ServerOptions};
pub use service::{Answering, ApiService, PeerAddress};
pub use service_options::ServiceOptions;
pub use settings::{Settings, SettingsArgs, read_site_rules};
