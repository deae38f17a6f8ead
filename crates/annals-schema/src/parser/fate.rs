//! The fate of old names: dropped, or renamed.

use std::collections::HashMap;

use crate::{Command, Schema, TableNumber};

/// A line of one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file's name.
    pub(super) file: String,
    /// The line, counted from 1.
    pub(super) line: usize,
}

/// How a name went out of use the last time.
#[derive(Clone, Debug)]
enum End {
    Renamed(String),
    Dropped,
    /// An index went with its table.
    WithTable(String),
}

#[derive(Clone, Debug)]
struct Fate {
    end: End,
    place: Option<Place>,
}

/// The names that went out of use. Most schemas have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Fates {
    tables: HashMap<String, Fate>,
    fields: HashMap<(TableNumber, String), Fate>,
    indexes: HashMap<String, Fate>,
}

impl Fates {
    /// Finds the fates in the history of a schema, which doesn't know its lines.
    pub(super) fn of(schema: &Schema) -> Self {
        let mut fates = Self::default();
        let mut past = Schema::default();
        for command in schema.commands() {
            fates.note(&past, command, None);
            past.apply(command.clone()).expect("the command was applied to such a schema before");
        }
        fates
    }

    /// Records how a command that is about to be applied changes names.
    pub(super) fn note(&mut self, schema: &Schema, command: &Command, place: Option<&Place>) {
        let fate = |end| Fate { end, place: place.cloned() };
        let field_name = |table, field| {
            let field = schema.table(table).and_then(|table| table.field(field));
            field.map(|field| (table, field.name.clone()))
        };
        match command {
            Command::DropTable { table } => {
                let Some(table) = schema.table(*table) else { return };
                for index in schema.indexes_of(table) {
                    let end = End::WithTable(table.name.clone());
                    self.indexes.insert(index.name.clone(), fate(end));
                }
                self.tables.insert(table.name.clone(), fate(End::Dropped));
            }
            Command::RenameTable { table, name } => {
                let Some(table) = schema.table(*table) else { return };
                self.tables.insert(table.name.clone(), fate(End::Renamed(name.clone())));
            }
            Command::DropField { table, field } => {
                let Some(name) = field_name(*table, *field) else { return };
                self.fields.insert(name, fate(End::Dropped));
            }
            Command::RenameField { table, field, name } => {
                let Some(old) = field_name(*table, *field) else { return };
                self.fields.insert(old, fate(End::Renamed(name.clone())));
            }
            Command::DropIndex { index } => {
                let Some(index) = schema.index(*index) else { return };
                self.indexes.insert(index.name.clone(), fate(End::Dropped));
            }
            _ => {}
        }
    }

    /// Describes the fate of a missing table; `file` is that of the line that names it.
    pub(super) fn of_table(&self, schema: &Schema, name: &str, file: &str) -> Option<String> {
        let is_there = |name: &str| schema.table_named(name).is_some();
        story("table", name, file, |name| self.tables.get(name), is_there)
    }

    /// Describes the fate of a missing field.
    pub(super) fn of_field(
        &self,
        schema: &Schema,
        table: TableNumber,
        name: &str,
        file: &str,
    ) -> Option<String> {
        let find = |name: &str| self.fields.get(&(table, name.to_owned()));
        let is_there =
            |name: &str| schema.table(table).is_some_and(|table| table.field_named(name).is_some());
        story("field", name, file, find, is_there)
    }

    /// Describes the fate of a missing index.
    pub(super) fn of_index(&self, name: &str, file: &str) -> Option<String> {
        story("index", name, file, |name| self.indexes.get(name), |_| false)
    }
}

/// Describes the fate of a name and of its later names.
fn story<'f>(
    what: &str,
    name: &str,
    file: &str,
    find: impl Fn(&str) -> Option<&'f Fate>,
    is_there: impl Fn(&str) -> bool,
) -> Option<String> {
    const LONGEST: usize = 5;
    let mut text = String::new();
    let mut name = name;
    for _ in 0..LONGEST {
        let Some(fate) = find(name) else { break };
        let subject = if text.is_empty() { format!("{what} `{name}`") } else { ", which".into() };
        let place = fate.place.as_ref().map(|place| at(place, file)).unwrap_or_default();
        text += &match &fate.end {
            End::Renamed(new) => format!("{subject} was renamed to `{new}`{place}"),
            End::Dropped => format!("{subject} was dropped{place}"),
            End::WithTable(table) => format!("{subject} went with table `{table}`{place}"),
        };
        match &fate.end {
            End::Renamed(new) if !is_there(new) => name = new,
            _ => break,
        }
    }
    (!text.is_empty()).then_some(text)
}

fn at(place: &Place, file: &str) -> String {
    if place.file == file {
        format!(" in line {}", place.line)
    } else {
        format!(" in line {} of {}", place.line, place.file)
    }
}
