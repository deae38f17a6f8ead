//! What schemas have whatever the order of their commands: indexes, and rules of tables.
//!
//! Nothing is dropped but by a command. So two schemas that differ in such an item are compared by how often their
//! commands made and dropped it: each time makes the item a step older, and the schema with the older item is newer.
//!
//! | commands | age of the item |
//! |---|---|
//! | none | 0 |
//! | `create_index i ..` | 1 |
//! | and `drop_index i` | 2 |
//! | and `create_index i ..` again | 3 |

use crate::{Command, Index, Schema, TableNumber};

/// Something that a schema has or hasn't.
#[derive(Debug)]
pub(crate) enum Item<'s> {
    /// An index, whatever the version of its collations.
    Index(&'s Index),
    /// The table has one row.
    SingleRow(TableNumber),
    /// The history index leaves the table out.
    NoHistoryIndex(TableNumber),
}

impl<'s> Item<'s> {
    /// Returns the items that one of two schemas has and the other hasn't: those of `a`, then those of `b`.
    pub(crate) fn differing(a: &'s Schema, b: &'s Schema) -> impl Iterator<Item = Self> {
        let of_a = Self::all(a).filter(|item| !item.is_in(b));
        of_a.chain(Self::all(b).filter(|item| !item.is_in(a)))
    }

    fn all(schema: &'s Schema) -> impl Iterator<Item = Self> {
        Self::rules(schema).chain(schema.indexes().iter().map(|index| Self::Index(index)))
    }

    /// Returns the rules of a schema's tables.
    pub(crate) fn rules(schema: &Schema) -> impl Iterator<Item = Self> {
        let tables = || schema.tables().iter();
        let single = tables().filter(|table| table.single_row);
        let left_out = tables().filter(|table| !table.history_index);
        let single = single.map(|table| Self::SingleRow(table.number));
        single.chain(left_out.map(|table| Self::NoHistoryIndex(table.number)))
    }

    /// Returns the table that it is of.
    pub(crate) const fn table(&self) -> TableNumber {
        match self {
            Self::Index(index) => index.table,
            Self::SingleRow(table) | Self::NoHistoryIndex(table) => *table,
        }
    }

    /// True if a schema has it.
    pub(crate) fn is_in(&self, schema: &Schema) -> bool {
        match self {
            Self::Index(index) => {
                let definition = |index: &Index| unversioned(index.creating());
                let other = schema.index_named(&index.name);
                other.is_some_and(|other| definition(other) == definition(index))
            }
            Self::SingleRow(table) => schema.table(*table).is_some_and(|table| table.single_row),
            Self::NoHistoryIndex(table) => {
                schema.table(*table).is_some_and(|table| !table.history_index)
            }
        }
    }

    /// True if a schema had what it is of, and dropped that.
    fn has_lost_its_place_in(&self, schema: &Schema) -> bool {
        let Some(table) = schema.table(self.table()) else {
            return self.table().0 < schema.next_table;
        };
        let Self::Index(index) = self else { return false };
        index.fields.iter().any(|field| field.0 < table.next_field && table.field(*field).is_none())
    }

    /// Returns how often the commands of a schema made it and dropped it again.
    pub(crate) fn drops(&self, schema: &Schema) -> usize {
        match self {
            Self::Index(index) => made(schema, index) - usize::from(self.is_in(schema)),
            Self::SingleRow(table) => {
                count(schema, &Command::SetSingleRow { table: *table, single: false })
            }
            Self::NoHistoryIndex(table) => {
                count(schema, &Command::SetHistoryIndex { table: *table, indexed: true })
            }
        }
    }

    /// Returns its age in a schema.
    fn age(&self, schema: &Schema) -> usize {
        2 * self.drops(schema) + usize::from(self.is_in(schema))
    }

    /// True if a file's commands say more of an item than a program's. The two differ in it.
    pub(crate) fn is_newer_in(&self, file: &Schema, program: &Schema) -> bool {
        // A table is dropped with its indexes; a field isn't.
        let is_dropped_with_its_table =
            self.table().0 < program.next_table && program.table(self.table()).is_none();
        match self.is_in(file) {
            true => !is_dropped_with_its_table && self.age(file) > self.age(program),
            false => self.has_lost_its_place_in(file) || self.age(file) > self.age(program),
        }
    }

    /// Returns the command that makes it, or drops it, as a line; `schema` has the names.
    pub(crate) fn line(&self, schema: &Schema, makes: bool) -> String {
        match self {
            Self::Index(index) if makes => schema.command_text(&index.creating()),
            Self::Index(index) => format!("drop_index {}", index.name),
            rule => schema.command_text(&rule.setting(makes)),
        }
    }

    /// Describes it as something that a program needs and a file doesn't have, with the line that dropped it. `None`:
    /// no program needs it.
    pub(crate) fn needed_as(&self, program: &Schema, file: &Schema) -> Option<String> {
        let by = match self.drops(file) {
            0 => String::new(),
            _ => format!(" (by `{}`)", self.line(file, false)),
        };
        match self {
            Self::Index(_) => Some(format!("index `{}`{by}", self.line(program, true))),
            Self::SingleRow(table) => {
                Some(format!("the single row of table `{}`{by}", program.table(*table)?.name))
            }
            Self::NoHistoryIndex(_) => None,
        }
    }

    /// Returns the command that makes a rule or ends it.
    pub(crate) fn setting(&self, makes: bool) -> Command {
        match self {
            Self::Index(index) => index.creating(),
            Self::SingleRow(table) => Command::SetSingleRow { table: *table, single: makes },
            Self::NoHistoryIndex(table) => {
                Command::SetHistoryIndex { table: *table, indexed: !makes }
            }
        }
    }
}

fn count(schema: &Schema, command: &Command) -> usize {
    schema.commands().iter().filter(|other| *other == command).count()
}

/// Returns how often the commands of a schema made an index. One that was only sorted again, in another version of its
/// collation, is the same.
fn made(schema: &Schema, index: &Index) -> usize {
    let (wanted, mut last) = (unversioned(index.creating()), None);
    let is_wanted = |command: &&Command| {
        matches!(command, Command::CreateIndex { name, .. } if *name == index.name)
            && unversioned((*command).clone()) == wanted
    };
    let created = schema.commands().iter().filter(is_wanted);
    created.filter(|command| last.replace(*command).is_none_or(|last| last == *command)).count()
}

/// Returns a command without the versions of collations.
fn unversioned(mut command: Command) -> Command {
    if let Command::CreateIndex { collated, .. } = &mut command {
        collated.iter_mut().for_each(|of_field| of_field.version.clear());
    }
    command
}
