//! The decoder: bytes to events. It trusts nothing: every length is checked before use.

use annals_schema::{
    Blob, Collated, Command, FieldNumber, IndexNumber, RowId, Schema, SchemaError, Table,
    TableNumber, Type, Value, ValueRef, Variants,
};

use super::compact::Malformed;
use super::input::Decoder;
use super::value::has_null_bit;
use super::{Event, MAX_PIECE, cells, compact, opcode, piece};
use crate::{Error, Result};

/// What the events before say about the next one: its table and the last row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The table, if one was named.
    pub table: Option<TableNumber>,
    /// The last row, if there was one.
    pub last_id: Option<RowId>,
}

/// Takes the events of a frame, in their order.
pub trait Sink {
    /// The most consecutive rows that are passed together; 1 if each insert is an event.
    const RUN: usize = 1;

    /// Takes an event. `schema` is the one before it.
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()>;

    /// Called after each event, also one that sets the context, with the number of bytes left in the frame, and the
    /// context of the next event.
    fn end(&mut self, _left: usize, _context: Context) {}

    /// Takes `count` rows, at least two, with ids from `first` on: the values of each field. Without it runs are refused.
    fn rows(
        &mut self,
        _table: TableNumber,
        _first: RowId,
        _count: u64,
        _columns: &[Vec<ValueRef<'_>>],
    ) -> Result<()> {
        Err(Error::invalid(
            "this sink takes runs of rows, and doesn't say how: give it `Sink::rows`",
        ))
    }
}

/// Takes one event after another.
struct Each<'s, F>(&'s mut F);

impl<F: FnMut(&Schema, &Event<'_>) -> Result<()>> Sink for Each<'_, F> {
    #[inline]
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.0(schema, event)
    }
}

/// A run ends before it has this many bytes in the journal.
const RUN_BYTES: usize = 64 << 10;

/// Decodes the events of one frame, in order. `schema` is the one before the frame; each schema event is applied to
/// it after `sink` has seen that event. `position` is the payload's position in the file: pieces of blobs are passed
/// with their positions.
#[inline]
pub fn decode(
    payload: &[u8],
    position: u64,
    schema: &mut Schema,
    sink: &mut impl FnMut(&Schema, &Event<'_>) -> Result<()>,
) -> Result<()> {
    decode_to(payload, position, schema, &mut Each(sink))
}

/// Decodes the events of one frame, as [`decode`] does, for a sink that can take runs of rows.
pub fn decode_to<S: Sink>(
    payload: &[u8],
    position: u64,
    schema: &mut Schema,
    sink: &mut S,
) -> Result<()> {
    decode_from(Context::default(), payload, position, schema, sink)
}

/// Decodes a part of a frame, as [`decode_to`] does. It begins with an event, whose context is that of the events
/// before.
pub fn decode_from<S: Sink>(
    context: Context,
    payload: &[u8],
    position: u64,
    schema: &mut Schema,
    sink: &mut S,
) -> Result<()> {
    let end = position.saturating_add(payload.len() as u64);
    let Context { table, last_id } = context;
    let mut decoder = Decoder { input: payload, end, table, last_id };
    let (mut values, mut columns) = (Vec::new(), Vec::new());
    while let Some((&code, rest)) = decoder.input.split_first() {
        decoder.input = rest;
        #[cfg(feature = "testing")]
        crate::counted::count_event();
        match code {
            opcode::CREATE_TABLE..=opcode::DROP_VARIANT | opcode::CUSTOM => {
                let command = decoder.command(code, schema)?;
                let refused = |error: SchemaError| Error::corrupt(error.to_string());
                schema.check(&command).map_err(refused)?;
                sink.event(schema, &Event::Schema(&command))?;
                schema.apply(command).map_err(refused)?;
            }
            opcode::INSERT | opcode::APPEND => {
                let (table, id) = decoder.row(code, schema, &mut values)?;
                if S::RUN > 1 && decoder.input.first() == Some(&opcode::APPEND) {
                    let count = decoder.run(schema, &values, &mut columns, S::RUN)?;
                    sink.rows(table, id, count, &columns)?;
                } else {
                    sink.event(schema, &Event::Insert { table, id, values: &values })?;
                }
            }
            opcode::UPDATE_VECTOR => {
                sink.event(schema, &decoder.update_vector(schema, &mut values)?)?;
            }
            opcode::ERASED_INSERT..=opcode::ERASED_VECTOR => {
                sink.event(schema, &decoder.erased(code, schema, &mut values)?)?;
            }
            opcode::FIRST_ESSENTIAL.. => {
                return Err(Error::new(
                    crate::ErrorKind::Unsupported,
                    format!(
                        "the journal holds an event of kind {code:#04x}, which only a newer version understands"
                    ),
                ));
            }
            opcode::FIRST_IGNORABLE.. => {
                decoder.bytes()?;
            }
            _ => {
                if let Some(event) = decoder.small(code, schema)? {
                    sink.event(schema, &event)?;
                }
            }
        }
        let Decoder { table, last_id, .. } = decoder;
        sink.end(decoder.input.len(), Context { table, last_id });
    }
    Ok(())
}

impl<'p> Decoder<'p> {
    /// Decodes an event that isn't a row's or the schema's; `None` if it only sets the context.
    fn small(&mut self, code: u8, schema: &Schema) -> Result<Option<Event<'p>>, Malformed> {
        Ok(Some(match code {
            opcode::TABLE => {
                self.table = Some(TableNumber(self.number()?));
                self.last_id = None;
                return Ok(None);
            }
            opcode::UPDATE
            | opcode::UPDATE_SAME
            | opcode::UPDATE_NULL
            | opcode::UPDATE_SAME_NULL => self.update(code, schema)?,
            opcode::DELETE => {
                let table = self.table(schema)?.number;
                Event::Delete { table, id: self.id()? }
            }
            opcode::INSERT_VECTOR | opcode::DELETE_VECTOR => self.rows(code, schema)?,
            opcode::BLOB => self.piece()?,
            opcode::VALID_DATA => Event::ValidData,
            opcode::COMMENT => Event::Comment(self.text()?),
            opcode::TIMESTAMP => Event::Timestamp(compact::take_signed(&mut self.input)?),
            _ => return Err(Malformed("its code is unknown")),
        }))
    }

    fn row(
        &mut self,
        code: u8,
        schema: &Schema,
        values: &mut Vec<ValueRef<'p>>,
    ) -> Result<(TableNumber, RowId), Malformed> {
        let table = self.table(schema)?;
        let id = match (code, self.last_id) {
            (opcode::INSERT, _) => self.id()?,
            (_, Some(last)) if last < RowId::MAX => RowId(last.0 + 1),
            _ => return Err(Malformed("an appended row follows no row")),
        };
        self.last_id = Some(id);
        values.clear();
        let nullable = table.fields.iter().filter(|field| has_null_bit(field)).count();
        self.fields(table, nullable, &mut |_, value| values.push(value))?;
        Ok((table.number, id))
    }

    /// Takes the rows that are appended to one with given values, as columns: the values of all of them, at most
    /// `most`. Returns their number.
    fn run(
        &mut self,
        schema: &Schema,
        first: &[ValueRef<'p>],
        columns: &mut Vec<Vec<ValueRef<'p>>>,
        most: usize,
    ) -> Result<u64, Malformed> {
        let table = self.table(schema)?;
        columns.resize_with(table.fields.len(), Vec::new);
        for (column, &value) in columns.iter_mut().zip(first) {
            column.clear();
            column.push(value);
        }
        let nullable = table.fields.iter().filter(|field| has_null_bit(field)).count();
        let (mut count, begin) = (1, self.input.len());
        let mut last = self.last_id.ok_or(Malformed("an appended row follows no row"))?;
        while let Some((&opcode::APPEND, rest)) = self.input.split_first() {
            if count == most || begin - rest.len() > RUN_BYTES || last == RowId::MAX {
                break;
            }
            self.input = rest;
            self.fields(table, nullable, &mut |place, value| {
                if let Some(column) = columns.get_mut(place) {
                    column.push(value);
                }
            })?;
            last = RowId(last.0 + 1);
            count += 1;
        }
        self.last_id = Some(last);
        Ok(count as u64)
    }

    /// Takes the values of a row, given how many of its fields have a null bit.
    #[inline]
    fn fields(
        &mut self,
        table: &Table,
        nullable: usize,
        put: &mut impl FnMut(usize, ValueRef<'p>),
    ) -> Result<(), Malformed> {
        if nullable == 0 {
            for (place, field) in table.fields.iter().enumerate() {
                put(place, self.value(field.ty)?);
            }
            return Ok(());
        }
        let mut bitmap = self.slice(nullable.div_ceil(8))?.iter();
        let (mut byte, mut left) = (0u8, 0);
        for (place, field) in table.fields.iter().enumerate() {
            if has_null_bit(field) {
                if left == 0 {
                    byte = bitmap.next().copied().unwrap_or(0);
                    left = 8;
                }
                let null = byte & 1 == 1;
                byte >>= 1;
                left -= 1;
                if null {
                    put(place, ValueRef::Null);
                    continue;
                }
            }
            put(place, self.value(field.ty)?);
        }
        Ok(())
    }

    fn update(&mut self, code: u8, schema: &Schema) -> Result<Event<'p>, Malformed> {
        let table = self.table(schema)?;
        let id = match code {
            opcode::UPDATE | opcode::UPDATE_NULL => self.id()?,
            _ => self.last_id.ok_or(Malformed("an update of the same row follows no row"))?,
        };
        self.last_id = Some(id);
        let number = FieldNumber(self.number()?);
        let field = table.field(number).ok_or(Malformed("it names a field that isn't there"))?;
        let value = match code {
            opcode::UPDATE | opcode::UPDATE_SAME => self.value(field.ty)?,
            _ if has_null_bit(field) => ValueRef::Null,
            _ => return Err(Malformed("it makes a field null that can't be null")),
        };
        Ok(Event::Update { table: table.number, id, field: number, value })
    }

    fn rows(&mut self, code: u8, schema: &Schema) -> Result<Event<'p>, Malformed> {
        let table = self.table(schema)?.number;
        let id = self.id()?;
        let (count, last) = self.count(id)?;
        if code == opcode::DELETE_VECTOR {
            return Ok(Event::DeleteVector { table, id, count });
        }
        let filling = usize::try_from(super::filling(count));
        let filling = filling.map_err(|_| Malformed("a number is out of range"))?;
        if self.slice(filling)?.iter().any(|&byte| byte != 0) {
            return Err(Malformed("the filling of a vector is not zero"));
        }
        self.last_id = Some(last);
        Ok(Event::InsertVector { table, id, count })
    }

    fn update_vector<'v>(
        &mut self,
        schema: &Schema,
        values: &'v mut Vec<ValueRef<'p>>,
    ) -> Result<Event<'v>, Malformed> {
        let table = self.table(schema)?;
        let id = self.id()?;
        let number = FieldNumber(self.number()?);
        let field = table.field(number).ok_or(Malformed("it names a field that isn't there"))?;
        let (count, last) = self.count(id)?;
        self.last_id = Some(last);
        let count = usize::try_from(count).map_err(|_| Malformed("a number is out of range"))?;
        let values = cells::take(self, field, count, values)?;
        Ok(Event::UpdateVector { table: table.number, id, field: number, values })
    }

    fn piece(&mut self) -> Result<Event<'p>, Malformed> {
        let blob = match compact::take(&mut self.input)? {
            number if (1..=Blob::MAX.0).contains(&number) => Blob(number),
            _ => return Err(Malformed("the number of a blob is out of range")),
        };
        let offset: u64 = self.number()?;
        // As in `bytes`, a length that this machine can't count is out of range too.
        let len = usize::try_from(compact::take(&mut self.input)?).unwrap_or(usize::MAX);
        if len > MAX_PIECE || (len == 0 && offset > 0) || offset > u64::MAX / 2 {
            return Err(Malformed("a piece of a blob is out of range"));
        }
        let stored = self.slice(piece::SUM_LEN + len)?;
        let bytes = piece::verify(blob, offset, stored);
        let bytes = bytes.ok_or(Malformed("the checksum of a piece of a blob is wrong"))?;
        let position = self.end - (self.input.len() + len) as u64;
        Ok(Event::Blob { blob, offset, bytes, position })
    }

    fn command(&mut self, code: u8, schema: &Schema) -> Result<Command, Malformed> {
        match code {
            opcode::CREATE_TABLE => Ok(Command::CreateTable { name: self.name()? }),
            opcode::ADD_FIELD => self.add_field(schema),
            opcode::CREATE_INDEX => self.create_index(),
            opcode::DROP_INDEX => Ok(Command::DropIndex { index: IndexNumber(self.number()?) }),
            opcode::CUSTOM => Ok(Command::Custom { name: self.name()? }),
            _ => {
                let table = TableNumber(self.number()?);
                self.table_command(code, table)
            }
        }
    }

    fn table_command(&mut self, code: u8, table: TableNumber) -> Result<Command, Malformed> {
        Ok(match code {
            opcode::DROP_TABLE => Command::DropTable { table },
            opcode::RENAME_TABLE => Command::RenameTable { table, name: self.name()? },
            opcode::DROP_FIELD => Command::DropField { table, field: FieldNumber(self.number()?) },
            opcode::RENAME_FIELD => {
                let field = FieldNumber(self.number()?);
                Command::RenameField { table, field, name: self.name()? }
            }
            opcode::ADD_VARIANT => {
                let field = FieldNumber(self.number()?);
                Command::AddVariant { table, field, name: self.name()? }
            }
            opcode::RENAME_VARIANT => {
                let (field, variant) = (FieldNumber(self.number()?), self.number()?);
                Command::RenameVariant { table, field, variant, name: self.name()? }
            }
            opcode::DROP_VARIANT => {
                let field = FieldNumber(self.number()?);
                Command::DropVariant { table, field, variant: self.number()? }
            }
            opcode::SET_SINGLE_ROW => match self.byte()? {
                single @ (0 | 1) => Command::SetSingleRow { table, single: single == 1 },
                _ => return Err(Malformed("whether a table has a single row is neither 0 nor 1")),
            },
            opcode::SET_HISTORY_INDEX => match self.byte()? {
                indexed @ (0 | 1) => Command::SetHistoryIndex { table, indexed: indexed == 1 },
                _ => {
                    return Err(Malformed(
                        "whether a table has a history index is neither 0 nor 1",
                    ));
                }
            },
            _ => return Err(Malformed("its code is unknown")),
        })
    }

    fn name(&mut self) -> Result<String, Malformed> {
        self.text().map(str::to_owned)
    }

    fn add_field(&mut self, schema: &Schema) -> Result<Command, Malformed> {
        let table = TableNumber(self.number()?);
        schema.table(table).ok_or(Malformed("it names a table that isn't there"))?;
        let name = self.text()?.to_owned();
        let ty = self.ty()?;
        let flags = self.byte()?;
        const KNOWN: u8 = opcode::FIELD_NULLABLE
            | opcode::FIELD_DEFAULT
            | opcode::FIELD_DEFAULT_NULL
            | opcode::FIELD_ON_DELETE;
        let ty = opcode::with_rule(ty, flags).filter(|_| flags & !KNOWN == 0);
        let ty = ty.ok_or(Malformed("a field has flags that are unknown"))?;
        let default = match (flags & opcode::FIELD_DEFAULT, flags & opcode::FIELD_DEFAULT_NULL) {
            (0, _) => None,
            (_, 0) => Some(self.value(ty)?.to_value()),
            _ => Some(Value::Null),
        };
        let nullable = flags & opcode::FIELD_NULLABLE != 0;
        Ok(Command::AddField { table, name, ty, nullable, default })
    }

    fn create_index(&mut self) -> Result<Command, Malformed> {
        let name = self.text()?.to_owned();
        let table = TableNumber(self.number()?);
        let unique = match self.byte()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed("an index has flags that are unknown")),
        };
        let count = compact::take(&mut self.input)?;
        let (mut fields, mut descending, mut collated) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let field = FieldNumber(self.number()?);
            fields.push(field);
            let options = self.byte()?;
            if options & !(opcode::COLUMN_DESCENDING | opcode::COLUMN_COLLATED) != 0 {
                return Err(Malformed("a column of an index has options that are unknown"));
            }
            if options & opcode::COLUMN_DESCENDING != 0 {
                descending.push(field);
            }
            if options & opcode::COLUMN_COLLATED != 0 {
                let (locale, version) = (self.text()?.to_owned(), self.text()?.to_owned());
                collated.push(Collated { field, locale, version });
            }
        }
        Ok(Command::CreateIndex { name, table, fields, descending, collated, unique })
    }

    fn ty(&mut self) -> Result<Type, Malformed> {
        let code = self.byte()?;
        if code == opcode::ENUM {
            let count: u16 = self.number()?;
            let names = (0..count).map(|_| self.text()).collect::<Result<Vec<_>, _>>()?;
            let variants = Variants::of(names).map(Type::Enum);
            return variants.ok_or(Malformed("the variants of a field are none"));
        }
        let parameter =
            if opcode::has_parameter(code) { compact::take(&mut self.input)? } else { 0 };
        opcode::to_type(code, parameter).ok_or(Malformed("a field has a type that is unknown"))
    }
}
