//! Matching of a contact's events against triggers (contract sections 13.1 and 13.4, "Entry").

use std::time::Duration;

use super::note::{Cause, Happened};
use super::trigger::{Trigger, TriggerEvent, TriggerKind};
use crate::domain::audience::product_event::ProductEvent;
use crate::domain::segment::filter::MessageEventKind;
use crate::domain::segment::values::Present;

/// A product event that is older than this when it arrives starts nothing.
const STARTS_WITHIN: Duration = Duration::from_hours(24);

impl Trigger {
    /// Returns true if a note tells of the event of the trigger. The trigger's filter is not evaluated.
    pub fn fits(&self, cause: &Cause, happened: Option<&Happened>, zone: &jiff::tz::TimeZone) -> bool {
        match (&self.kind, cause, happened) {
            (TriggerKind::Event { name, properties, .. }, Cause::Event(_), Some(Happened::Event(event))) => {
                if event.name != *name || event.starts_nothing() {
                    return false;
                }
                let members = event.properties.members();
                let present = Present { now: event.received_at(), zone: zone.clone() };
                properties.iter().all(|property| property.holds(&members, &present))
            }
            (TriggerKind::SegmentEnter { segment_id, .. }, Cause::SegmentEntered(entered), _) => segment_id == entered,
            (TriggerKind::SegmentExit(segment), Cause::SegmentLeft(left), _) => segment == left,
            (TriggerKind::ListAdded(list), Cause::ListAdded(joined), _) => list == joined,
            (TriggerKind::ContactCreated, Cause::Created, _) | (TriggerKind::Date(_), Cause::Date(_), _) => true,
            (
                TriggerKind::MessageEvent { event, campaign_id, template_id },
                Cause::Message { .. },
                Some(Happened::Message(fact)),
            ) => {
                event.kind() == fact.event
                    && !fact.is_machine
                    && (campaign_id.is_none() || *campaign_id == fact.campaign_id)
                    && (template_id.is_none() || *template_id == fact.template_id)
            }
            _ => false,
        }
    }
}

impl ProductEvent {
    /// Returns true if the event happened more than 24 hours before it arrived, so that no contact enters an automation
    /// by it.
    pub fn starts_nothing(&self) -> bool {
        self.received_at().since(self.occurred_at) > STARTS_WITHIN
    }
}

impl TriggerEvent {
    /// Returns the event as filters name it.
    pub const fn kind(self) -> MessageEventKind {
        match self {
            Self::Open => MessageEventKind::Open,
            Self::Click => MessageEventKind::Click,
            Self::Bounce => MessageEventKind::Bounce,
            Self::Complaint => MessageEventKind::Complaint,
            Self::Unsubscribe => MessageEventKind::Unsubscribe,
            Self::Delivered => MessageEventKind::Delivered,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;
    use crate::domain::segment::filter::{Filter, Positive, PropertyTest, Scalar, Test};
    use crate::ids::{ContactId, EventId, Id as _, ListId, SegmentId, WorkspaceId};
    use crate::time::Timestamp;

    const ARRIVED: u64 = 1_769_850_900_000;

    fn event(occurred_before: Duration, total: i64) -> Happened {
        let arrived = Timestamp::from_millis(i64::try_from(ARRIVED).unwrap());
        let mut id = [0; 16];
        id[..6].copy_from_slice(&ARRIVED.to_be_bytes()[2..]);
        Happened::Event(Box::new(ProductEvent {
            id: EventId::from_bytes(id),
            workspace_id: WorkspaceId::from_bytes([1; 16]),
            contact_id: ContactId::from_bytes([2; 16]),
            name: "order".into(),
            occurred_at: arrived - occurred_before,
            properties: json!({"total": total}).as_object().unwrap().clone().into(),
            unique_id: None,
        }))
    }

    fn trigger(kind: TriggerKind) -> Trigger {
        Trigger { kind, filter: Filter::Everyone }
    }

    #[test]
    fn an_event_fits_by_name_properties_and_age() {
        let cause = Cause::Event(EventId::from_bytes([3; 16]));
        let fits = |kind: TriggerKind, happened: &Happened| trigger(kind).fits(&cause, Some(happened), &TimeZone::UTC);
        let of = |name: &str, total: f64| TriggerKind::Event {
            name: name.into(),
            properties: vec![PropertyTest {
                path: vec!["total".into()],
                test: Test { negated: false, positive: Positive::OneOf(vec![Scalar::Number(total)]) },
            }],
            conditions: Vec::new(),
        };
        let day = Duration::from_hours(24);
        assert!(fits(of("order", 5.0), &event(Duration::ZERO, 5)));
        assert!(!fits(of("visit", 5.0), &event(Duration::ZERO, 5)));
        assert!(!fits(of("order", 5.0), &event(Duration::ZERO, 6)));
        assert!(fits(of("order", 5.0), &event(day, 5)));
        assert!(!fits(of("order", 5.0), &event(day + Duration::from_millis(1), 5)));
        // The event itself is gone.
        assert!(!trigger(of("order", 5.0)).fits(&cause, None, &TimeZone::UTC));
    }

    #[test]
    fn nothing_fits_but_what_is_named() {
        let (one, other) = (SegmentId::from_bytes([1; 16]), SegmentId::from_bytes([2; 16]));
        let list = ListId::from_bytes([3; 16]);
        let triggers = [
            TriggerKind::SegmentEnter { segment_id: one, include_existing: false },
            TriggerKind::SegmentExit(one),
            TriggerKind::ListAdded(list),
            TriggerKind::ContactCreated,
            TriggerKind::Manual,
        ];
        let causes = [
            Cause::SegmentEntered(one),
            Cause::SegmentLeft(one),
            Cause::ListAdded(list),
            Cause::Created,
            Cause::SegmentEntered(other),
            Cause::SegmentLeft(other),
            Cause::ListAdded(ListId::from_bytes([4; 16])),
            Cause::Changed,
        ];
        for (at, kind) in triggers.into_iter().enumerate() {
            let fitting: Vec<_> = (0..causes.len())
                .filter(|cause| trigger(kind.clone()).fits(&causes[*cause], None, &TimeZone::UTC))
                .collect();
            let expected: Vec<_> = (at < 4).then_some(at).into_iter().collect();
            assert_eq!(fitting, expected, "{kind:?}");
        }
    }
}
