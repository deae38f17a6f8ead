//! Comparing the contents of two views: the slow check of an image is the replay of the journal.
//!
//! Pages, slots and nodes of trees may differ, and so they do: they depend on when a store was loaded. Values visible
//! to a program may not.

use annals_schema::{Blob, Schema, Table};

use crate::Result;
use crate::db::write::changed::is_same;
use crate::store::View;

/// Returns the first difference of two views, if there is one: schema, rows with all their values and ids, next ids,
/// the order of indexes, positions of blobs. Reads all of both.
///
/// # Errors
/// Something of either can't be loaded.
pub fn difference(a: &View, b: &View) -> Result<Option<String>> {
    if !has_same_commands(a.schema(), b.schema()) {
        return Ok(Some("the schema".to_owned()));
    }
    for table in b.schema().tables() {
        if let Some(what) = rows(a, b, table)? {
            return Ok(Some(what));
        }
    }
    // None of them has an order.
    let unavailable: Vec<_> = b.unavailable_indexes().map(|(number, _)| number).collect();
    for index in b.schema().indexes() {
        if unavailable.contains(&index.number) {
            continue;
        }
        let (mut a, mut b) = (a.index(index.number)?.rows(), b.index(index.number)?.rows());
        loop {
            let ids = match (a.next().transpose()?, b.next().transpose()?) {
                (None, None) => break,
                (a, b) => (a.map(|row| row.id()), b.map(|row| row.id())),
            };
            if ids.0 != ids.1 {
                return Ok(Some(format!("the order of index `{}`", index.name)));
            }
        }
    }
    blobs(a, b)
}

fn has_same_commands(a: &Schema, b: &Schema) -> bool {
    a == b && a.commands().len() == b.commands().len()
}

/// Compares the rows of a table.
fn rows(a: &View, b: &View, table: &Table) -> Result<Option<String>> {
    let name = &table.name;
    let (a, b) = (a.table(table.number)?, b.table(table.number)?);
    if a.len() != b.len() {
        return Ok(Some(format!(
            "the number of rows of table `{name}`: {} and {}",
            a.len(),
            b.len()
        )));
    }
    if a.next_id() != b.next_id() {
        let (a, b) = (a.next_id(), b.next_id());
        return Ok(Some(format!("the next id of table `{name}`: {a} and {b}")));
    }
    for (a, b) in a.rows().zip(b.rows()) {
        let (a, b) = (a?, b?);
        if a.id() != b.id() {
            return Ok(Some(format!("table `{name}`: row {} and row {}", a.id().0, b.id().0)));
        }
        let differs =
            |field: &&annals_schema::Field| !is_same(a.value(field.number), b.value(field.number));
        if let Some(field) = table.fields.iter().find(differs) {
            let (field, id) = (&field.name, b.id().0);
            return Ok(Some(format!("field `{field}` of row {id} of table `{name}`")));
        }
    }
    Ok(None)
}

/// Compares where the pieces of all blobs are.
fn blobs(a: &View, b: &View) -> Result<Option<String>> {
    if a.last_blob() != b.last_blob() {
        return Ok(Some(format!("the last blob: {} and {}", a.last_blob().0, b.last_blob().0)));
    }
    for blob in (1..=b.last_blob().0).map(Blob) {
        let len = b.blob_len(blob)?;
        if a.blob_len(blob)? != len {
            return Ok(Some(format!("the length of blob {}", blob.0)));
        }
        let mut offset = 0;
        while offset < len.unwrap_or(0) {
            let piece = b.blob_piece(blob, offset)?;
            if a.blob_piece(blob, offset)? != piece {
                return Ok(Some(format!("where byte {offset} of blob {} is", blob.0)));
            }
            let Some(piece) = piece.filter(|piece| piece.len > 0) else { break };
            offset = piece.offset.saturating_add(u64::from(piece.len));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::store::Store;
    use annals_schema::{FieldNumber, IndexNumber, RowId, TableNumber, ValueRef};

    const SCHEMA: &str = "create_table t\nadd_field t x float64\nadd_field t s string\n\
                          create_index by_x t x";

    fn store(events: &[Event<'_>]) -> Store {
        let schema = annals_schema::parse(SCHEMA).unwrap().schema;
        let mut store = Store::new();
        for command in schema.commands() {
            store.apply(&Event::Schema(command)).unwrap();
        }
        for event in events {
            store.apply(event).unwrap();
        }
        store.commit();
        store
    }

    fn told(a: &[Event<'_>], b: &[Event<'_>]) -> String {
        let (a, b) = (store(a), store(b));
        assert_eq!(difference(a.view(), a.view()).unwrap(), None);
        difference(a.view(), b.view()).unwrap().unwrap_or_default()
    }

    #[test]
    fn each_difference_is_told() {
        let table = TableNumber(0);
        let first = [ValueRef::Float64(0.0), ValueRef::String("a")];
        let row = |id, values| Event::Insert { table, id: RowId(id), values };
        let one = row(0, &first);
        let update = |field, value| Event::Update { table, id: RowId(0), field, value };
        let delete = Event::Delete { table, id: RowId(5) };
        assert_eq!(told(&[one], &[one]), "");
        assert_eq!(told(&[one], &[]), "the number of rows of table `t`: 1 and 0");
        assert_eq!(told(&[one], &[row(3, &first)]), "the next id of table `t`: 1 and 4");
        assert_eq!(
            told(&[one, row(9, &first)], &[row(4, &first), row(9, &first)]),
            "table `t`: row 0 and row 4"
        );
        let next = told(&[one, row(5, &first), delete], &[one]);
        assert_eq!(next, "the next id of table `t`: 6 and 1");
        let text = told(&[one], &[one, update(FieldNumber(1), ValueRef::String("b"))]);
        assert_eq!(text, "field `s` of row 0 of table `t`");
        let zero = told(&[one], &[one, update(FieldNumber(0), ValueRef::Float64(-0.0))]);
        assert_eq!(zero, "field `x` of row 0 of table `t`");
        let index = annals_schema::Command::DropIndex { index: IndexNumber(0) };
        assert_eq!(told(&[one], &[one, Event::Schema(&index)]), "the schema");
        let blob = Event::Blob { blob: Blob(1), offset: 0, bytes: b"x", position: 500 };
        let moved = Event::Blob { blob: Blob(1), offset: 0, bytes: b"x", position: 501 };
        let longer = Event::Blob { blob: Blob(1), offset: 0, bytes: b"xy", position: 500 };
        assert_eq!(told(&[blob], &[]), "the last blob: 1 and 0");
        assert_eq!(told(&[blob], &[moved]), "where byte 0 of blob 1 is");
        assert_eq!(told(&[blob], &[longer]), "the length of blob 1");
    }
}
