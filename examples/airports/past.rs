//! The past: the state as it was on some days, and one row's history.

use std::path::Path;
use std::time::Instant;

use annals::event::Event;
use annals::{
    Committed, FieldNumber, Result, RowId, Schema, Sink, TableNumber, Timestamp, ValueRef,
};

use crate::Anything;
use crate::airports::Database;

/// A runway that was deleted and came back.
const TABLE: &str = "runways";
const ROW: RowId = RowId(238_408);

/// Collects what happened to one row.
#[derive(Default)]
struct Past {
    /// What the transaction being read did to the row.
    pending: Vec<String>,
    lines: Vec<String>,
}

impl Past {
    fn note(&mut self, schema: &Schema, table: TableNumber, what: &str) {
        if schema.table(table).is_some_and(|table| table.name == TABLE) {
            self.pending.push(what.to_owned());
        }
    }
}

impl Sink for Past {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        match *event {
            Event::Insert { table, id: ROW, values } => {
                let values: Vec<_> = values.iter().map(|&value| text(value)).collect();
                self.note(schema, table, &format!("inserted {}", values.join(" ")));
            }
            Event::Update { table, id: ROW, field, value } => {
                let name = field_name(schema, table, field);
                self.note(schema, table, &format!("{name} = {}", text(value)));
            }
            Event::Delete { table, id: ROW } => self.note(schema, table, "deleted"),
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        let at = format!("  {} (transaction {})", committed.time, committed.txid);
        self.lines.extend(self.pending.drain(..).map(|what| format!("{at}: {what}")));
        Ok(())
    }
}

fn field_name(schema: &Schema, table: TableNumber, field: FieldNumber) -> &str {
    schema.table(table).and_then(|table| table.field(field)).map_or("?", |field| &field.name)
}

fn text(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = annals_schema::write_value(&mut text, value);
    text
}

/// Looks at the state as it was at the beginning of each year, and says how long that takes.
pub(crate) fn days(db: &Database) -> std::result::Result<(), Anything> {
    println!("\nRunways, and closed ones among them:");
    for year in 2022..=2026 {
        let day: Timestamp = format!("{year}-01-01T00:00:00Z").parse()?;
        #[allow(clippy::disallowed_methods, reason = "an example measures with the real clock")]
        let start = Instant::now();
        let then = db.at(day)?;
        let mut closed = 0;
        for runway in then.runways().iter() {
            closed += u64::from(runway?.closed());
        }
        let (runways, took) = (then.runways().len(), start.elapsed().as_secs_f64() * 1e3);
        println!("  {day}: {runways}, {closed} (transaction {}, in {took:.1} ms)", then.txid());
    }
    Ok(())
}

/// Prints all that happened to the row.
pub(crate) fn show(file: &Path) -> std::result::Result<(), Anything> {
    let mut past = Past::default();
    annals::scan(file, &mut past)?;
    println!("\nThe past of {TABLE} {}:", ROW.0);
    past.lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}
