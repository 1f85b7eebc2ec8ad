//! SPF (RFC 7208): what a record says, and what it needs to be looked up for it.
//!
//! [`record`] reads one record, [`evaluation`] follows it through includes and redirects with answers of the DNS that
//! somebody else has fetched. Unlike `check_host()` of section 4, which ends at the first match for one address, the
//! evaluation goes to the end of every record: whoever publishes one wants to know that it holds for all senders.

pub mod evaluation;
pub mod record;

pub use evaluation::{Answers, Evaluation, Permission, Problem, Question, QuestionKind, Step, evaluate};
