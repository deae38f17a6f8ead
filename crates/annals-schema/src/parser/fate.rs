//! What became of each name: it is in use, or was dropped or renamed.

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

impl Place {
    /// Describes the place for a reader of a line of a file.
    pub(super) fn seen_from(&self, file: &str) -> String {
        if self.file == file {
            format!("in line {}", self.line)
        } else {
            format!("in line {} of {}", self.line, self.file)
        }
    }
}

/// A name, past or present.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    Table(String),
    Field(TableNumber, String),
    Index(String),
}

impl Name {
    /// Returns the name that a command defines, and how.
    pub(super) fn defined_by(command: &Command) -> Option<(Self, &'static str)> {
        Some(match command {
            Command::CreateTable { name } => (Self::Table(name.clone()), "created"),
            Command::RenameTable { name, .. } => (Self::Table(name.clone()), "named so"),
            Command::AddField { table, name, .. } => (Self::Field(*table, name.clone()), "added"),
            Command::RenameField { table, name, .. } => {
                (Self::Field(*table, name.clone()), "named so")
            }
            Command::CreateIndex { name, .. } => (Self::Index(name.clone()), "created"),
            _ => return None,
        })
    }

    /// Returns what has the name.
    pub(super) const fn what(&self) -> &'static str {
        match self {
            Self::Table(_) => "table",
            Self::Field(..) => "field",
            Self::Index(_) => "index",
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Table(text) | Self::Field(_, text) | Self::Index(text) => text,
        }
    }

    /// Returns another name for a thing of the same kind.
    fn other(&self, text: &str) -> Self {
        match self {
            Self::Table(_) => Self::Table(text.to_owned()),
            Self::Field(table, _) => Self::Field(*table, text.to_owned()),
            Self::Index(_) => Self::Index(text.to_owned()),
        }
    }
}

/// What a command did to a name.
#[derive(Clone, Debug)]
enum Event {
    /// It came into use; the word says how.
    Defined(&'static str),
    Renamed(String),
    Dropped,
    /// An index went with its table.
    WithTable(String),
}

#[derive(Clone, Debug)]
struct Fate {
    event: Event,
    place: Option<Place>,
}

/// The last event of each name.
#[derive(Clone, Debug, Default)]
pub(super) struct Fates {
    fates: HashMap<Name, Fate>,
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
        let mut set = |name, event| {
            self.fates.insert(name, Fate { event, place: place.cloned() });
        };
        let field_name = |table, field| {
            let field = schema.table(table).and_then(|table| table.field(field));
            field.map(|field| Name::Field(table, field.name.clone()))
        };
        match command {
            Command::DropTable { table } => {
                let Some(table) = schema.table(*table) else { return };
                for index in schema.indexes_of(table) {
                    set(Name::Index(index.name.clone()), Event::WithTable(table.name.clone()));
                }
                set(Name::Table(table.name.clone()), Event::Dropped);
            }
            Command::RenameTable { table, name } => {
                let Some(table) = schema.table(*table) else { return };
                set(Name::Table(table.name.clone()), Event::Renamed(name.clone()));
            }
            Command::DropField { table, field } => {
                let Some(name) = field_name(*table, *field) else { return };
                set(name, Event::Dropped);
            }
            Command::RenameField { table, field, name } => {
                let Some(old) = field_name(*table, *field) else { return };
                set(old, Event::Renamed(name.clone()));
            }
            Command::DropIndex { index } => {
                let Some(index) = schema.index(*index) else { return };
                set(Name::Index(index.name.clone()), Event::Dropped);
            }
            _ => {}
        }
        if let Some((name, how)) = Name::defined_by(command) {
            set(name, Event::Defined(how));
        }
    }

    /// Describes what has a name, if its line is known; `file` is that of the line that wants the name too.
    pub(super) fn user(&self, name: &Name, file: &str) -> Option<String> {
        match self.fates.get(name)? {
            Fate { event: Event::Defined(how), place: Some(place) } => {
                Some(format!("the {} {how} {}", name.what(), place.seen_from(file)))
            }
            _ => None,
        }
    }

    /// Describes the fate of a missing name and of its later names; `file` is that of the line that names it.
    pub(super) fn story(&self, name: &Name, file: &str) -> Option<String> {
        const LONGEST: usize = 5;
        let mut text = String::new();
        let mut name = name.clone();
        for _ in 0..LONGEST {
            let Some(Fate { event, place }) = self.fates.get(&name) else { break };
            let subject = match text.is_empty() {
                true => format!("{} `{}`", name.what(), name.text()),
                false => ", which".to_owned(),
            };
            let place = place.as_ref().map(|place| format!(" {}", place.seen_from(file)));
            let place = place.unwrap_or_default();
            match event {
                Event::Defined(_) => break,
                Event::Renamed(new) => {
                    text += &format!("{subject} was renamed to `{new}`{place}");
                    name = name.other(new);
                    continue;
                }
                Event::Dropped => text += &format!("{subject} was dropped{place}"),
                Event::WithTable(table) => {
                    text += &format!("{subject} went with table `{table}`{place}");
                }
            }
            break;
        }
        (!text.is_empty()).then_some(text)
    }
}
