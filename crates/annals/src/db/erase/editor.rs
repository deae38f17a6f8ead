//! Putting null in the place of values, nothing in that of comments, and a zero in the place of the bytes of blobs.

use std::collections::BTreeSet;

use annals_schema::{Field, FieldNumber, RowId, Schema, TableNumber, ValueRef};

use crate::Result;
use crate::db::erase::search::Target;
use crate::event::{Edit, Event, Vector};

/// Edits the events of one frame after another.
#[derive(Debug)]
pub(super) struct Editor<'t> {
    target: &'t Target,
    /// Fields whose values stay in the state that is being repeated: nothing ever wrote them.
    pub(super) unwritten: BTreeSet<FieldNumber>,
    /// The transaction that is edited.
    pub(super) txid: u64,
    /// Where the next piece of the open blob begins, by its new pieces.
    offset: u64,
}

/// All that is left of a piece of a blob, unless it is empty.
const PIECE: &[u8] = &[0];

impl<'t> Editor<'t> {
    pub(super) const fn new(target: &'t Target) -> Self {
        Self { target, unwritten: BTreeSet::new(), txid: 0, offset: 0 }
    }

    fn has(&self, table: TableNumber, row: RowId, field: FieldNumber) -> bool {
        self.target.has(table, row, field) && !self.unwritten.contains(&field)
    }
}

impl Edit for Editor<'_> {
    fn edit(
        &mut self,
        schema: &Schema,
        event: &Event<'_>,
        put: &mut dyn FnMut(&Event<'_>),
    ) -> Result<()> {
        let target = self.target;
        let is_null = |value: &ValueRef<'_>| matches!(value, ValueRef::Null);
        match *event {
            Event::Insert { table, id, values } if (table, id) == (target.table, target.row) => {
                let fields = schema.table(table).map_or(&[][..], |table| &table.fields);
                let goes = |(field, value): (&Field, &ValueRef<'_>)| {
                    self.has(table, id, field.number) && !is_null(value)
                };
                if fields.iter().zip(values).any(goes) {
                    let left = fields.iter().zip(values);
                    let left = left.map(|(f, v)| if goes((f, v)) { ValueRef::Null } else { *v });
                    put(&Event::Insert { table, id, values: &left.collect::<Vec<_>>() });
                }
            }
            Event::Update { table, id, field, value }
                if self.has(table, id, field) && !is_null(&value) =>
            {
                put(&Event::Update { table, id, field, value: ValueRef::Null });
            }
            Event::UpdateVector { table, id, field, values } => {
                let described = schema.table(table).and_then(|table| table.field(field));
                let at = target.row.0.checked_sub(id.0).and_then(|at| usize::try_from(at).ok());
                let (Some(described), Some(at)) = (described, at) else { return Ok(()) };
                let is_in = values.len(described.ty).is_some_and(|len| at < len);
                if !is_in || !self.has(table, target.row, field) {
                    return Ok(());
                }
                let mut left: Vec<_> = values.iter(described.ty).collect();
                if let Some(value) = left.get_mut(at).filter(|value| !is_null(value)) {
                    *value = ValueRef::Null;
                    put(&Event::UpdateVector { table, id, field, values: Vector::Values(&left) });
                }
            }
            Event::Comment(text) if !text.is_empty() && target.comments.contains(&self.txid) => {
                put(&Event::Comment(""));
            }
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
