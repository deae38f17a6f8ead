//! The encoder: events to bytes.
//!
//! Invariant: the context (current table, last id) starts empty in every frame, so that each frame
//! decodes alone; `decode` keeps the same context by the same rules.

use annals_schema::{
    Blob, Collated, Command, Field, FieldNumber, RowId, Schema, Table, TableNumber, Type, ValueRef,
};

use super::value::{has_erased, has_null_bit, is_erased, put_bytes, put_value};
use super::{Event, Vector, cells, compact, opcode, piece};

/// Encodes the events of one frame after another.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    table: Option<TableNumber>,
    pub(super) last_id: Option<RowId>,
    /// How many fields the table of the last insert had, and how many of them have a null bit.
    shape: (usize, usize),
}

impl Encoder {
    /// Forgets the context: a new frame begins.
    #[inline]
    pub fn start_frame(&mut self) {
        *self = Self::default();
    }

    /// Begins in the middle of a frame: after an event on a table, with the last id if one is
    /// known.
    #[must_use]
    pub fn within(table: TableNumber, last_id: Option<RowId>) -> Self {
        Self { table: Some(table), last_id, ..Self::default() }
    }

    /// Appends one event. `schema` is the one before the event.
    pub fn encode(&mut self, schema: &Schema, event: &Event<'_>, out: &mut Vec<u8>) {
        match *event {
            Event::Schema(command) => {
                // The table may get another shape.
                self.shape = (0, 0);
                encode_command(command, out);
            }
            Event::Insert { table, id, values } => match schema.table(table) {
                Some(table) if has_erased(table, values) => {
                    self.insert_erased(table, id, values, out);
                }
                Some(table) => self.insert(table, id, values, out),
                None => {}
            },
            Event::Update { table, id, field, value } => {
                let table = schema.table(table);
                if let Some((table, field)) = table.and_then(|t| Some((t, t.field(field)?))) {
                    match is_erased(field, &value) {
                        true => self.update_erased(table, id, field.number, out),
                        false => self.update(table.number, id, field, value, out),
                    }
                }
            }
            Event::Delete { table, id } => {
                self.switch(table, out);
                out.push(opcode::DELETE);
                compact::put(out, id.0);
            }
            Event::InsertVector { table, id, count } => {
                self.rows(opcode::INSERT_VECTOR, table, id, count, out);
                fill(count, out);
                self.last_id = Some(RowId(id.0 + count.saturating_sub(1)));
            }
            Event::UpdateVector { table, id, field, values } => {
                let table = schema.table(table);
                if let Some((table, field)) = table.and_then(|t| Some((t, t.field(field)?))) {
                    match values {
                        Vector::Values(values) if values.iter().any(|v| is_erased(field, v)) => {
                            self.update_vector_erased(table, id, field.number, values, out);
                        }
                        _ => self.update_vector(table.number, id, field, values, out),
                    }
                }
            }
            Event::DeleteVector { table, id, count } => {
                self.rows(opcode::DELETE_VECTOR, table, id, count, out);
            }
            Event::Blob { blob, offset, bytes, .. } => self.piece(blob, offset, bytes, out),
            Event::ValidData => out.push(opcode::VALID_DATA),
            Event::Comment(text) => {
                out.push(opcode::COMMENT);
                put_bytes(out, text.as_bytes());
            }
            Event::Timestamp(seconds) => {
                out.push(opcode::TIMESTAMP);
                compact::put_signed(out, seconds);
            }
        }
    }

    /// Appends an insert: the hot path of bulk loading, so it takes the table as it is at hand.
    #[inline]
    pub fn insert(&mut self, table: &Table, id: RowId, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        self.switch(table.number, out);
        if self.last_id.is_some_and(|last| last.0 + 1 == id.0) {
            out.push(opcode::APPEND);
        } else {
            out.push(opcode::INSERT);
            compact::put(out, id.0);
        }
        self.last_id = Some(id);
        if self.shape.0 != table.fields.len() {
            let nullable = table.fields.iter().filter(|field| has_null_bit(field)).count();
            self.shape = (table.fields.len(), nullable);
        }
        if self.shape.1 == 0 {
            values.iter().for_each(|&value| put_value(out, value));
        } else {
            put_nullable_row(table, values, out);
        }
    }

    /// Appends an insert, off the hot path.
    #[cold]
    #[inline(never)]
    pub fn insert_again(
        &mut self,
        table: &Table,
        id: RowId,
        values: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) {
        self.insert(table, id, values, out);
    }

    fn update(
        &mut self,
        table: TableNumber,
        id: RowId,
        field: &Field,
        value: ValueRef<'_>,
        out: &mut Vec<u8>,
    ) {
        self.switch(table, out);
        let same_row = self.last_id == Some(id);
        let null = matches!(value, ValueRef::Null) && !field.ty.carries_null();
        out.push(match (same_row, null) {
            (false, false) => opcode::UPDATE,
            (false, true) => opcode::UPDATE_NULL,
            (true, false) => opcode::UPDATE_SAME,
            (true, true) => opcode::UPDATE_SAME_NULL,
        });
        if !same_row {
            compact::put(out, id.0);
        }
        compact::put(out, u64::from(field.number.0));
        if !null {
            put_value(out, value);
        }
        self.last_id = Some(id);
    }

    /// Appends a piece of a blob. Its bytes are the last that are appended.
    #[inline]
    pub fn piece(&mut self, blob: Blob, offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
        piece::put(out, blob, offset, bytes);
    }

    /// Appends an event on rows with consecutive ids.
    fn rows(&mut self, code: u8, table: TableNumber, id: RowId, count: u64, out: &mut Vec<u8>) {
        debug_assert!((1..=super::MAX_VECTOR).contains(&count), "it could not be read");
        self.switch(table, out);
        out.push(code);
        compact::put(out, id.0);
        compact::put(out, count);
    }

    fn update_vector(
        &mut self,
        table: TableNumber,
        id: RowId,
        field: &Field,
        values: Vector<'_>,
        out: &mut Vec<u8>,
    ) {
        let count = values.len(field.ty).unwrap_or_default() as u64;
        debug_assert!((1..=super::MAX_VECTOR).contains(&count), "it could not be read");
        self.switch(table, out);
        out.push(opcode::UPDATE_VECTOR);
        compact::put(out, id.0);
        compact::put(out, u64::from(field.number.0));
        compact::put(out, count);
        cells::put(field, values, out);
        self.last_id = Some(RowId(id.0 + count.saturating_sub(1)));
    }

    /// Names the table, unless the last event was on it too.
    #[inline]
    pub(super) fn switch(&mut self, table: TableNumber, out: &mut Vec<u8>) {
        if self.table != Some(table) {
            out.push(opcode::TABLE);
            compact::put(out, u64::from(table.0));
            *self = Self { table: Some(table), ..Self::default() };
        }
    }
}

/// Appends the filling of an insert of `count` rows without values.
#[cold] // beside the hot path
fn fill(count: u64, out: &mut Vec<u8>) {
    let filling = usize::try_from(super::filling(count)).unwrap_or(usize::MAX);
    out.resize(out.len().saturating_add(filling), 0);
}

/// Appends `len` bytes of events without effect; nothing if that is less than two.
pub fn pad(len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    if len < 2 {
        return;
    }
    out.push(opcode::PAD);
    for room in 1..=9 {
        let start = out.len();
        let Some(zeros) = len.checked_sub(1 + room) else { break };
        compact::put(out, zeros as u64);
        if out.len() - start == room {
            out.resize(end, 0);
            return;
        }
        out.truncate(start);
    }
    // No length of one event adds up to this, so the shortest one is first.
    compact::put(out, 0);
    pad(len - 2, out);
}

/// Appends the fields of a row of which some may be null: the null bitmap of the fields that have a
/// bit in it, then the values that are not null.
fn put_nullable_row(table: &Table, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    put_null_bitmap(table, values, out);
    for (field, &value) in table.fields.iter().zip(values) {
        if !(has_null_bit(field) && matches!(value, ValueRef::Null)) {
            put_value(out, value);
        }
    }
}

fn put_null_bitmap(table: &Table, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    let (mut byte, mut bits) = (0u8, 0);
    for (_, value) in table.fields.iter().zip(values).filter(|(field, _)| has_null_bit(field)) {
        byte |= u8::from(matches!(value, ValueRef::Null)) << bits;
        bits += 1;
        if bits == 8 {
            out.push(byte);
            (byte, bits) = (0, 0);
        }
    }
    if bits > 0 {
        out.push(byte);
    }
}

/// Appends a command of the schema language.
fn encode_command(command: &Command, out: &mut Vec<u8>) {
    match command {
        Command::CreateTable { name } => {
            out.push(opcode::CREATE_TABLE);
            put_bytes(out, name.as_bytes());
        }
        Command::AddField { table, name, ty, nullable, default } => {
            out.push(opcode::ADD_FIELD);
            compact::put(out, u64::from(table.0));
            put_bytes(out, name.as_bytes());
            put_type(out, *ty);
            let null_default = matches!(default, Some(annals_schema::Value::Null));
            out.push(
                flag(*nullable, opcode::FIELD_NULLABLE)
                    | flag(default.is_some(), opcode::FIELD_DEFAULT)
                    | flag(null_default, opcode::FIELD_DEFAULT_NULL)
                    | opcode::of_rule(*ty),
            );
            if let Some(value) = default.as_ref().filter(|_| !null_default) {
                put_value(out, value.as_ref());
            }
        }
        Command::CreateIndex { name, table, fields, descending, collated, unique } => {
            out.push(opcode::CREATE_INDEX);
            put_bytes(out, name.as_bytes());
            compact::put(out, u64::from(table.0));
            out.push(u8::from(*unique));
            compact::put(out, fields.len() as u64);
            fields.iter().for_each(|field| put_column(*field, descending, collated, out));
        }
        Command::DropTable { table } => put_numbers(opcode::DROP_TABLE, &[table.0], out),
        Command::RenameTable { table, name } => {
            put_numbers(opcode::RENAME_TABLE, &[table.0], out);
            put_bytes(out, name.as_bytes());
        }
        Command::DropField { table, field } => {
            put_numbers(opcode::DROP_FIELD, &[table.0, field.0], out);
        }
        Command::RenameField { table, field, name } => {
            put_numbers(opcode::RENAME_FIELD, &[table.0, field.0], out);
            put_bytes(out, name.as_bytes());
        }
        Command::AddVariant { table, field, name } => {
            put_numbers(opcode::ADD_VARIANT, &[table.0, field.0], out);
            put_bytes(out, name.as_bytes());
        }
        Command::RenameVariant { table, field, variant, name } => {
            let numbers = [table.0, field.0, (*variant).into()];
            put_numbers(opcode::RENAME_VARIANT, &numbers, out);
            put_bytes(out, name.as_bytes());
        }
        Command::DropVariant { table, field, variant } => {
            put_numbers(opcode::DROP_VARIANT, &[table.0, field.0, (*variant).into()], out);
        }
        Command::DropIndex { index } => put_numbers(opcode::DROP_INDEX, &[index.0], out),
        Command::SetSingleRow { table, single } => {
            put_numbers(opcode::SET_SINGLE_ROW, &[table.0], out);
            out.push(u8::from(*single));
        }
        Command::SetHistoryIndex { table, indexed } => {
            put_numbers(opcode::SET_HISTORY_INDEX, &[table.0], out);
            out.push(u8::from(*indexed));
        }
        Command::Custom { name } => {
            out.push(opcode::CUSTOM);
            put_bytes(out, name.as_bytes());
        }
    }
}

/// Appends a field of an index, and its order.
fn put_column(
    field: FieldNumber,
    descending: &[FieldNumber],
    collated: &[Collated],
    out: &mut Vec<u8>,
) {
    compact::put(out, u64::from(field.0));
    let collation = collated.iter().find(|collated| collated.field == field);
    out.push(
        flag(descending.contains(&field), opcode::COLUMN_DESCENDING)
            | flag(collation.is_some(), opcode::COLUMN_COLLATED),
    );
    for text in collation.iter().flat_map(|collation| [&collation.locale, &collation.version]) {
        put_bytes(out, text.as_bytes());
    }
}

fn put_numbers(code: u8, numbers: &[u32], out: &mut Vec<u8>) {
    out.push(code);
    numbers.iter().for_each(|&number| compact::put(out, u64::from(number)));
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn put_type(out: &mut Vec<u8>, ty: Type) {
    out.push(opcode::of_type(ty));
    match (ty, ty.parameter()) {
        (Type::Reference(target, _), _) => compact::put(out, target.0.into()),
        (Type::Enum(variants), _) => {
            compact::put(out, variants.count() as u64);
            variants.numbered().for_each(|variant| put_bytes(out, variant.name().as_bytes()));
        }
        (_, Some(parameter)) => compact::put(out, parameter.into()),
        (_, None) => {}
    }
}
