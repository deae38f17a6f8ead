//! Tables that were dropped or renamed: who asks for one by its name reads when that was, and how to ask for its past.

use annals::event::Event;
use annals::{Committed, Schema, Sink, Snapshot, TableNumber, Txid};
use serde_json::json;

use crate::answer::{Answer, Refusal};
use crate::rows::table;

/// Finds a table by its name. If there is none, looks in the kept history whether there was one: that reads the journal.
pub(crate) fn table_or_when_dropped(now: &Snapshot, name: &str) -> Answer<TableNumber> {
    let refusal = match table(now.schema(), name) {
        Ok(table) => return Ok(table.number),
        Err(refusal) => refusal,
    };
    let mut looking = Looking { name, is_there: false, dropped: None };
    // What can't be read says nothing of the table.
    let _ = now.read_events(Txid(0), now.txid(), &mut looking);
    let Some(dropped) = looking.dropped else { return Err(refusal) };
    let before = dropped.0 - 1;
    let message = format!(
        "there is no table {name:?} any more: transaction {dropped} dropped or renamed it; its rows before that are \
         /t/{name}?at=txid:{before}&as_it_was=true"
    );
    let refusal = Refusal { message, ..refusal };
    Err(refusal.with(json!({ "dropped": dropped.0 })))
}

/// Looks for the last transaction after which a name wasn't that of a table any more.
struct Looking<'n> {
    name: &'n str,
    is_there: bool,
    dropped: Option<Txid>,
}

impl Looking<'_> {
    fn is_in(&self, schema: &Schema) -> bool {
        schema.table_named(self.name).is_some()
    }
}

impl Sink for Looking<'_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> annals::Result<()> {
        // The state with which the kept history begins may have it.
        self.is_there |= matches!(event, Event::Schema(_)) && self.is_in(schema);
        Ok(())
    }

    fn commit(&mut self, schema: &Schema, committed: &Committed) -> annals::Result<()> {
        let is_there = self.is_in(schema);
        if self.is_there && !is_there {
            self.dropped = Some(committed.txid);
        }
        self.is_there = is_there;
        Ok(())
    }
}
