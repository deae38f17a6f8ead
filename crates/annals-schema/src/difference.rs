//! How a file's schema differs from a program's.

use std::fmt;

use crate::{Command, Schema};

/// The first difference of two schemas, as lines of the schema language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which command of tables and fields it is, counted from 1; `None` for an index.
    pub place: Option<usize>,
    /// What the file has there; `None`: nothing.
    pub file: Option<String>,
    /// What the program has there; `None`: nothing.
    pub program: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, nothing) = match self.place {
            Some(place) => (format!("command {place} of tables and fields"), "nothing more"),
            None => ("an index".to_owned(), "no such index"),
        };
        let file = self.file.as_deref().unwrap_or(nothing);
        let program = self.program.as_deref().unwrap_or(nothing);
        write!(
            f,
            "the schemas differ in {subject}\nthe file has:    {file}\nthe program has: {program}"
        )
    }
}

/// Compares the schema of a file with that of a program: the commands of tables and fields in
/// order, the indexes as a set.
#[must_use]
pub fn first_difference(file: &Schema, program: &Schema) -> Option<Difference> {
    let (in_file, in_program) = (lines(file, false), lines(program, false));
    let count = in_file.len().max(in_program.len());
    let differs = (0..count).find(|&place| in_file.get(place) != in_program.get(place));
    if let Some(place) = differs {
        return Some(Difference {
            place: Some(place + 1),
            file: in_file.get(place).cloned(),
            program: in_program.get(place).cloned(),
        });
    }
    let (in_file, in_program) = (lines(file, true), lines(program, true));
    if let Some(line) = in_program.iter().find(|line| !in_file.contains(line)) {
        let file = same_name(&in_file, line);
        return Some(Difference { place: None, file, program: Some(line.clone()) });
    }
    let line = in_file.into_iter().find(|line| !in_program.contains(line))?;
    Some(Difference { place: None, file: Some(line), program: None })
}

/// Finds the line that makes an index of the same name.
fn same_name(lines: &[String], line: &str) -> Option<String> {
    let name = line.split(' ').nth(1);
    lines.iter().find(|other| other.split(' ').nth(1) == name).cloned()
}

fn lines(schema: &Schema, indexes: bool) -> Vec<String> {
    let lines = schema.commands().iter().zip(schema.lines());
    let of_kind = |(command, _): &(&Command, String)| command.is_ordered() != indexes;
    lines.filter(of_kind).map(|(_, line)| line).collect()
}
