//! The tree of a filter over numbered questions.

use messaging_core::domain::segment::filter::{Condition, Filter, Leaf};

use super::super::fault::Fault;

/// A filter whose leaves are numbers of questions.
#[derive(Debug)]
pub(super) enum Tree {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Question(usize),
}

impl Tree {
    /// Builds the tree of a filter; its leaves are added to the questions unless they are there already.
    pub(super) fn of<'f>(filter: &'f Filter, questions: &mut Vec<&'f Leaf>) -> Self {
        match filter {
            Filter::Everyone => Self::All(Vec::new()),
            Filter::Where(condition) => Self::of_condition(condition, questions),
        }
    }

    fn of_condition<'f>(condition: &'f Condition, questions: &mut Vec<&'f Leaf>) -> Self {
        let mut all = |parts: &'f [Condition]| parts.iter().map(|part| Self::of_condition(part, questions)).collect();
        match condition {
            Condition::And(parts) => Self::All(all(parts)),
            Condition::Or(parts) => Self::Any(all(parts)),
            Condition::Not(part) => Self::Not(Box::new(Self::of_condition(part, questions))),
            Condition::Leaf(leaf) => {
                let known = questions.iter().position(|question| *question == leaf);
                Self::Question(known.unwrap_or_else(|| {
                    questions.push(leaf);
                    questions.len() - 1
                }))
            }
        }
    }

    /// Returns the value of the tree by answers to the questions; `None` if it depends on one that is not answered yet.
    pub(super) fn decide(
        &self,
        answer: &mut impl FnMut(usize) -> Result<Option<bool>, Fault>,
    ) -> Result<Option<bool>, Fault> {
        // Value of one part that decides the whole: false for "all", true for "any".
        let (parts, decisive) = match self {
            Self::Question(number) => return answer(*number),
            Self::Not(part) => return Ok(part.decide(answer)?.map(|holds| !holds)),
            Self::All(parts) => (parts, false),
            Self::Any(parts) => (parts, true),
        };
        let mut is_open = false;
        for part in parts {
            match part.decide(answer)? {
                Some(holds) if holds == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => is_open = true,
            }
        }
        Ok((!is_open).then_some(!decisive))
    }
}

#[cfg(test)]
mod tests {
    use Tree::{All, Any, Not, Question};

    use super::*;

    #[track_caller]
    fn check(tree: &Tree, answers: [Option<bool>; 3], expected: Option<bool>) {
        let decided = tree.decide(&mut |number| Ok(answers[number])).unwrap();
        assert_eq!(decided, expected, "{tree:?} {answers:?}");
    }

    #[test]
    fn a_tree_is_decided_as_soon_as_it_can_be() {
        let (yes, no) = (Some(true), Some(false));
        check(&All(Vec::new()), [None; 3], yes);
        check(&Any(Vec::new()), [None; 3], no);
        let all = All(vec![Question(0), Question(1), Question(2)]);
        check(&all, [yes, yes, yes], yes);
        check(&all, [yes, None, no], no);
        check(&all, [yes, None, yes], None);
        let any = Any(vec![Question(0), Question(1), Question(2)]);
        check(&any, [no, None, yes], yes);
        check(&any, [no, None, no], None);
        check(&any, [no, no, no], no);
        check(&Not(Box::new(all)), [None, no, None], yes);
        check(&Not(Box::new(any)), [None, no, None], None);
    }
}
