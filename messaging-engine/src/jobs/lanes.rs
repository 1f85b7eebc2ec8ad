//! The beginnings of the names of lanes.

/// The lanes of webhooks begin with this, one for each.
pub(crate) const WEBHOOK: &str = "webhook:";
/// The lanes of what a webhook missed.
pub(crate) const BACKLOG: &str = "webhook-backlog:";
