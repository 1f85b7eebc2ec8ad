//! Log lines of the product: stored with the trace, and a panic among them is a broken promise.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::world::World;

/// The subscriber of one run.
#[derive(Debug)]
pub(crate) struct Log {
    attached: Attached,
    level: Level,
}

/// The world whose trace the log is written to; none until one is attached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attached(Arc<Mutex<Weak<World>>>);

impl Attached {
    pub(crate) fn attach(&self, world: &Arc<World>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(world);
    }
}

impl Log {
    /// `is_detailed` if more is logged than errors.
    pub(crate) fn new(is_detailed: bool) -> (Self, Attached) {
        let attached = Attached::default();
        let level = if is_detailed { Level::DEBUG } else { Level::ERROR };
        (Self { attached: attached.clone(), level }, attached)
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level && metadata.target().starts_with("messaging")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        let world = self.attached.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        let Some(world) = world else { return };
        if line.0.contains("panicked") {
            world.ledger().broken(line.0.clone());
        }
        // Not in the digest, which is the same with and without a detailed log.
        world.remark(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = if field.name() == "message" {
            write!(self.0, " {value:?}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
    }
}
