//! Upgrading the schema of a file to that of a program.
//!
//! Invariants
//! 1. An upgrade is one transaction at [`Level::Checksummed`]: after a crash at any point the file
//!    has the old schema or the new one, and rows to match.
//! 2. A step or a custom function that fails, or panics, leaves the file unchanged.
//! 3. A custom function changes rows, never the schema.

use std::sync::Arc;

use annals_schema::{Command, Difference, Newer, Plan, Relation, Schema, Step, compare};

use crate::db::write::database::Database;
use crate::db::write::transaction::Transaction;
use crate::journal::Level;
use crate::store::collation::{ONLY_READ, version};
use crate::{Error, ErrorKind, Result};

/// A `custom NAME` in an upgrade: the program's function of that name has to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Custom<'a> {
    /// Its name, which may be there twice.
    pub name: &'a str,
    /// Its place among all custom commands of the program's schema, counted from 0.
    pub number: usize,
}

/// Runs the custom functions of an upgrade, with its transaction. The schema is then as of that line, but without new
/// indexes and single rows: these are made at the end.
pub type Customs<'f> = dyn FnMut(Custom<'_>, &mut Transaction<'_>) -> Result<()> + 'f;

/// Takes one step of an upgrade.
fn take(step: &Step, tx: &mut Transaction<'_>, customs: &mut Customs<'_>) -> Result<()> {
    let within = |error: Error| error.within(format_args!("upgrading the schema: `{}`", step.text));
    tx.apply_command(&step.command).map_err(within)?;
    if let (Some(number), Command::Custom { name }) = (step.custom, &step.command) {
        let before = tx.view().schema().commands().len();
        customs(Custom { name, number }, tx).map_err(within)?;
        if tx.view().schema().commands().len() != before {
            return Err(within(Error::invalid(
                "the function changed the schema; write that as commands of the schema instead",
            )));
        }
    }
    Ok(())
}

/// Refuses the custom functions that a schema may have.
pub(in crate::db) fn none(custom: Custom<'_>, _: &mut Transaction<'_>) -> Result<()> {
    Err(Error::invalid(format!(
        "the program gave no custom function `{}`; pass the functions when opening it",
        custom.name
    )))
}

/// Checks that a program can read a file: it has all that the program has.
pub fn check_readable(found: &Schema, schema: &Schema) -> Result<()> {
    let message = match compare(found, schema) {
        Relation::Same => return Ok(()),
        Relation::Newer(newer) if newer.missing.is_empty() => return Ok(()),
        Relation::Upgrade(plan) if plan.adds_nothing() => return Ok(()),
        Relation::Newer(newer) => too_new(&newer),
        Relation::Upgrade(plan) => too_old(&plan),
        Relation::Different(difference) => advised(&difference),
    };
    Err(Error::new(ErrorKind::SchemaMismatch, message))
}

/// Shows where two schemas diverge, and says what to do.
fn advised(difference: &Difference) -> String {
    format!(
        "{difference}\nleave the lines that the file has as they are, and write changes below them"
    )
}

fn too_new(newer: &Newer) -> String {
    let lines: Vec<_> = newer.lines.iter().map(|line| format!("`{line}`")).collect();
    let what = some_of(&lines);
    let (lacks, advice) = match newer.missing.is_empty() {
        true => (String::new(), "open it read-only, or use a newer program"),
        false => {
            let missing = some_of(&newer.missing);
            (format!(", and lacks what the program needs: {missing}"), "use a newer program")
        }
    };
    format!(
        "the file has a newer schema than the program, which doesn't know {what}{lacks}; {advice}"
    )
}

/// Lists phrases: the first few, and how many more there are.
fn some_of(phrases: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = phrases.get(..SHOWN).unwrap_or(phrases).join(", ");
    match phrases.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn too_old(plan: &Plan) -> String {
    let next = plan.steps().first().map_or("", |step| &step.text);
    format!(
        "the file has an older schema than the program, without `{next}`{}; open it for writing \
         once, which upgrades it, or with `Options::upgrade_in_memory`",
        and_more(plan.steps().len())
    )
}

/// Returns a note of how many lines there are besides the shown one.
fn and_more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => " and 1 more line".to_owned(),
        _ => format!(" and {} more lines", count - 1),
    }
}

/// Sorts indexes again whose collations have another version in the file.
pub(in crate::db) fn sort_again(db: &Database) -> Result<()> {
    let now = db.read();
    if now.unavailable_indexes().next().is_none() || db.unapplied().is_some() {
        return Ok(());
    }
    upgrade(db, &Arc::clone(now.schema()), &mut none)
}

/// Does what [`Database::upgrade`] does.
pub(in crate::db) fn upgrade(
    db: &Database,
    schema: &Schema,
    customs: &mut Customs<'_>,
) -> Result<()> {
    let here = schema.with_collations(|index, collated| version(&index.name, collated));
    let schema = &here.map_err(|error| error.within(ONLY_READ))?;
    if compare(db.read().schema(), schema) == Relation::Same {
        return Ok(());
    }
    // Compared again, now that no other thread can upgrade.
    let mut tx = db.begin()?;
    upgrade_in(&mut tx, schema, customs)?;
    // Another thread's upgrade may be on its way: the commit waits for that.
    tx.commit().map(drop).map_err(|error| error.within("upgrading the schema"))
}

/// Takes the steps from the schema that a transaction sees to a program's; none if they are the same.
pub(in crate::db) fn upgrade_in(
    tx: &mut Transaction<'_>,
    schema: &Schema,
    customs: &mut Customs<'_>,
) -> Result<()> {
    let plan = match compare(tx.view().schema(), schema) {
        Relation::Same => return Ok(()),
        Relation::Upgrade(plan) => plan,
        Relation::Newer(newer) => {
            return Err(Error::new(ErrorKind::SchemaMismatch, too_new(&newer)));
        }
        Relation::Different(difference) => {
            return Err(Error::new(ErrorKind::SchemaMismatch, advised(&difference)));
        }
    };
    for step in plan.steps() {
        take(step, tx, customs)?;
    }
    // Not before: a custom function may have set another.
    tx.set_level(Level::Checksummed);
    Ok(())
}
