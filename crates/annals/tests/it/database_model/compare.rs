//! Comparing what a view holds, and what the journal gives, with the model.

use annals::event::Event;
use annals::storage::MemoryDirectory;
use annals::store::Store;
use annals::{Committed, Schema, Sink, View};
use annals_tools::scan_in;

use super::model::Model;

/// Compares all rows.
pub(super) fn rows(view: &View, model: &Model) {
    assert_eq!(**view.schema(), model.schema);
    for (&number, expected) in &model.tables {
        let table = view.table(annals::TableNumber(number)).unwrap();
        assert_eq!((table.len(), table.next_id()), (expected.rows.len() as u64, expected.next_id));
        for (row, (&id, values)) in table.rows().map(Result::unwrap).zip(&expected.rows) {
            assert_eq!(row.id().0, id);
            for (&field, value) in values {
                let found = row.value(annals::FieldNumber(field));
                assert_eq!(found, value.as_ref(), "table {number}, row {id}, field {field}");
            }
        }
        let single = table.single();
        assert_eq!(single.is_ok(), model.table(number).single_row);
    }
}

struct Replay(Store);

impl Sink for Replay {
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> annals::Result<()> {
        self.0.apply(event)
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> annals::Result<()> {
        self.0.commit().check()
    }
}

/// Compares what the journal gives when it is replayed.
pub(super) fn replayed(directory: &MemoryDirectory, model: &Model) {
    let mut replay = Replay(Store::new());
    scan_in(&annals::Options::new(), directory, "db", &mut replay).unwrap();
    rows(replay.0.view(), model);
}
