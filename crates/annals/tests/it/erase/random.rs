//! Random histories, erased from at random: what is left is compared with the history before, in which values are
//! replaced by null one event after another, and with what a database shows in which those events are rebuilt.

use std::collections::BTreeSet;

use annals::event::{Event, Script, Vector};
use annals::model::OnDelete;
use annals::reports::Older;
use annals::{
    BackfillMode, Blob, Command, Committed, Database, ErrorKind, FieldNumber, Options, Result,
    RowId, Schema, Sink, TableNumber, Transaction, Type, Value, ValueRef,
};
use annals_simulated::{Rng, SimulatedDisk};
use annals_tools::Erase;
use annals_tools::scan_in;

use super::{NAME, NOW, content, erase, try_open};

fn types() -> Vec<Type> {
    let reference = Type::Reference(TableNumber(0), OnDelete::Dangle);
    Type::samples().into_iter().chain([reference]).collect()
}

fn value(rng: &mut Rng, (ty, nullable): (Type, bool), blobs: u64) -> Value {
    let null = nullable && rng.percent(20);
    let number = rng.number();
    let small = i8::try_from(number % 100).unwrap();
    match ty {
        _ if null => Value::Null,
        Type::Float32 => Value::Float32(f32::from(small) / 4.0),
        Type::Float64 => Value::Float64(f64::from(small) / 8.0),
        Type::String => Value::String("text ".repeat(rng.index(9)) + &small.to_string()),
        Type::Bytes => Value::Bytes(vec![small.unsigned_abs(); rng.index(30)]),
        Type::Blob if blobs == 0 => Value::Null,
        Type::Blob => Value::Blob(Blob(1 + rng.below(blobs))),
        Type::Reference(..) => Value::Reference(RowId(rng.below(8))),
        ty => ty.sample(number.cast_signed() >> (small % 60)),
    }
}

/// A history that is being made.
struct World {
    rng: Rng,
    disk: SimulatedDisk,
    database: Option<Database>,
    blobs: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = SimulatedDisk::new(seed);
        let database = Some(try_open(&disk).unwrap());
        let mut world = Self { rng: Rng::new(seed), disk, database, blobs: 0 };
        let database = world.database.as_ref().unwrap();
        let rng = &mut world.rng;
        database
            .write(|tx| {
                for table in 0..2 {
                    tx.apply_command(&Command::CreateTable { name: format!("t{table}") })?;
                    (0..5).try_for_each(|_| add_field(tx, rng, TableNumber(table)))?;
                }
                Ok(())
            })
            .unwrap();
        world
    }

    fn step(&mut self) {
        let Self { rng, database, blobs, .. } = self;
        let handle = database.as_ref().unwrap();
        match rng.below(24) {
            0 => drop(handle.restart(Older::Kept, NOW).unwrap()),
            1 => drop(handle.restart(Older::NotNeeded, NOW).unwrap()),
            2 => drop(handle.backfill(BackfillMode::Full).unwrap()),
            3 => {
                database.take().unwrap().close().unwrap();
                *database = Some(try_open(&self.disk).unwrap());
            }
            _ => {
                let mut written = *blobs;
                // A commit is refused if two rows have a key, and is as if it had never been.
                let done = handle.write(|tx| {
                    (0..1 + rng.below(6)).try_for_each(|_| statement(tx, rng, &mut written))
                });
                if done.is_ok() {
                    *blobs = written;
                }
            }
        }
    }
}

fn add_field(tx: &mut Transaction<'_>, rng: &mut Rng, table: TableNumber) -> Result<()> {
    let number = tx.view().schema().commands().len();
    let types = types();
    let ty = types[rng.index(types.len())];
    let nullable = ty.is_always_nullable() || rng.percent(30);
    let has_default = rng.percent(30) && ty != Type::Blob;
    let default = has_default.then(|| value(rng, (ty, nullable), 0));
    let name = format!("f{number}");
    tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
    if rng.percent(30) {
        let field = tx.view().schema().table(table).unwrap().fields.last().unwrap().number;
        let (name, unique) = (format!("i{number}"), rng.percent(40));
        // Rows that are there may have the same default.
        let index = Command::CreateIndex {
            name,
            table,
            fields: vec![field],
            descending: Vec::new(),
            collated: Vec::new(),
            unique,
        };
        let _ = tx.apply_command(&index);
    }
    Ok(())
}

/// Does something to rows with small ids, if it can be done.
fn statement(tx: &mut Transaction<'_>, rng: &mut Rng, blobs: &mut u64) -> Result<()> {
    let schema = Schema::clone(tx.view().schema());
    let table = &schema.tables()[rng.index(2)];
    let (number, id) = (table.number, RowId(rng.below(8)));
    let field = &table.fields[rng.index(table.fields.len())];
    let kind = (field.ty, field.nullable);
    let done = match rng.below(20) {
        0 => {
            *blobs += 1;
            tx.write_blob(format!("blob {blobs}").repeat(rng.index(20_000)).as_bytes()).map(drop)
        }
        1 => tx.comment("a comment"),
        2 => tx.delete(number, id),
        3 => tx.insert_zero(number, id),
        4 => tx.insert_vector_at(number, id, 1 + rng.below(4)),
        5 => tx.delete_vector(number, id, 1 + rng.below(3)),
        6 if table.fields.len() < 8 => add_field(tx, rng, number),
        7 if table.fields.len() > 3 && rng.percent(30) => {
            let of_field = |index: &&std::sync::Arc<annals::Index>| index.fields == [field.number];
            for index in schema.indexes().iter().filter(|i| i.table == number).filter(of_field) {
                tx.apply_command(&Command::DropIndex { index: index.number })?;
            }
            tx.apply_command(&Command::DropField { table: number, field: field.number })
        }
        7..12 => {
            let values = table.fields.iter().map(|f| value(rng, (f.ty, f.nullable), *blobs));
            let values: Vec<_> = values.collect();
            tx.insert_at(number, id, &values.iter().map(Value::as_ref).collect::<Vec<_>>())
        }
        12..15 => {
            let values: Vec<_> = (0..1 + rng.below(4)).map(|_| value(rng, kind, *blobs)).collect();
            let values: Vec<_> = values.iter().map(Value::as_ref).collect();
            tx.update_vector(number, id, field.number, Vector::Values(&values))
        }
        _ => tx.update(number, id, field.number, value(rng, kind, *blobs).as_ref()),
    };
    match done {
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt) => Err(error),
        _ => Ok(()),
    }
}

/// Replaces the values of a row's fields by null, event by event.
struct Masked<'m> {
    target: &'m dyn Fn(TableNumber, RowId, FieldNumber) -> bool,
    /// Blobs that values lead to that stay, and to those that go.
    blobs: [BTreeSet<Blob>; 2],
    piece: u64,
    script: Script,
    lines: Vec<String>,
    commits: Vec<(u64, u64)>,
    changed: u64,
}

impl<'m> Masked<'m> {
    fn new(
        target: &'m dyn Fn(TableNumber, RowId, FieldNumber) -> bool,
        blobs: [BTreeSet<Blob>; 2],
    ) -> Self {
        let (script, lines, commits) = Default::default();
        Self { target, blobs, piece: 0, script, lines, commits, changed: 0 }
    }

    /// Reads a history twice: which blobs go is known only at its end.
    fn read(
        disk: &SimulatedDisk,
        target: &'m dyn Fn(TableNumber, RowId, FieldNumber) -> bool,
    ) -> Self {
        let mut first = Self::new(target, Default::default());
        scan_in(&Options::new(), disk, NAME, &mut first).unwrap();
        let mut masked = Self::new(target, first.blobs);
        scan_in(&Options::new(), disk, NAME, &mut masked).unwrap();
        masked
    }

    fn mask<'v>(&mut self, value: ValueRef<'v>, goes: bool) -> ValueRef<'v> {
        if let ValueRef::Blob(blob) = value {
            self.blobs[usize::from(goes)].insert(blob);
        }
        if !goes || matches!(value, ValueRef::Null) {
            return value;
        }
        self.changed += 1;
        ValueRef::Null
    }
}

impl Sink for Masked<'_> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let mut values = Vec::new();
        let target = self.target;
        let event = match *event {
            Event::Insert { table, id, values: all } => {
                let fields = &schema.table(table).unwrap().fields;
                for (field, &value) in fields.iter().zip(all) {
                    values.push(self.mask(value, target(table, id, field.number)));
                }
                Event::Insert { table, id, values: &values }
            }
            Event::Update { table, id, field, value } => {
                let value = self.mask(value, target(table, id, field));
                Event::Update { table, id, field, value }
            }
            Event::UpdateVector { table, id, field, values: all } => {
                let ty = schema.table(table).unwrap().field(field).unwrap().ty;
                for (id, value) in (id.0..).zip(all.iter(ty)) {
                    values.push(self.mask(value, target(table, RowId(id), field)));
                }
                Event::UpdateVector { table, id, field, values: Vector::Values(&values) }
            }
            Event::Blob { blob, offset, bytes, position } => {
                let goes = self.blobs[1].contains(&blob) && !self.blobs[0].contains(&blob);
                self.piece = if offset == 0 { 0 } else { self.piece };
                let (offset, bytes) = match goes {
                    true => (self.piece, &[0][..bytes.len().min(1)]),
                    false => (offset, bytes),
                };
                self.piece += bytes.len() as u64;
                Event::Blob { blob, offset, bytes, position }
            }
            other => other,
        };
        let mut line = String::new();
        self.script.push(schema, &event, &mut line)?;
        self.lines.push(line);
        Ok(())
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        self.lines.push(format!("commit {} at {}", committed.level.name(), committed.time));
        self.commits.push((committed.txid.0, committed.chain));
        Ok(())
    }
}

/// Makes a history again.
struct Again<'db> {
    database: &'db Database,
    open: Option<Transaction<'db>>,
}

impl<'db> Sink for Again<'db> {
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> Result<()> {
        let tx = self.open.get_or_insert_with(|| self.database.begin().unwrap());
        match *event {
            Event::Schema(command) => tx.apply_command(command),
            Event::Insert { .. } | Event::Update { .. } | Event::UpdateVector { .. } => {
                tx.apply_erased(event)
            }
            Event::Delete { table, id } => tx.delete(table, id),
            Event::InsertVector { table, id, count } => tx.insert_vector_at(table, id, count),
            Event::DeleteVector { table, id, count } => tx.delete_vector(table, id, count),
            Event::Blob { offset: 0, bytes, .. } => tx.write_blob(bytes).map(drop),
            Event::Blob { bytes, .. } => tx.append_blob(bytes).map(drop),
            Event::ValidData => tx.valid_data(),
            Event::Comment(text) => tx.comment(text),
            Event::Timestamp(seconds) => tx.timestamp(seconds),
        }
    }

    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        self.open.take().unwrap().commit().map(drop)
    }
}

/// Writes down all rows, with the numbers of blobs only: a state has no bytes of blobs that no row led to then.
fn numbers(snapshot: &annals::Snapshot) -> Vec<String> {
    let lines = content(snapshot, |_, _, _| false).into_iter();
    lines.map(|line| line.split(" of [").next().unwrap().to_owned()).collect()
}

/// Compares what a disk shows with what others show that have the same history.
fn compare_with_others(disk: &SimulatedDisk, place: &str) {
    // The same events in a database of their own give the same rows, also in its image.
    let shown = numbers(&try_open(&disk.fork()).unwrap().read());
    let other = SimulatedDisk::new(3);
    let database = try_open(&other).unwrap();
    let mut again = Again { database: &database, open: None };
    scan_in(&Options::new(), disk, NAME, &mut again).unwrap();
    drop(again);
    assert_eq!(numbers(&database.read()), shown, "{place}");
    database.backfill(BackfillMode::Full).unwrap();
    database.close().unwrap();
    let database = try_open(&other).unwrap();
    assert!(database.recovered().findings.is_empty());
    assert_eq!(numbers(&database.read()), shown, "{place}");
    // What is left when older segments are forgotten is the same, too.
    let newest = disk.fork();
    let database = try_open(&newest).unwrap();
    let based = database.segments().unwrap().into_iter().rev().find(|s| s.begins_with_state);
    if let Some(facts) = based {
        database.forget_before(facts.number).unwrap();
        drop(database);
        let _ = annals::storage::Directory::remove(&newest, "db-image");
        assert_eq!(numbers(&try_open(&newest).unwrap().read()), shown, "{place}");
    }
}

/// Erases something at random, and compares; returns whether there was anything to erase.
fn erase_something(world: &mut World, place: &str) -> bool {
    world.database.take().unwrap().close().unwrap();
    let disk = &world.disk;
    let row = RowId(world.rng.below(8));
    let (table, field) = {
        let database = try_open(disk).unwrap();
        let schema = Schema::clone(database.read().schema());
        let table = schema.tables()[world.rng.index(2)].clone();
        let field = table.fields[world.rng.index(table.fields.len())].clone();
        (table, world.rng.percent(50).then_some(field))
    };
    let (number, only) = (table.number, field.as_ref().map(|field| field.number));
    let target = move |t, r, f| (t, r) == (number, row) && only.is_none_or(|only| only == f);
    let before = Masked::read(disk, &target);
    let rows = |disk: &SimulatedDisk| {
        let all = content(&try_open(disk).unwrap().read(), |_, _, _| false);
        let own = format!("{} {} ", table.name, row.0);
        let field = field.as_ref().map_or_else(String::new, |field| format!("{}:", field.name));
        let others = all.into_iter().filter(|line| !line.starts_with(&format!("{own}{field}")));
        others.collect::<Vec<_>>()
    };
    let expected = rows(&disk.fork());
    let name = field.as_ref().map(|field| field.name.clone());
    let what = Erase { field: name, ..Erase::new(&*table.name, row) };
    let erased = match erase(disk, &what) {
        Err(error) => {
            assert!(error.kind() == ErrorKind::NotFound && before.changed == 0, "{place}: {error}");
            world.database = Some(try_open(disk).unwrap());
            return false;
        }
        Ok(erased) => erased,
    };
    assert_eq!(erased.values, before.changed, "{place}: {what:?}");
    let nothing = |_, _, _| false;
    let after = Masked::read(disk, &nothing);
    let (mark, history) = after.lines.split_at(after.lines.len() - 2);
    assert_eq!(mark, before.lines, "{place}: {what:?}");
    assert!(history[0].starts_with("comment \"erased: "), "{place}");
    assert_eq!(rows(&disk.fork()), expected, "{place}: {what:?}");

    // The marks tell where the chains went.
    let examination = annals_tools::examine_in(&Options::new(), disk, NAME).unwrap();
    assert_eq!((examination.problem, examination.wrong_mark), (None, None), "{place}");
    let last = examination.erasures.last().unwrap();
    let mut carried = 0;
    for (&(txid, old), &(_, new)) in before.commits.iter().zip(&after.commits) {
        if let Some(chain) = last.carry(annals::Txid(txid), old) {
            assert_eq!(chain, new, "{place}: {txid}");
            carried += 1;
        } else {
            assert!(txid >= erased.rewritten.0, "{place}");
        }
    }
    assert!(carried > 0, "{place}");

    compare_with_others(disk, place);
    world.database = Some(try_open(disk).unwrap());
    true
}

#[test]
fn nothing_but_the_values_changes_in_random_histories() {
    let mut erased = 0;
    for seed in 0..60 {
        let mut world = World::new(seed);
        for round in 0..3 {
            (0..25).for_each(|_| world.step());
            erased += u64::from(erase_something(&mut world, &format!("{seed}/{round}")));
        }
    }
    assert!(erased > 100, "{erased}");
}
