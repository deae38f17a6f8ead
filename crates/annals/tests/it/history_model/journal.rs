//! The journal read from its beginning: into a fresh store, and into a fresh model.

use std::rc::Rc;

use annals::event::Event;
use annals::storage::Directory;
use annals::store::Store;
use annals::{Committed, ErrorKind, Level, Schema, Sink, ValueRef};
use annals_tools::scan_in;

use super::model::Model;
use super::{NAME, look};
use crate::store_model::Random;

/// What is remembered of a commit: its number, its level, and its time if it was given.
pub(super) type Commit = (u64, Level, Option<i64>);

#[derive(Default)]
struct Replay {
    store: Store,
    model: Model,
    commits: Vec<Commit>,
}

impl Sink for Replay {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> annals::Result<()> {
        assert_eq!(schema.commands().len(), self.model.commands.len());
        take(&mut self.model, event);
        self.store.apply(event)
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        assert_eq!(self.model.verdict(), Ok(()), "what was committed holds");
        self.store.commit();
        self.model.end_transaction();
        let time = committed.explicit_time.then_some(committed.time.0);
        self.commits.push((committed.txid.0, committed.level, time));
        Ok(())
    }
}

/// Does to a model what an event says, and no more than that.
fn take(model: &mut Model, event: &Event<'_>) {
    match *event {
        Event::Schema(command) => assert_eq!(model.command(command), Ok(()), "{command:?}"),
        Event::Insert { table, id, values } => {
            let values = values.iter().map(|value| value.to_value()).collect();
            model.table_mut(table.0).insert(id.0, values);
        }
        Event::Update { table, id, field, value } => {
            model.table_mut(table.0).set(id.0, field.0, value.to_value());
        }
        Event::Delete { table, id } => remove(model, table.0, id.0, 1),
        Event::InsertVector { table, id, count } => model.insert_zeros(table.0, id.0, count),
        Event::UpdateVector { table, id, field, values } => {
            let table = model.table_mut(table.0);
            let ty = table.fields[table.place(field.0).unwrap()].ty;
            let values: Vec<_> = values.iter(ty).map(ValueRef::to_value).collect();
            (id.0..).zip(values).for_each(|(id, value)| table.set(id, field.0, value));
        }
        Event::DeleteVector { table, id, count } => remove(model, table.0, id.0, count),
        Event::Blob { blob, offset, bytes, .. } => model.write_piece(blob.0, offset, bytes),
        Event::ValidData => model.notes.push("valid_data".to_owned()),
        Event::Comment(text) => model.notes.push(format!("comment {text}")),
        Event::Timestamp(seconds) => model.notes.push(format!("timestamp {seconds}")),
    }
}

fn remove(model: &mut Model, table: u32, id: u64, count: u64) {
    let table = model.table_mut(table);
    (id..id + count).for_each(|id| assert!(table.rows.remove(&id).is_some(), "row {id}"));
}

/// Compares what the journal gives with the model and with the commits that there were.
pub(super) fn compare(
    directory: &dyn Directory,
    model: &Rc<Model>,
    commits: &[Commit],
    random: &mut Random,
) {
    let mut replay = Replay::default();
    match scan_in(&annals::Options::new(), directory, NAME, &mut replay) {
        Err(error) if error.kind() == ErrorKind::NotFound => assert!(commits.is_empty()),
        scanned => scanned.unwrap(),
    }
    assert_eq!(replay.commits, commits);
    let view = replay.store.commit();
    view.check().unwrap();
    look::view(&view, model, random);
    look::view(&view, &replay.model, random);
    assert!(replay.model.notes == model.notes, "other notes");
    assert!(replay.model.blobs == model.blobs, "other blobs");
}
