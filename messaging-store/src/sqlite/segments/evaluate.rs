//! Running compiled conditions over contacts.
//!
//! The statements are made for one use: their text depends on the filter, and keeping them would push the
//! statements that every request uses out of the cache.

use std::ops::RangeInclusive;
use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};

use super::super::fault::Fault;
use super::super::row::numbered;
use super::compile::Compiled;
use super::probe;

/// Conditions that are ready to run. The connection evaluates no others meanwhile.
pub(super) struct Evaluation<'c> {
    statement: Statement<'c>,
    /// What is bound every time.
    parameters: Vec<Value>,
}

/// Whom a statement looks at.
enum Whom {
    /// The contacts of a range of numbers.
    Range,
    /// The contacts of a JSON array of numbers.
    Named,
}

impl<'c> Evaluation<'c> {
    /// Prepares to find whom the first condition holds for, in ranges of numbers.
    pub(super) fn of_ranges(connection: &'c Connection, compiled: Compiled) -> Result<Self, Fault> {
        Self::new(connection, compiled, &Whom::Range, false)
    }

    /// Prepares to find whom the first condition holds for, among some numbers.
    pub(super) fn of_some(connection: &'c Connection, compiled: Compiled) -> Result<Self, Fault> {
        Self::new(connection, compiled, &Whom::Named, false)
    }

    /// Prepares to find out which of the conditions hold for each contact of a range.
    pub(super) fn of_each(connection: &'c Connection, compiled: Compiled) -> Result<Self, Fault> {
        Self::new(connection, compiled, &Whom::Range, true)
    }

    fn new(connection: &'c Connection, compiled: Compiled, whom: &Whom, each: bool) -> Result<Self, Fault> {
        let Compiled { conditions, parameters, probes, .. } = compiled;
        define_functions(connection, probes)?;
        let mut sql = String::from("SELECT c.n");
        if each {
            for condition in &conditions {
                sql.push_str(", ");
                sql.push_str(condition);
            }
        }
        // The range or the array comes after everything else that is bound.
        let next = parameters.len() + 1;
        match whom {
            Whom::Range => {
                let (first, last) = (next.to_string(), (next + 1).to_string());
                sql.extend([" FROM contacts c WHERE c.n BETWEEN ?", &first, " AND ?", &last]);
            }
            Whom::Named => {
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

    /// The numbers of the contacts of a range for whom the condition holds, in their order.
    pub(super) fn in_range(&mut self, range: &RangeInclusive<i64>) -> Result<Vec<i64>, Fault> {
        self.numbers([Value::Integer(*range.start()), Value::Integer(*range.end())])
    }

    /// Those of some contacts for whom the condition holds, in their order.
    pub(super) fn among(&mut self, numbers: &[i64]) -> Result<Vec<i64>, Fault> {
        self.numbers([Value::Text(serde_json::to_string(numbers)?)])
    }

    fn numbers(&mut self, whom: impl IntoIterator<Item = Value>) -> Result<Vec<i64>, Fault> {
        let bound: Vec<Value> = whom.into_iter().collect();
        let mut rows = self.statement.query(params_from_iter(self.parameters.iter().chain(&bound)))?;
        let mut numbers = Vec::new();
        while let Some(row) = rows.next()? {
            numbers.push(row.get(0)?);
        }
        Ok(numbers)
    }

    /// Tells of each contact of a range which of the conditions hold.
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

/// Gives the connection the functions that conditions call. The tests live in the first of them.
fn define_functions(connection: &Connection, probes: probe::Probes) -> Result<(), Fault> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    let probes = Arc::new(probes);
    connection.create_scalar_function("passes", 2, flags, move |call| {
        let index = usize::try_from(call.get_raw(0).as_i64()?).unwrap_or(usize::MAX);
        probes.pass(index, call.get_raw(1)).map_err(|fault| rusqlite::Error::UserFunctionError(Box::new(fault)))
    })?;
    connection.create_scalar_function("addresses", 2, flags, |call| {
        let failed = |fault: Fault| rusqlite::Error::UserFunctionError(Box::new(fault));
        let channel = numbered(&Channel::ALL, call.get_raw(0).as_i64()?).map_err(failed)?;
        let addresses = probe::addresses(channel, call.get_raw(1)).map_err(failed)?;
        serde_json::to_string(&addresses).map_err(|error| failed(error.into()))
    })?;
    Ok(())
}
