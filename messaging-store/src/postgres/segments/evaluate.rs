//! Evaluation of filters for many contacts at once.
//!
//! Contacts are read with the columns that the filters need, and core tests the values. For contacts not decided by
//! their values, the other tables are queried with one statement for each question, all sent together. Then core's tree
//! is decided. All reads are from one snapshot.

use std::ops::RangeInclusive;

use messaging_core::domain::segment::filter::Filter;
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::segments::MemberQuery;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::numbers::workspace_number;
use super::super::query::{Queries as _, params};
use super::super::reads::Snapshot;
use super::super::row::{get, sql_limit};
use super::tables::{Columns, InTable, Names, OfLeaf, place};
use super::tree::Tree;
use super::values::{CandidateContact, ColumnSelection, Value, asked_columns};

/// Number of contacts that are best evaluated together.
pub(in super::super) const PIECE: usize = 2000;

/// Filters that are ready to be evaluated, for one moment.
#[derive(Debug)]
pub(in super::super) struct Evaluation {
    workspace: WorkspaceId,
    pub(in super::super) workspace_number: i64,
    trees: Vec<Tree>,
    questions: Vec<Question>,
    wanted: ColumnSelection,
}

/// Moment and time zone of a query.
pub(super) fn present(query: &MemberQuery) -> Present {
    Present { now: query.now, zone: query.zone.clone() }
}

/// A question that leaves of the trees ask.
#[derive(Debug)]
enum Question {
    Always(bool),
    Value(Value),
    /// The leaf holds if the answer of the table is this.
    Table(InTable, bool),
}

/// A contact of an automation that a question is about, and the events that count.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct ContactSpan {
    /// The contact.
    pub(in super::super) contact: Uuid,
    /// Event of the entry; only later events count.
    pub(in super::super) after: Option<Uuid>,
    /// Last event that counts; all if `None`.
    pub(in super::super) up_to: Option<Uuid>,
}

/// Result of evaluating the contacts of a range.
#[derive(Debug)]
pub(in super::super) struct EvaluatedRange {
    /// Contacts by number, in their order.
    pub(in super::super) numbers: Vec<i64>,
    /// For each contact, one value for each filter: true if it matches.
    holds: Vec<bool>,
    filters: usize,
    /// Start of the rest of the range; `None` if the whole range was evaluated.
    pub(in super::super) rest: Option<i64>,
}

impl EvaluatedRange {
    /// Contacts, each with one value for each filter: true if it matches.
    pub(in super::super) fn each(&self) -> impl Iterator<Item = (i64, &[bool])> {
        self.numbers.iter().copied().zip(self.holds.chunks(self.filters.max(1)))
    }

    /// Contacts that the first filter matches.
    pub(in super::super) fn matching(&self) -> Vec<i64> {
        let matches = |(contact, holds): (i64, &[bool])| (holds.first() == Some(&true)).then_some(contact);
        self.each().filter_map(matches).collect()
    }
}

impl Evaluation {
    /// Prepares filters for the contacts of a workspace; `None` if it has none.
    pub(in super::super) async fn new(
        on: &mut Snapshot,
        workspace: WorkspaceId,
        present: &Present,
        filters: impl IntoIterator<Item = &Filter>,
    ) -> Result<Option<Self>, Fault> {
        Self::prepare(on, workspace, present, filters, false).await
    }

    /// Like `new`, for a question of automations.
    pub(in super::super) async fn of_ask(
        on: &mut Snapshot,
        workspace: WorkspaceId,
        present: &Present,
        filter: &Filter,
    ) -> Result<Option<Self>, Fault> {
        Self::prepare(on, workspace, present, [filter], true).await
    }

    async fn prepare(
        on: &mut Snapshot,
        workspace: WorkspaceId,
        present: &Present,
        filters: impl IntoIterator<Item = &Filter>,
        is_ask: bool,
    ) -> Result<Option<Self>, Fault> {
        let Some(workspace_number) = workspace_number(on, workspace).await? else { return Ok(None) };
        let mut leaves = Vec::new();
        let trees = filters.into_iter().map(|filter| Tree::of(filter, &mut leaves)).collect();
        let names = Names::of(on, workspace_number, &leaves).await?;
        let mut wanted = ColumnSelection::default();
        let questions = leaves
            .into_iter()
            .map(|leaf| match Value::of(leaf, present, &mut wanted) {
                Some(value) => Question::Value(value),
                None => match OfLeaf::new(leaf, &names, present, is_ask, &mut wanted) {
                    OfLeaf::Always(holds) => Question::Always(holds),
                    OfLeaf::Asked(question, holds) => Question::Table(question, holds),
                },
            })
            .collect();
        Ok(Some(Self { workspace, workspace_number, trees, questions, wanted }))
    }

    /// Evaluates the first contacts of a range of numbers, at most `limit`.
    pub(in super::super) async fn in_range(
        &self,
        on: &mut Snapshot,
        range: &RangeInclusive<i64>,
        limit: usize,
    ) -> Result<EvaluatedRange, Fault> {
        const SQL: &str =
            concat!("SELECT ", asked_columns!(), " FROM contacts c WHERE c.n BETWEEN $4 AND $5 ORDER BY c.n LIMIT $6");
        let ColumnSelection { texts, tags, attributes } = self.wanted;
        let params = params![texts, tags, attributes, *range.start(), *range.end(), sql_limit(limit)];
        let rows = on.rows(SQL, params).await?;
        let mut candidates = Vec::with_capacity(rows.len());
        for (place, row) in rows.into_iter().enumerate() {
            candidates.push(CandidateContact {
                n: get(&row, 0)?,
                id: get(&row, 1)?,
                place,
                after: None,
                up_to: None,
                row,
            });
        }
        let rest = if candidates.len() < limit { None } else { candidates.last().map(|last| last.n + 1) };
        let last = rest.map_or(*range.end(), |rest| rest - 1);
        let holds = self.evaluate(on, &candidates, Some(*range.start()..=last)).await?;
        let numbers = candidates.iter().map(|one| one.n).collect();
        let rest = rest.filter(|rest| rest <= range.end());
        Ok(EvaluatedRange { numbers, holds, filters: self.trees.len(), rest })
    }

    /// Returns the contacts of `numbers` that the filter matches, in their order.
    pub(in super::super) async fn among(&self, on: &mut Snapshot, numbers: &[i64]) -> Result<Vec<i64>, Fault> {
        const SQL: &str = concat!(
            "SELECT ",
            asked_columns!(),
            " FROM unnest($4::bigint[]) WITH ORDINALITY AS u (n, place) JOIN contacts c ON c.n = u.n ORDER BY u.place"
        );
        let ColumnSelection { texts, tags, attributes } = self.wanted;
        let rows = on.rows(SQL, params![texts, tags, attributes, numbers.to_vec()]).await?;
        let mut candidates = Vec::with_capacity(rows.len());
        for (place, row) in rows.into_iter().enumerate() {
            candidates.push(CandidateContact {
                n: get(&row, 0)?,
                id: get(&row, 1)?,
                place,
                after: None,
                up_to: None,
                row,
            });
        }
        let holds = self.evaluate(on, &candidates, None).await?;
        Ok(candidates.iter().zip(holds).filter(|(_, holds)| *holds).map(|(one, _)| one.n).collect())
    }

    /// Returns for each contact, with its own span of events, whether the filter matches it. An erased contact does not
    /// match.
    pub(in super::super) async fn answers(&self, on: &mut Snapshot, asked: &[ContactSpan]) -> Result<Vec<bool>, Fault> {
        const SQL: &str = concat!(
            "SELECT ",
            asked_columns!(),
            ", u.place FROM unnest($4::uuid[]) WITH ORDINALITY AS u (id, place)
             JOIN contacts c ON c.workspace_number = $5 AND c.id = u.id"
        );
        const PLACE: usize = 13;
        let mut answers = vec![false; asked.len()];
        for (first, piece) in (0..).step_by(PIECE).zip(asked.chunks(PIECE)) {
            let ColumnSelection { texts, tags, attributes } = self.wanted;
            let ids: Vec<Uuid> = piece.iter().map(|one| one.contact).collect();
            let params = params![texts, tags, attributes, ids, self.workspace_number];
            let mut found = Vec::new();
            for row in on.rows(SQL, params).await? {
                let place = usize::try_from(get::<i64>(&row, PLACE)? - 1).unwrap_or(usize::MAX);
                let Some(ContactSpan { after, up_to, .. }) = piece.get(place).copied() else { continue };
                let place = first + place;
                found.push(CandidateContact { n: get(&row, 0)?, id: get(&row, 1)?, place, after, up_to, row });
            }
            let holds = self.evaluate(on, &found, None).await?;
            for (one, holds) in found.iter().zip(holds) {
                answers[one.place] = holds;
            }
        }
        Ok(answers)
    }

    /// Evaluates each filter for each candidate. `range`: the range of numbers that the candidates were read from, if
    /// they were read as a range.
    async fn evaluate(
        &self,
        on: &mut Snapshot,
        candidates: &[CandidateContact],
        range: Option<RangeInclusive<i64>>,
    ) -> Result<Vec<bool>, Fault> {
        let questions = self.questions.len();
        let mut known = AnswerTable { answers: vec![None; candidates.len() * questions], questions };
        let mut holds = Vec::with_capacity(candidates.len() * self.trees.len());
        let mut open = Vec::new();
        for (place, one) in candidates.iter().enumerate() {
            let mut is_open = false;
            for tree in &self.trees {
                let decided = tree.decide(&mut |number| self.by_value(&mut known, place, number, &one.row))?;
                is_open |= decided.is_none();
                holds.push(decided.unwrap_or(false));
            }
            if is_open {
                open.push(place);
            }
        }
        if open.is_empty() {
            return Ok(holds);
        }
        self.ask_tables(on, candidates, &open, range, &mut known).await?;
        for place in open {
            for (number, tree) in self.trees.iter().enumerate() {
                let row = &candidates[place].row;
                let decided = tree.decide(&mut |question| self.by_value(&mut known, place, question, row))?;
                holds[place * self.trees.len() + number] =
                    decided.ok_or(Fault::Malformed("a question was not answered"))?;
            }
        }
        Ok(holds)
    }

    /// Returns the answer to a question about a contact, if its values or earlier answers decide it.
    fn by_value(&self, known: &mut AnswerTable, place: usize, number: usize, row: &Row) -> Result<Option<bool>, Fault> {
        let answer = known.of(place, number);
        if answer.is_none() {
            *answer = match &self.questions[number] {
                Question::Always(holds) => Some(*holds),
                Question::Value(value) => Some(value.holds(row)?),
                Question::Table(..) => None,
            };
        }
        Ok(*answer)
    }

    /// Queries the other tables about contacts that are not decided.
    async fn ask_tables(
        &self,
        on: &mut Snapshot,
        candidates: &[CandidateContact],
        open: &[usize],
        range: Option<RangeInclusive<i64>>,
        known: &mut AnswerTable,
    ) -> Result<(), Fault> {
        let some: Vec<&CandidateContact> = open.iter().map(|place| &candidates[*place]).collect();
        let columns = Columns::of(some.iter().copied());
        let (mut together, mut statements) = (Vec::new(), Vec::new());
        for (number, question) in self.questions.iter().enumerate() {
            let Question::Table(table, expected) = question else { continue };
            for place in open {
                *known.of(*place, number) = Some(!expected);
            }
            let members = range.as_ref().and_then(|range| Some((range, table.members_sql()?)));
            if let Some((range, (sql, group))) = members {
                together.push((number, *expected, true));
                statements.push((sql, params![group, *range.start(), *range.end()]));
            } else if let Some(statement) = table.places(self.workspace, &columns, &some)? {
                together.push((number, *expected, false));
                statements.push(statement);
            } else {
                for place in table.tested(on, self.workspace, &columns).await? {
                    *known.of(open[place], number) = Some(*expected);
                }
            }
        }
        for ((number, expected, is_members), rows) in together.into_iter().zip(on.rows_of_each(statements).await?) {
            for row in &rows {
                let found = if is_members {
                    some.binary_search_by_key(&get::<i64>(row, 0)?, |one| one.n).ok()
                } else {
                    Some(place(row)?)
                };
                // Members in the range that are decided already are skipped.
                if let Some(place) = found.and_then(|found| open.get(found)) {
                    *known.of(*place, number) = Some(expected);
                }
            }
        }
        Ok(())
    }
}

/// Known answers to all questions, contact by contact.
struct AnswerTable {
    answers: Vec<Option<bool>>,
    questions: usize,
}

impl AnswerTable {
    fn of(&mut self, place: usize, question: usize) -> &mut Option<bool> {
        &mut self.answers[place * self.questions + question]
    }
}
