//! The parts of a database that joedb can't hold: counted, or refused.

use std::collections::BTreeMap;

use annals::{Command, Error, Field, FieldNumber, Result, Schema, Table, TableNumber};

use super::numbers::{find_field, find_table};
use crate::text::count;

/// A kind of thing that joedb has otherwise, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
    /// A field gets another type.
    Type(&'static str, &'static str),
    /// A rule about references that are deleted.
    Rule,
    /// Null becomes a zero value.
    Null,
    /// There is an index.
    Index,
    /// There is a table of a single row.
    Single,
    /// A name has `__` in it.
    Name,
    /// A variant of an enum was renamed.
    Variant,
}

impl Loss {
    /// Formats a loss, with its count.
    fn told(self, name: &str, times: u64) -> String {
        match self {
            Self::Type(from, to) => format!("{name}: joedb has no {from}, the field became {to}"),
            Self::Rule => format!("{name}: the reference is a plain one, joedb enforces none"),
            Self::Null => format!("{name}: {} became 0 or empty", count(times, "null value")),
            Self::Index => format!("{}: left out, joedb's files have none", count(times, "index")),
            Self::Single => format!("table {name}: that it has a single row was left out"),
            Self::Name => format!("{name}: joedb takes no name with __, it got another one"),
            Self::Variant => {
                format!("{name}: a variant was renamed, rows from before keep the text that it had")
            }
        }
    }

    /// Returns the reason that it can't be.
    fn refused(self, name: &str) -> String {
        match self {
            Self::Type(from, to) => format!("{name} is of type {from}, which would become {to}"),
            Self::Rule => format!("the reference {name} is enforced"),
            Self::Null => format!("{name} is null"),
            Self::Index => format!("there is an index, {name}"),
            Self::Single => format!("table {name} has a single row"),
            Self::Name => format!("{name} has __ in its name"),
            Self::Variant => format!("a variant of {name} was renamed"),
        }
    }
}

/// Counts losses.
#[derive(Debug)]
pub(crate) struct Losses {
    is_strict: bool,
    met: BTreeMap<(Loss, TableNumber, FieldNumber), (String, u64)>,
}

impl Losses {
    /// Begins without any; if strict, each one will be an error.
    pub(crate) const fn new(is_strict: bool) -> Self {
        Self { is_strict, met: BTreeMap::new() }
    }

    /// Counts a loss of something that has a name.
    pub(crate) fn note(
        &mut self,
        loss: Loss,
        place: (TableNumber, FieldNumber),
        name: impl FnOnce() -> String,
        times: u64,
    ) -> Result<()> {
        if times == 0 {
            return Ok(());
        }
        if self.is_strict {
            let refused = loss.refused(&name());
            return Err(Error::invalid(format!(
                "{refused}: joedb's files can't hold that; without --strict it is translated"
            )));
        }
        self.met.entry((loss, place.0, place.1)).or_insert_with(|| (name(), 0)).1 += times;
        Ok(())
    }

    /// Counts the loss of a command that joedb doesn't have.
    pub(crate) fn note_command(&mut self, schema: &Schema, command: &Command) -> Result<()> {
        const NOWHERE: FieldNumber = FieldNumber(0);
        match command {
            Command::CreateIndex { name, .. } => {
                self.note(Loss::Index, (TableNumber(0), NOWHERE), || name.clone(), 1)
            }
            Command::SetSingleRow { table, single: true } => {
                let name = || find_table(schema, *table).map(|table| table.name.clone());
                self.note(Loss::Single, (*table, NOWHERE), || name().unwrap_or_default(), 1)
            }
            Command::RenameVariant { table, field, .. } => {
                let owner = find_table(schema, *table)?;
                let name = full_name(owner, find_field(owner, *field)?);
                self.note(Loss::Variant, (*table, *field), || name, 1)
            }
            _ => Ok(()),
        }
    }

    /// Prints the noted losses, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.met.iter().map(|((loss, ..), (name, times))| loss.told(name, *times)).collect()
    }
}

pub(crate) fn full_name(table: &Table, field: &Field) -> String {
    format!("{}.{}", table.name, field.name)
}
