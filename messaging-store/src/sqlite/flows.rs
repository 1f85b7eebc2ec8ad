//! Which flows have something due, and whose turn it is. Forgotten with the process.

use std::collections::BTreeSet;

use messaging_core::domain::delivery::fair_turns::FairTurns;
use messaging_core::domain::delivery::lane::{Flow, JobClass, Lane};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::fault::Fault;
use super::row;

/// With fewer due lanes than this, their flows are told from the lanes themselves.
const FEW: usize = 256;

/// Flows of a class that one claim looks at; the next one goes on after them.
const MAX_FLOWS: usize = 1024;

/// The flows of a process.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) turns: FairTurns,
    /// Per class, after which flow to go on looking.
    looked_to: [Option<String>; JobClass::ALL.len()],
}

impl Flows {
    /// The flows that have something due.
    pub(super) fn due(&mut self, connection: &Connection, now: Timestamp) -> Result<Vec<Flow>, Fault> {
        let mut statement = connection.prepare_cached(
            "SELECT lane FROM lanes INDEXED BY lanes_by_time WHERE next_at <= ?1 ORDER BY next_at LIMIT ?2",
        )?;
        let mut rows = statement.query(params![now.as_millis(), row::sql_limit(FEW)])?;
        let (mut count, mut due) = (0, BTreeSet::new());
        while let Some(row) = rows.next()? {
            count += 1;
            due.insert(Lane::parse(&row.get::<_, String>(0)?).flow());
        }
        if count == FEW {
            for (class, looked_to) in JobClass::ALL.into_iter().zip(&mut self.looked_to) {
                look_on(connection, class, looked_to, now, &mut due)?;
            }
        }
        Ok(due.into_iter().collect())
    }
}

/// Goes from flow to flow, each one look-up in the index, round to where it began.
fn look_on(
    connection: &Connection,
    class: JobClass,
    looked_to: &mut Option<String>,
    now: Timestamp,
    due: &mut BTreeSet<Flow>,
) -> Result<(), Fault> {
    // Flows of a class are the texts between these two.
    let nothing = Flow { class, workspace: None }.to_string().replace('-', "");
    let end = format!("{nothing}~");
    let start = looked_to.take().unwrap_or_else(|| nothing.clone());
    let (mut place, mut is_second_part) = (start.clone(), false);
    let mut statement = connection.prepare_cached(
        "SELECT flow, next_at FROM lanes INDEXED BY lanes_by_flow WHERE flow > ?1 AND flow < ?2
         ORDER BY flow, next_at LIMIT 1",
    )?;
    for _ in 0..MAX_FLOWS {
        let next: Option<(String, i64)> =
            statement.query_row(params![place, end], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((flow, next_at)) = next.filter(|(flow, _)| !is_second_part || *flow <= start) else {
            if is_second_part || start == nothing {
                return Ok(());
            }
            (place, is_second_part) = (nothing.clone(), true);
            continue;
        };
        if next_at <= now.as_millis() {
            due.extend(Flow::parse(&flow));
        }
        place = flow;
    }
    *looked_to = Some(place);
    Ok(())
}
