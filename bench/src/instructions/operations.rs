//! The operations: how the database is prepared, and what is done how often.
//!
//! The other work of `run`, such as filling a table in memory, doesn't depend on the number of operations, so it
//! isn't counted.

use std::hint::black_box;
use std::path::Path;

use crate::engines::Failure;
use crate::measured::{self, Database, LONG, SHORT, keyed, plain, wide};
use crate::random::Random;

/// Rows of the tables that are read and updated: too few for the thread that makes empty pages ahead, whose
/// instructions are unpredictable.
const ROWS: u64 = 100_000;
/// Rows of tables with indexes, which take more to insert.
const INDEXED_ROWS: u64 = 20_000;
/// Less memory than these rows take, which is 2.4 MB.
const LITTLE: u64 = 1 << 20;
/// How often an operation is done at most, twice for the second count.
const MOST: u64 = 100_000;

/// Makes files in a folder, which isn't counted.
type Prepare = fn(&Path, u64) -> Result<(), Failure>;
/// Does the operation so often, on a database that isn't to be closed.
type Run = fn(&Path, u64) -> Result<Database, Failure>;

/// The counted operation.
pub(super) struct Operation {
    pub(super) name: &'static str,
    /// How often it is done for the first count.
    pub(super) times: u64,
    pub(super) prepare: Prepare,
    pub(super) run: Run,
}

const fn operation(name: &'static str, times: u64, prepare: Prepare, run: Run) -> Operation {
    assert!(2 * times <= MOST, "the ids and names are fewer");
    Operation { name, times, prepare, run }
}

/// All that is counted, in the order in which it is printed.
pub(super) const OPERATIONS: &[Operation] = &[
    operation("insert, row by row", 50_000, nothing, insert),
    operation("insert, row by row, long strings", 20_000, nothing, insert_long),
    operation("insert, by vectors", 50_000, nothing, insert_vectors),
    operation("insert, 12 fields and 3 indexes", 4_000, nothing, insert_wide),
    operation("insert, unique string index, random keys", 10_000, nothing, insert_keyed),
    operation("commit of one row, soft", 5_000, nothing, commit),
    operation("commit of an updated number, soft", 5_000, nothing, commit_update),
    operation(
        "commit of an updated row, 12 fields and 3 indexes, soft",
        1_000,
        nothing,
        update_wide,
    ),
    operation("update of a number", 50_000, nothing, update),
    operation("delete", 40_000, nothing, delete),
    operation("snapshot", 20_000, nothing, snapshot),
    operation("read by id, in memory", 50_000, nothing, read),
    operation("read by id, from an image", 50_000, stored, read_stored),
    operation("read by id, from an image larger than memory", 5_000, stored, read_larger),
    operation("read by id, a short string", 50_000, nothing, read_short),
    operation("read by id, a long string", 50_000, nothing, read_long),
    operation("lookup, unique string index", 10_000, nothing, lookup),
    operation("ordered scan, unique string index", 10_000, nothing, ordered),
    operation("scan, by rows", 50_000, nothing, scan),
    operation("scan, by rows, from an image larger than memory", 5_000, stored, scan_larger),
    operation("scan, by slices", 50_000, nothing, scan_slices),
    operation("replay of an inserted row", 50_000, journal, measured_open),
    operation(
        "replay of an inserted row, unique string index",
        10_000,
        keyed_journal,
        measured_open,
    ),
];

#[allow(clippy::unnecessary_wraps, reason = "others can fail")]
fn nothing(_: &Path, _: u64) -> Result<(), Failure> {
    Ok(())
}

fn stored(folder: &Path, _: u64) -> Result<(), Failure> {
    Ok(filled(folder, SHORT)?.close()?)
}

fn journal(folder: &Path, times: u64) -> Result<(), Failure> {
    insert(folder, times)?.close()?;
    Ok(measured::forget_image(folder)?)
}

fn keyed_journal(folder: &Path, times: u64) -> Result<(), Failure> {
    insert_keyed(folder, times)?.close()?;
    Ok(measured::forget_image(folder)?)
}

fn measured_open(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    let now = database.read();
    match now.plain().len() + now.keyed().len() {
        rows if rows == times => Ok(database),
        rows => Err(format!("{rows} rows were replayed, not {times}").into()),
    }
}

/// Opens a database, and fills a table in memory.
fn filled(folder: &Path, name: &str) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    insert_into(&database, name, ROWS)?;
    Ok(database)
}

fn insert_into(database: &Database, name: &str, times: u64) -> Result<(), Failure> {
    Ok(database.write(|tx| {
        for value in 0..times.cast_signed() {
            tx.insert(plain::New { name, value })?;
        }
        Ok(())
    })?)
}

fn insert(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    insert_into(&database, SHORT, times)?;
    Ok(database)
}

fn insert_long(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    insert_into(&database, LONG, times)?;
    Ok(database)
}

fn insert_vectors(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    let (names, values) = (vec![SHORT; to_len(MOST)], Vec::from_iter(0..MOST.cast_signed()));
    let (names, values) = (&names[..to_len(times)], &values[..to_len(times)]);
    database.write(|tx| Ok(tx.insert_vector(plain::Columns { name: names, value: values })?))?;
    Ok(database)
}

fn insert_wide(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    let texts = names(INDEXED_ROWS);
    database.write(|tx| {
        for (row, text) in (0..times).zip(&texts) {
            tx.insert(book(row, text))?;
        }
        Ok(())
    })?;
    Ok(database)
}

/// Returns the fields of a row of the table with many.
fn book(row: u64, text: &str) -> wide::New<'_> {
    let number = u16::try_from(row % 1000).unwrap_or_default();
    wide::New {
        title: text,
        author: &text[..8],
        publisher: (!row.is_multiple_of(3)).then_some("a publisher of books"),
        isbn: &text[..13],
        pages: i32::from(number),
        year: 1500 + i16::try_from(number % 500).unwrap_or_default(),
        price: f64::from(number) / 4.0,
        stock: row.cast_signed(),
        weight: (!row.is_multiple_of(5)).then_some(f32::from(number)),
        rating: u8::try_from(number % 5).unwrap_or_default(),
        in_print: row.is_multiple_of(2),
        added: annals::Timestamp(row.cast_signed()),
    }
}

fn insert_keyed(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    let names = names(INDEXED_ROWS);
    database.write(|tx| {
        for (name, value) in names.iter().zip(0..times.cast_signed()) {
            tx.insert(keyed::New { name, value })?;
        }
        Ok(())
    })?;
    Ok(database)
}

fn commit(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    for value in 0..times.cast_signed() {
        database.write(|tx| Ok(tx.insert(plain::New { name: SHORT, value })?))?;
    }
    Ok(database)
}

fn commit_update(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = filled(folder, SHORT)?;
    for &id in &ids(ROWS)[..to_len(times)] {
        database.write(|tx| {
            tx.edit(plain::Id::from_u64(id))?.set_value(7)?;
            Ok(())
        })?;
    }
    Ok(database)
}

fn update_wide(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = insert_wide(folder, INDEXED_ROWS)?;
    let (ids, texts) = (ids(INDEXED_ROWS), names(INDEXED_ROWS));
    for (row, (&id, text)) in (0..times).zip(ids.iter().zip(&texts)) {
        let (id, new) = (wide::Id::from_u64(id), book(INDEXED_ROWS + row, text));
        database.write(|tx| {
            tx.edit(id)?
                .set_title(new.title)?
                .set_author(new.author)?
                .set_publisher(new.publisher)?
                .set_isbn(new.isbn)?
                .set_pages(new.pages)?
                .set_year(new.year)?
                .set_price(new.price)?
                .set_stock(new.stock)?
                .set_weight(new.weight)?
                .set_rating(new.rating)?
                .set_in_print(new.in_print)?
                .set_added(new.added)?;
            Ok(())
        })?;
    }
    Ok(database)
}

fn update(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = filled(folder, SHORT)?;
    let ids = ids(ROWS);
    database.write(|tx| {
        for &id in &ids[..to_len(times)] {
            tx.edit(plain::Id::from_u64(id))?.set_value(7)?;
        }
        Ok(())
    })?;
    Ok(database)
}

fn delete(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = filled(folder, SHORT)?;
    database.write(|tx| {
        for id in 0..times {
            tx.delete(plain::Id::from_u64(id))?;
        }
        Ok(())
    })?;
    Ok(database)
}

fn snapshot(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    for _ in 0..times {
        black_box(database.read());
    }
    Ok(database)
}

/// Reads rows by id; from each `take` takes what is wanted.
fn read_each(
    database: &Database,
    times: u64,
    take: impl Fn(&plain::Row<'_>) -> i64,
) -> Result<(), Failure> {
    let ids = ids(ROWS);
    let now = database.read();
    let table = now.plain();
    let mut sum = 0_i64;
    for &id in &ids[..to_len(times)] {
        sum = sum.wrapping_add(take(&table.require(plain::Id::from_u64(id))?));
    }
    black_box(sum);
    Ok(())
}

fn read(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = filled(folder, SHORT)?;
    read_each(&database, times, |row| row.value())?;
    Ok(database)
}

fn read_stored(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open(folder)?;
    // Everything is loaded before, since loading isn't what is counted here.
    read_each(&database, MOST, |row| row.value())?;
    read_each(&database, times, |row| row.value())?;
    Ok(database)
}

fn read_larger(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open_with_memory(folder, LITTLE)?;
    // The cached part of the image, the nodes above its pages, is loaded before.
    read_each(&database, ROWS / 10, |row| row.value())?;
    read_each(&database, times, |row| row.value())?;
    Ok(database)
}

fn read_short(folder: &Path, times: u64) -> Result<Database, Failure> {
    read_string(folder, SHORT, times)
}

fn read_long(folder: &Path, times: u64) -> Result<Database, Failure> {
    read_string(folder, LONG, times)
}

fn read_string(folder: &Path, name: &str, times: u64) -> Result<Database, Failure> {
    let database = filled(folder, name)?;
    let last = |row: &plain::Row<'_>| row.name().as_bytes().last().copied().map_or(0, i64::from);
    read_each(&database, times, last)?;
    Ok(database)
}

fn lookup(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = insert_keyed(folder, INDEXED_ROWS)?;
    let (ids, names) = (ids(INDEXED_ROWS), names(INDEXED_ROWS));
    let now = database.read();
    let index = now.keyed().by_name();
    let mut sum = 0_i64;
    for &id in &ids[..to_len(times)] {
        let row = index.get(&names[to_len(id)])?.ok_or("a key isn't there")?;
        sum = sum.wrapping_add(row.value());
    }
    black_box(sum);
    drop(now);
    Ok(database)
}

fn ordered(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = insert_keyed(folder, INDEXED_ROWS)?;
    let mut sum = 0_i64;
    for row in database.read().keyed().by_name().iter().take(to_len(times)) {
        let row: keyed::Row<'_> = row?;
        sum = sum.wrapping_add(row.value());
    }
    black_box(sum);
    Ok(database)
}

fn scan(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = filled(folder, SHORT)?;
    let mut sum = 0_i64;
    for row in database.read().plain().iter().take(to_len(times)) {
        sum = sum.wrapping_add(row?.value());
    }
    black_box(sum);
    Ok(database)
}

fn scan_larger(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = measured::open_with_memory(folder, LITTLE)?;
    let mut sum = 0_i64;
    for row in database.read().plain().iter().take(to_len(times)) {
        sum = sum.wrapping_add(row?.value());
    }
    black_box(sum);
    Ok(database)
}

fn scan_slices(folder: &Path, times: u64) -> Result<Database, Failure> {
    let database = filled(folder, SHORT)?;
    let mut sum = 0_i64;
    let first = plain::Id::from_u64(0);
    for slice in database.read().plain().slices_of(plain::VALUE, first, times)? {
        sum = slice?.iter().fold(sum, |sum, &value| sum.wrapping_add(value));
    }
    black_box(sum);
    Ok(database)
}

/// Returns as many random ids below `limit` as an operation needs at most.
fn ids(limit: u64) -> Vec<u64> {
    let mut random = Random::new(7);
    (0..MOST).map(|_| random.below(limit)).collect()
}

/// Returns different names in no order.
fn names(count: u64) -> Vec<String> {
    let mut random = Random::new(11);
    (0..count).map(|row| format!("{:016x}-{row}", random.below(u64::MAX))).collect()
}

#[allow(clippy::cast_possible_truncation, reason = "counts are far below 2^32")]
const fn to_len(count: u64) -> usize {
    count as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_done_and_has_a_name_of_its_own() {
        for (number, operation) in OPERATIONS.iter().enumerate() {
            let name = operation.name;
            assert!(OPERATIONS[..number].iter().all(|other| other.name != name), "{name}");
            for times in [1, 50] {
                let folder = tempfile::tempdir().unwrap();
                (operation.prepare)(folder.path(), times).unwrap();
                let database = (operation.run)(folder.path(), times).unwrap();
                (*database).read().check().unwrap();
            }
        }
    }
}
