//! Loads the first day, and replays the changes.

use annals::{Abort, Timestamp};

use crate::airports::{Database, Transaction};
use crate::source::{self, Change};
use crate::tables::of_table;
use crate::{Anything, FIRST_DAY};

/// The tables, in the order in which they are loaded.
pub(crate) const TABLES: [&str; 5] =
    ["countries", "regions", "navaids", "airport_frequencies", "runways"];

/// Loads the state of the first day in one transaction, dated by that day.
pub(crate) fn first_day(db: &Database) -> Result<(), Anything> {
    db.write(|tx| {
        let bar = source::progress(87_017, "loading");
        for table in TABLES {
            source::rows(FIRST_DAY, table, |id, fields| {
                bar.inc(1);
                of_table!(table, insert(tx, id, fields))
            })
            .map_err(Abort::new)?;
        }
        bar.finish_and_clear();
        tx.set_time(format!("{FIRST_DAY}T00:00:00Z").parse()?);
        tx.comment("the state of OurAirports on 2021-11-02")?;
        Ok(())
    })?;
    Ok(())
}

/// Replays the changes: all that came in together are one transaction of that time.
pub(crate) fn changes(db: &Database) -> Result<(), Anything> {
    let changes = source::changes()?;
    let bar = source::progress(changes.len(), "replaying");
    let mut transactions = 0;
    for together in changes.chunk_by(|a, b| a.at == b.at) {
        let at: Timestamp = together[0].at.parse()?;
        db.write(|tx| {
            tx.set_time(at);
            together.iter().try_for_each(|change| apply(tx, change)).map_err(Abort::new)
        })?;
        transactions += 1;
        bar.inc(together.len() as u64);
    }
    bar.finish_and_clear();
    println!("{} changes, {transactions} durable transactions", changes.len());
    Ok(())
}

fn apply(tx: &mut Transaction<'_>, change: &Change) -> Result<(), Anything> {
    let (table, id, fields) = (change.table.as_str(), change.id, &change.fields);
    match change.operation.as_str() {
        "insert" => of_table!(table, insert(tx, id, fields)),
        "update" => fields.names().try_for_each(|name| of_table!(table, set(tx, id, fields, name))),
        "delete" => delete(tx, table, id),
        other => Err(format!("there is no operation {other}").into()),
    }
}

fn delete(tx: &mut Transaction<'_>, table: &str, id: u64) -> Result<(), Anything> {
    use crate::airports::{airport_frequencies, countries, navaids, regions, runways};
    match table {
        "countries" => tx.delete(countries::Id::from_u64(id))?,
        "regions" => tx.delete(regions::Id::from_u64(id))?,
        "navaids" => tx.delete(navaids::Id::from_u64(id))?,
        "airport_frequencies" => tx.delete(airport_frequencies::Id::from_u64(id))?,
        "runways" => tx.delete(runways::Id::from_u64(id))?,
        other => return Err(format!("there is no table {other}").into()),
    }
    Ok(())
}
