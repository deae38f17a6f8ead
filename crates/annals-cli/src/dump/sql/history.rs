//! The history as SQL for SQLite; running its statements builds the state.
//!
//! Values are as in a dump (`sql`). Tables hold the same rows without constraints: columns that are never null,
//! unique keys, and references. SQLite would check these after each statement. The bytes of blobs are in a separate
//! table; a row with a blob takes its bytes from there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use annals::event::Event;
use annals::{
    Command, Committed, Error, FieldNumber, IndexNumber, Result, RowId, Schema, Table, TableNumber,
    Type, Value, ValueRef,
};

use super::Dialect;
use super::literal::{self, push_digits};
use super::names::{Names, quoted};
use super::tables::type_word;
use crate::output::Output;

/// The table of the bytes of blobs.
const BLOBS: &str = "annals_blob";

/// Prints a history, event by event.
pub(crate) struct HistorySql {
    output: Output,
    names: Names,
    tables: BTreeMap<u32, SqlTable>,
    indexes: BTreeMap<u32, String>,
    /// How many tables and indexes there ever were.
    made: (u32, u32),
    has_blobs: bool,
    /// The last blob, which may be appended to, and the values that it is.
    last_blob: u64,
    last_blob_in: BTreeSet<(TableNumber, RowId, FieldNumber)>,
    /// True if a transaction is open, and whether any ever was.
    is_open: bool,
    has_begun: bool,
    line: String,
}

/// The name of a table, and its columns.
struct SqlTable {
    name: String,
    names: Names,
    columns: BTreeMap<u32, String>,
    made: u32,
}

impl HistorySql {
    pub(crate) fn new(output: Output) -> Self {
        let mut names = Names::new(Dialect::Sqlite);
        names.take(BLOBS);
        Self {
            output,
            names,
            tables: BTreeMap::new(),
            indexes: BTreeMap::new(),
            made: (0, 0),
            has_blobs: false,
            last_blob: 0,
            last_blob_in: BTreeSet::new(),
            is_open: false,
            has_begun: false,
            line: String::new(),
        }
    }

    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Takes in an event without printing it, since later events may depend on it.
    pub(crate) fn skip(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        if let Event::Schema(command) = event {
            self.command(schema, command)?;
        }
        Ok(())
    }

    /// Prints an event.
    pub(crate) fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.begin()?;
        match *event {
            Event::Schema(command) => {
                let text = self.command(schema, command)?;
                self.output.line(&text)
            }
            Event::Insert { table, id, values } => self.insert(table, id, values),
            Event::Update { table, id, field, value } => self.update(table, id, field, value),
            Event::Delete { table, id } => self.delete(table, id, 1),
            Event::InsertVector { table, id, count } => {
                let fields = &schema.table(table).ok_or_else(unknown)?.fields;
                let zero: Vec<Value> = fields.iter().map(annals::Field::zero_value).collect();
                let zero: Vec<ValueRef<'_>> = zero.iter().map(Value::as_ref).collect();
                (id.0..id.0.saturating_add(count))
                    .try_for_each(|id| self.insert(table, RowId(id), &zero))
            }
            Event::UpdateVector { table, id, field, values } => {
                let ty = schema.table(table).and_then(|table| table.field(field));
                let ty = ty.ok_or_else(unknown)?.ty;
                (id.0..)
                    .zip(values.iter(ty))
                    .try_for_each(|(id, value)| self.update(table, RowId(id), field, value))
            }
            Event::DeleteVector { table, id, count } => self.delete(table, id, count),
            Event::Blob { blob, offset, bytes, .. } => self.blob(blob.0, offset, bytes),
            Event::ValidData => self.output.line("-- valid_data"),
            Event::Comment(text) => self.note("comment", text),
            Event::Timestamp(seconds) => self.output.line(&format!("-- timestamp {seconds}")),
        }
    }

    /// Prints the end of a transaction.
    pub(crate) fn commit(&mut self, committed: &Committed) -> Result<()> {
        self.begin()?;
        let Committed { txid, time, .. } = committed;
        self.output.line(&format!("COMMIT; -- {txid} at {time}"))?;
        self.is_open = false;
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.output.line("PRAGMA foreign_keys=OFF;")?;
        }
        match std::mem::replace(&mut self.is_open, true) {
            true => Ok(()),
            false => self.output.line("BEGIN TRANSACTION;"),
        }
    }

    fn note(&mut self, what: &str, text: &str) -> Result<()> {
        let mut quoted = String::new();
        annals_json::push_string(&mut quoted, text);
        self.output.line(&format!("-- {what} {quoted}"))
    }

    fn table(&self, table: TableNumber) -> Result<&SqlTable> {
        self.tables.get(&table.0).ok_or_else(unknown)
    }

    fn insert(&mut self, table: TableNumber, id: RowId, values: &[ValueRef<'_>]) -> Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let at = self.tables.get(&table.0).ok_or_else(unknown)?;
        let _ = write!(line, "INSERT INTO {} VALUES({}", quoted(&at.name), id.0);
        for (field, value) in at.columns.keys().zip(values) {
            line.push(',');
            push(&mut line, *value);
            note_blob(
                &mut self.last_blob_in,
                (table, id, FieldNumber(*field)),
                self.last_blob,
                *value,
            );
        }
        line.push_str(");");
        self.line = line;
        self.output.line(&self.line)
    }

    fn update(
        &mut self,
        table: TableNumber,
        id: RowId,
        field: FieldNumber,
        value: ValueRef<'_>,
    ) -> Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let at = self.tables.get(&table.0).ok_or_else(unknown)?;
        let column = at.columns.get(&field.0).ok_or_else(unknown)?;
        note_blob(&mut self.last_blob_in, (table, id, field), self.last_blob, value);
        let _ = write!(line, "UPDATE {} SET {}=", quoted(&at.name), quoted(column));
        push(&mut line, value);
        let _ = write!(line, " WHERE \"id\"={};", id.0);
        self.line = line;
        self.output.line(&self.line)
    }

    fn delete(&mut self, table: TableNumber, id: RowId, count: u64) -> Result<()> {
        let name = quoted(&self.table(table)?.name);
        let last = id.0.saturating_add(count.saturating_sub(1));
        let which = match count {
            1 => format!("={}", id.0),
            _ => format!(" BETWEEN {} AND {last}", id.0),
        };
        self.output.line(&format!("DELETE FROM {name} WHERE \"id\"{which};"))
    }

    fn blob(&mut self, blob: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut line = String::new();
        if !self.has_blobs {
            self.has_blobs = true;
            let columns = "(\"id\" INTEGER PRIMARY KEY, \"bytes\" BLOB)";
            let _ = writeln!(line, "CREATE TABLE IF NOT EXISTS \"{BLOBS}\" {columns};");
        }
        if offset == 0 {
            (self.last_blob, self.last_blob_in) = (blob, BTreeSet::new());
            let _ = write!(line, "INSERT INTO \"{BLOBS}\" VALUES({blob},");
            push_hex(&mut line, bytes);
            line.push_str(");");
        } else {
            let _ = write!(line, "UPDATE \"{BLOBS}\" SET \"bytes\"=CAST(\"bytes\"||");
            push_hex(&mut line, bytes);
            let _ = write!(line, " AS BLOB) WHERE \"id\"={blob};");
        }
        self.output.line(&line)?;
        if offset == 0 {
            return Ok(());
        }
        // Rows took the bytes that there were before.
        let rows = std::mem::take(&mut self.last_blob_in);
        let mut has_it = |(table, id, field): &(TableNumber, RowId, FieldNumber)| {
            let there =
                self.tables.get(&table.0).is_some_and(|at| at.columns.contains_key(&field.0));
            there.then(|| self.update(*table, *id, *field, ValueRef::Blob(annals::Blob(blob))))
        };
        rows.iter().filter_map(&mut has_it).collect()
    }

    /// Takes a command of the schema; returns it in SQL.
    fn command(&mut self, schema: &Schema, command: &Command) -> Result<String> {
        Ok(match command {
            Command::CreateTable { name } => {
                let (number, name) = (self.made.0, self.names.take(name));
                self.made.0 += 1;
                let text = format!("CREATE TABLE {} (\"id\" INTEGER PRIMARY KEY);", quoted(&name));
                let mut names = Names::new(Dialect::Sqlite);
                names.take("id");
                let table = SqlTable { name, names, columns: BTreeMap::new(), made: 0 };
                self.tables.insert(number, table);
                text
            }
            Command::DropTable { table } => {
                let dropped = self.tables.remove(&table.0).ok_or_else(unknown)?;
                self.names.free(&dropped.name);
                // Its indexes go with it.
                for index in schema.indexes().iter().filter(|index| index.table == *table) {
                    if let Some(name) = self.indexes.remove(&index.number.0) {
                        self.names.free(&name);
                    }
                }
                format!("DROP TABLE {};", quoted(&dropped.name))
            }
            Command::RenameTable { table, name } => {
                let known = self.tables.get_mut(&table.0).ok_or_else(unknown)?;
                self.names.free(&known.name);
                let old = std::mem::replace(&mut known.name, self.names.take(name));
                format!("ALTER TABLE {} RENAME TO {};", quoted(&old), quoted(&known.name))
            }
            Command::CreateIndex { name, table, fields, descending, .. } => {
                let (number, name) = (self.made.1, self.names.take(name));
                self.made.1 += 1;
                let known = self.table(*table)?;
                let column = |field: &FieldNumber| {
                    let order = if descending.contains(field) { " DESC" } else { "" };
                    Some(quoted(known.columns.get(&field.0)?) + order)
                };
                let columns: Vec<_> = fields.iter().filter_map(column).collect();
                let (index, on) = (quoted(&name), quoted(&known.name));
                let text = format!("CREATE INDEX {index} ON {on} ({});", columns.join(", "));
                self.indexes.insert(number, name);
                text
            }
            Command::DropIndex { index: IndexNumber(index) } => {
                let name = self.indexes.remove(index).ok_or_else(unknown)?;
                self.names.free(&name);
                format!("DROP INDEX {};", quoted(&name))
            }
            Command::AddField { table, .. }
            | Command::RenameField { table, .. }
            | Command::RenameVariant { table, .. }
            | Command::DropField { table, .. } => {
                let shown = schema.table(*table).ok_or_else(unknown)?;
                self.tables.get_mut(&table.0).ok_or_else(unknown)?.command(shown, command)?
            }
            Command::AddVariant { .. }
            | Command::DropVariant { .. }
            | Command::SetSingleRow { .. }
            | Command::SetHistoryIndex { .. }
            | Command::Custom { .. } => {
                format!("-- {}", schema.command_text(command))
            }
        })
    }
}

impl SqlTable {
    /// Takes a command about a field; returns it in SQL.
    fn command(&mut self, table: &Table, command: &Command) -> Result<String> {
        let on = quoted(&self.name);
        let key =
            |name: &str| if name == "id" { format!("{}.id", table.name) } else { name.to_owned() };
        match command {
            Command::AddField { name, ty, .. } => {
                let (number, column) = (self.made, self.names.take(&key(name)));
                self.made += 1;
                let shown = quoted(&column);
                let mut text = format!(
                    "ALTER TABLE {on} ADD COLUMN {shown} {};",
                    type_word(*ty, Dialect::Sqlite)
                );
                self.columns.insert(number, column);
                let default = default_of(command);
                if default != Value::Null {
                    let _ = write!(text, "\nUPDATE {on} SET {shown}=");
                    push(&mut text, default.as_ref());
                    text.push(';');
                }
                Ok(text)
            }
            Command::RenameField { field, name, .. } => {
                let column = self.columns.get_mut(&field.0).ok_or_else(unknown)?;
                self.names.free(column);
                let old = std::mem::replace(column, self.names.take(&key(name)));
                let (old, new) = (quoted(&old), quoted(column));
                Ok(format!("ALTER TABLE {on} RENAME COLUMN {old} TO {new};"))
            }
            Command::RenameVariant { field, variant, name, .. } => {
                let column = quoted(self.columns.get(&field.0).ok_or_else(unknown)?);
                let ty = table.field(*field).ok_or_else(unknown)?.ty;
                let Type::Enum(variants) = ty else { return Err(unknown()) };
                let old = variants.get(*variant).ok_or_else(unknown)?;
                Ok(format!("UPDATE {on} SET {column}='{name}' WHERE {column}='{old}';"))
            }
            Command::DropField { field, .. } => {
                let column = self.columns.remove(&field.0).ok_or_else(unknown)?;
                self.names.free(&column);
                Ok(format!("ALTER TABLE {on} DROP COLUMN {};", quoted(&column)))
            }
            _ => Err(unknown()),
        }
    }
}

/// Returns the value of existing rows for an added field.
fn default_of(command: &Command) -> Value {
    let Command::AddField { name, ty, nullable, default, .. } = command.clone() else {
        return Value::Null;
    };
    annals::Field { number: FieldNumber(0), name, ty, nullable, default }.existing_value()
}

/// Notes that a value of a row is the last blob, or isn't any more.
fn note_blob(
    rows: &mut BTreeSet<(TableNumber, RowId, FieldNumber)>,
    place: (TableNumber, RowId, FieldNumber),
    last: u64,
    value: ValueRef<'_>,
) {
    rows.remove(&place);
    if matches!(value, ValueRef::Blob(blob) if blob.0 == last) {
        rows.insert(place);
    }
}

fn push(text: &mut String, value: ValueRef<'_>) {
    match value {
        ValueRef::Blob(blob) => {
            let _ = write!(text, "(SELECT \"bytes\" FROM \"{BLOBS}\" WHERE \"id\"={})", blob.0);
        }
        value => literal::push(text, value, Dialect::Sqlite),
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    text.push_str("X'");
    push_digits(text, bytes);
    text.push('\'');
}

fn unknown() -> Error {
    Error::corrupt("an event speaks of a table, field or index that isn't there")
}
