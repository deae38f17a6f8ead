//! Erased values: null in a field that may not be null.
//!
//! Each code replaces another one, carries its length, and names its row itself. After it the context is the same as
//! after the replaced one.

use annals_schema::{FieldNumber, RowId, Schema, Table, ValueRef};

use super::compact::Malformed;
use super::encode::Encoder;
use super::input::Decoder;
use super::value::{has_erased, is_erased, put_value};
use super::{Event, Vector, compact, opcode};

impl Encoder {
    /// Appends an insert of a row that has an erased value.
    pub(super) fn insert_erased(
        &mut self,
        table: &Table,
        id: RowId,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) {
        let mut body = Vec::new();
        compact::put(&mut body, id.0);
        put_nulls_and_values(values, &mut body);
        self.put_erased(opcode::ERASED_INSERT, table, id, &body, out);
    }

    /// Appends an update to an erased value.
    pub(super) fn update_erased(
        &mut self,
        table: &Table,
        id: RowId,
        field: FieldNumber,
        out: &mut Vec<u8>,
    ) {
        let mut body = Vec::new();
        compact::put(&mut body, id.0);
        compact::put(&mut body, u64::from(field.0));
        self.put_erased(opcode::ERASED_UPDATE, table, id, &body, out);
    }

    /// Appends an update of rows of which one gets an erased value.
    pub(super) fn update_vector_erased(
        &mut self,
        table: &Table,
        id: RowId,
        field: FieldNumber,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) {
        let mut body = Vec::new();
        compact::put(&mut body, id.0);
        compact::put(&mut body, u64::from(field.0));
        compact::put(&mut body, values.len() as u64);
        put_nulls_and_values(values, &mut body);
        let last = RowId(id.0 + (values.len() as u64).saturating_sub(1));
        self.put_erased(opcode::ERASED_VECTOR, table, last, &body, out);
    }

    fn put_erased(&mut self, code: u8, table: &Table, last: RowId, body: &[u8], out: &mut Vec<u8>) {
        self.switch(table.number, out);
        out.push(code);
        compact::put(out, body.len() as u64);
        out.extend_from_slice(body);
        self.last_id = Some(last);
    }
}

/// Appends a bit for each value, 1 for null, then the values that are not null.
fn put_nulls_and_values(values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    let null = |value: &ValueRef<'_>| matches!(value, ValueRef::Null);
    for eight in values.chunks(8) {
        out.push(eight.iter().rev().fold(0, |bits, value| bits << 1 | u8::from(null(value))));
    }
    values.iter().filter(|value| !null(value)).for_each(|&value| put_value(out, value));
}

impl<'p> Decoder<'p> {
    /// Takes the rest of an event with an erased value after its code.
    pub(super) fn erased<'v>(
        &mut self,
        code: u8,
        schema: &Schema,
        values: &'v mut Vec<ValueRef<'p>>,
    ) -> Result<Event<'v>, Malformed>
    where
        'p: 'v,
    {
        let mut body = Self { input: self.bytes()?, ..*self };
        let table = body.table(schema)?;
        let (number, id) = (table.number, body.id()?);
        values.clear();
        if code == opcode::ERASED_INSERT {
            let types = table.fields.iter().map(|field| field.ty);
            body.take_nulls_and_values(types, values)?;
            body.check_empty()?;
            if !has_erased(table, values) {
                return Err(Malformed("a row with an erased value has none"));
            }
            self.last_id = Some(id);
            return Ok(Event::Insert { table: number, id, values });
        }
        let field = FieldNumber(body.number()?);
        let known = table.field(field).ok_or(Malformed("it names a field that isn't there"))?;
        if !is_erased(known, &ValueRef::Null) {
            return Err(Malformed("it erases a value of a field that may be null"));
        }
        let (event, last) = match code {
            opcode::ERASED_UPDATE => {
                (Event::Update { table: number, id, field, value: ValueRef::Null }, id)
            }
            _ => {
                let (count, last) = body.count(id)?;
                let count =
                    usize::try_from(count).map_err(|_| Malformed("a number is out of range"))?;
                body.take_nulls_and_values(std::iter::repeat_n(known.ty, count), values)?;
                let values = Vector::Values(values);
                (Event::UpdateVector { table: number, id, field, values }, last)
            }
        };
        body.check_empty()?;
        self.last_id = Some(last);
        Ok(event)
    }

    /// Fails unless everything was taken.
    const fn check_empty(&self) -> Result<(), Malformed> {
        if self.input.is_empty() { Ok(()) } else { Err(Malformed("it has more than it says")) }
    }

    fn take_nulls_and_values(
        &mut self,
        types: impl ExactSizeIterator<Item = annals_schema::Type>,
        values: &mut Vec<ValueRef<'p>>,
    ) -> Result<(), Malformed> {
        let bitmap = self.slice(types.len().div_ceil(8))?;
        for (place, ty) in types.enumerate() {
            let byte = bitmap.get(place / 8).copied().unwrap_or(0);
            let null = byte >> (place % 8) & 1 == 1;
            values.push(if null { ValueRef::Null } else { self.value(ty)? });
        }
        Ok(())
    }
}
