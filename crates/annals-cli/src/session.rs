//! A session of the shell: it runs one line after the other against an open database.
//!
//! Invariants
//! 1. There is a transaction from the first change (or `begin`) on until `commit`, `rollback` or
//!    the end; a session that is dropped rolls back.
//! 2. `begun` says that `begin` was said in the present transaction.
//! 3. A line that fails has ended the session: the caller runs no other.

use annals::storage::Clock;
use annals::{
    Commit, Database, Error, Field, Level, Result, RowId, Schema, Table, Timestamp, Transaction,
    Value, ValueRef,
};
use annals_schema::Token;

use crate::language;

/// The commands that are not about the schema, for the message about an unknown one.
const COMMANDS: &str = "create_table, add_field, create_index, create_unique_index, \
                        namespace, insert, insert_at, insert_into, update, delete_from, comment, \
                        timestamp, begin, commit, rollback";

/// What runs the lines of a script.
pub(crate) struct Session<'db> {
    database: &'db Database,
    transaction: Option<Transaction<'db>>,
    begun: bool,
    level: Level,
}

impl<'db> Session<'db> {
    /// Begins a session whose commits have the level, where they don't say another.
    pub(crate) fn new(database: &'db Database, level: Level) -> Self {
        Self { database, transaction: None, begun: false, level }
    }

    /// Runs one line; gives the commit if it made one.
    pub(crate) fn run(&mut self, line: &str) -> Result<Option<Commit>> {
        let tokens =
            annals_schema::tokenize(line).map_err(|error| Error::invalid(error.to_string()))?;
        let Some((command, arguments)) = tokens.split_first() else { return Ok(None) };
        if command.quoted {
            return Err(unknown(&command.text));
        }
        match command.text.as_ref() {
            "begin" => self.begin(arguments)?,
            "commit" => return self.commit(arguments).map(Some),
            "rollback" => self.rollback(arguments)?,
            "insert" => self.insert(arguments)?,
            "insert_at" => self.insert_at(arguments)?,
            "insert_into" => self.insert_into(arguments)?,
            "update" => self.update(arguments)?,
            "delete_from" => self.delete_from(arguments)?,
            "comment" => self.comment(arguments)?,
            "timestamp" => self.timestamp(arguments)?,
            "namespace" => namespace(line)?,
            _ => self.schema_command(&tokens)?,
        }
        Ok(None)
    }

    /// Ends the script: commits what is pending, if there is any.
    pub(crate) fn end(mut self) -> Result<Option<Commit>> {
        match self.transaction.take() {
            Some(transaction) if !transaction.is_empty() => transaction.commit().map(Some),
            Some(transaction) => transaction.rollback().map(|()| None),
            None => Ok(None),
        }
    }

    fn pending(&mut self) -> Result<&mut Transaction<'db>> {
        let transaction = match self.transaction.take() {
            Some(transaction) => transaction,
            None => {
                let mut transaction = self.database.begin()?;
                transaction.set_level(self.level);
                transaction
            }
        };
        Ok(self.transaction.insert(transaction))
    }

    fn begin(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let [] = expect("begin", arguments)?;
        if self.begun {
            let message = "this transaction has begun already; end it with commit or rollback";
            return Err(Error::invalid(message));
        }
        self.pending()?;
        self.begun = true;
        Ok(())
    }

    fn commit(&mut self, arguments: &[Token<'_>]) -> Result<Commit> {
        let (level, time) = commit_arguments(arguments)?;
        let pending = self.pending()?;
        if let Some(level) = level {
            pending.set_level(level);
        }
        if let Some(time) = time {
            pending.set_time(time);
        }
        self.begun = false;
        match self.transaction.take() {
            Some(transaction) => transaction.commit(),
            None => Err(Error::invalid("there is no transaction")),
        }
    }

    fn rollback(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let [] = expect("rollback", arguments)?;
        self.begun = false;
        self.transaction.take().map_or(Ok(()), Transaction::rollback)
    }

    fn insert(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let Some((name, values)) = arguments.split_first() else {
            return Err(usage("insert T VALUE.."));
        };
        let transaction = self.pending()?;
        let schema = transaction.view().schema().clone();
        let table = find_table(&schema, name)?;
        let values = all_values("insert T", table, values)?;
        transaction.insert(table.number, &references(&values))?;
        Ok(())
    }

    fn insert_at(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let [name, id, values @ ..] = arguments else {
            return Err(usage("insert_at T ID VALUE.."));
        };
        let transaction = self.pending()?;
        let schema = transaction.view().schema().clone();
        let table = find_table(&schema, name)?;
        let id = row_id(id)?;
        let values = all_values("insert_at T ID", table, values)?;
        transaction.insert_at(table.number, id, &references(&values))
    }

    fn insert_into(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let [name, id] = expect("insert_into T ID", arguments)?;
        let transaction = self.pending()?;
        let schema = transaction.view().schema().clone();
        let table = find_table(&schema, name)?;
        transaction.insert_zero(table.number, row_id(id)?)
    }

    fn update(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let [name, id, field, value] = expect("update T ID FIELD VALUE", arguments)?;
        let transaction = self.pending()?;
        let schema = transaction.view().schema().clone();
        let table = find_table(&schema, name)?;
        let field = find_field(table, field)?;
        let id = row_id(id)?;
        let value = language::value(table, field, value)?;
        transaction.update(table.number, id, field.number, value.as_ref())
    }

    fn delete_from(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let [name, id] = expect("delete_from T ID", arguments)?;
        let transaction = self.pending()?;
        let schema = transaction.view().schema().clone();
        let table = find_table(&schema, name)?;
        transaction.delete(table.number, row_id(id)?)
    }

    fn comment(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let [text] = expect("comment \"TEXT\"", arguments)?;
        if !text.quoted {
            return Err(Error::invalid("the text of a comment stands in quotes: comment \"TEXT\""));
        }
        self.pending()?.comment(&text.text)
    }

    fn timestamp(&mut self, arguments: &[Token<'_>]) -> Result<()> {
        let seconds = match arguments {
            [] => now(),
            [seconds] if !seconds.quoted => seconds.text.parse().map_err(|_| {
                let text = &seconds.text;
                Error::invalid(format!("{text:?} is not a number of seconds since 1970"))
            })?,
            _ => return Err(usage("timestamp [SECONDS]")),
        };
        self.pending()?.timestamp(seconds)
    }

    fn schema_command(&mut self, tokens: &[Token<'_>]) -> Result<()> {
        let transaction = self.pending()?;
        let schema = transaction.view().schema().clone();
        let command = annals_schema::parse_command(&schema, tokens)
            .map_err(|diagnostic| Error::invalid(diagnostic.to_string()))?;
        match command {
            Some(command) => transaction.apply_command(&command),
            None => {
                Err(unknown(tokens.first().map(|token| token.text.as_ref()).unwrap_or_default()))
            }
        }
    }
}

/// Checks a `namespace` line. It names generated code, and changes nothing in a database; but a
/// schema file that has one is a script, too.
fn namespace(line: &str) -> Result<()> {
    annals_schema::parse(line).map(drop).map_err(|mistakes| {
        let first = mistakes
            .into_iter()
            .next()
            .map(|mistake| annals_schema::Diagnostic { line: 0, ..mistake });
        Error::invalid(first.map(|mistake| mistake.to_string()).unwrap_or_default())
    })
}

fn unknown(command: &str) -> Error {
    Error::invalid(format!("unknown command {command:?}; the commands are: {COMMANDS}"))
}

fn usage(form: &str) -> Error {
    Error::invalid(format!("expected `{form}`"))
}

/// Takes exactly N arguments, or says what the command looks like.
fn expect<'t, 'l, const N: usize>(
    form: &str,
    arguments: &'t [Token<'l>],
) -> Result<&'t [Token<'l>; N]> {
    arguments.try_into().map_err(|_| {
        let given = arguments.len();
        Error::invalid(format!("expected `{form}`, but {given} words follow the command"))
    })
}

fn commit_arguments(arguments: &[Token<'_>]) -> Result<(Option<Level>, Option<Timestamp>)> {
    let words: Vec<&str> = arguments.iter().map(|token| token.text.as_ref()).collect();
    let (level, rest) = match words.split_first() {
        Some((&first, rest)) if first != "at" => {
            let level = language::level(first).ok_or_else(|| {
                Error::invalid(format!(
                    "unknown level {first:?}; the levels are: soft, checksummed"
                ))
            })?;
            (Some(level), rest)
        }
        _ => (None, words.as_slice()),
    };
    match rest {
        [] => Ok((level, None)),
        ["at", time] => Ok((level, Some(language::time(time)?))),
        _ => Err(usage("commit [LEVEL] [at TIME]")),
    }
}

fn find_table<'s>(schema: &'s Schema, name: &Token<'_>) -> Result<&'s Table> {
    language::table(schema, &name.text)
}

fn find_field<'s>(table: &'s Table, name: &Token<'_>) -> Result<&'s Field> {
    language::field(table, &name.text)
}

fn row_id(token: &Token<'_>) -> Result<RowId> {
    if token.quoted {
        return Err(Error::invalid(format!(
            "{:?} is not the id of a row: leave out the quotes",
            token.text
        )));
    }
    language::row_id(&token.text)
}

/// Reads one value for each field.
fn all_values(form: &str, table: &Table, tokens: &[Token<'_>]) -> Result<Vec<Value>> {
    if tokens.len() != table.fields.len() {
        let names = table.fields.iter().map(|field| field.name.as_str());
        return Err(Error::invalid(format!(
            "expected `{form}` and a value for each of {} fields, not {}; {}",
            table.fields.len(),
            tokens.len(),
            language::those("fields", names),
        )));
    }
    let value = |(field, token): (&Field, &Token<'_>)| language::value(table, field, token);
    table.fields.iter().zip(tokens).map(value).collect()
}

fn references(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// Gives the time in seconds since 1970.
fn now() -> i64 {
    Timestamp(annals::storage::SystemClock.now()).seconds()
}
