//! Putting null in the place of values, nothing in that of comments, and a zero in the place of the bytes of blobs.

use std::collections::BTreeSet;

use annals::event::{Event, Vector};
use annals::{FieldNumber, Result, RowId, Schema, TableNumber, ValueRef};

use super::payload::Edit;
use super::search::Target;
use crate::requests::of_erased_answer;

/// Edits the events of one frame after another.
#[derive(Debug)]
pub(super) struct Editor<'t> {
    target: &'t Target,
    /// True while the state is repeated that the segments before lead to.
    pub(super) repeats: bool,
    /// Fields of the row that a transaction wrote. In a repeated state the others have defaults, or zeros that
    /// `insert_vector` made: these stay, as they do in the segments before.
    written: BTreeSet<FieldNumber>,
    /// The transaction that is edited, and how many comments it had up to here.
    txid: u64,
    comments: u64,
    /// Where the next piece of the open blob begins, by its new pieces.
    offset: u64,
}

/// All that is left of a piece of a blob, unless it is empty.
const PIECE: &[u8] = &[0];

impl<'t> Editor<'t> {
    pub(super) const fn new(target: &'t Target) -> Self {
        Self { target, repeats: false, written: BTreeSet::new(), txid: 0, comments: 0, offset: 0 }
    }

    /// Begins a frame of a transaction.
    pub(super) const fn begin(&mut self, txid: u64) {
        if self.txid != txid {
            (self.txid, self.comments) = (txid, 0);
        }
    }

    /// Edits the next comment.
    fn comment(&mut self, text: &str, put: &mut dyn FnMut(&Event<'_>)) {
        let place = self.comments;
        self.comments += 1;
        let answers = self.target.answers.get(&self.txid);
        let is_answer = |place: u64| answers.is_some_and(|it| it.places.contains(&place));
        if is_answer(place) {
            put(&Event::Comment(&of_erased_answer()));
        } else if self.target.comments.contains(&self.txid)
            && !text.is_empty()
            && !is_answer(place + 1)
        {
            put(&Event::Comment(""));
        }
    }

    /// True if a value goes; notes which fields are written.
    fn goes(&mut self, table: TableNumber, row: RowId, field: FieldNumber, is_null: bool) -> bool {
        let is_meant = self.target.has(table, row, field);
        if is_meant && !self.repeats {
            self.written.insert(field);
        }
        is_meant && !is_null && self.written.contains(&field)
    }
}

const fn is_null(value: &ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Null)
}

impl Edit for Editor<'_> {
    fn edit(
        &mut self,
        schema: &Schema,
        event: &Event<'_>,
        put: &mut dyn FnMut(&Event<'_>),
    ) -> Result<()> {
        let target = self.target;
        // The place of the row among `count` that begin with an id.
        let place = |id: RowId, count: u64| {
            let place = target.row.0.checked_sub(id.0).filter(|&place| place < count)?;
            usize::try_from(place).ok()
        };
        match *event {
            Event::Insert { table, id, values } if (table, id) == (target.table, target.row) => {
                let fields = schema.table(table).map_or(&[][..], |table| &table.fields);
                let left = fields.iter().zip(values).map(|(field, value)| {
                    let goes = self.goes(table, id, field.number, is_null(value));
                    if goes { ValueRef::Null } else { *value }
                });
                let left: Vec<_> = left.collect();
                if left.iter().zip(values).any(|(left, value)| is_null(left) != is_null(value)) {
                    put(&Event::Insert { table, id, values: &left });
                }
            }
            Event::InsertVector { table, id, count }
                if table == target.table && !self.repeats && place(id, count).is_some() =>
            {
                self.written.clear();
            }
            Event::Update { table, id, field, value }
                if self.goes(table, id, field, is_null(&value)) =>
            {
                put(&Event::Update { table, id, field, value: ValueRef::Null });
            }
            Event::UpdateVector { table, id, field, values } if table == target.table => {
                let described = schema.table(table).and_then(|table| table.field(field));
                let Some(ty) = described.map(|field| field.ty) else { return Ok(()) };
                let count = values.len(ty).map_or(0, |len| len as u64);
                let Some(place) = place(id, count) else { return Ok(()) };
                let mut left: Vec<_> = values.iter(ty).collect();
                if let Some(value) = left.get_mut(place)
                    && self.goes(table, target.row, field, is_null(value))
                {
                    *value = ValueRef::Null;
                    put(&Event::UpdateVector { table, id, field, values: Vector::Values(&left) });
                }
            }
            Event::Comment(text) => self.comment(text, put),
            Event::Blob { blob, offset, bytes, position } if target.blobs.contains(&blob) => {
                let new = if offset == 0 { 0 } else { self.offset };
                let left = PIECE.get(..bytes.len().min(1)).unwrap_or_default();
                self.offset = new + left.len() as u64;
                put(&Event::Blob { blob, offset: new, bytes: left, position });
            }
            _ => {}
        }
        Ok(())
    }
}
