//! `annals import changes`: dated changes, one JSON object a line.

use std::path::PathBuf;

use annals::{
    Database, Error, ErrorKind, Field, Level, Result, RowId, Table, Timestamp, Transaction, Value,
    ValueRef,
};
use clap::Args;
use serde_json::Map;

use crate::output::{Output, count};
use crate::{Outcome, cell, commands, files, language, progress};

/// Take in dated changes, one JSON object a line
///
/// A line is {"at": TIME, "table": NAME, "op": "insert"|"update"|"delete", "id": ID,
/// "fields": {NAME: STRING, ..}}. Values are strings as in CSV files. Consecutive lines with the same
/// `at` are one transaction, committed with that time at level soft; the end makes all of them
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
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.path;
    let bar = files::progress(files::length(path));
    let mut input = files::open_input(path, &bar)?;
    let database = progress::options().create(false).level(Level::Soft).open(&arguments.file)?;
    commands::tell_recovery(&database);
    let mut import = Import { database: &database, pending: None, changes: 0, transactions: 0 };
    let imported = import_lines(&mut import, &mut *input).map_err(|error| {
        let before = import.transactions;
        let error = error.within(path.display());
        Error::new(
            error.kind(),
            format!("{error}; committed before: {}", count(before, "transaction")),
        )
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

fn import_lines(import: &mut Import<'_>, input: &mut dyn std::io::BufRead) -> Result<()> {
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        let more = files::read_line(input, &mut line)
            .map_err(|error| Error::io(format!("line {}", number + 1), error))?;
        if !more {
            break;
        }
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let taken = Change::parse(&line).and_then(|change| import.take(&change));
        taken.map_err(|error| error.within(format_args!("line {number}")))?;
    }
    import.commit().map_err(|error| error.within(format_args!("line {number}")))
}

/// One line.
struct Change {
    at: Timestamp,
    table: String,
    op: Op,
    id: RowId,
    fields: Map<String, serde_json::Value>,
}

#[derive(Clone, Copy)]
enum Op {
    Insert,
    Update,
    Delete,
}

impl Change {
    fn parse(line: &[u8]) -> Result<Self> {
        let object: serde_json::Value = serde_json::from_slice(line)
            .map_err(|error| Error::invalid(format!("not a JSON object: {error}")))?;
        let serde_json::Value::Object(mut object) = object else {
            return Err(Error::invalid("not a JSON object"));
        };
        let op = match text(&object, "op")? {
            "insert" => Op::Insert,
            "update" => Op::Update,
            "delete" => Op::Delete,
            other => {
                let message = format!("unknown op {other:?}; it is insert, update or delete");
                return Err(Error::invalid(message));
            }
        };
        let id = match object.get("id") {
            Some(serde_json::Value::Number(id)) => language::row_id(&id.to_string())?,
            Some(serde_json::Value::String(id)) => language::row_id(id)?,
            _ => return Err(Error::invalid("`id` must be the number of a row")),
        };
        let at = language::time(text(&object, "at")?)?;
        let table = text(&object, "table")?.to_owned();
        let fields = match object.remove("fields") {
            Some(serde_json::Value::Object(fields)) => fields,
            None | Some(serde_json::Value::Null) => Map::new(),
            Some(_) => return Err(Error::invalid("`fields` must be an object")),
        };
        Ok(Self { at, table, op, id, fields })
    }
}

fn text<'o>(object: &'o Map<String, serde_json::Value>, key: &str) -> Result<&'o str> {
    let value = object.get(key).and_then(serde_json::Value::as_str);
    value.ok_or_else(|| Error::invalid(format!("`{key}` must be there, and be a string")))
}

/// The counts so far, and the transaction that is being collected.
struct Import<'db> {
    database: &'db Database,
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
        let transaction = self.pending(change.at)?;
        let schema = transaction.view().schema().clone();
        let table = language::table_of_file(&schema, &change.table)?;
        match change.op {
            Op::Insert => insert(transaction, table, change)?,
            Op::Update => update(transaction, table, change)?,
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

fn insert(transaction: &mut Transaction<'_>, table: &Table, change: &Change) -> Result<()> {
    let mut values: Vec<Value> = table.fields.iter().map(Field::default_value).collect();
    for (name, value) in &change.fields {
        let field = language::field(table, name)?;
        let value = field_value(table, field, value)?;
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

fn update(transaction: &mut Transaction<'_>, table: &Table, change: &Change) -> Result<()> {
    transaction.view().table(table.number)?.get(change.id)?;
    for (name, value) in &change.fields {
        let field = language::field(table, name)?;
        let value = field_value(table, field, value)?;
        transaction.update(table.number, change.id, field.number, value.as_ref())?;
    }
    Ok(())
}

fn field_value(table: &Table, field: &Field, value: &serde_json::Value) -> Result<Value> {
    let text = value.as_str().ok_or_else(|| {
        Error::invalid(format!("the value of {:?} must be a string, as in a CSV file", field.name))
    })?;
    cell::value(table, field, text)
}
