//! What a filter reads of a contact: who must look at a segment again when something changes.

use std::ops::{BitAnd, BitOr};

use super::filter::{Condition, ContactField, DateTest, Filter, Leaf, Positive, Test, When, Within};

/// What can change about a contact, as a small set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Aspects(u32);

impl Aspects {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// That it exists: what every filter reads, because a new contact may match any.
    pub const EXISTENCE: Self = Self(1);
    /// Its identifiers, locale and time zone.
    pub const FIELDS: Self = Self(1 << 1);
    /// When it last changed. Apart from the other fields, because any change of the contact is one of this.
    pub const UPDATED_AT: Self = Self(1 << 2);
    /// Its attributes.
    pub const ATTRIBUTES: Self = Self(1 << 3);
    /// Its tags.
    pub const TAGS: Self = Self(1 << 4);
    /// The lists it is on.
    pub const LISTS: Self = Self(1 << 5);
    /// What it agreed to.
    pub const CONSENT: Self = Self(1 << 6);
    /// Which of its addresses are suppressed.
    pub const SUPPRESSIONS: Self = Self(1 << 7);
    /// Its product events.
    pub const EVENTS: Self = Self(1 << 8);
    /// The events of messages to it.
    pub const MESSAGES: Self = Self(1 << 9);
    /// Everything.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// The set as a number, for storing it.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of a number; bits that mean nothing are left out.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether something is in both.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Aspects {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Aspects {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// What the outcome of a filter depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// What of the contact.
    pub aspects: Aspects,
    /// Whether on the present: somebody may come to match because time passes.
    pub present: bool,
    /// Whether on the workspace's time zone.
    pub zone: bool,
}

impl BitOr for Reads {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self {
            aspects: self.aspects | other.aspects,
            present: self.present || other.present,
            zone: self.zone || other.zone,
        }
    }
}

impl Filter {
    /// What its outcome depends on. What the filters of dynamic segments that it names depend on is not in
    /// it: ask once they are resolved.
    pub fn reads(&self) -> Reads {
        let everyone = Reads { aspects: Aspects::EXISTENCE, ..Reads::default() };
        self.leaves().fold(everyone, |reads, leaf| reads | of_leaf(leaf))
    }

    /// Its leaves, in the order in which they stand.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let mut waiting = match self {
            Self::Everyone => Vec::new(),
            Self::Where(condition) => vec![condition],
        };
        std::iter::from_fn(move || {
            loop {
                match waiting.pop()? {
                    Condition::And(parts) | Condition::Or(parts) => waiting.extend(parts.iter().rev()),
                    Condition::Not(part) => waiting.push(part),
                    Condition::Leaf(leaf) => return Some(leaf),
                }
            }
        })
    }
}

fn of_leaf(leaf: &Leaf) -> Reads {
    let of = |aspects| Reads { aspects, ..Reads::default() };
    match leaf {
        Leaf::Field(ContactField::CreatedAt, test) => of_test(test),
        Leaf::Field(ContactField::UpdatedAt, test) => of(Aspects::UPDATED_AT) | of_test(test),
        Leaf::Field(_, test) => of(Aspects::FIELDS) | of_test(test),
        Leaf::Attribute(_, test) => of(Aspects::ATTRIBUTES) | of_test(test),
        Leaf::Tags { .. } => of(Aspects::TAGS),
        Leaf::List { .. } => of(Aspects::LISTS),
        // The members of a static segment change only as a whole; who uses it is then calculated anew.
        Leaf::Segment { .. } => Reads::default(),
        Leaf::Consent(..) => of(Aspects::CONSENT),
        Leaf::Suppression(..) => of(Aspects::SUPPRESSIONS),
        Leaf::Event(event) => {
            let tests = event.properties.iter().map(|property| of_test(&property.test));
            tests.fold(of(Aspects::EVENTS) | of_within(event.within), BitOr::bitor)
        }
        Leaf::Message(message) => of(Aspects::MESSAGES) | of_within(message.within),
    }
}

fn of_test(test: &Test) -> Reads {
    let Positive::Date(date) = &test.positive else { return Reads::default() };
    // A stored day begins when the zone says, whatever it is compared to.
    let (present, zone) = match date {
        DateTest::Before(_) | DateTest::After(_) | DateTest::On(_) | DateTest::Between(..) => (false, true),
        DateTest::Last(_) | DateTest::Next(_) | DateTest::OlderThan(_) | DateTest::Anniversary(_) => (true, true),
    };
    Reads { aspects: Aspects::NONE, present, zone }
}

fn of_within(within: Option<Within>) -> Reads {
    let is_day = |when: When| matches!(when, When::Day(_));
    let (present, zone) = match within {
        None | Some(Within::SinceEntry) => (false, false),
        Some(Within::Last(_)) => (true, true),
        Some(Within::After(when) | Within::Before(when)) => (false, is_day(when)),
        Some(Within::Between(first, last)) => (false, is_day(first) || is_day(last)),
    };
    Reads { aspects: Aspects::NONE, present, zone }
}
