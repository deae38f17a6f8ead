//! Comparison of a file's schema with a program's.

use std::fmt;

use crate::plan::same_index;
use crate::unordered::Item;
use crate::{Command, Index, Plan, Schema};

/// The relation of a file's schema to that of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// They are the same.
    Same,
    /// The file's becomes the program's by these steps.
    Upgrade(Plan),
    /// The file's has more than the program's: a command after its end, an index, or a rule of a table.
    Newer(Newer),
    /// They went different ways: their commands of tables and fields differ before the end of both.
    Different(Difference),
}

/// What a file's schema has, and an older program doesn't know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// The file's commands that the program doesn't know, as lines: those of tables and fields in their order, then
    /// those of rules and indexes.
    pub lines: Vec<String>,
    /// The program's items that the file doesn't have: a phrase each. If there is none, the program can read the file.
    pub missing: Vec<String>,
}

/// The first difference of two schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// This command of tables and fields, `custom` among them, counted from 1.
    Command(usize),
    /// An index.
    Index,
    /// Sets whether a table has just one row.
    SingleRow,
    /// Sets whether the history index has a table.
    HistoryIndex,
}

/// The first difference of two schemas, as lines of the schema language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The differing property.
    pub subject: Subject,
    /// The file's line there; `None`: nothing.
    pub file: Option<String>,
    /// The program's line there; `None`: nothing.
    pub program: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, nothing) = match self.subject {
            Subject::Command(place) => {
                (format!("command {place} of tables and fields"), "nothing more")
            }
            Subject::Index => ("an index".to_owned(), "no such index"),
            Subject::SingleRow => ("a single row".to_owned(), "nothing of it"),
            Subject::HistoryIndex => ("the history index".to_owned(), "nothing of it"),
        };
        let file = self.file.as_deref().unwrap_or(nothing);
        let program = self.program.as_deref().unwrap_or(nothing);
        write!(
            f,
            "the schemas differ in {subject}\nthe file has:    {file}\nthe program has: {program}"
        )
    }
}

/// Compares the schema of a file with that of a program: the commands of tables and fields, and the
/// custom ones, in order; indexes, by name and definition, and the rules of tables as a set. Nothing is dropped but by a
/// command of the program: an index or a rule that the program's commands don't know makes the file newer.
///
/// ```
/// use annals_schema::{Relation, compare, parse};
///
/// let file = parse("create_table city").unwrap().schema;
/// let program = parse("create_table city\nadd_field city name string").unwrap().schema;
/// let Relation::Upgrade(plan) = compare(&file, &program) else { panic!() };
/// assert_eq!(plan.steps()[0].text, "add_field city name string");
/// assert!(matches!(compare(&program, &file), Relation::Newer(_)));
/// ```
#[must_use]
pub fn compare(file: &Schema, program: &Schema) -> Relation {
    let (in_file, in_program) = (ordered(file), ordered(program));
    let shared = shared(&in_file, &in_program);
    let more = in_file.get(shared..).unwrap_or_default();
    let rest = in_program.get(shared..).unwrap_or_default();
    if !more.is_empty() && !rest.is_empty() {
        return Relation::Different(difference_at(file, program, shared));
    }
    let items: Vec<_> = Item::differing(file, program).collect();
    let (newer, older): (Vec<_>, Vec<_>) =
        items.iter().partition(|item| item.is_newer_in(file, program));
    if more.is_empty() && newer.is_empty() {
        let plan = Plan::new(file, program, rest);
        return if plan.steps().is_empty() { Relation::Same } else { Relation::Upgrade(plan) };
    }
    let mut lines = ordered_lines(file);
    lines.drain(..lines.len() - more.len());
    let is_there = |item: &&&Item<'_>| file.table(item.table()).is_some();
    lines.extend(newer.iter().filter(is_there).map(|item| item.line(file, item.is_in(file))));
    let mut missing = missing(file, program);
    missing.extend(ordered_lines(program).into_iter().skip(shared).map(|line| format!("`{line}`")));
    let lacking = older.iter().chain(&newer).filter(|item| item.is_in(program) && is_there(item));
    missing.extend(lacking.filter_map(|item| item.needed_as(program, file)));
    Relation::Newer(Newer { lines, missing })
}

/// Finds the first difference of a file's schema from a program's; an upgrade, too, is one.
#[must_use]
pub fn first_difference(file: &Schema, program: &Schema) -> Option<Difference> {
    let (in_file, in_program) = (ordered(file), ordered(program));
    let shared = shared(&in_file, &in_program);
    if shared < in_file.len().max(in_program.len()) {
        return Some(difference_at(file, program, shared));
    }
    let added = program.indexes().iter().find(|index| same_index(file, index).is_none());
    if let Some(index) = added {
        let there = file.index_named(&index.name).map(|index| index_line(file, index));
        let here = Some(index_line(program, index));
        return Some(Difference { subject: Subject::Index, file: there, program: here });
    }
    let dropped = file.indexes().iter().find(|index| same_index(program, index).is_none());
    if let Some(index) = dropped {
        let there = Some(index_line(file, index));
        return Some(Difference { subject: Subject::Index, file: there, program: None });
    }
    let pairs = || file.tables().iter().zip(program.tables());
    if let Some((there, here)) = pairs().find(|(a, b)| a.single_row != b.single_row) {
        let line = |single| {
            Some(program.command_text(&Command::SetSingleRow { table: here.number, single }))
        };
        let (file, program) = (line(there.single_row), line(here.single_row));
        return Some(Difference { subject: Subject::SingleRow, file, program });
    }
    let (there, here) = pairs().find(|(a, b)| a.history_index != b.history_index)?;
    let line = |indexed| {
        Some(program.command_text(&Command::SetHistoryIndex { table: here.number, indexed }))
    };
    let (file, program) = (line(there.history_index), line(here.history_index));
    Some(Difference { subject: Subject::HistoryIndex, file, program })
}

/// Returns the commands that are compared in their places.
fn ordered(schema: &Schema) -> Vec<&Command> {
    schema.commands().iter().filter(|command| command.is_ordered()).collect()
}

fn ordered_lines(schema: &Schema) -> Vec<String> {
    let lines = schema.commands().iter().zip(schema.lines());
    lines.filter(|(command, _)| command.is_ordered()).map(|(_, line)| line).collect()
}

/// Counts the commands at the beginning that are the same.
fn shared(file: &[&Command], program: &[&Command]) -> usize {
    file.iter().zip(program).take_while(|(file, program)| is_same(file, program)).count()
}

/// True if a command of the file corresponds to one of the program. A field without default corresponds to one with:
/// the file has the values of existing rows, and the program's default is for new rows. (joedb's files hold no
/// defaults.)
fn is_same(file: &Command, program: &Command) -> bool {
    let Command::AddField { default: None, .. } = file else { return file == program };
    let mut program = program.clone();
    if let Command::AddField { default, .. } = &mut program {
        *default = None;
    }
    *file == program
}

fn difference_at(file: &Schema, program: &Schema, place: usize) -> Difference {
    Difference {
        subject: Subject::Command(place + 1),
        file: ordered_lines(file).into_iter().nth(place),
        program: ordered_lines(program).into_iter().nth(place),
    }
}

fn index_line(schema: &Schema, index: &Index) -> String {
    schema.command_text(&index.creating())
}

/// Describes the tables and fields of a program that a file with a newer schema doesn't have any more.
fn missing(file: &Schema, program: &Schema) -> Vec<String> {
    let mut missing = Vec::new();
    for table in program.tables().iter().filter(|table| table.number.0 < file.next_table) {
        let Some(there) = file.table(table.number) else {
            let dropping = Command::DropTable { table: table.number };
            missing.push(format!("table `{}`{}", table.name, by_line(file, &dropping)));
            continue;
        };
        let known = table.fields.iter().filter(|field| field.number.0 < there.next_field);
        for field in known.filter(|field| there.field(field.number).is_none()) {
            let dropping = Command::DropField { table: table.number, field: field.number };
            let name = format!("field `{}` of table `{}`", field.name, table.name);
            missing.push(name + &by_line(file, &dropping));
        }
    }
    missing
}

/// Names the line of a schema with a command, for the end of a phrase.
fn by_line(schema: &Schema, command: &Command) -> String {
    let place = schema.commands().iter().position(|other| other == command);
    let line = place.and_then(|place| schema.lines().into_iter().nth(place));
    line.map(|line| format!(" (by `{line}`)")).unwrap_or_default()
}
