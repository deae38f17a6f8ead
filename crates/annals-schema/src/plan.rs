//! Upgrading the schema of a file to that of a program: the steps, and their effect on rows.

use std::fmt::{self, Write};

use crate::difference::same_index;
use crate::{Command, Schema, Uuid, Value, shorten, write_value};

/// The steps that upgrade the schema of a file to that of a program, in order: dropped indexes and single rows, then
/// changes of tables and fields with the custom functions between, then new single rows, then the tables of the history index,
/// then new indexes.
///
/// So a custom function can repair rows that would violate a new unique index or a single row. Old ones don't hinder
/// it, and no field is dropped with an index on it. The text of a plan is in the schema language, with the effect of
/// each line after it as a comment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    steps: Vec<Step>,
}

/// One step of a [`Plan`].
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The command to apply.
    pub command: Command,
    /// Its text, with the names that things have when it is applied.
    pub text: String,
    /// If it is a custom command, its place among all of the program's, counted from 0.
    pub custom: Option<usize>,
}

impl Plan {
    /// Plans the way of a schema to another one, which has `missing` after the ordered commands
    /// that both have.
    pub(crate) fn new(file: &Schema, program: &Schema, missing: &[&Command]) -> Self {
        let mut draft = Draft { schema: file.clone(), steps: Vec::new() };
        for index in file.indexes() {
            if same_index(program, index).is_none() {
                draft.push(Command::DropIndex { index: index.number }, None);
            }
        }
        draft.set_single_rows(program, false);
        let is_custom = |command: &&Command| matches!(command, Command::Custom { .. });
        let customs = program.commands().iter().filter(is_custom).count();
        let mut next = customs - missing.iter().copied().filter(is_custom).count();
        for &command in missing {
            let custom = is_custom(&command).then_some(next);
            next += usize::from(custom.is_some());
            draft.push(command.clone(), custom);
        }
        draft.set_single_rows(program, true);
        draft.set_history_indexes(program);
        for index in program.indexes() {
            if same_index(&draft.schema, index).is_none() {
                draft.push(index.creating(), None);
            }
        }
        Self { steps: draft.steps }
    }

    /// Returns the steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Counts the custom functions that run.
    #[must_use]
    pub fn customs(&self) -> usize {
        self.steps.iter().filter(|step| step.custom.is_some()).count()
    }

    /// True if the file has all that the program has already: only indexes and single rows go, or
    /// the history index has other tables.
    #[must_use]
    pub fn adds_nothing(&self) -> bool {
        self.steps.iter().all(|step| {
            matches!(
                step.command,
                Command::DropIndex { .. }
                    | Command::SetSingleRow { single: false, .. }
                    | Command::SetHistoryIndex { .. }
            )
        })
    }
}

/// The schema as it becomes, and the steps up to there.
struct Draft {
    schema: Schema,
    steps: Vec<Step>,
}

impl Draft {
    /// Returns commands that turn existing tables into tables of a single row or back, as in the program.
    fn set_single_rows(&mut self, program: &Schema, single: bool) {
        for table in program.tables().iter().filter(|table| table.single_row == single) {
            let now = self.schema.table(table.number);
            if now.is_some_and(|now| now.single_row != single) {
                self.push(Command::SetSingleRow { table: table.number, single }, None);
            }
        }
    }

    /// Makes the history index have the same tables as in the program.
    fn set_history_indexes(&mut self, program: &Schema) {
        for table in program.tables() {
            let (now, indexed) = (self.schema.table(table.number), table.history_index);
            if now.is_some_and(|now| now.history_index != indexed) {
                self.push(Command::SetHistoryIndex { table: table.number, indexed }, None);
            }
        }
    }

    fn push(&mut self, command: Command, custom: Option<usize>) {
        let text = self.schema.command_text(&command);
        // The program has applied the ordered commands to the same tables, so the remaining indexes are its own,
        // which permit that.
        self.schema.apply(command.clone()).expect("the program's schema is one");
        self.steps.push(Step { command, text, custom });
    }
}

impl Step {
    /// Describes the effect of the step on existing data.
    #[must_use]
    pub fn effect(&self) -> String {
        match &self.command {
            Command::CreateTable { .. } => "new and empty".to_owned(),
            Command::DropTable { .. } => {
                "its rows are gone from the present, and stay in the history".to_owned()
            }
            Command::DropField { .. } => {
                "its values are gone from the present, and stay in the history".to_owned()
            }
            Command::RenameTable { .. } | Command::RenameField { .. } => {
                "only the name changes".to_owned()
            }
            Command::AddVariant { .. } => "no row has it yet".to_owned(),
            Command::RenameVariant { .. } => "only the name changes".to_owned(),
            Command::DropVariant { .. } => "fails if a row has it".to_owned(),
            Command::AddField { default: Some(Value::Uuid(Uuid::NEW_V7)), nullable, .. } => {
                match nullable {
                    true => "rows that are there read null; new ones get a uuid each".to_owned(),
                    false => "each row gets a uuid; fails if rows are there".to_owned(),
                }
            }
            Command::AddField { default, .. } => {
                let mut text = "rows that are there read ".to_owned();
                match default {
                    Some(value) => {
                        // Writing to a string can't fail.
                        let _infallible = write_value(&mut text, value.as_ref());
                    }
                    None => text += &self.zero(),
                }
                text + "; none is rewritten"
            }
            Command::CreateIndex { unique: false, .. } => "sorts the rows".to_owned(),
            Command::CreateIndex { unique: true, .. } => {
                "sorts the rows; fails if two have the same key".to_owned()
            }
            Command::DropIndex { .. } => "the rows stay".to_owned(),
            Command::SetSingleRow { single: true, .. } => {
                "adds the row if there is none; fails if there are several".to_owned()
            }
            Command::SetSingleRow { single: false, .. } => "the row stays".to_owned(),
            Command::SetHistoryIndex { indexed: true, .. } => {
                "the next backfill reads the whole journal for it".to_owned()
            }
            Command::SetHistoryIndex { indexed: false, .. } => {
                "histories of its rows are found by reading the whole journal".to_owned()
            }
            Command::Custom { .. } => "runs the program's function".to_owned(),
        }
    }

    /// Returns the value of rows in a new field without a default.
    fn zero(&self) -> String {
        match &self.command {
            Command::AddField { ty, nullable, .. } => {
                if *nullable || ty.is_always_nullable() {
                    "null".to_owned()
                } else {
                    shorten(&ty.zero().to_string()).into_owned()
                }
            }
            _ => String::new(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDEST: usize = 56;
        let widths = self.steps.iter().map(|step| step.text.chars().count());
        let width = widths.filter(|&width| width <= WIDEST).max().unwrap_or(0);
        for (place, step) in self.steps.iter().enumerate() {
            if place > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{:width$}  # {}", step.text, step.effect())?;
        }
        Ok(())
    }
}
