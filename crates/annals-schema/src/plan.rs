//! Upgrading the schema of a file to that of a program: the steps, and their effect on rows.

use std::fmt::{self, Write};

use crate::unordered::Item;
use crate::{Collated, Command, Index, Schema, Type, Uuid, Value, shorten, write_value};

/// The steps that upgrade the schema of a file to that of a program, in order: dropped indexes and single rows, then
/// changes of tables and fields with the custom functions between, then new single rows, then the tables of the history index,
/// then new indexes.
///
/// So a custom function can repair rows that would violate a new unique index or a single row. Old ones don't hinder
/// it, and no field is dropped with an index on it. An index or a rule that the program dropped and made again is made
/// as often in the file, so that the file shows its age. A new file without custom functions gets also the indexes that
/// the program has dropped since, for the same reason; its tables are empty. The text of a plan is in the schema
/// language, with the effect of each line after it as a comment.
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
    /// that both have, and whose commands know all that the file has.
    pub(crate) fn new(file: &Schema, program: &Schema, missing: &[&Command]) -> Self {
        let mut draft = Draft { schema: file.clone(), steps: Vec::new() };
        let customs = program.commands().iter().filter(is_custom).count();
        if file.commands().is_empty() && customs == 0 {
            draft.begin(program);
        } else {
            draft.drop_items(program);
            let mut next = customs - missing.iter().copied().filter(is_custom).count();
            for &command in missing {
                let custom = is_custom(&command).then_some(next);
                next += usize::from(custom.is_some());
                draft.push(command.clone(), custom);
            }
        }
        draft.make_items(program);
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

fn is_custom(command: &&Command) -> bool {
    matches!(command, Command::Custom { .. })
}

impl Draft {
    /// Repeats the commands of a program in a new file, except those that make rules: a rule may hinder a later field.
    fn begin(&mut self, program: &Schema) {
        for command in program.commands() {
            let makes_a_rule = matches!(
                command,
                Command::SetSingleRow { single: true, .. }
                    | Command::SetHistoryIndex { indexed: false, .. }
            );
            if !makes_a_rule {
                self.push(command.clone(), None);
            }
        }
    }

    /// Drops the indexes and ends the rules that a program doesn't have any more.
    fn drop_items(&mut self, program: &Schema) {
        let file = self.schema.clone();
        for index in file.indexes().iter().filter(|index| same_index(program, index).is_none()) {
            self.push(Command::DropIndex { index: index.number }, None);
        }
        for rule in Item::rules(&file) {
            if program.table(rule.table()).is_some() && !rule.is_in(program) {
                self.age(&rule, program);
            }
        }
    }

    /// Makes the rules and creates the indexes that only a program has.
    fn make_items(&mut self, program: &Schema) {
        for rule in Item::rules(program) {
            if !rule.is_in(&self.schema) {
                self.age(&rule, program);
                self.push(rule.setting(true), None);
            }
        }
        for index in program.indexes() {
            if same_index(&self.schema, index).is_some() {
                continue;
            }
            let item = Item::Index(index);
            for _ in item.drops(&self.schema)..item.drops(program) {
                self.push(index.creating(), None);
                if let Some(index) = self.schema.index_named(&index.name).map(|made| made.number) {
                    self.push(Command::DropIndex { index }, None);
                }
            }
            self.push(index.creating(), None);
        }
    }

    /// Ends a rule as often as a program did.
    fn age(&mut self, rule: &Item<'_>, program: &Schema) {
        for _ in rule.drops(&self.schema)..rule.drops(program) {
            self.push(rule.setting(false), None);
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
            Command::AddField {
                default: None,
                ty: ty @ Type::Reference(..),
                nullable: false,
                ..
            } if !ty.is_always_nullable() => {
                "a custom function below must set it in rows that are there".to_owned()
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

/// Finds the index of the same name and definition.
pub(crate) fn same_index<'s>(schema: &'s Schema, wanted: &Index) -> Option<&'s Index> {
    schema.index_named(&wanted.name).filter(|found| {
        let definition = |index: &Index| (index.table, index.unique);
        definition(found) == definition(wanted)
            && found.fields == wanted.fields
            && found.descending == wanted.descending
            && same_order(&found.collated, &wanted.collated)
    })
}

/// True if strings have the same order. One without a version, as in a program, is that of any version.
fn same_order(a: &[Collated], b: &[Collated]) -> bool {
    let same = |(a, b): (&Collated, &Collated)| {
        let is_any = a.version.is_empty() || b.version.is_empty();
        (a.field, &a.locale) == (b.field, &b.locale) && (is_any || a.version == b.version)
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}
