//! `annals import changes`: dated changes, one JSON object a line.

use std::path::{Path, PathBuf};

use annals::{
    Database, Error, ErrorKind, Field, Level, Result, RowId, Table, Timestamp, Transaction, Value,
    ValueRef,
};
use annals_json::Scalar;
use clap::Args;

use crate::exchange::json::{self, Reader, Token};
use crate::output::{Output, count};
use crate::{Outcome, cell, files, language, notes, progress};

/// Take in dated changes, one JSON object a line
///
/// A line is {"at": TIME, "table": NAME, "op": "insert"|"update"|"delete", "id": ID,
/// "fields": {NAME: VALUE, ..}}. A value is null, true, false, a number, or a string as in CSV files: an empty one is
/// null where the field may be null. With --null that text is null, and an empty string is one. Consecutive lines with
/// the same `at` are one transaction, committed with that time at level soft; the end makes all of them
/// durable with one flush. The file may be compressed with gzip. An error rolls back the transaction
/// in progress; those before it stay, and the message says how many they are.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals import changes people.annals changes.ndjson.gz")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The changes
    path: PathBuf,
    /// The text of a value that is null
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.path;
    let bar = files::progress(files::length(path));
    let mut reader = Reader::new(files::open_input(path, &bar)?, path);
    let database = progress::options().create(false).level(Level::Soft).open(&arguments.file)?;
    notes::tell_recovery(&database);
    let null = arguments.null.as_deref();
    let mut import =
        Import { database: &database, null, pending: None, changes: 0, transactions: 0 };
    let imported = import_lines(&mut import, &mut reader, path).map_err(|error| {
        let before = count(import.transactions, "transaction");
        Error::new(error.kind(), format!("{error}; committed before: {before}"))
    });
    let (changes, transactions) = (import.changes, import.transactions);
    drop(import);
    crate::notes::tell_damage(&database.image_damage());
    let closed = database.close();
    bar.finish_and_clear();
    imported.and(closed)?;
    let mut output = Output::new();
    let (changes, all) = (count(changes, "change"), count(transactions, "transaction"));
    output.line(&format!("imported {changes} in {all}"))?;
    output.flush()?;
    Ok(Outcome::Done)
}

fn import_lines(import: &mut Import<'_>, reader: &mut Reader, path: &Path) -> Result<()> {
    while reader.peek()?.is_some() {
        let change = Change::read(reader)?;
        import.take(&change).map_err(|error| reader.at(error))?;
    }
    import
        .commit()
        .map_err(|error| error.within(format_args!("{}: the last transaction", path.display())))
}

/// One line.
struct Change {
    at: Timestamp,
    table: String,
    op: Op,
    id: RowId,
    fields: Vec<(String, Given)>,
}

#[derive(Clone, Copy)]
enum Op {
    Insert,
    Update,
    Delete,
}

/// A value: its kind, and the text of a string or a number.
type Given = (Token, String);

impl Change {
    fn read(reader: &mut Reader) -> Result<Self> {
        let (mut known, mut fields) = (Vec::<(String, Given)>::new(), Vec::new());
        let (mut items, mut key) = (reader.open(b'{')?, String::new());
        let mut has_fields = false;
        while reader.next_key(&mut items, &mut key)? {
            if known.iter().any(|(other, _)| *other == key) || (has_fields && key == "fields") {
                return Err(json::twice(reader, &key));
            }
            match key.as_str() {
                "fields" => {
                    has_fields = true;
                    fields = Self::fields(reader)?;
                }
                "at" | "table" | "op" | "id" => {
                    let value = given(reader)?;
                    known.push((std::mem::take(&mut key), value));
                }
                _ => {
                    let those = "a change has `at`, `table`, `op`, `id` and `fields`";
                    return Err(reader.wrong(format_args!("the key {key:?} is unknown: {those}")));
                }
            }
        }
        Self::of(&known, fields).map_err(|error| reader.at(error))
    }

    /// Reads the values of fields.
    fn fields(reader: &mut Reader) -> Result<Vec<(String, Given)>> {
        let (mut fields, mut key) = (Vec::<(String, Given)>::new(), String::new());
        if reader.peek()? == Some(b'n') {
            // Null has no fields.
            return given(reader).map(|_| fields);
        }
        let mut items = reader.open(b'{')?;
        while reader.next_key(&mut items, &mut key)? {
            if fields.iter().any(|(other, _)| *other == key) {
                return Err(json::twice(reader, &key));
            }
            let value = given(reader)?;
            fields.push((std::mem::take(&mut key), value));
        }
        Ok(fields)
    }

    fn of(known: &[(String, Given)], fields: Vec<(String, Given)>) -> Result<Self> {
        let find = |key: &str| known.iter().find(|(other, _)| other == key).map(|(_, value)| value);
        let text = |key: &str| match find(key) {
            Some((Token::String, text)) => Ok(text.as_str()),
            _ => Err(Error::invalid(format!("`{key}` must be there, and be a string"))),
        };
        let op = match text("op")? {
            "insert" => Op::Insert,
            "update" => Op::Update,
            "delete" => Op::Delete,
            other => {
                let message = format!("unknown op {other:?}; it is insert, update or delete");
                return Err(Error::invalid(message));
            }
        };
        let id = match find("id") {
            Some((Token::Number | Token::String, id)) => language::row_id(id)?,
            _ => return Err(Error::invalid("`id` must be the number of a row")),
        };
        let (at, table) = (language::time(text("at")?)?, text("table")?.to_owned());
        Ok(Self { at, table, op, id, fields })
    }
}

fn given(reader: &mut Reader) -> Result<Given> {
    let mut text = String::new();
    Ok((reader.scalar(&mut text)?, text))
}

/// The counts so far, and the transaction that is being collected.
struct Import<'db> {
    database: &'db Database,
    /// The text that is null, if one was named.
    null: Option<&'db str>,
    pending: Option<(Timestamp, Transaction<'db>)>,
    changes: u64,
    transactions: u64,
}

impl<'db> Import<'db> {
    /// Takes a change into the transaction of its time.
    fn take(&mut self, change: &Change) -> Result<()> {
        if self.pending.as_ref().is_some_and(|(at, _)| *at != change.at) {
            self.commit().map_err(|error| error.within("the transaction before this line"))?;
        }
        let null = self.null;
        let transaction = self.pending(change.at)?;
        let schema = transaction.view().schema().clone();
        let table = language::table_of_file(&schema, &change.table)?;
        match change.op {
            Op::Insert => insert(transaction, table, change, null)?,
            Op::Update => update(transaction, table, change, null)?,
            Op::Delete => transaction.delete(table.number, change.id)?,
        }
        self.changes += 1;
        Ok(())
    }

    fn pending(&mut self, at: Timestamp) -> Result<&mut Transaction<'db>> {
        let pending = match self.pending.take() {
            Some(pending) => pending,
            None => {
                let mut transaction = self.database.begin()?;
                transaction.set_level(Level::Soft);
                transaction.set_time(at);
                (at, transaction)
            }
        };
        Ok(&mut self.pending.insert(pending).1)
    }

    fn commit(&mut self) -> Result<()> {
        if let Some((_, transaction)) = self.pending.take() {
            // Updates of no fields are changes, but nothing to commit.
            let counts = !transaction.is_empty();
            transaction.commit()?;
            self.transactions += u64::from(counts);
        }
        Ok(())
    }
}

fn insert(
    transaction: &mut Transaction<'_>,
    table: &Table,
    change: &Change,
    null: Option<&str>,
) -> Result<()> {
    let mut values: Vec<Value> = table.fields.iter().map(Field::default_value).collect();
    for (name, value) in &change.fields {
        let field = language::field(table, name)?;
        let value = field_value(table, field, value, null)?;
        if let Some(place) = values.get_mut(field.number.0 as usize) {
            *place = value;
        }
    }
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    match transaction.insert_at(table.number, change.id, &values) {
        // The row that has the key may be deleted or changed by a later line of this transaction:
        // an insert of zero values is checked only at commit.
        Err(error) if error.kind() == ErrorKind::Unique => {
            transaction.insert_zero(table.number, change.id)?;
            for (field, value) in table.fields.iter().zip(values) {
                transaction.update(table.number, change.id, field.number, value)?;
            }
            Ok(())
        }
        inserted => inserted,
    }
}

fn update(
    transaction: &mut Transaction<'_>,
    table: &Table,
    change: &Change,
    null: Option<&str>,
) -> Result<()> {
    transaction.view().table(table.number)?.get(change.id)?;
    for (name, value) in &change.fields {
        let field = language::field(table, name)?;
        let value = field_value(table, field, value, null)?;
        transaction.update(table.number, change.id, field.number, value.as_ref())?;
    }
    Ok(())
}

/// Returns the value of a field: a text as in a CSV file, or what JSON has for it.
fn field_value(table: &Table, field: &Field, given: &Given, null: Option<&str>) -> Result<Value> {
    let (token, text) = (given.0, given.1.as_str());
    let scalar = match token {
        Token::String => return cell::cell(table, field, text, false, null),
        Token::Null => Scalar::Null,
        Token::Bool(value) => Scalar::Bool(value),
        Token::Number => Scalar::Number(text),
    };
    let value = annals_json::parse_value(field.ty, scalar);
    value.filter(|value| field.accepts(value.as_ref())).ok_or_else(|| {
        let shown = match token {
            Token::Null => "null".to_owned(),
            Token::Bool(value) => value.to_string(),
            _ => text.to_owned(),
        };
        let (name, ty, table) = (&field.name, field.ty, &table.name);
        Error::invalid(format!("field {name} of table {table}: {shown} is no value of type {ty}"))
    })
}
