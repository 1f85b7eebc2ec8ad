//! SPF (RFC 7208): meaning of a record, and the look-ups that it needs.
//!
//! [`record`] parses one record, [`evaluation`] follows it through includes and redirects with answers of the DNS that
//! the caller has fetched. Unlike `check_host()` of section 4, which ends at the first match for one address, the
//! evaluation covers every record to its end, because its publisher wants to know that it holds for all senders.

pub mod evaluation;
pub mod record;

pub use evaluation::{Answers, Evaluation, Permission, Problem, Question, QuestionKind, Step, evaluate};
