//! Span of time of an analytics request.

use messaging_core::domain::analytics::tally::buckets::{Buckets, DEFAULT_SPAN, Interval, check_span};
use messaging_core::time::Timestamp;
use messaging_core::violation::Violations;

use crate::error::Error;
use crate::ops::context::Context;

/// Start, exclusive end and buckets of the span.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) interval: Interval,
}

impl Span {
    /// Returns the requested span, or the last 30 days by days; with its buckets in the zone of the workspace.
    pub(super) async fn read(
        cx: &Context<'_>,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        interval: Option<Interval>,
    ) -> Result<(Self, Buckets), Error> {
        // Not read from the cache: another process may just have changed the zone. The operator can name any workspace,
        // also one that does not exist.
        let workspace = cx.store().workspace(cx.workspace()?).await?.ok_or(Error::NotFound)?.record;
        let to = to.unwrap_or(cx.now);
        let span = Self { from: from.unwrap_or(to - DEFAULT_SPAN), to, interval: interval.unwrap_or_default() };
        let mut violations = Violations::new();
        check_span(span.from, span.to, &mut violations);
        violations.into_result()?;
        Ok((span, Buckets::new(span.from, span.to, span.interval, &workspace.zone())))
    }
}
