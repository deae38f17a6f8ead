//! `annals schema`: the schema of a file, and how it differs from a program's.

use std::path::PathBuf;

use annals::{Command, Field, Result, Schema, Table, View};
use annals_schema::{Plan, Relation, compare};
use clap::{Args, Subcommand};

use crate::output::{Output, count};
use crate::{Outcome, commands, language, progress};

/// Print the schema of a database, or compare it with a program's
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals schema diff people.annals people.schema")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Show(Show),
    Diff(Diff),
}

/// Print the schema
///
/// Prints the commands that built it, one per line, each with the names that were valid at that point.
/// `annals compile` accepts this output. A program with this schema opens the file without an upgrade.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals schema show people.annals > people.schema
  annals schema show people.annals --tables")]
struct Show {
    /// The database
    file: PathBuf,
    /// Print the present tables, fields and indexes, with row counts
    #[arg(long)]
    tables: bool,
}

/// Compare the schema of a database with a program's
///
/// Prints what a program with that schema does to the file when it opens it: the steps of the upgrade,
/// one a line, with what each does after it. Nothing is changed.
///
/// Exit status: 0 if there is nothing to do, 1 after an error, 3 if the schemas differ and the file can be upgraded,
/// 4 if it can't.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals schema diff people.annals people.schema
  annals schema diff people.annals people.joedbi people.joedbc")]
struct Diff {
    /// The database
    file: PathBuf,
    /// The schema file of the program, or several, read in this order
    #[arg(required = true, value_name = "SCHEMA")]
    schemas: Vec<PathBuf>,
}

impl Arguments {
    /// True if nothing is compared.
    pub(crate) const fn only_shows(&self) -> bool {
        matches!(self.command, What::Show(_))
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.command {
        What::Show(arguments) => show(arguments),
        What::Diff(arguments) => diff(arguments),
    }
}

fn show(arguments: &Show) -> Result<Outcome> {
    let reader = commands::open_to_read(&progress::options(), &arguments.file);
    let snapshot = reader.map_err(|error| language::or_a_schema(&arguments.file, error))?.read();
    let mut output = Output::new();
    if arguments.tables {
        show_tables(&snapshot, &mut output)?;
    } else {
        output.write(&snapshot.schema().to_text())?;
    }
    output.flush()?;
    Ok(Outcome::Done)
}

fn show_tables(view: &View, output: &mut Output) -> Result<()> {
    let schema = view.schema();
    for (place, table) in schema.tables().iter().enumerate() {
        if place > 0 {
            output.line("")?;
        }
        let single = if table.single_row { ", always one" } else { "" };
        let left_out = if table.history_index { "" } else { ", no history index" };
        let rows = count(view.table(table.number)?.len(), "row");
        output.line(&format!("{} ({rows}{single}{left_out})", table.name))?;
        let names = table.fields.iter().map(|field| field.name.chars().count());
        let width = names.max().unwrap_or(0);
        for field in &table.fields {
            let ty = type_text(schema, table, field);
            output.line(&format!("  {:width$}  {ty}", field.name))?;
        }
        for index in schema.indexes().iter().filter(|index| index.table == table.number) {
            let column = |(field, word)| Some(format!("{}{word}", table.field(field)?.name));
            let names: Vec<_> = index.columns().filter_map(column).collect();
            let unique = if index.unique { "unique " } else { "" };
            output.line(&format!("  {unique}index {} on {}", index.name, names.join(", ")))?;
        }
    }
    Ok(())
}

/// Returns the words after a field's name when it is added.
fn type_text(schema: &Schema, table: &Table, field: &Field) -> String {
    let Field { name, ty, nullable, default, .. } = field.clone();
    let adding = Command::AddField { table: table.number, name, ty, nullable, default };
    let text = schema.command_text(&adding);
    text.splitn(4, ' ').last().unwrap_or_default().to_owned()
}

fn diff(arguments: &Diff) -> Result<Outcome> {
    let program = language::read_schemas(&arguments.schemas)?.schema;
    let reader = commands::open_to_read(&progress::options(), &arguments.file);
    let snapshot = reader.map_err(|error| language::or_a_schema(&arguments.file, error))?.read();
    let mut output = Output::new();
    let outcome = match compare(snapshot.schema(), &program) {
        Relation::Same => Outcome::Done,
        Relation::Upgrade(plan) => {
            output.line(&plan.to_string())?;
            summarize(&plan, &snapshot, &mut output)?;
            Outcome::Upgradable
        }
        Relation::Newer(newer) => {
            output.line("the file has a newer schema; the program doesn't know")?;
            for line in &newer.lines {
                output.line(&format!("  {line}"))?;
            }
            if newer.missing.is_empty() {
                output.line("it can open the file read-only")?;
            } else {
                output.line("it can't open the file, because it needs")?;
                for what in &newer.missing {
                    output.line(&format!("  {what}"))?;
                }
            }
            Outcome::Incompatible
        }
        Relation::Different(difference) => {
            output.line(&difference.to_string())?;
            output.line(
                "leave the lines that the file has as they are, and write changes below them",
            )?;
            Outcome::Incompatible
        }
    };
    output.flush()?;
    Ok(outcome)
}

/// Prints a summary below a plan.
fn summarize(plan: &Plan, view: &View, output: &mut Output) -> Result<()> {
    let steps = count(plan.steps().len(), "step");
    let functions = match plan.customs() {
        0 => String::new(),
        customs => format!(", with {} of the program", count(customs, "custom function")),
    };
    output.line(&format!("{steps} in one transaction{functions}"))?;
    for step in plan.steps() {
        let Command::DropTable { table } = step.command else { continue };
        // A table of the plan itself has no rows yet.
        let Some(name) = view.schema().table(table).map(|table| &table.name) else { continue };
        let rows = count(view.table(table)?.len(), "row");
        output.line(&format!("{rows} of `{name}` will be in the history only"))?;
    }
    Ok(())
}
