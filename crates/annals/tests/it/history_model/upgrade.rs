//! Programs with other schemas: they upgrade the file, or read it, or are refused.

use std::path::PathBuf;

use annals::storage::Directory as _;
use annals::{Command, Custom, Error, ErrorKind, Level, Options, Schema, Transaction};
use annals_schema::{Relation, compare};
use annals_simulated::SimulatedDisk;

use super::NAME;
use super::draw;
use super::language::is_ordered;
use super::look;
use super::model::{Answer, Field, Model};
use super::statements::{Step, agree, unset};
use super::world::{End, World};
use crate::store_model::Random;

fn ordered(model: &Model) -> Vec<&Command> {
    model.commands.iter().filter(|command| is_ordered(command)).collect()
}

fn customs(commands: &[&Command]) -> usize {
    commands.iter().filter(|command| matches!(command, Command::Custom { .. })).count()
}

fn schema(model: &Model) -> Schema {
    let mut schema = Schema::default();
    model.commands.iter().for_each(|command| schema.apply(command.clone()).unwrap());
    schema
}

/// Returns the steps of an upgrade; none if there can be no upgrade. Which they are is tested in annals-schema.
fn plan(file: &Model, program: &Model) -> Option<Vec<Command>> {
    match compare(&schema(file), &schema(program)) {
        Relation::Same => Some(Vec::new()),
        Relation::Upgrade(plan) => {
            Some(plan.steps().iter().map(|step| step.command.clone()).collect())
        }
        _ => None,
    }
}

/// True if a file has all that a program with an older schema needs.
fn is_readable(file: &Model, program: &Model) -> bool {
    match compare(&schema(file), &schema(program)) {
        Relation::Same => true,
        Relation::Newer(newer) => newer.missing.is_empty(),
        _ => false,
    }
}

/// An upgrade as it goes, and what the model says of it.
struct Upgrade<'a> {
    model: Model,
    steps: std::vec::IntoIter<Command>,
    random: &'a mut Random,
    /// How many custom functions the file has had.
    customs: usize,
    /// How it ends if not by itself.
    refused: Answer,
    /// The fields that the rows of a table have still to get.
    unset: Vec<(u32, Field)>,
    /// True if a row lacks such a field, and something else is wrong, too: either may be told.
    has_two_faults: bool,
}

impl Upgrade<'_> {
    /// Takes steps up to the next custom function, or to the end; returns its name.
    fn advance(&mut self) -> Result<Option<String>, ErrorKind> {
        for step in self.steps.by_ref() {
            self.model.command(&step)?;
            self.unset.extend(unset(&self.model, &step));
            if let Command::Custom { name } = step {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Is the program's function of every name.
    fn custom(&mut self, custom: Custom<'_>, tx: &mut Transaction<'_>) -> annals::Result<()> {
        let name = self.advance().expect("no step before it fails");
        assert_eq!((Some(custom.name), custom.number), (name.as_deref(), self.customs));
        self.customs += 1;
        look::transaction(tx, &self.model, self.random);
        if self.random.chance(30) {
            tx.set_level(Level::Soft);
        }
        let mut step = Step { tx, model: &mut self.model, random: self.random, wrote: false };
        for (table, field) in self.unset.drain(..) {
            if step.model.tables.get(&table).is_some_and(|it| it.place(field.number).is_some()) {
                step.fill_field(table, &field);
            }
        }
        for _ in 0..step.random.below(6) {
            step.statement();
        }
        match self.random.below(30) {
            0 => {
                self.refused = Err(ErrorKind::Busy);
                Err(Error::new(ErrorKind::Busy, "the function doesn't want to"))
            }
            1 => {
                self.refused = Err(ErrorKind::Invalid);
                tx.apply_command(&Command::Custom { name: "sneaky".to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Takes the steps that are left, and says how it all ends.
    fn finish(&mut self) -> Answer {
        self.refused?;
        let next = self.advance()?;
        assert_eq!(next, None, "a function that didn't run");
        let is_there = |(table, field): &(u32, Field)| {
            let table = self.model.tables.get(table);
            table.is_some_and(|it| it.place(field.number).is_some() && !it.rows.is_empty())
        };
        let verdict = self.model.verdict();
        if self.unset.iter().any(is_there) {
            self.has_two_faults = verdict.is_err();
            return verdict.and(Err(ErrorKind::Invalid));
        }
        verdict
    }
}

impl World {
    /// Draws the schema of a program: mostly the present one with something added.
    fn program(&mut self) -> Model {
        let base = match self.random.below(10) {
            0..3 => self.random.pick(&self.schemas),
            _ => &self.committed,
        };
        let mut program = Model::clone(base);
        program.blobs.clear();
        if !self.random.chance(25) {
            for _ in 0..self.random.below(8) {
                let command = draw::command(&mut self.random, &program);
                if program.fits(&command).is_ok() {
                    program.define(&command);
                }
            }
        }
        program
    }

    /// Upgrades the file to another schema, in the open database or by opening it.
    pub(crate) fn upgrade(&mut self) {
        let program = self.program();
        let steps = plan(&self.committed, &program);
        let expected_steps = steps.clone().unwrap_or_default();
        let mut random = Random::new(self.random.next());
        let mut upgrade = Upgrade {
            model: Model::clone(&self.committed),
            steps: expected_steps.into_iter(),
            random: &mut random,
            customs: customs(&ordered(&self.committed)),
            refused: Ok(()),
            unset: Vec::new(),
            has_two_faults: false,
        };
        let schema = schema(&program);
        let run = &mut |custom: Custom<'_>, tx: &mut Transaction<'_>| upgrade.custom(custom, tx);
        let opened = self.random.chance(30);
        let result = if opened {
            self.end(End::Close);
            let (folder, path) = self.file();
            let options = Options::new().background(false);
            let opened = options.open_schema_with(&path, &schema, run);
            let result = opened.and_then(annals::Database::close);
            self.install(&path);
            drop(folder);
            result
        } else {
            self.database().upgrade(&schema, run)
        };
        let mut ended = match &steps {
            None => Err(ErrorKind::SchemaMismatch),
            Some(steps) if steps.is_empty() => Ok(()),
            Some(_) => upgrade.finish(),
        };
        if upgrade.has_two_faults
            && result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid)
        {
            ended = Err(ErrorKind::Invalid);
        }
        agree(result, ended);
        let model = upgrade.model;
        if ended.is_ok() && steps.is_some_and(|steps| !steps.is_empty()) {
            self.commit(model, Level::Checksummed, None);
        }
        if opened {
            self.open();
        } else {
            self.look(true);
        }
    }

    /// Opens the file with a program of any age, for reading only.
    pub(super) fn other_program(&mut self) {
        let program = if self.random.chance(30) {
            self.program()
        } else {
            let earlier = self.random.pick(&self.schemas);
            Model::clone(earlier)
        };
        let (folder, path) = self.file();
        let reader = Options::new().open_schema_read_only(&path, &schema(&program));
        let readable = is_readable(&self.committed, &program);
        if let Ok(reader) = &reader {
            look::snapshot(&reader.read(), &self.committed, &mut self.random, false);
        }
        agree(reader, if readable { Ok(()) } else { Err(ErrorKind::SchemaMismatch) });
        drop(folder);
    }

    /// Copies the journal, in all its segments, to files of the system.
    fn file(&self) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for name in self.disk.list().unwrap() {
            if name == NAME || name.contains("-segment-") {
                let bytes = self.disk.content(&name).unwrap();
                std::fs::write(folder.path().join(&name), bytes).unwrap();
            }
        }
        let path = folder.path().join(NAME);
        (folder, path)
    }

    /// Puts the journal from files of the system onto a new disk.
    fn install(&mut self, path: &std::path::Path) {
        self.disk = SimulatedDisk::new(self.random.next());
        for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name == NAME || name.contains("-segment-") {
                self.disk.install(name, &std::fs::read(&path).unwrap()).unwrap();
            }
        }
    }
}
