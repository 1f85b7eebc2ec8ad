//! JSON with the members of its objects in the order in which the API wrote them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value for showing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// `null`
    Null,
    /// A string, number or boolean, as text.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The value on one line, for a cell.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Null => "-".to_owned(),
            Self::Text(text) => clean(text, ' '),
            Self::List(items) if items.is_empty() => "-".to_owned(),
            Self::List(items) => items.iter().map(Self::line).collect::<Vec<_>>().join(", "),
            Self::Object(members) if members.is_empty() => "-".to_owned(),
            Self::Object(members) => {
                let pairs = members.iter().map(|(name, value)| format!("{}={}", clean(name, ' '), value.line()));
                pairs.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The value as a block of lines, for a resource on its own.
    pub(super) fn block(&self) -> String {
        match self {
            Self::Text(text) => clean(text, '\n'),
            other => other.line(),
        }
    }

    /// The member of an object.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The items, if this is a list of objects.
    pub(super) fn rows(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) if !items.is_empty() && items.iter().all(|item| matches!(item, Self::Object(_))) => {
                Some(items)
            }
            _ => None,
        }
    }
}

/// Text from outside without control characters that could steer a terminal.
pub(super) fn clean(text: &str, line_break: char) -> String {
    let shown = text.trim_end_matches(['\r', '\n']).replace("\r\n", "\n");
    let replace = |character: char| match character {
        '\n' => line_break,
        '\t' => ' ',
        control if control.is_control() => '\u{FFFD}',
        other => other,
    };
    shown.chars().map(replace).collect()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Text(if value { "yes" } else { "no" }.to_owned()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Node::Object(object))
    }
}
