//! Changes of the data that workloads make: of schema, rows, runs of rows, and blobs.

use annals::{
    Blob, Command, FieldNumber, Level, RowId, Schema, Table, TableNumber, Transaction, Type, Value,
    ValueRef,
};
use annals_simulated::Rng;

use super::history::State;
use super::world::World;

/// The table of all rows, whose first field is a string and whose second a number.
const TABLE: TableNumber = TableNumber(0);
const NAME: FieldNumber = FieldNumber(0);
const NUMBER: FieldNumber = FieldNumber(1);

/// Writes rows in one transaction; returns the state after it, if it came to its commit.
pub(super) fn change(
    world: &mut World,
    rows: u64,
    level: Level,
) -> (annals::Result<()>, Option<State>) {
    let World { database, rng, .. } = world;
    let mut after = None;
    let mut run = || -> annals::Result<()> {
        let mut tx = database.as_ref().unwrap().begin()?;
        tx.set_level(level);
        write(&mut tx, rng, rows)?;
        after = Some(State::of_transaction(&tx)?);
        tx.commit().map(drop)
    };
    (run(), after)
}

fn add_field(table: TableNumber, name: String, ty: Type, default: Option<Value>) -> Command {
    let nullable = ty != Type::String;
    Command::AddField { table, name, ty, nullable, default }
}

/// Creates the table, or changes the schema in one of the ways that there are.
pub(super) fn define(tx: &mut Transaction<'_>, rng: &mut Rng) -> annals::Result<()> {
    let name = format!("n{:x}", rng.number());
    if tx.view().schema().table(TABLE).is_none() {
        return define_table(tx);
    }
    match command(tx.view().schema(), &name, rng) {
        Some(command) => tx.apply_command(&command),
        None => define_another(tx, name),
    }
}

/// Returns a change of the schema; none for one more table.
fn command(schema: &Schema, name: &str, rng: &mut Rng) -> Option<Command> {
    let (table, name) = (schema.table(TABLE)?, name.to_owned());
    let more: Vec<_> = table.fields[2..].iter().map(|field| field.number).collect();
    let another = schema.tables().iter().map(|table| table.number).find(|&number| number != TABLE);
    let field = |rng: &mut Rng| more[rng.index(more.len())];
    Some(match rng.below(9) {
        0 => Command::RenameTable { table: TABLE, name },
        1 => Command::RenameField { table: TABLE, field: NAME, name },
        2 if !more.is_empty() => Command::DropField { table: TABLE, field: field(rng) },
        3 => match schema.indexes() {
            [] => by_number(name),
            [first, ..] => Command::DropIndex { index: first.number },
        },
        4 | 5 => Command::DropTable { table: another? },
        6 => add_field(TABLE, name, Type::Blob, None),
        _ => add_field(TABLE, name, Type::Int64, Some(Value::Int64(7))),
    })
}

/// Does all that an upgrade is to do, with the rows of its function, so that the schema and the state
/// after it are known; the caller takes it back. As in an upgrade, indexes go first, and come last.
pub(super) fn plan_upgrade(
    tx: &mut Transaction<'_>,
    (commands, rows): (&mut Rng, &mut Rng),
) -> annals::Result<()> {
    let name = format!("n{:x}", commands.number());
    let mut indexes = Vec::new();
    if tx.view().schema().table(TABLE).is_none() {
        define_fields(tx)?;
        indexes.push(by_number("by_number".to_owned()));
    }
    for number in 0..1 + commands.below(3) {
        let name = format!("n{:x}", commands.number());
        match command(tx.view().schema(), &name, commands) {
            Some(command @ Command::CreateIndex { .. }) => indexes.push(command),
            Some(Command::DropIndex { .. }) if number > 0 => {}
            Some(command) => tx.apply_command(&command)?,
            None => tx.apply_command(&Command::CreateTable { name })?,
        }
    }
    tx.apply_command(&Command::Custom { name })?;
    custom(tx, rows)?;
    indexes.iter().try_for_each(|command| tx.apply_command(command))
}

/// The program's function of an upgrade.
pub(super) fn custom(tx: &mut Transaction<'_>, rng: &mut Rng) -> annals::Result<()> {
    let rows = 1 + rng.below(4);
    write(tx, rng, rows)
}

fn define_table(tx: &mut Transaction<'_>) -> annals::Result<()> {
    define_fields(tx)?;
    tx.apply_command(&by_number("by_number".to_owned()))
}

fn define_fields(tx: &mut Transaction<'_>) -> annals::Result<()> {
    tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
    tx.apply_command(&add_field(TABLE, "name".to_owned(), Type::String, None))?;
    tx.apply_command(&add_field(TABLE, "number".to_owned(), Type::Int64, None))?;
    tx.apply_command(&add_field(TABLE, "content".to_owned(), Type::Blob, None))
}

fn by_number(name: String) -> Command {
    Command::CreateIndex {
        name,
        table: TABLE,
        fields: vec![NUMBER],
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    }
}

/// Makes a table to be dropped some time, with a row in it.
fn define_another(tx: &mut Transaction<'_>, name: String) -> annals::Result<()> {
    tx.apply_command(&Command::CreateTable { name: name.clone() })?;
    let table = tx.view().schema().table_named(&name).map(|table| table.number).unwrap();
    tx.apply_command(&add_field(table, "name".to_owned(), Type::String, None))?;
    tx.insert(table, &[ValueRef::String(&name)]).map(drop)
}

/// Makes the table if a fault, or a crash, was in the way of the first definition.
fn define_first(tx: &mut Transaction<'_>) -> annals::Result<()> {
    if tx.view().schema().table(TABLE).is_none() { define_table(tx) } else { Ok(()) }
}

/// Inserts, updates and deletes rows, with values that no other transaction has.
pub(super) fn write(tx: &mut Transaction<'_>, rng: &mut Rng, rows: u64) -> annals::Result<()> {
    define_first(tx)?;
    for _ in 0..rows {
        let next = tx.view().table(TABLE)?.next_id();
        let id = RowId(rng.below(next.max(1)));
        let is_there = tx.view().table(TABLE)?.contains(id)?;
        let name = format!("{:016x}{}", rng.number(), "x".repeat(rng.index(30)));
        match rng.below(16) {
            0 | 1 if is_there => tx.delete(TABLE, id)?,
            2..=4 if is_there => tx.update(TABLE, id, NAME, ValueRef::String(&name))?,
            5 | 6 => tx.comment(&name)?,
            7 => tx.valid_data()?,
            8 => write_run(tx, rng)?,
            9 | 10 => {
                let blob = write_blob(tx, rng)?;
                insert(tx, &name, Some(blob))?;
            }
            _ => insert(tx, &name, None)?,
        }
    }
    // At least one change that makes the state another.
    insert(tx, &format!("{:016x}", rng.number()), None)
}

/// Inserts a run of rows, fills it, and deletes a part of it.
fn write_run(tx: &mut Transaction<'_>, rng: &mut Rng) -> annals::Result<()> {
    let count = 1 + rng.below(20);
    let id = tx.insert_vector(TABLE, count)?;
    let numbers: Vec<_> = (0..count).map(|_| rng.number().cast_signed()).collect();
    tx.update_vector(TABLE, id, NUMBER, &numbers[..])?;
    let names: Vec<_> = numbers.iter().map(|number| format!("{number:x}")).collect();
    tx.update_vector(TABLE, id, NAME, &names[..])?;
    let kept = rng.below(count);
    tx.delete_vector(TABLE, RowId(id.0 + kept), count - kept)
}

/// Writes a blob, most often a small one, sometimes one of two pieces.
fn write_blob(tx: &mut Transaction<'_>, rng: &mut Rng) -> annals::Result<Blob> {
    let len = if rng.percent(3) { 66_000 } else { rng.index(300) };
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    tx.write_blob(&bytes[..])
}

fn insert(tx: &mut Transaction<'_>, name: &str, blob: Option<Blob>) -> annals::Result<()> {
    let table = tx.view().schema().table(TABLE).cloned();
    let values = table.as_ref().map_or(Vec::new(), |table| row(table, name, blob));
    tx.insert(TABLE, &values).map(drop)
}

fn row<'a>(table: &Table, name: &'a str, blob: Option<Blob>) -> Vec<ValueRef<'a>> {
    let value = |ty| match ty {
        Type::String => ValueRef::String(name),
        Type::Blob => blob.into(),
        _ => ValueRef::Int64(i64::try_from(name.len()).unwrap()),
    };
    table.fields.iter().map(|field| value(field.ty)).collect()
}

/// Makes a change in several parts of a transaction, of which some are rolled back. If one fails, the transaction
/// continues without it.
pub(super) fn parts(
    tx: &mut Transaction<'_>,
    rng: &mut Rng,
    change: impl Fn(&mut Transaction<'_>, &mut Rng) -> annals::Result<()>,
) -> annals::Result<()> {
    write(tx, rng, 1)?;
    let before = State::of_transaction(tx)?;
    let outer = tx.set_savepoint()?;
    let tried = change(tx, rng).and_then(|()| {
        let (inner, between) = (tx.set_savepoint()?, State::of_transaction(tx)?);
        change(tx, rng)?;
        tx.roll_back_to(inner)?;
        assert_eq!(State::of_transaction(tx)?, between, "after the inner part");
        write(tx, rng, 1)
    });
    if tried.is_err() || rng.percent(30) {
        tx.roll_back_to(outer)?;
        assert_eq!(State::of_transaction(tx)?, before, "after the outer part");
    }
    tx.release(outer)?;
    write(tx, rng, 1)
}

/// Writes one row of this many bytes.
pub(super) fn write_sized(
    tx: &mut Transaction<'_>,
    rng: &mut Rng,
    bytes: usize,
) -> annals::Result<()> {
    define_first(tx)?;
    let letter = char::from(b'a' + u8::try_from(rng.below(26)).unwrap());
    let mut text = format!("{:016x}{}", rng.number(), letter.to_string().repeat(bytes));
    text.truncate(bytes.max(16));
    insert(tx, &text, None)
}

/// Deletes about half of the rows, from any on.
pub(super) fn erase(tx: &mut Transaction<'_>, rng: &mut Rng) -> annals::Result<()> {
    define_first(tx)?;
    let next = tx.view().table(TABLE)?.next_id();
    let first = rng.below(next.max(1));
    for id in (first..next.min(first + next / 2)).map(RowId) {
        if tx.view().table(TABLE)?.contains(id)? {
            tx.delete(TABLE, id)?;
        }
    }
    insert(tx, &format!("{:016x}", rng.number()), None)
}

/// Writes a bit more than two data frames, one of them full of pieces of a blob.
pub(super) fn stream(tx: &mut Transaction<'_>, rng: &mut Rng) -> annals::Result<()> {
    define_first(tx)?;
    for place in 0..5 {
        let letter = char::from(b'a' + u8::try_from(rng.below(26)).unwrap());
        let long = format!("{:016x}{}", rng.number(), letter.to_string().repeat(250_000));
        let blob = match place {
            2 => Some(tx.write_blob(long.repeat(5).as_bytes())?),
            _ => None,
        };
        insert(tx, &long, blob)?;
    }
    Ok(())
}
