//! Rules of the `validate` attributes of members: called by the derive of the same name.
//!
//! ```
//! use messaging_core::validate::Validate;
//!
//! #[derive(Validate)]
//! struct Topics {
//!     #[validate(length(min = 1, max = 3))]
//!     names: Vec<String>,
//!     #[validate(range(max = 30))]
//!     days: Option<u32>,
//! }
//!
//! let topics = Topics { names: vec!["news".to_owned()], days: None };
//! assert!(topics.is_valid());
//! assert_eq!(Topics { days: Some(31), ..topics }.broken_member(), Some("days"));
//! ```

use std::collections::BTreeMap;

pub use messaging_derive::{Setters, Validate};

/// A type whose members have rules of their own. Derived.
pub trait Validate {
    /// Returns the first member that breaks one of its rules.
    fn broken_member(&self) -> Option<&'static str>;

    /// True if every member keeps its rules.
    fn is_valid(&self) -> bool {
        self.broken_member().is_none()
    }
}

impl<T: Validate> Validate for Option<T> {
    fn broken_member(&self) -> Option<&'static str> {
        self.as_ref().and_then(T::broken_member)
    }
}

impl<T: Validate> Validate for Box<T> {
    fn broken_member(&self) -> Option<&'static str> {
        T::broken_member(self)
    }
}

impl<T: Validate> Validate for Vec<T> {
    fn broken_member(&self) -> Option<&'static str> {
        self.iter().find_map(T::broken_member)
    }
}

/// A value with a length, unless it was left out.
pub trait Length {
    /// Returns the number of characters or items.
    fn length(&self) -> Option<u64>;
}

impl Length for String {
    fn length(&self) -> Option<u64> {
        Some(self.chars().count() as u64)
    }
}

impl<T> Length for Vec<T> {
    fn length(&self) -> Option<u64> {
        Some(self.len() as u64)
    }
}

impl<K, V> Length for BTreeMap<K, V> {
    fn length(&self) -> Option<u64> {
        Some(self.len() as u64)
    }
}

impl<T: Length> Length for Option<T> {
    fn length(&self) -> Option<u64> {
        self.as_ref().and_then(T::length)
    }
}

/// A number, unless it was left out.
pub trait Number {
    /// Type of its bounds.
    type Bound: PartialOrd + Copy;

    /// Returns the number.
    fn number(&self) -> Option<Self::Bound>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            type Bound = Self;

            fn number(&self) -> Option<Self> {
                Some(*self)
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 i32 i64 f64);

impl<T: Number> Number for Option<T> {
    type Bound = T::Bound;

    fn number(&self) -> Option<T::Bound> {
        self.as_ref().and_then(T::number)
    }
}

/// True if a length is within its bounds, both included, or the value was left out.
pub fn length(value: &impl Length, min: Option<u64>, max: Option<u64>) -> bool {
    value.length().is_none_or(|length| within(length, min, max))
}

/// True if a number is within its bounds, both included, or was left out.
pub fn range<T: Number>(value: &T, min: Option<T::Bound>, max: Option<T::Bound>) -> bool {
    value.number().is_none_or(|number| within(number, min, max))
}

fn within<T: PartialOrd>(value: T, min: Option<T>, max: Option<T>) -> bool {
    min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Validate)]
    struct Inner {
        #[validate(length(min = 1, max = 2))]
        text: String,
    }

    #[derive(Default, Validate)]
    struct Outer {
        #[validate(required, nested)]
        one: Option<Inner>,
        #[validate(nested)]
        many: Vec<Inner>,
        #[validate(range(min = 1, max = 3))]
        number: Option<u32>,
        #[validate(length(max = 1))]
        tags: Option<Vec<String>>,
    }

    fn inner(text: &str) -> Inner {
        Inner { text: text.to_owned() }
    }

    #[test]
    fn each_rule_at_its_bounds() {
        let good = || Outer { one: Some(inner("ä")), ..Outer::default() };
        let cases = [
            (good(), None),
            (Outer::default(), Some("one")),
            (Outer { one: Some(inner("")), ..good() }, Some("one")),
            (Outer { one: Some(inner("äöü")), ..good() }, Some("one")),
            (Outer { one: Some(inner("äö")), ..good() }, None),
            (Outer { many: vec![inner("a"), inner("")], ..good() }, Some("many")),
            (Outer { number: Some(0), ..good() }, Some("number")),
            (Outer { number: Some(1), ..good() }, None),
            (Outer { number: Some(3), ..good() }, None),
            (Outer { number: Some(4), ..good() }, Some("number")),
            (Outer { tags: Some(vec![String::new(); 2]), ..good() }, Some("tags")),
            (Outer { tags: Some(vec![String::new()]), ..good() }, None),
        ];
        for (case, (outer, broken)) in cases.into_iter().enumerate() {
            // The derive names the member; of a nested one it names the outer member.
            assert_eq!(outer.broken_member(), broken, "case {case}");
        }
    }
}
