//! Errors of starting the log.

use std::io;

/// Logging could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error("the log filter is malformed; try `info` or `info,messaging_http=debug`")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// The thread that writes could not be started.
    #[error("failed to start the thread that writes the log")]
    Thread(#[source] io::Error),
    /// Another subscriber is installed in the process already.
    #[error("the process logs already")]
    Taken(#[source] tracing_subscriber::util::TryInitError),
    /// Spans cannot be sent to the collector that the variables of OpenTelemetry name.
    #[error("no spans can be sent to the collector of OTEL_EXPORTER_OTLP_ENDPOINT")]
    Traces(#[source] Box<dyn std::error::Error + Send + Sync>),
}
