//! The text form of events: each one as the command of the shell that makes it again.

use annals_schema::{Field, FieldNumber, RowId, Schema, Table, TableNumber, Value, ValueRef};

use super::{Event, Vector, is_erased};
use crate::{Error, Result};

/// Writes events as the shell's commands, so that a shell which runs them makes the same events.
///
/// It takes the events of one journal in order, from its beginning or from a given state. Whether an insert can be
/// written without its id depends on the ids that were used before. It needs 8 bytes for each table.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// For each table, the id that an `insert` without an id would use.
    next_ids: Vec<u64>,
}

impl Script {
    /// Begins at the beginning of a journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the next id of a table, for a script that starts from a state in which the table has rows.
    pub fn set_next_id(&mut self, table: TableNumber, next: u64) {
        if let Some(last) = next.checked_sub(1) {
            self.take_id(table, RowId(last));
        }
    }

    /// Appends the command of `event` to `text`, without a line end. `schema` is the one before it.
    ///
    /// An insert of zero values only is written as `insert_into`, whose unique keys are checked at commit: no other
    /// insert could have succeeded while its keys were in use. Others are written as `insert`, or as `insert_at` when
    /// the id isn't the next one.
    ///
    /// # Errors
    /// `Corrupt` if the event speaks of a table or field that the schema doesn't have.
    pub fn push(&mut self, schema: &Schema, event: &Event<'_>, text: &mut String) -> Result<()> {
        match *event {
            Event::Schema(command) => text.push_str(&schema.command_text(command)),
            Event::Insert { table, id, values } => {
                self.push_insert(find_table(schema, table)?, id, values, text);
            }
            Event::Update { table, id, field, value } => {
                let table = find_table(schema, table)?;
                let field = find_field(table, field)?;
                text.push_str(&format!("update {} {} {} ", table.name, id.0, field.name));
                write_field_value(field, value, text);
            }
            Event::Delete { table, id } => {
                let table = find_table(schema, table)?;
                text.push_str(&format!("delete_from {} {}", table.name, id.0));
            }
            Event::InsertVector { table, id, count } => {
                let last = id.0.saturating_add(count.saturating_sub(1));
                self.take_id(table, RowId(last));
                push_rows("insert_vector", find_table(schema, table)?, id, count, text);
            }
            Event::UpdateVector { table, id, field, values } => {
                let table = find_table(schema, table)?;
                push_vector(table, id, find_field(table, field)?, values, text);
            }
            Event::DeleteVector { table, id, count } => {
                push_rows("delete_vector", find_table(schema, table)?, id, count, text);
            }
            Event::Blob { offset, bytes, .. } => push_piece(offset, bytes, text),
            Event::ValidData => text.push_str("valid_data"),
            Event::Comment(comment) => {
                text.push_str("comment ");
                push_value(ValueRef::String(comment), text);
            }
            Event::Timestamp(seconds) => text.push_str(&format!("timestamp {seconds}")),
        }
        Ok(())
    }

    fn push_insert(
        &mut self,
        table: &Table,
        id: RowId,
        values: &[ValueRef<'_>],
        text: &mut String,
    ) {
        let next = self.take_id(table.number, id);
        let zero = table.fields.iter().zip(values).all(|(field, value)| is_zero(field, *value));
        if zero {
            text.push_str(&format!("insert_into {} {}", table.name, id.0));
            return;
        }
        if id.0 == next {
            text.push_str(&format!("insert {}", table.name));
        } else {
            text.push_str(&format!("insert_at {} {}", table.name, id.0));
        }
        for (field, value) in table.fields.iter().zip(values) {
            text.push(' ');
            write_field_value(field, *value, text);
        }
    }

    /// Marks an id as used; returns the previous next id.
    fn take_id(&mut self, table: TableNumber, id: RowId) -> u64 {
        let place = table.0 as usize;
        if self.next_ids.len() <= place {
            self.next_ids.resize(place + 1, 0);
        }
        let Some(next) = self.next_ids.get_mut(place) else { return 0 };
        let before = *next;
        *next = before.max(id.0.saturating_add(1));
        before
    }
}

fn push_rows(command: &str, table: &Table, id: RowId, count: u64, text: &mut String) {
    text.push_str(&format!("{command} {} {} {count}", table.name, id.0));
}

fn push_vector(table: &Table, id: RowId, field: &Field, values: Vector<'_>, text: &mut String) {
    let count = values.len(field.ty).unwrap_or_default();
    text.push_str(&format!("update_vector {} {} {} {count}", table.name, id.0, field.name));
    for value in values.iter(field.ty) {
        text.push(' ');
        write_field_value(field, value, text);
    }
}

/// Writes a piece of a blob; numbers of blobs count up, so that a shell assigns the same one again. Readable text is
/// written as text, else each byte takes two digits.
fn push_piece(offset: u64, bytes: &[u8], text: &mut String) {
    text.push_str(if offset == 0 { "write_blob " } else { "append_blob " });
    let strange = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    match std::str::from_utf8(bytes) {
        Ok(plain) if !plain.contains(strange) => push_value(ValueRef::String(plain), text),
        _ => push_value(ValueRef::Bytes(bytes), text),
    }
}

/// How a script writes an erased value. (A plain word would be a string somewhere.)
pub const ERASED: &str = "null!";

/// Appends a value of a field as a script has it: [`ERASED`] for a null where the field may not be null.
pub fn write_field_value(field: &Field, value: ValueRef<'_>, text: &mut String) {
    match is_erased(field, &value) {
        true => text.push_str(ERASED),
        false => push_value(value, text),
    }
}

fn push_value(value: ValueRef<'_>, text: &mut String) {
    // Writing to a string can't fail.
    let _infallible = annals_schema::write_value(text, value);
}

/// True if a value equals, to the bit, the one that `insert_into` sets for the field.
fn is_zero(field: &Field, value: ValueRef<'_>) -> bool {
    match (field.zero_value(), value) {
        // -0 equals 0 in the order of values, but `insert_into` writes 0.
        (Value::Float32(_), ValueRef::Float32(value)) => value.to_bits() == 0,
        (Value::Float64(_), ValueRef::Float64(value)) => value.to_bits() == 0,
        (zero, value) => zero.as_ref() == value,
    }
}

fn find_table(schema: &Schema, number: TableNumber) -> Result<&Table> {
    schema.table(number).ok_or_else(|| {
        Error::corrupt(format!("an event speaks of table number {}, which isn't there", number.0))
    })
}

fn find_field(table: &Table, number: FieldNumber) -> Result<&Field> {
    table.field(number).ok_or_else(|| {
        Error::corrupt(format!(
            "an event speaks of field number {} of table {}, which isn't there",
            number.0, table.name
        ))
    })
}

#[cfg(test)]
mod tests {
    use annals_schema::{Command, Type};

    use super::*;

    fn schema() -> Schema {
        let table = TableNumber(0);
        let mut schema = Schema::default();
        schema.apply(Command::CreateTable { name: "t".into() }).unwrap();
        for (name, ty) in [("x", Type::Float64), ("s", Type::String)] {
            let name = name.to_owned();
            let (nullable, default) = (false, None);
            schema.apply(Command::AddField { table, name, ty, nullable, default }).unwrap();
        }
        schema
    }

    fn lines(events: &[Event<'_>]) -> Vec<String> {
        let (schema, mut script) = (schema(), Script::new());
        let line = |event| {
            let mut text = String::new();
            script.push(&schema, event, &mut text).unwrap();
            text
        };
        events.iter().map(line).collect()
    }

    #[test]
    fn an_insert_names_its_id_only_where_it_must() {
        let table = TableNumber(0);
        let zero = [ValueRef::Float64(0.0), ValueRef::String("")];
        let minus = [ValueRef::Float64(-0.0), ValueRef::String("")];
        let text = [ValueRef::Float64(1.5), ValueRef::String("a \"b\"\n")];
        let insert = |id, values| Event::Insert { table, id: RowId(id), values };
        let events = [
            insert(0, &text),
            insert(5, &text),
            insert(6, &minus),
            insert(7, &zero),
            insert(2, &text),
        ];
        assert_eq!(
            lines(&events),
            [
                r#"insert t 1.5 "a \"b\"\n""#,
                r#"insert_at t 5 1.5 "a \"b\"\n""#,
                r#"insert t -0 """#,
                r"insert_into t 7",
                r#"insert_at t 2 1.5 "a \"b\"\n""#,
            ]
        );
    }

    #[test]
    fn vectors_and_pieces_of_blobs_are_one_line_each() {
        let (table, blob, position) = (TableNumber(0), annals_schema::Blob(1), 0);
        let cells: Vec<u8> = [1.5f64, -0.0].into_iter().flat_map(f64::to_le_bytes).collect();
        let piece = |offset, bytes| Event::Blob { blob, offset, bytes, position };
        let (id, field) = (RowId(4), FieldNumber(0));
        let events = [
            Event::InsertVector { table, id, count: 3 },
            Event::UpdateVector { table, id, field, values: Vector::Cells(&cells) },
            Event::Insert {
                table,
                id: RowId(7),
                values: &[ValueRef::Float64(1.0), ValueRef::String("")],
            },
            Event::DeleteVector { table, id, count: 2 },
            piece(0, "Köln\n".as_bytes()),
            piece(6, b"K\xc3"),
            piece(8, b"\x00\x7f"),
            piece(0, b""),
            Event::ValidData,
        ];
        assert_eq!(
            lines(&events),
            [
                "insert_vector t 4 3",
                "update_vector t 4 x 2 1.5 -0",
                r#"insert t 1 """#,
                "delete_vector t 4 2",
                r#"write_blob "Köln\n""#,
                "append_blob 0x4bc3",
                "append_blob 0x007f",
                r#"write_blob """#,
                "valid_data",
            ]
        );
    }

    #[test]
    fn an_event_of_a_table_that_is_not_there_is_damage() {
        let event = Event::Delete { table: TableNumber(9), id: RowId(0) };
        let error = Script::new().push(&schema(), &event, &mut String::new()).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
    }
}
