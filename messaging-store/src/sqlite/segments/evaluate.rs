//! Evaluation of compiled conditions for contacts.
//!
//! The statements are prepared for one use: their text depends on the filter, and caching them would evict the
//! statements that every request uses.

use std::ops::RangeInclusive;
use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Connection, Statement, ToSql, params_from_iter};

use super::super::address_digest::define_digest;
use super::super::fault::Fault;
use super::super::row::numbered;
use super::compile::Compiled;
use super::probe;
use crate::tables::segments::keys::attribute_addresses;

/// Number of parameters bound for each question.
const ASKED: usize = 3;

/// Conditions that are ready to run. The connection evaluates no others meanwhile.
pub(in super::super) struct Evaluation<'c> {
    statement: Statement<'c>,
    /// Values of the parameters that are the same in every run of the statement.
    parameters: Vec<Value>,
}

/// Conditions that are ready to answer one question after another. The connection evaluates no others meanwhile.
pub(in super::super) struct AskEvaluation<'c> {
    statements: Vec<Statement<'c>>,
}

impl<'c> AskEvaluation<'c> {
    /// Prepares conditions from [`compile_asks`](super::compile::compile_asks).
    pub(in super::super) fn new(connection: &'c Connection, compiled: Compiled) -> Result<Self, Fault> {
        let Compiled { conditions, parameters, probes, .. } = compiled;
        define_functions(connection, probes)?;
        let mut statements = Vec::with_capacity(conditions.len());
        for condition in &conditions {
            let sql = ["SELECT ", condition, " FROM contacts c WHERE c.n = ?1"].concat();
            let mut statement = connection.prepare(&sql)?;
            // The parameters of the other conditions do not occur in this statement.
            for (place, value) in parameters.iter().enumerate().take(statement.parameter_count()).skip(ASKED) {
                statement.raw_bind_parameter(place + 1, value)?;
            }
            statements.push(statement);
        }
        Ok(Self { statements })
    }

    /// Returns true if a condition holds for a contact; `asked` has its number, and the span of events.
    pub(in super::super) fn holds(&mut self, condition: usize, asked: [&dyn ToSql; ASKED]) -> Result<bool, Fault> {
        let statement = &mut self.statements[condition];
        let bound = asked.into_iter().take(statement.parameter_count());
        for (place, value) in bound.enumerate() {
            statement.raw_bind_parameter(place + 1, value)?;
        }
        let mut rows = statement.raw_query();
        Ok(match rows.next()? {
            Some(row) => row.get(0)?,
            None => false,
        })
    }
}

/// Contacts that a statement reads.
enum ContactScope {
    /// The contacts of a range of numbers.
    Range,
    /// The contacts of a JSON array of numbers.
    Named,
}

impl<'c> Evaluation<'c> {
    /// Prepares to find the contacts in ranges of numbers for which the first condition holds.
    pub(in super::super) fn of_ranges(connection: &'c Connection, compiled: Compiled) -> Result<Self, Fault> {
        Self::new(connection, compiled, &ContactScope::Range, false)
    }

    /// Prepares to find those of some contacts for which the first condition holds.
    pub(super) fn of_some(connection: &'c Connection, compiled: Compiled) -> Result<Self, Fault> {
        Self::new(connection, compiled, &ContactScope::Named, false)
    }

    /// Prepares to evaluate each condition for each contact of a range.
    pub(super) fn of_each(connection: &'c Connection, compiled: Compiled) -> Result<Self, Fault> {
        Self::new(connection, compiled, &ContactScope::Range, true)
    }

    fn new(connection: &'c Connection, compiled: Compiled, scope: &ContactScope, each: bool) -> Result<Self, Fault> {
        let Compiled { conditions, parameters, probes, .. } = compiled;
        define_functions(connection, probes)?;
        let mut sql = String::from("SELECT c.n");
        if each {
            for condition in &conditions {
                sql.push_str(", ");
                sql.push_str(condition);
            }
        }
        // The range or the array follows all other parameters.
        let next = parameters.len() + 1;
        match scope {
            ContactScope::Range => {
                let (first, last) = (next.to_string(), (next + 1).to_string());
                sql.extend([" FROM contacts c WHERE c.n BETWEEN ?", &first, " AND ?", &last]);
            }
            ContactScope::Named => {
                let array = next.to_string();
                sql.extend([" FROM json_each(?", &array, ") j CROSS JOIN contacts c ON c.n = j.value WHERE 1"]);
            }
        }
        if let (false, Some(condition)) = (each, conditions.first()) {
            sql.extend([" AND ", condition]);
        }
        sql.push_str(" ORDER BY c.n");
        Ok(Self { statement: connection.prepare(&sql)?, parameters })
    }

    /// Numbers of the contacts of a range for which the condition holds, in their order.
    pub(in super::super) fn in_range(&mut self, range: &RangeInclusive<i64>) -> Result<Vec<i64>, Fault> {
        self.numbers([Value::Integer(*range.start()), Value::Integer(*range.end())])
    }

    /// Returns those of some contacts for which the condition holds, in their order.
    pub(super) fn among(&mut self, numbers: &[i64]) -> Result<Vec<i64>, Fault> {
        self.numbers([Value::Text(serde_json::to_string(numbers)?)])
    }

    fn numbers(&mut self, bounds: impl IntoIterator<Item = Value>) -> Result<Vec<i64>, Fault> {
        let bound: Vec<Value> = bounds.into_iter().collect();
        let mut rows = self.statement.query(params_from_iter(self.parameters.iter().chain(&bound)))?;
        let mut numbers = Vec::new();
        while let Some(row) = rows.next()? {
            numbers.push(row.get(0)?);
        }
        Ok(numbers)
    }

    /// Calls a function with each contact of a range and the value of each condition.
    pub(super) fn each_in_range(
        &mut self,
        range: &RangeInclusive<i64>,
        conditions: usize,
        mut visit: impl FnMut(i64, &[bool]),
    ) -> Result<(), Fault> {
        let bound = [Value::Integer(*range.start()), Value::Integer(*range.end())];
        let mut rows = self.statement.query(params_from_iter(self.parameters.iter().chain(&bound)))?;
        let mut holds = vec![false; conditions];
        while let Some(row) = rows.next()? {
            for (index, holds) in holds.iter_mut().enumerate() {
                *holds = row.get(index + 1)?;
            }
            visit(row.get(0)?, &holds);
        }
        Ok(())
    }
}

/// Defines the SQL functions that conditions call. The tests are owned by the first of them.
fn define_functions(connection: &Connection, probes: probe::Probes) -> Result<(), Fault> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    let probes = Arc::new(probes);
    define_digest(connection)?;
    connection.create_scalar_function("passes", 2, flags, move |call| {
        let index = usize::try_from(call.get_raw(0).as_i64()?).unwrap_or(usize::MAX);
        probes.pass(index, call.get_raw(1)).map_err(|fault| rusqlite::Error::UserFunctionError(Box::new(fault)))
    })?;
    connection.create_scalar_function("addresses", 2, flags, |call| {
        let failed = |fault: Fault| rusqlite::Error::UserFunctionError(Box::new(fault));
        let channel = numbered(&Channel::ALL, call.get_raw(0).as_i64()?).map_err(failed)?;
        let attributes = call.get_raw(1).as_str_or_null()?;
        let addresses = attribute_addresses(channel, attributes).map_err(failed)?;
        serde_json::to_string(&addresses).map_err(|error| failed(error.into()))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use messaging_core::domain::segment::parse::{Purpose, parse};
    use messaging_core::ids::{Id as _, WorkspaceId};
    use messaging_core::ports::store::segments::MemberQuery;
    use messaging_core::time::Timestamp;
    use messaging_core::violation::Violations;
    use serde_json::json;

    use super::super::super::{connection, numbers, schema};
    use super::super::compile::compile;
    use super::*;

    /// Query plan of a statement, a line for each table.
    fn plan(statement: &Statement<'_>, connection: &Connection) -> Vec<String> {
        let sql = statement.expanded_sql().unwrap_or_default();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let details = explain.query_map([], |row| row.get::<_, String>(3)).unwrap();
        let tables = details.map(Result::unwrap).filter(|line| line.starts_with("SCAN") || line.starts_with("SEARCH"));
        tables.collect()
    }

    #[test]
    fn contacts_come_first_and_everything_about_them_is_found_by_an_index() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("messaging.db");
        std::fs::write(&path, "").unwrap();
        let mut connection = connection::writer(&path, false).unwrap();
        schema::migrate(&mut connection).unwrap();
        let workspace = WorkspaceId::from_bytes([7; 16]);
        numbers::make_workspace_number(&connection, workspace).unwrap();
        let list = "lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
        let segment = "seg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
        let filter = json!({"and": [
            {"type": "list", "op": "member", "id": list},
            {"type": "segment", "op": "member", "id": segment},
            {"type": "consent", "channel": "sms", "value": true},
            {"type": "contact", "field": "email", "op": "exists"},
            {"type": "suppression", "channel": "email", "value": true},
            {"type": "suppression", "channel": "sms", "value": true},
            {"type": "suppression", "channel": "push", "value": true},
            {"type": "event", "name": "x", "within": {"last": {"value": 1, "unit": "days"}}},
            {"type": "event", "name": "x", "count": {"op": "gte", "value": 2}, "where": [{"property": "a", "op": "exists"}]},
            {"type": "message", "event": "click", "channel": "email", "url_contains": "x"},
            {"type": "message", "event": "sent", "count": {"op": "eq", "value": 2}},
        ]});
        let mut violations = Violations::new();
        let filter = parse(&filter, "", Purpose::Segment, &mut violations).filter.expect("a filter");
        let query = MemberQuery { filter, now: Timestamp::from_millis(0), zone: TimeZone::UTC };
        let compiled = || compile(&connection, workspace, &query, [&query.filter]).unwrap().unwrap();
        // The array of a contact's push tokens, and found rows that are counted.
        let walked = ["SCAN a VIRTUAL", "SCAN (subquery"];
        let is_found =
            |line: &String| line.starts_with("SEARCH ") || walked.iter().any(|walked| line.starts_with(walked));
        let of_ranges = plan(&Evaluation::of_ranges(&connection, compiled()).unwrap().statement, &connection);
        assert_eq!(of_ranges[0], "SEARCH c USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
        assert!(of_ranges.len() > 10 && of_ranges.iter().all(is_found), "{of_ranges:#?}");
        let of_some = plan(&Evaluation::of_some(&connection, compiled()).unwrap().statement, &connection);
        assert_eq!(of_some[..2], ["SCAN j VIRTUAL TABLE INDEX 1:", "SEARCH c USING INTEGER PRIMARY KEY (rowid=?)"]);
        assert!(of_some[1..].iter().all(is_found), "{of_some:#?}");
    }
}
