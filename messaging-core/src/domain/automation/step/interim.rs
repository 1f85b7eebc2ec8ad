//! Until filters have these themselves.

use serde_json::{Map, Value};

use crate::domain::segment::filter::{Condition, EventLeaf, Filter, Leaf};

pub(super) trait Interim: Sized + Clone {
    fn bind(&self, _event: &Map<String, Value>) -> Self {
        self.clone()
    }
    fn leaves_at(&self, _pointer: &str) -> Vec<(String, &Leaf)> {
        Vec::new()
    }
}

impl Interim for EventLeaf {}

impl Interim for Filter {
    fn leaves_at(&self, pointer: &str) -> Vec<(String, &Leaf)> {
        let mut found = Vec::new();
        if let Self::Where(condition) = self {
            collect(condition, pointer.to_owned(), &mut found);
        }
        found
    }
}

fn collect<'c>(condition: &'c Condition, pointer: String, found: &mut Vec<(String, &'c Leaf)>) {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => {
            let name = if matches!(condition, Condition::And(_)) { "and" } else { "or" };
            for (index, part) in parts.iter().enumerate() {
                collect(part, format!("{pointer}/{name}/{index}"), found);
            }
        }
        Condition::Not(part) => collect(part, format!("{pointer}/not"), found),
        Condition::Leaf(leaf) => found.push((pointer, leaf)),
    }
}
