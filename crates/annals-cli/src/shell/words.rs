//! The arguments of a command, as words; and the errors if they don't fit its form.

use annals::event::ERASED;
use annals::{Error, Field, Result, RowId, Schema, Table, Value, ValueRef};
use annals_schema::{Token, shorten};

use crate::language;
use crate::output::count;

/// How a command is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Its first word.
    pub(crate) name: &'static str,
    /// How its arguments are written.
    pub(crate) form: &'static str,
}

impl Usage {
    /// Returns the name, and the arguments if there are any.
    pub(crate) fn text(self) -> String {
        format!("{} {}", self.name, self.form).trim_end().to_owned()
    }
}

/// A line of the shell: a command and its arguments.
pub(crate) struct Words<'w> {
    /// How the command is written.
    pub(crate) usage: Usage,
    /// The whole line.
    pub(crate) line: &'w str,
    /// All words, the command's name included.
    pub(crate) tokens: &'w [Token<'w>],
}

impl<'w> Words<'w> {
    /// Returns the arguments after the command's name.
    pub(crate) fn arguments(&self) -> &'w [Token<'w>] {
        self.tokens.get(1..).unwrap_or_default()
    }

    /// Takes exactly N arguments, or returns an error with the command's form.
    pub(crate) fn exactly<const N: usize>(&self) -> Result<&'w [Token<'w>; N]> {
        let arguments = self.arguments();
        arguments.try_into().map_err(|_| {
            let follow = if arguments.len() == 1 { "follows" } else { "follow" };
            let given = count(arguments.len() as u64, "word");
            let form = self.usage.text();
            Error::invalid(format!("expected `{form}`, but {given} {follow} the command"))
        })
    }

    /// Returns an error with the command's form.
    pub(crate) fn misused(&self) -> Error {
        Error::invalid(format!("expected `{}`", self.usage.text()))
    }
}

/// Finds the table that a word names.
pub(crate) fn table<'s>(schema: &'s Schema, name: &Token<'_>) -> Result<&'s Table> {
    language::table(schema, &name.text)
}

/// Finds the field that a word names.
pub(crate) fn field<'s>(table: &'s Table, name: &Token<'_>) -> Result<&'s Field> {
    language::field(table, &name.text)
}

/// Reads the id of a row.
pub(crate) fn row_id(token: &Token<'_>) -> Result<RowId> {
    if token.quoted {
        return Err(Error::invalid(format!(
            "{:?} is not the id of a row: leave out the quotes",
            shorten(&token.text)
        )));
    }
    language::row_id(&token.text)
}

/// Reads a number of rows or of columns on the screen.
pub(crate) fn number(what: &str, token: &Token<'_>) -> Result<u64> {
    let digits = !token.quoted && token.text.bytes().all(|byte| byte.is_ascii_digit());
    token.text.parse().ok().filter(|_| digits).ok_or_else(|| {
        Error::invalid(format!("{what}: {:?} is not a number from 0 on", shorten(&token.text)))
    })
}

/// Reads one value for each field; `before` is the text before them.
pub(crate) fn all_values(before: &str, table: &Table, tokens: &[Token<'_>]) -> Result<Vec<Value>> {
    if tokens.len() != table.fields.len() {
        let names = table.fields.iter().map(|field| field.name.as_str());
        return Err(Error::invalid(format!(
            "expected `{before}` and a value for each of {} fields, not {}; {}",
            table.fields.len(),
            tokens.len(),
            language::those("fields", names),
        )));
    }
    let value = |(field, token): (&Field, &Token<'_>)| value(table, field, token);
    table.fields.iter().zip(tokens).map(value).collect()
}

/// Reads a value; one that was erased is null in a field that may not be null.
pub(crate) fn value(table: &Table, field: &Field, token: &Token<'_>) -> Result<Value> {
    match token.is(ERASED) && !field.nullable {
        true => Ok(Value::Null),
        false => language::value(table, field, token),
    }
}

/// Lends values to a transaction.
pub(crate) fn lent(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}
